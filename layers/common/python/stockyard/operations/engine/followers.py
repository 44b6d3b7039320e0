"""Requests by event that wait for the end of an operation: each is told, by its own correlation id, how that goes on.

The messages are written with the change that they tell of. So none is lost, and none is sent before its time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from stockyard.domain.operation_records import MOST_FOLLOWERS, EventFollower, Operation
from stockyard.domain.records import Outbox
from stockyard.domain.values import ids
from stockyard.errors import Conflict, IllegalTransition, UnexpectedBehavior
from stockyard.lifecycle.change import Transition
from stockyard.lifecycle.operation import progress
from stockyard.operations.services import Services
from stockyard.ports import Create, Replace, Write

PROGRESSED, COMPLETED, FAILED = "RequestProgressed", "RequestCompleted", "RequestFailed"
FINAL = frozenset({"succeeded", "failed", "cancelled", "reverted"})
"""Statuses of an operation that nothing works on any more. A person may let one that has failed go on."""
TRIES = 8

Message = tuple[str, dict[str, Any]]
"""(detail type, detail)"""


def follow(services: Services, operation_id: str, follower: EventFollower) -> Message | None:
    """Tell the follower from now on how the operation goes; what has become of one that has ended already is returned.

    The same follower twice is one. ``IllegalTransition`` for one too many.
    """
    for _ in range(TRIES):
        operation = services.store.get(Operation, operation_id)
        if operation is None:
            raise UnexpectedBehavior("The operation is not readable just now.")
        if operation.status in FINAL:
            return _end(services, operation, follower)
        if follower in operation.followers:
            return None
        if len(operation.followers) >= MOST_FOLLOWERS:
            text = f"{MOST_FOLLOWERS} requests wait for the end of {operation.id} already."
            raise IllegalTransition(text)
        followers = (*operation.followers, follower)
        try:
            services.store.commit(Replace(replace(operation, followers=followers, version=operation.version + 1)))
        except Conflict:
            continue
        return None
    raise UnexpectedBehavior("The operation changes too often to be followed.")


def follower_writes(services: Services, operation: Operation, transition: Transition) -> list[Write]:
    """The outbox items that tell the operation's followers of a transition: of its subject, or its own."""
    messages = [_message(services, operation, follower, transition) for follower in operation.followers]
    return [
        Create(Outbox(services.new_id(ids.OUTBOX), "event", {"detail_type": kind, "detail": detail}, services.now()))
        for kind, detail in messages
    ]


def _end(services: Services, operation: Operation, follower: EventFollower) -> Message:
    error = operation.error
    reason, text = (error.cause_type or error.error_type, error.cause) if error else ("Succeeded", operation.kind)
    transition = Transition("Operation", "running", operation.status, reason, text)
    return _message(services, operation, follower, transition)


def _message(services: Services, operation: Operation, follower: EventFollower, transition: Transition) -> Message:
    detail: dict[str, Any] = {
        **asdict(follower),
        "tenant": services.tenant,
        "operation_id": operation.id,
        "subject": operation.subject,
        "name": operation.subject_name or None,
        "time": services.now(),
    }
    if transition.about != "Operation" or transition.after not in FINAL:
        more = {"progress": progress(operation), "reason": transition.reason, "message": transition.message}
        return PROGRESSED, {**detail, **more}
    if transition.after == "succeeded":
        return COMPLETED, {**detail, "status": "succeeded"}
    return FAILED, {**detail, "status": transition.after, "error": _error(operation, transition)}


def _error(operation: Operation, transition: Transition) -> Mapping[str, Any]:
    error = operation.error
    if error is None:
        return {"error_type": transition.reason, "phase": None, "cause": transition.message, "hint": None}
    more = {"phase": error.phase or None, "hint": error.hint or None}
    return {"error_type": error.cause_type or error.error_type, "cause": error.cause, **more}
