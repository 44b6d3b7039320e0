"""News of machines about their first boot: the step they are at, and how one ended that failed.

It is shown to people when an operation fails, so what looks like a token or a key is taken out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stockyard.domain.records import Cluster, Fact, NodeClaim
from stockyard.domain.values.redaction import redact
from stockyard.operations.machines.bootstrap import waiting_cluster
from stockyard.operations.machines.join import waiting_claim
from stockyard.operations.services import Services
from stockyard.ports import Put

BOOT = "boot"
"""The fact that keeps what a machine said: of a cluster; of a claim with the number of the attempt behind it."""
MOST_LINES = 20


def report_of_control_plane(
    services: Services, cluster_id: str, proof: Mapping[str, Any], report: Mapping[str, Any]
) -> None:
    """Keep what the cluster's recorded machine says. ``Unauthorized`` for any other, ``NotFound`` without the
    cluster."""
    cluster, _ = waiting_cluster(services, cluster_id, proof)
    _keep(services, boot_fact(cluster), report)


def report_of_node(services: Services, claim_id: str, proof: Mapping[str, Any], report: Mapping[str, Any]) -> None:
    """Keep what the claim's machine says. Raises as ``join_machine`` does for a proof."""
    claim, _ = waiting_claim(services, claim_id, proof)
    _keep(services, boot_fact(claim), report)


def boot_fact(subject: Cluster | NodeClaim) -> str:
    """The name of the fact. A claim's next attempt has another machine."""
    return f"{subject.id}/{BOOT}" + (f"-{subject.attempt}" if isinstance(subject, NodeClaim) else "")


def last_words(services: Services, subject: Cluster | NodeClaim) -> str | None:
    """Last words of the machine of a cluster or claim, as sentences and lines; None when it said nothing."""
    fact = services.store.get(Fact, boot_fact(subject))
    if fact is None:
        return None
    report = json.loads(fact.value)
    words = [f"Its machine was last at the step {report['step']}, at {fact.time}."]
    if failure := report["failure"]:
        words += [f"Its step {failure['step']} had ended with {failure['exit']}:", failure["lines"]]
    return "\n".join(words)


def _keep(services: Services, name: str, report: Mapping[str, Any]) -> None:
    """The step that a machine is at, and its last failure: the unit of the first boot starts again after one."""
    last = services.store.get(Fact, name)
    failure = json.loads(last.value)["failure"] if last is not None else None
    if report["exit"] is not None:
        lines = "\n".join(redact(str(report["lines"])).splitlines()[-MOST_LINES:])
        failure = {"step": report["step"], "exit": report["exit"], "lines": lines}
    services.store.commit(Put(Fact(name, json.dumps({"step": report["step"], "failure": failure}), services.now())))
