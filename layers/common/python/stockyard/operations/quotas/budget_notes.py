"""Notes that a month's budget was set or taken away, in the very write that does so."""

from __future__ import annotations

from collections.abc import Mapping

from stockyard.domain.month_budgets import BUDGETS, USD_MONTH
from stockyard.domain.records import Fact
from stockyard.ports import Put, Write


def budget_writes(now: str, before: Mapping[str, str], after: Mapping[str, str]) -> list[Write]:
    """Writes beside limits that change: the scheduler follows it. Nothing where the budget stays."""
    return [] if before.get(USD_MONTH) == after.get(USD_MONTH) else budget_note(now)


def budget_note(now: str) -> list[Write]:
    """Note that a budget has changed."""
    return [Put(Fact(BUDGETS, "", now))]
