"""Claims: find one, and carry a lifecycle decision about one out, again after a lost race."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stockyard.domain import ids
from stockyard.domain.records import AuditRecord, Name, NodeClaim, Operation, Outbox
from stockyard.errors import Conflict, Fenced, IllegalTransition, NotFound, PreconditionFailed
from stockyard.lifecycle import claim as lifecycle
from stockyard.lifecycle.change import Happening
from stockyard.lifecycle.claim import ClaimChange
from stockyard.operations.services import Services
from stockyard.operations.tell import tell
from stockyard.ports import Create, Replace, Write

TRIES = 8
WORKFLOW_ACTOR = "stockyard"

Decide = Callable[[NodeClaim, Operation], ClaimChange | None]
Known = tuple[NodeClaim, Operation]
Extra = Sequence[Write] | Callable[[NodeClaim], Sequence[Write]]
"""Writes that go with a change, or how they follow from the claim as it stands when the change is decided."""


@dataclass(frozen=True, slots=True)
class ClaimFence:
    """The attempt of an operation on whose behalf something is done to a claim."""

    claim_id: str
    operation_id: str
    attempt: int


def find_claim(services: Services, id_or_name: str) -> NodeClaim:
    """The claim by id or name, else ``NotFound``."""
    claim_id = id_or_name
    if not id_or_name.startswith(f"{ids.NODE_CLAIM}_"):
        name = services.store.get(Name, f"node-claim/{id_or_name}")
        claim_id = name.owner if name else ""
    claim = services.store.get(NodeClaim, claim_id) if claim_id else None
    if claim is None:
        raise NotFound(f"There is no node claim {id_or_name}.")
    return claim


def load(services: Services, fence: ClaimFence) -> tuple[NodeClaim, Operation]:
    """The claim and operation of a fence. ``Fenced`` when the attempt is no longer the current one."""
    claim = services.store.get(NodeClaim, fence.claim_id)
    operation = services.store.get(Operation, fence.operation_id)
    if claim is None or operation is None:
        raise Fenced("The claim or its operation is gone.")
    lifecycle.check_fence(claim, fence.operation_id, fence.attempt)
    return claim, operation


def advance(
    services: Services, fence: ClaimFence, decide: Decide, extra: Extra = (), known: Known | None = None
) -> NodeClaim:
    """Apply ``decide`` to the current records. Returns the claim as it then stands.

    ``known`` are the records as ``load`` gave them a while ago, tried before they are read again: what has changed
    meanwhile refuses the write. ``extra`` is written only with a change. Raises ``Fenced`` when another attempt or
    operation owns the claim, ``Conflict`` after many lost races.
    """
    for _ in range(TRIES):
        claim, operation = known or load(services, fence)
        known = None
        change = decide(claim, operation)
        if change is None:
            return claim
        try:
            return commit(services, WORKFLOW_ACTOR, change, extra if isinstance(extra, Sequence) else extra(claim))
        except Conflict:
            continue
    raise Conflict("The claim changes too often to be written.")


def commit(services: Services, actor: str, change: ClaimChange, extra: Sequence[Write] = ()) -> NodeClaim:
    """Write a change of existing records, with its events, in one transaction."""
    claim, operation, writes = change_writes(services, actor, change)
    services.store.commit(Replace(claim), Replace(operation), *writes, *extra)
    return claim


def change_writes(services: Services, actor: str, change: ClaimChange) -> tuple[NodeClaim, Operation, list[Write]]:
    """The records with their sequences raised, and the writes of all events and the execution start of a change."""
    claim, operation = change.claim, change.operation
    writes: list[Write] = []
    for what in change.happenings:
        if what.about == "NodeClaim":
            claim = replace(claim, sequence=claim.sequence + 1)
            writes += claim_writes(services, actor, claim, what)
        else:
            operation = replace(operation, sequence=operation.sequence + 1)
            writes += tell(services, actor, operation.id, operation.version, operation.sequence, what)
    if change.closed is not None:
        closed = replace(change.closed, sequence=change.closed.sequence + 1)
        over = Happening("Operation", "running", "failed", "Superseded", "The claim is being deleted.")
        writes += [Replace(closed), *tell(services, actor, closed.id, closed.version, closed.sequence, over)]
    if change.workflow is not None:
        writes.append(Create(start_message(services, change.workflow, claim, operation.id, operation.attempt)))
    return claim, operation, writes


def claim_writes(services: Services, actor: str, claim: NodeClaim, what: Happening) -> list[Write]:
    """The event of a change to a claim whose ``sequence`` was already raised."""
    return tell(services, actor, claim.id, claim.version, claim.sequence, what)


def start_message(services: Services, workflow: str, claim: NodeClaim, operation_id: str, attempt: int) -> Outbox:
    """The outbox item that starts the execution of this attempt. Its name makes a second start the same start."""
    given = {"tenant": services.tenant, "claim_id": claim.id, "operation_id": operation_id, "attempt": attempt}
    payload = {"workflow": workflow, "name": f"{operation_id}-{attempt}", "input": given}
    return Outbox(services.new_id(ids.OUTBOX), "workflow", payload, services.now())


def change_claim(
    services: Services, id_or_name: str, version: int, fields: dict[str, Any], actor: str, request_id: str
) -> NodeClaim:
    """The changed claim, with its event and audit record. ``PreconditionFailed`` unless it stands at ``version``."""
    claim = find_claim(services, id_or_name)
    if claim.version != version:
        raise PreconditionFailed(f"The claim is at version {claim.version}, not {version}.")
    if "power" in fields and claim.phase != lifecycle.PENDING:
        raise IllegalTransition("The power of a node that is there is switched by POST /power.")
    stamped = {"updated_at": services.now(), "version": version + 1, "sequence": claim.sequence + 1}
    changed: NodeClaim = replace(claim, **{**fields, **stamped})
    message = f"Changed: {', '.join(sorted(fields))}."
    phase = lifecycle.shown_phase(claim)
    audit = AuditRecord(
        services.new_id(ids.AUDIT), services.now(), actor, "ChangeNodeClaim", claim.id, "done", request_id, message
    )
    told = claim_writes(services, actor, changed, Happening("NodeClaim", phase, phase, "Changed", message))
    try:
        services.store.commit(Replace(changed), Create(audit), *told)
    except Conflict as conflict:
        raise PreconditionFailed("The claim was changed by someone else just now.") from conflict
    return changed
