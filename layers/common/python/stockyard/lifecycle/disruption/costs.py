"""What it costs to disrupt pods and nodes, and what that is worth; the numbers are Karpenter's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

ORDINARY = 1.0
"""What it costs to evict a pod that says nothing of it; also what a node costs without its pods."""
_DELETION_COST_UNIT, _PRIORITY_UNIT = 2**27, 2**25
_LEAST, _MOST = -10.0, 10.0
BALANCE = 2.0
"""``Balanced`` allows at most so many times the share of a pool's disruption as of its price."""
T = TypeVar("T")


def eviction_cost(deletion_cost: float = 0.0, priority: int = 0) -> float:
    """What it costs to evict a pod: 1 for an ordinary one, from -10 to 10.

    ``deletion_cost`` is the annotation ``controller.kubernetes.io/pod-deletion-cost``, ``priority`` the pod's.
    """
    cost = ORDINARY + deletion_cost / _DELETION_COST_UNIT + priority / _PRIORITY_UNIT
    return min(_MOST, max(_LEAST, cost))


def disruption_cost(eviction_costs: Iterable[float]) -> float:
    """What it costs to disrupt a node: 1, and what it costs to evict each pod that would move. A pod that would rather
    go makes it no cheaper."""
    return ORDINARY + sum(max(0.0, cost) for cost in eviction_costs)


def savings_ratio(price: float, cost: float) -> float:
    """USD an hour of a node for each unit of its ``disruption_cost``. Nodes with much of it are looked at first."""
    return price / cost


def in_order(nodes: Iterable[T], ratio: Callable[[T], float], name: Callable[[T], str]) -> list[T]:
    """Candidates in the order in which they are looked at: much saving first, equal ones by name."""
    return sorted(nodes, key=lambda node: (-ratio(node), name(node)))


@dataclass(frozen=True, slots=True)
class BalancedScore:
    """How a change compares what it saves with whom it disturbs. ``score`` is None where it disturbs nobody."""

    score: float | None
    approved: bool

    @property
    def infinite(self) -> bool:
        """Whether something is saved and nobody is disturbed."""
        return self.score is None


def balanced_score(
    savings: float, cost: float, pool_price: float, pool_cost: float, balance: float = BALANCE
) -> BalancedScore:
    """The part of a pool's price that is saved, divided by the part of its disruption that is done for it.

    It is approved from ``1 / balance``. Without a saving it is 0. ``cost`` and ``pool_cost`` are sums of
    ``disruption_cost``, ``savings`` and ``pool_price`` USD an hour.
    """
    if savings <= 0 or pool_price <= 0:
        return BalancedScore(0.0, approved=False)
    if cost <= 0 or pool_cost <= 0:
        return BalancedScore(None, approved=True)
    score = (savings / pool_price) / (cost / pool_cost)
    return BalancedScore(score, approved=score >= 1 / balance)
