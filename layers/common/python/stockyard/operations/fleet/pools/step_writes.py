"""Writes of a step of a pool: its record, and an event when its state changed."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from stockyard.domain.pools.records import Pool
from stockyard.domain.values.conditions import Condition
from stockyard.errors import Conflict
from stockyard.lifecycle.change import Transition
from stockyard.lifecycle.pools.pool import LEAVING, QUOTA, READY, Decision, refused, shown_status
from stockyard.operations.engine.advance import WORKFLOW_ACTOR
from stockyard.operations.engine.tell import tell
from stockyard.operations.services import Services
from stockyard.ports import Remove, Replace, Write


def write_step(services: Services, pool: Pool, decision: Decision) -> Pool | None:
    """The pool as the decision leaves it, with an event when its state changed; None when it was removed."""
    if decision.remove:
        removed = replace(pool, sequence=pool.sequence + 1)
        deleted = Transition("Pool", LEAVING, None, "Deleted", f"Pool {pool.name} is gone.")
        events = tell(services, WORKFLOW_ACTOR, removed, deleted)
        services.store.commit(Remove(Pool, pool.id, pool.version), *events)
        return None
    changed = decision.pool
    # To give back is guarded by the version too: two passes must not each choose others.
    if changed == pool and not decision.give_back:
        return pool
    return _replaced(services, pool, changed)


def _replaced(services: Services, before: Pool, changed: Pool) -> Pool:
    now = services.now()
    changed = replace(changed, version=before.version + 1, updated_at=now)
    events: list[Write] = []
    old, new = shown_status(before), shown_status(changed)
    condition, earlier = _ready_condition(changed), _ready_condition(before)
    if (
        not changed.deleting
        and condition is not None
        and (old != new or earlier is None or earlier.reason != condition.reason)
    ):
        changed = replace(changed, sequence=before.sequence + 1)
        transition = Transition("Pool", old, new, condition.reason, condition.message)
        events = tell(services, WORKFLOW_ACTOR, changed, transition)
    services.store.commit(Replace(changed), *events)
    return changed


def write_refusal(services: Services, pool: Pool, text: str) -> Pool | None:
    """The pool, which says why it could not make its claims for now; None when it is gone."""
    current = services.store.get(Pool, pool.id)
    if current is None:
        return None
    with suppress(Conflict):
        return _replaced(services, current, refused(current, QUOTA, text, services.now()))
    return current


def _ready_condition(pool: Pool) -> Condition | None:
    return next((condition for condition in pool.conditions if condition.type == READY), None)
