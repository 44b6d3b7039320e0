"""Compare nodes with what their provider's document would make now, and say on their claims by what they differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from stockyard.domain.node_properties import node_labels
from stockyard.domain.records import NodeClaim, NodeProvider
from stockyard.errors import Conflict, StockyardError
from stockyard.lifecycle import claim as lifecycle
from stockyard.lifecycle import drift
from stockyard.operations.claims import WORKFLOW_ACTOR, claim_writes
from stockyard.operations.every import every
from stockyard.operations.services import Services
from stockyard.operations.visible_providers import users
from stockyard.ports import Replace
from stockyard.ports.nodes import NodeSource, NodeWork

MOST = 200
"""Claims that one look after a change writes at most; the sweep goes on with the others."""
DRIFTED, UNDRIFTED = "drifted", "undrifted"


def as_launched(source: NodeSource, work: NodeWork, facts: Mapping[str, str]) -> dict[str, object]:
    """The fields of a claim that its launch decides: which of the options it became, its labels, its fingerprint.

    The provider is the one that the launch was done by, so that a later change of it counts.
    """
    claim = work.claim
    if claim.placement is None:
        return {}
    placement = lifecycle.launched(claim.placement, facts)
    kind = next((one for one in source.kinds(work.provider, work.account) if one.name == placement.type), None)
    labels = node_labels(kind, claim, placement)
    fingerprint = drift.fingerprint(work.provider, replace(claim, node_labels=labels), placement, launched=True)
    return {
        "placement": placement,
        "type_ref": placement.type,
        "node_labels": labels,
        "drift_hash": fingerprint,
    }


def compare_providers(services: Services, provider_ids: Iterable[str]) -> int:
    """Compare the nodes of providers that were changed. Returns how many claims say something else now.

    Of shared ones, one tenant's failure keeps none of the others; the first is raised when all were looked at.
    """
    found = (services.store.get(NodeProvider, provider_id) for provider_id in provider_ids)
    having: dict[str, tuple[Services, dict[str, NodeProvider]]] = {}
    for provider in [one for one in found if one is not None]:
        for user in users(services, provider):
            having.setdefault(user.tenant, (user, {}))[1][provider.id] = provider
    count = 0
    failures: list[StockyardError] = []
    for user, changed in having.values():
        nodes = ((claim, claim.placement) for claim in every(user.store, NodeClaim))
        try:
            count += _first(compare(user, changed.get(at.provider_id), claim) for claim, at in nodes if at)
        except StockyardError as error:
            failures.append(error)
    if failures:
        raise failures[0]
    return count


def _first(done: Iterable[str | None]) -> int:
    count = 0
    for one in done:
        count += one is not None
        if count >= MOST:
            break
    return count


def compare(services: Services, provider: NodeProvider | None, claim: NodeClaim) -> str | None:
    """Compare one node with its provider; what its claim says since, None when that is what it said before.

    What somebody else has just changed, claim or provider, is left to the next look.
    """
    placed = claim.placement
    if provider is None or placed is None or placed.provider_id != provider.id or not claim.drift_hash:
        return None
    if claim.deleting or claim.phase == lifecycle.FAILED:
        return None
    now = drift.fingerprint(provider, claim, placed)
    told = drift.note_drift(claim, drift.differences(claim.drift_hash, now), services.now())
    latest = services.store.get(NodeProvider, provider.id) if told is not None else None
    if told is None or latest is None or latest.version != provider.version:
        return None
    changed, what = told
    changed = replace(changed, sequence=changed.sequence + 1)
    try:
        services.store.commit(Replace(changed), *claim_writes(services, WORKFLOW_ACTOR, changed, what))
    except Conflict:
        return None
    return UNDRIFTED if what.reason == drift.AS_LAUNCHED else DRIFTED
