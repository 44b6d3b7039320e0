"""The policy ``Balanced``: what is saved is worth whom it disturbs; the numbers are Karpenter's."""

from __future__ import annotations

from dataclasses import dataclass

BALANCE = 2.0
"""``Balanced`` allows at most so many times the share of a pool's disruption as of its price."""


@dataclass(frozen=True, slots=True)
class BalancedScore:
    """The savings of a change in relation to the pods that it disturbs. ``score`` is None where it disturbs nobody."""

    score: float | None
    approved: bool

    @property
    def infinite(self) -> bool:
        """Whether something is saved and nobody is disturbed."""
        return self.score is None


def balanced_score(
    savings: float, cost: float, pool_price: float, pool_cost: float, balance: float = BALANCE
) -> BalancedScore:
    """The saved part of a pool's price, divided by the used part of its disruption budget.

    It is approved from ``1 / balance``. Without a saving it is 0. ``cost`` and ``pool_cost`` are sums of
    ``disruption_cost``, ``savings`` and ``pool_price`` USD an hour.
    """
    if savings <= 0 or pool_price <= 0:
        return BalancedScore(0.0, approved=False)
    if cost <= 0 or pool_cost <= 0:
        return BalancedScore(None, approved=True)
    score = (savings / pool_price) / (cost / pool_cost)
    return BalancedScore(score, approved=score >= 1 / balance)


def least_balanced(cost: float, pool_price: float, pool_cost: float, balance: float = BALANCE) -> float:
    """The least saving in USD an hour that ``balanced_score`` approves for this disruption of the pool."""
    return pool_price * cost / pool_cost / balance if cost > 0 and pool_cost > 0 else 0.0
