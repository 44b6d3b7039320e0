"""Budgets of a calendar month in UTC: the most that a tenant, a cluster or a pool is to cost in it, in USD.

What is compared with a budget is the forecast: what the month has cost so far, and what stands, at its present price,
until the month ends. A budget keeps nothing from running. It keeps from buying what would bring the forecast above it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Literal

from stockyard.domain.nodes.records import VersionedRecord
from stockyard.domain.values import times
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.quantities import milli

USD_MONTH = "usd_month"
"""The name of the limit of a cluster or a pool, and of the quota of a tenant."""
BUDGET_REACHED = "BudgetReached"
"""Why a claim waits, and the reason of the event: the budget has no room for what is to be bought."""
BUDGET_NEARLY_REACHED = "BudgetNearlyReached"
NEARLY, REACHED = 80, 100
"""The parts of a budget, in percent, at which an event tells of it, once a month each."""
TENANT_SUBJECT = f"quota/{USD_MONTH}"
"""What events call the budget of a tenant."""
_EPSILON = 1e-6
"""Sums of prices differ by less from each other than from a budget."""

ScopeKind = Literal["pool", "cluster", "tenant"]
_NARROWEST_FIRST: Sequence[ScopeKind] = ("pool", "cluster", "tenant")


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """Scope of a budget: the tenant, one of its clusters, or a pool of one."""

    cluster_id: str = ""
    """Empty: the tenant."""
    pool: str = ""
    """The name of the pool; empty: the whole cluster."""

    @property
    def kind(self) -> ScopeKind:
        """Kind of the scope."""
        return "pool" if self.pool else "cluster" if self.cluster_id else "tenant"

    @property
    def key(self) -> str:
        """The scope as one text."""
        return f"{self.cluster_id}/{self.pool}" if self.pool else self.cluster_id or "tenant"

    def holds(self, cluster_id: str, pool: str) -> bool:
        """Whether what belongs to that cluster and pool, each empty for none, counts for the scope."""
        return self.cluster_id in ("", cluster_id) and self.pool in ("", pool)


@dataclass(slots=True)
class MonthBudget:
    """A budget with what counts for it in a month: ``spent`` USD so far, ``hour`` USD an hour of what stands.

    ``complete`` is False while something counts whose price is not known: then the sums are the known part.
    """

    scope: Scope
    name: str
    """The scope in words: ``pool gpu of cluster demo``."""
    usd: float
    month: str
    """Such as ``2026-11``."""
    hours_left: float
    """Until the month ends."""
    spent: float = 0.0
    hour: float = 0.0
    launching: float = 0.0
    """By how much nodes that are being launched may come to cost more, in USD an hour: while that is open, it is not
    spent on others."""
    complete: bool = True

    @property
    def forecast(self) -> float:
        """Cost of the month if nothing changes, in USD."""
        return self.spent + self.hour * self.hours_left

    @property
    def room(self) -> float:
        """Amount that may still be bought, in USD until the end of the month; below zero where the forecast is above
        it."""
        return self.usd - self.forecast

    @property
    def percent(self) -> int:
        """The part of the budget that the forecast is, in whole percent."""
        if self.usd <= 0:
            return REACHED
        return int(100 * (self.forecast + _EPSILON) / self.usd)

    @property
    def threshold(self) -> int:
        """The highest threshold that the forecast has reached; 0 for none."""
        return max((part for part in (NEARLY, REACHED) if self.percent >= part), default=0)

    def allows(self, usd_hour: float) -> bool:
        """Whether what costs so much an hour may be bought now."""
        return (usd_hour + self.launching) * self.hours_left <= self.room + _EPSILON

    def is_reached_for(self, usd_hour: float) -> bool:
        """Whether it may not be bought whatever becomes of the nodes that are being launched."""
        return usd_hour * self.hours_left > self.room + _EPSILON

    def figures(self) -> str:
        """The budget and how much of it is used, in words."""
        least = "" if self.complete else "at least "
        return (
            f"{self.usd:.2f} USD for {self.month}; {least}{self.spent:.2f} are spent, and what runs brings it to"
            f" {self.forecast:.2f} by the end of the month"
        )


@dataclass(slots=True)
class BudgetLedger:
    """The budgets that one pass goes by. What it buys is taken from their rooms at once, so that the pass as a whole
    stays within them."""

    budgets: list[MonthBudget] = field(default_factory=list)
    missing_members: dict[str, int] = field(default_factory=dict)
    """How many members of a cluster's control plane are not placed yet, by the cluster's id: they count already, as
    items of the cluster."""

    def over(self, cluster_id: str, pool: str) -> list[MonthBudget]:
        """The budgets that something of that cluster and pool counts for, the narrowest first."""
        budgets = [budget for budget in self.budgets if budget.scope.holds(cluster_id, pool)]
        return sorted(budgets, key=lambda budget: _NARROWEST_FIRST.index(budget.scope.kind))

    def refusing(self, cluster_id: str, pool: str, usd_hour: float) -> MonthBudget | None:
        """The narrowest budget that does not allow what costs so much an hour; None where all do."""
        return next((b for b in self.over(cluster_id, pool) if not b.allows(usd_hour)), None)

    def take(self, cluster_id: str, pool: str, usd_hour: float, most: float) -> None:
        """Count what is bought, and that it may come to cost ``most``."""
        for budget in self.over(cluster_id, pool):
            budget.hour += usd_hour
            budget.launching += most - usd_hour


@dataclass(frozen=True, slots=True)
class BudgetWatch(VersionedRecord):
    """Record of a tenant's budgets at the last look, and of the thresholds that an event has told of.

    Whoever buys something under a budget writes it in the same transaction, at the version from before the sums were
    read. So of two that read at once one has to read again, and together they buy no more than one of them would have.
    """

    updated_at: str
    month: str = ""
    """The month of ``announced``."""
    announced: dict[str, int] = field(default_factory=dict)
    """The highest threshold of which an event has told in the month, by the key of the scope."""
    due_at: str | None = None
    """When the budgets are looked at again; None: there is none."""
    sequence: int = 0


BUDGETS = "tenant/budgets"
"""The id of the fact that is written whenever a budget is set or taken away: the scheduler follows it."""
WATCH = "month"
"""The id of the one ``BudgetWatch`` of a tenant."""


def usd_of(amount: str) -> float:
    """A limit in money, to the last digit: quantities are read in thousandths, which may be more than was allowed.
    Raises ``ValueError`` for what is no quantity."""
    try:
        return float(amount)
    except ValueError:
        return milli(amount) / 1000


def usd_month_of(limits: Mapping[str, str]) -> float | None:
    """The budget that limits say; None for none."""
    amount = limits.get(USD_MONTH)
    return None if amount is None else usd_of(amount)


def month_of(now: str) -> str:
    """The month of a moment, such as ``2026-11``."""
    return now[:7]


def month_start(now: str) -> str:
    """Moment when the month of that moment began."""
    return f"{now[:7]}-01T00:00:00.000Z"


def month_end(now: str) -> str:
    """Moment when the month of that moment ends: the first moment of the next one."""
    begun_at = times.from_text(month_start(now))
    return times.to_text(_next_month(begun_at))


def _next_month(first: datetime) -> datetime:
    return first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)


def hours_between(since: str, until: str) -> float:
    """Hours from one moment to another; 0 where that is not later."""
    return max(0.0, (times.from_text(until) - times.from_text(since)).total_seconds() / 3600)


def hours_left(now: str) -> float:
    """Hours until the month of that moment ends."""
    return hours_between(now, month_end(now))


def refusal_text(budget: MonthBudget, thing: str, usd_hour: float | None) -> str:
    """Reason why ``thing`` is not bought, in words that stay while nothing changes: they are told once. ``usd_hour`` is
    its price; None: nobody knows it."""
    subject = f"The month's budget of {budget.name}, {budget.usd:.2f} USD for {budget.month}"
    if usd_hour is None:
        return f"{subject}, is only for what has a known price: {thing} has none."
    return f"{subject}, is reached: it has no room for {thing} at {usd_hour:g} USD an hour."


def passing_text(budget: MonthBudget, more: float) -> str:
    """The words of a plan that adds ``more`` USD an hour, or that sets the budget."""
    if not more:
        return f"The month's budget of {budget.name} is reached at once: {budget.figures()}."
    adds = f"this adds {more * budget.hours_left:.2f}"
    return f"The month's budget of {budget.name} has no room for this: {budget.figures()}; {adds}."


def threshold_text(budget: MonthBudget, threshold: int) -> str:
    """Words of the event of a threshold."""
    if threshold >= REACHED:
        return f"The month's budget of {budget.name} is reached, and nothing new is bought: {budget.figures()}."
    return f"The month's budget of {budget.name} is used to {budget.percent} %: {budget.figures()}."


def thresholds_to_announce(
    budgets: Iterable[MonthBudget], watch: BudgetWatch | None, refused: Iterable[str] = ()
) -> list[tuple[MonthBudget, int]]:
    """The budgets of whose threshold an event has to tell now, with it. ``refused`` are the keys of scopes for which
    something was not bought: their budget is reached, however near the forecast is to it."""
    keys = frozenset(refused)
    due = []
    for budget in budgets:
        told_of = watch.announced.get(budget.scope.key, 0) if watch is not None and watch.month == budget.month else 0
        threshold = REACHED if budget.scope.key in keys else budget.threshold
        if threshold > told_of:
            due.append((budget, threshold))
    return due
