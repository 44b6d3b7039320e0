"""The cost of disrupting pods and nodes, and the value of a disruption; the numbers are Karpenter's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

ORDINARY = 1.0
"""What it costs to evict a pod that says nothing of it; also what a node costs without its pods."""
_DELETION_COST_UNIT, _PRIORITY_UNIT = 2**27, 2**25
_LEAST, _MOST = -10.0, 10.0
T = TypeVar("T")


def eviction_cost(deletion_cost: float = 0.0, priority: int = 0) -> float:
    """Cost of the eviction of a pod: 1 for an ordinary one, from -10 to 10.

    ``deletion_cost`` is the annotation ``controller.kubernetes.io/pod-deletion-cost``, ``priority`` the pod's.
    """
    cost = ORDINARY + deletion_cost / _DELETION_COST_UNIT + priority / _PRIORITY_UNIT
    return min(_MOST, max(_LEAST, cost))


def disruption_cost(eviction_costs: Iterable[float]) -> float:
    """Cost of the disruption of a node: 1, and what it costs to evict each pod that would move. A pod that would rather
    go makes it no cheaper."""
    return ORDINARY + sum(max(0.0, cost) for cost in eviction_costs)


def savings_ratio(price: float, cost: float) -> float:
    """USD an hour of a node for each unit of its ``disruption_cost``. Nodes with much of it are looked at first."""
    return price / cost


def in_order(nodes: Iterable[T], ratio: Callable[[T], float], name: Callable[[T], str]) -> list[T]:
    """Candidates in the order in which they are looked at: much saving first, equal ones by name."""
    return sorted(nodes, key=lambda node: (-ratio(node), name(node)))
