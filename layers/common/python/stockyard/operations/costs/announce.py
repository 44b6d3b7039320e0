"""Tells of budgets that are nearly reached or reached: one event of each a month."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from stockyard.domain.month_budgets import (
    BUDGET_NEARLY_REACHED,
    BUDGET_REACHED,
    REACHED,
    TENANT_SUBJECT,
    BudgetWatch,
    MonthBudget,
    threshold_text,
    thresholds_to_announce,
)
from stockyard.domain.pools.records import Pool, pool_id
from stockyard.domain.records import Cluster
from stockyard.errors import Conflict
from stockyard.lifecycle.change import Transition
from stockyard.lifecycle.pools.pool import shown_status
from stockyard.operations.costs.budgets import next_watch, watch_of, watch_write
from stockyard.operations.engine.advance import WORKFLOW_ACTOR
from stockyard.operations.engine.tell import tell
from stockyard.operations.services import Services
from stockyard.ports import Replace, Write

TRIES = 4


def announce(services: Services, budgets: Iterable[MonthBudget], refused: Iterable[str] = ()) -> int:
    """Tell of reached thresholds of these budgets, each once a month; how many events. ``refused`` are
    the keys of scopes for which something was not bought."""
    listed, keys = list(budgets), frozenset(refused)
    count = 0
    for _ in range(TRIES):
        due = thresholds_to_announce(listed, watch_of(services), keys)
        if not due:
            break
        for budget, threshold in due:
            with suppress(Conflict):
                count += _tell(services, budget, threshold)
    return count


def _tell(services: Services, budget: MonthBudget, threshold: int) -> int:
    watch = watch_of(services)
    if not thresholds_to_announce([budget], watch, [budget.scope.key] if threshold == REACHED else ()):
        return 0
    changed = next_watch(services, watch)
    earlier = changed.announced if changed.month == budget.month else {}
    announced = {**earlier, budget.scope.key: threshold}
    changed = replace(changed, month=budget.month, announced=announced, sequence=changed.sequence + 1)
    services.store.commit(watch_write(changed), *_event(services, changed, budget, threshold))
    return 1


def _event(services: Services, watch: BudgetWatch, budget: MonthBudget, threshold: int) -> list[Write]:
    """The event, of the record that has the budget; none where that is gone."""
    reason = BUDGET_REACHED if threshold >= REACHED else BUDGET_NEARLY_REACHED
    text, scope = threshold_text(budget, threshold), budget.scope
    if not scope.cluster_id:
        return tell(services, WORKFLOW_ACTOR, watch, Transition("Quota", None, None, reason, text), TENANT_SUBJECT)
    record: Cluster | Pool | None
    if scope.pool:
        record = services.store.get(Pool, pool_id(scope.cluster_id, scope.pool))
    else:
        record = services.store.get(Cluster, scope.cluster_id)
    if record is None:
        return []
    now, sequence, version = services.now(), record.sequence + 1, record.version + 1
    changed = replace(record, sequence=sequence, version=version, updated_at=now)
    status = changed.status if isinstance(changed, Cluster) else shown_status(changed)
    about = Transition(type(changed).__name__, status, status, reason, text)
    return [Replace(changed), *tell(services, WORKFLOW_ACTOR, changed, about)]
