"""The Secrets with kubeconfigs that an agent keeps: new tokens for it, and what it says became of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from stockyard.domain.records import UNSEEN, Cluster, Fact
from stockyard.domain.values.conditions import Condition, with_condition
from stockyard.domain.values.states import Truth
from stockyard.errors import Conflict, IllegalTransition, UnexpectedBehavior
from stockyard.lifecycle.clusters.cluster import MOVES
from stockyard.operations.clusters.access.kubeconfig import kubeconfig_secret
from stockyard.operations.clusters.kept_secrets import CONDITION, secret_name
from stockyard.operations.listing import every
from stockyard.operations.machines.observe import KEPT_SECRETS
from stockyard.operations.services import Services
from stockyard.ports import Remove, Replace

REFRESH_SECONDS = 240
"""How soon an agent comes again for new tokens: twice within the ten minutes that a Secret may be old."""
WRITTEN, REMOVED = "written", "removed"
"""What an agent says of a Secret; anything else is that it could not."""
MOST = 50
"""Secrets that one agent keeps at most."""


def refreshed(
    services: Services, holder: Cluster, results: Sequence[Mapping[str, Any]], actor: str, *, refresh: bool
) -> dict[str, Any]:
    """Secrets that the agent of the cluster is to write, each with a token of now, and those to remove.

    ``results`` are what became of the ones before; without ``refresh`` they are all that is said.
    """
    by_name = {(str(result["namespace"]), str(result["name"])): result for result in results}
    secrets: list[dict[str, Any]] = []
    removed: list[dict[str, str]] = []
    for fact in list(every(services.store, Fact, f"{holder.id}/{KEPT_SECRETS}-"))[:MOST]:
        target = _target(services, holder, fact)
        if target is None:
            reference = json.loads(fact.value)
            if by_name.get((reference["namespace"], reference["name"]), {}).get("status") == REMOVED:
                services.store.commit(Remove(Fact, fact.id))
            else:
                removed.append({"namespace": reference["namespace"], "name": reference["name"]})
            continue
        secret = target.kubeconfig_secret
        result = by_name.get((secret["namespace"], secret_name(services, target)))
        if result is not None:
            _note(services, target, str(result["status"]) == WRITTEN, str(result["message"]))
        if refresh and target.status == "ready":
            secrets += _minted(services, target, actor)
    return {"secrets": secrets, "removed": removed, "interval_seconds": REFRESH_SECONDS}


def _minted(services: Services, target: Cluster, actor: str) -> list[dict[str, Any]]:
    try:
        document = kubeconfig_secret(services, target, target.kubeconfig_secret["role"], actor)
    except (IllegalTransition, UnexpectedBehavior) as error:
        _note(services, target, False, error.detail)
        return []
    metadata = {**document["metadata"], "namespace": target.kubeconfig_secret["namespace"]}
    return [{**document, "metadata": metadata}]


def _note(services: Services, target: Cluster, is_written: bool, message: str) -> None:
    """Say on the cluster what became of its Secret, where that is news."""
    secret = target.kubeconfig_secret
    subject = f"the namespace {secret['namespace']} of cluster {secret['cluster']}"
    text = f"It is kept fresh in {subject}." if is_written else f"It is not written in {subject}: {message}"
    status: Truth = "True" if is_written else "False"
    condition = Condition(CONDITION, status, "Written" if is_written else "NotWritten", text, services.now())
    before = next((each for each in target.conditions if each.type == CONDITION), None)
    if before is not None and (before.status, before.message) == (condition.status, condition.message):
        return
    changed = MOVES.touch(target, services.now(), conditions=with_condition(target.conditions, condition))
    with suppress(Conflict):  # Somebody has changed the cluster just now: the next answer says it.
        services.store.commit(Replace(changed))


def _target(services: Services, holder: Cluster, fact: Fact) -> Cluster | None:
    """The cluster whose Secret the fact is of; None where nobody asks for that any more."""
    cluster_id, namespace = fact.id.removeprefix(f"{holder.id}/{KEPT_SECRETS}-").split("/", 1)
    target = services.store.get(Cluster, cluster_id)
    if target is None or target.status == "deleting" or target.status in UNSEEN:
        return None
    secret = target.kubeconfig_secret
    is_same = (secret.get("cluster_id"), secret.get("namespace")) == (holder.id, namespace)
    return target if is_same else None
