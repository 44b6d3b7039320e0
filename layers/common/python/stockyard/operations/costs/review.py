"""Looks at a tenant's budgets when one was set, each hour, and when a month begins."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from stockyard.domain.month_budgets import month_end
from stockyard.domain.values import times
from stockyard.errors import Conflict
from stockyard.operations.costs.announce import announce
from stockyard.operations.costs.budgets import all_budgets, next_watch, watch_of, watch_write
from stockyard.operations.costs.kept_sums import ledger_now
from stockyard.operations.services import Services

REVIEW_SECONDS = 3600
"""How often budgets are looked at though nothing tells of them: prices move, and nodes go."""


def review(services: Services) -> int:
    """Look at every budget of the tenant and tell of thresholds that are reached; how many events. Without a budget
    nobody looks again until one is set."""
    sums, watch = ledger_now(services, all_budgets(services)), watch_of(services)
    due_at = _next_look(services) if sums.budgets else None
    if watch is not None or sums.budgets:
        with suppress(Conflict):  # somebody buys at this moment: the record is due still
            services.store.commit(watch_write(replace(next_watch(services, watch), due_at=due_at)))
    return announce(services, sums.budgets)


def _next_look(services: Services) -> str:
    later = times.to_text(services.clock.now() + timedelta(seconds=REVIEW_SECONDS))
    return min(later, month_end(services.now()))
