"""What a workflow does when a phase failed for good: undo the phase, then say so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stockyard.domain import times
from stockyard.domain.records import Cluster, Operation, OperationError
from stockyard.lifecycle import cluster as lifecycle
from stockyard.lifecycle import phases
from stockyard.lifecycle.hints import hint
from stockyard.lifecycle.operation import phase_of
from stockyard.operations.advance import Fence, advance, load
from stockyard.operations.ledger import describe, lines_of
from stockyard.operations.run_phase import Step, cloud_work
from stockyard.operations.services import Services
from stockyard.ports import Outcome

CAUSE_LIMIT = 1000
COMPENSATION_SECONDS = 3600
NAMED = 10
"""How many things that are left a hint names."""


def read_error(error: Mapping[str, Any]) -> tuple[str, str]:
    """(name, cause in words) of what a ``Catch`` caught. A Lambda's cause is JSON with ``errorMessage``."""
    name, cause = str(error.get("Error", "Unknown")), str(error.get("Cause", ""))
    try:
        document = json.loads(cause)
    except ValueError:
        document = None
    if isinstance(document, dict) and "errorMessage" in document:
        cause = str(document["errorMessage"])
    if name in ("States.Timeout", "Sandbox.Timedout"):
        cause = cause or "The phase did not answer in time."
    return name, cause[:CAUSE_LIMIT] or name


def compensate(services: Services, fence: Fence) -> Step:
    """Remove what the failed phase made. Earlier phases' work stays for ``resume``; a deletion removes it.

    It ends within ``COMPENSATION_SECONDS`` after the phase's own limit: what cannot be removed by then stays on the
    ledger, so that the reason of the failure is told and a deletion removes the rest.
    """
    cluster, operation = load(services, fence)
    for phase in phases.undone_with(cluster.phase or "account"):
        if phase not in phases.CLOUD_PHASES or not lines_of(services, cluster.id, phase):
            continue
        provider, work = cloud_work(services, cluster, phase, fence)
        outcome: Outcome = provider.remove(phase, work)
        if not outcome.done:
            given_up = _too_late(services, cluster, operation)
            return Step(given_up, 0 if given_up else outcome.wait_seconds, outcome.message)
    return Step(True, 0)


def _too_late(services: Services, cluster: Cluster, operation: Operation) -> bool:
    failed = cluster.phase or "account"
    # A resumed attempt may fail before its phase has begun.
    since = phase_of(operation, failed).started_at or operation.updated_at
    age = (services.clock.now() - times.from_text(since)).total_seconds()
    return age > phases.LIMIT_SECONDS[failed] + COMPENSATION_SECONDS


def fail(services: Services, fence: Fence, error: Mapping[str, Any]) -> Step:
    """Write the failure on the operation and the cluster: phase, cause, hint."""
    name, cause = read_error(error)
    cluster, operation = load(services, fence)
    advice = " ".join(part for part in (hint(name, operation.kind), _not_undone(services, cluster)) if part)
    found = OperationError("ClusterCouldNotBeDeployed", cluster.phase or "account", cause, advice, name)
    advance(services, fence, lambda c, o: lifecycle.fail(c, o, found, services.now()))
    return Step(True, 0)


def _not_undone(services: Services, cluster: Cluster) -> str:
    undone = phases.undone_with(cluster.phase or "account")
    left = [describe(line) for phase in undone for line in lines_of(services, cluster.id, phase)]
    return f"Not undone yet: {', '.join(left[:NAMED])}; deleting the cluster removes it." if left else ""


def block(services: Services, fence: Fence, error: Mapping[str, Any]) -> Step:
    """A deletion cannot go on for now: write what is left and why. The sweep tries again."""
    name, cause = read_error(error)
    cluster, operation = load(services, fence)
    remaining = tuple(describe(line) for line in lines_of(services, cluster.id))[:50]
    found = OperationError(name, cluster.phase or "settle", cause, hint(name, operation.kind), name)
    advance(services, fence, lambda c, o: lifecycle.block_deletion(c, o, found, remaining, services.now()))
    return Step(True, 0)
