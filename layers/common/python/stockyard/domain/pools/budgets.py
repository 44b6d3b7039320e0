"""Disruption budgets of a pool: how many of its nodes may be disrupted at a time, for which reason, and when.

The rules are Karpenter's: the strictest of all budgets that are open and name the reason counts, and a budget that
cannot be read allows nothing. Empty, drifted and underutilized nodes are under budgets. Expired ones are under those
alone that name the reason ``Expired``, which is ours: so they can be kept for a window of maintenance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from stockyard.domain.pools import schedules
from stockyard.domain.pools.schedules import Schedule
from stockyard.domain.values import durations
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.patterns import pattern

EMPTY, DRIFTED, UNDERUTILIZED = "Empty", "Drifted", "Underutilized"
EXPIRED = "Expired"
REASONS = (EMPTY, DRIFTED, UNDERUTILIZED, EXPIRED)
UNBOUNDED = 2**31 - 1
"""What is allowed where no budget says anything."""
DEFAULT_NODES = "10%"
"""``nodes`` of the one budget of a pool that says nothing of budgets."""
_NODES = pattern(r"([0-9]{1,9})(%?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Budget:
    """One budget. ``fault`` says why it cannot be read; then it allows nothing, at any time and for any reason."""

    amount: int = 0
    """Nodes, or with ``percent`` their part of the pool, rounded up."""
    percent: bool = False
    reasons: frozenset[str] = frozenset()
    """The reasons that it holds for; empty: all."""
    schedule: Schedule | None = None
    """When its windows open; None: it is always open."""
    duration: timedelta = timedelta()
    fault: str = ""

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Budget:
        """The budget of a pool's record: ``nodes``, ``reasons``, ``schedule``, ``duration``, ``timeZone``."""
        try:
            return cls._read(entry)
        except (ValueError, TypeError, AttributeError) as error:
            return cls(fault=str(error) or "cannot be read")

    @classmethod
    def _read(cls, entry: Mapping[str, Any]) -> Budget:
        match = _NODES.fullmatch(str(entry["nodes"])) if "nodes" in entry else None
        if match is None or (match[2] and int(match[1]) > 100):
            raise ValueError("nodes: must be a number of nodes, or a percentage from 0% to 100%")
        reasons = frozenset(entry.get("reasons") or ())
        if unknown := reasons - frozenset(REASONS):
            raise ValueError(f"reasons: {len(unknown)} of them are none of {', '.join(REASONS)}")
        text, duration_text, zone = entry.get("schedule"), entry.get("duration"), entry.get("timeZone") or ""
        if bool(text) != bool(duration_text):
            raise ValueError("schedule: must be set with duration")
        if zone and not text:
            raise ValueError("timeZone: must be set with schedule")
        schedule = schedules.parse(text, zone) if text else None
        seconds = durations.seconds(duration_text) if duration_text else 0
        if seconds is None:
            raise ValueError("duration: must end")
        if duration_text and seconds == 0:
            raise ValueError("duration: must be longer than 0")
        return cls(int(match[1]), bool(match[2]), reasons, schedule, timedelta(seconds=seconds))

    def is_open(self, now: datetime) -> bool:
        """Whether the budget counts at this moment."""
        return self.schedule is None or schedules.is_open(self.schedule, self.duration, now)

    def holds_for(self, reason: str) -> bool:
        """Whether the budget is about nodes that are disrupted for this reason."""
        return reason in self.reasons or (not self.reasons and reason != EXPIRED)

    @property
    def text(self) -> str:
        """Words for the number of nodes that the budget lets go at a time."""
        if self.fault:
            return "that cannot be read"
        return f"of {self.amount}%" if self.percent else f"of {self.amount} node{'s' * (self.amount != 1)}"

    def nodes_of(self, count: int) -> int:
        """Number of nodes, of ``count``, that the budget lets be disrupted at a time."""
        return -(-self.amount * count // 100) if self.percent else self.amount


@dataclass(frozen=True, slots=True)
class NodeState:
    """Facts about a node that budgets ask for."""

    managed: bool = True
    """It is a claim's."""
    initialized: bool = True
    """It was ready for pods once."""
    ready: bool = True
    disrupting: bool = False
    """It is on its way out, for whatever reason, or chosen for it."""
    terminated: bool = False
    """Its machine is gone or going."""

    @property
    def counts(self) -> bool:
        """Whether it is one of the nodes that percentages are taken of."""
        return self.managed and self.initialized and not self.terminated


def budgets_of(disruption: Mapping[str, Any]) -> tuple[Budget, ...]:
    """The budgets of a pool's ``disruption``. Where it says nothing of them there is one of 10 %; an empty list has no
    bound."""
    return tuple(Budget.of(entry) for entry in disruption.get("budgets", [{"nodes": DEFAULT_NODES}]))


def allowed(budgets: Iterable[Budget], reason: str, nodes: int, now: datetime) -> int:
    """Number of the pool's ``nodes`` that may be disrupted at a time for ``reason``; ``UNBOUNDED`` where no budget
    says.

    ``nodes`` are those of :attr:`NodeState.counts`. A budget with a fault allows nothing, whatever its reasons.
    """
    budget = strictest(budgets, reason, nodes, now)
    return UNBOUNDED if budget is None else budget.nodes_of(nodes)


def strictest(budgets: Iterable[Budget], reason: str, nodes: int, now: datetime) -> Budget | None:
    """The budget that allows the fewest of so many nodes; one with a fault before all others. None: no budget says."""
    listed = list(budgets)
    faulty = [budget for budget in listed if budget.fault]
    counting = [budget for budget in listed if budget.holds_for(reason) and budget.is_open(now)]
    return min(faulty or counting, key=lambda budget: budget.nodes_of(nodes), default=None)


def remaining(budgets: Sequence[Budget], reason: str, nodes: Iterable[NodeState], now: datetime) -> int:
    """Number of further nodes of a pool that may be disrupted for ``reason``: what is allowed, less those that are
    missing already because they are not ready or on their way out, for whatever reason. Never below 0."""
    counted = [node for node in nodes if node.counts]
    missing = sum(node.disrupting or not node.ready for node in counted)
    return max(0, allowed(budgets, reason, len(counted), now) - missing)


def next_change(budgets: Iterable[Budget], now: datetime) -> datetime | None:
    """Moment when a window opens or ends next, so that more or less may be disrupted from then on; None: never by
    itself.

    Of windows that follow each other without an end, a moment before it: one that looks then asks again.
    """
    changes = (
        schedules.next_change(budget.schedule, budget.duration, now)
        for budget in budgets
        if budget.schedule is not None
    )
    return min((change for change in changes if change is not None), default=None)
