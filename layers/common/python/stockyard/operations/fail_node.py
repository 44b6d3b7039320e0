"""What a claim's workflow does when a phase failed for good: undo the machine, then say so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockyard.domain import times
from stockyard.domain.records import OperationError
from stockyard.lifecycle import claim as lifecycle
from stockyard.lifecycle import node_phases as phases
from stockyard.lifecycle.hints import hint
from stockyard.operations import give_back
from stockyard.operations.claims import ClaimFence, advance, load
from stockyard.operations.fail_cluster import COMPENSATION_SECONDS, NAMED, read_error
from stockyard.operations.ledger import describe, lines_of
from stockyard.operations.run_phase import Step
from stockyard.operations.services import Services

ERROR_TYPE = "NodeCouldNotBeProvisioned"
REMAINING = 50


def compensate(services: Services, fence: ClaimFence) -> Step:
    """Remove the machine that was made. It ends within ``COMPENSATION_SECONDS``: what is left by then stays on the
    ledger, and deleting the claim removes it."""
    claim, operation = load(services, fence)
    if operation.kind == phases.POWER_NODE:
        return Step(True, 0)
    outcome = give_back.terminate(services, claim, fence)
    if outcome.done:
        return Step(True, 0)
    age = (services.clock.now() - times.from_text(operation.updated_at)).total_seconds()
    given_up = age > COMPENSATION_SECONDS
    return Step(given_up, 0 if given_up else outcome.wait_seconds, outcome.message)


def fail(services: Services, fence: ClaimFence, error: Mapping[str, Any]) -> Step:
    """Write the failure on the operation and the claim, and give the counted place back with the machine gone."""
    name, cause = read_error(error)
    claim, operation = load(services, fence)
    if operation.kind == phases.POWER_NODE:
        failed = OperationError(ERROR_TYPE, lifecycle.undone(claim, operation), cause, hint(name, operation.kind), name)
        advance(services, fence, lambda c, o: lifecycle.fail_power(c, o, failed, services.now()))
        return Step(True, 0)
    left = [describe(line) for line in lines_of(services, claim.id)]
    rest = f"Not undone yet: {', '.join(left[:NAMED])}; deleting the claim removes it." if left else ""
    advice = " ".join(part for part in (hint(name, operation.kind), rest) if part)
    found = OperationError(ERROR_TYPE, lifecycle.undone(claim, operation), cause, advice, name)
    advance(
        services,
        fence,
        lambda c, o: lifecycle.fail(c, o, found, services.now(), placeless=not left),
        lambda c: () if left else give_back.place_of(services, c),
    )
    return Step(True, 0)


def block(services: Services, fence: ClaimFence, error: Mapping[str, Any]) -> Step:
    """A deletion cannot go on for now: write what is left and why. The sweep tries again."""
    name, cause = read_error(error)
    claim, operation = load(services, fence)
    remaining = tuple(describe(line) for line in lines_of(services, claim.id))[:REMAINING]
    found = OperationError(name, lifecycle.undone(claim, operation), cause, hint(name, operation.kind), name)
    advance(services, fence, lambda c, o: lifecycle.block_deletion(c, o, found, remaining, services.now()))
    return Step(True, 0)
