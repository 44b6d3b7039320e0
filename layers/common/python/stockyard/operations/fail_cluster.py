"""What a workflow does when a phase failed for good: undo the phase, then say so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stockyard.domain.records import OperationError
from stockyard.lifecycle import cluster as lifecycle
from stockyard.lifecycle import phases
from stockyard.lifecycle.hints import hint
from stockyard.operations.advance import Fence, advance, load
from stockyard.operations.ledger import describe, lines_of
from stockyard.operations.run_phase import Step, cloud_work
from stockyard.operations.services import Services
from stockyard.ports import Outcome

CAUSE_LIMIT = 1000


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
    """Remove what the failed phase made. Earlier phases' work stays for ``resume``; a deletion removes it."""
    cluster, _ = load(services, fence)
    for phase in phases.undone_with(cluster.phase or "account"):
        if phase not in phases.CLOUD_PHASES or not lines_of(services, cluster.id, phase):
            continue
        provider, work = cloud_work(services, cluster, phase, fence)
        outcome: Outcome = provider.remove(phase, work)
        if not outcome.done:
            return Step(False, outcome.wait_seconds, outcome.message)
    return Step(True, 0)


def fail(services: Services, fence: Fence, error: Mapping[str, Any]) -> Step:
    """Write the failure on the operation and the cluster: phase, cause, hint."""
    name, cause = read_error(error)
    cluster, _ = load(services, fence)
    found = OperationError("ClusterCouldNotBeDeployed", cluster.phase or "account", cause, hint(name))
    advance(services, fence, lambda c, o: lifecycle.fail(c, o, found, services.now()))
    return Step(True, 0)


def block(services: Services, fence: Fence, error: Mapping[str, Any]) -> Step:
    """A deletion cannot go on for now: write what is left and why. The sweep tries again."""
    name, cause = read_error(error)
    cluster, _ = load(services, fence)
    remaining = tuple(describe(line) for line in lines_of(services, cluster.id))[:50]
    found = OperationError(name, cluster.phase or "settle", cause, hint(name))
    advance(services, fence, lambda c, o: lifecycle.block_deletion(c, o, found, remaining, services.now()))
    return Step(True, 0)
