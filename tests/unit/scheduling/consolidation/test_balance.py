"""The score of the policy ``Balanced``, and the ceiling that it leaves to what comes."""

from __future__ import annotations

import pytest

from stockyard.domain.nodes.node_types import Offering
from stockyard.scheduling.consolidation.balance import BalancedScore, balanced_score, least_balanced
from stockyard.scheduling.consolidation.model import BALANCED, PoolRules
from stockyard.scheduling.consolidation.search import consolidate
from tests.unit.scheduling.consolidation.test_search import fleet, node_type, pod, running


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((20, 5, 100, 100), BalancedScore(4.0, approved=True)),
        ((5, 10, 100, 100), BalancedScore(0.5, approved=True)),
        ((5, 10.001, 100, 100), BalancedScore(0.05 / 0.10001, approved=False)),
        ((0, 10, 100, 100), BalancedScore(0.0, approved=False)),
        ((-1, 0, 100, 100), BalancedScore(0.0, approved=False)),
        ((1, 0, 100, 100), BalancedScore(None, approved=True)),
        ((1, 0, 100, 0), BalancedScore(None, approved=True)),
        ((1, 5, 0, 100), BalancedScore(0.0, approved=False)),
        ((10, 10, 100, 100, 1), BalancedScore(1.0, approved=True)),
        ((9, 10, 100, 100, 1), BalancedScore(0.9, approved=False)),
    ],
)
def test_the_score_of_a_change(values: tuple[float, ...], expected: BalancedScore) -> None:
    score = balanced_score(*values)
    assert score.approved is expected.approved
    assert score.infinite is (expected.score is None)
    assert score.score == pytest.approx(expected.score)


@pytest.mark.parametrize(("cost", "pool_price", "pool_cost"), [(5, 100, 100), (3.5, 0.8, 22), (1, 7, 90)])
def test_the_least_saving_is_the_first_that_is_approved(cost: float, pool_price: float, pool_cost: float) -> None:
    least = least_balanced(cost, pool_price, pool_cost)
    assert balanced_score(least * 1.001, cost, pool_price, pool_cost).approved
    assert not balanced_score(least * 0.999, cost, pool_price, pool_cost).approved


def test_nobody_is_disturbed_for_any_saving() -> None:
    assert least_balanced(0, 100, 100) == 0


def test_what_comes_may_not_become_so_dear_that_the_policy_would_refuse_it() -> None:
    """10 of 20 pods move, so that a quarter of the pool's price has to be saved: 0.2 of 0.8 USD an hour."""
    crowded = running("crowded", ("large", 8, 0.4), *[pod(100, app=f"a{n}") for n in range(10)])
    other = running("other", ("large", 8, 0.4), *[pod(780, app=f"b{n}") for n in range(10)], blocker="it is held")
    sizes = (("s", 2, 0.1), ("m", 4, 0.19), ("l", 6, 0.35))
    types = tuple(node_type(name, cores, usd, (Offering("on-demand", ("a",), usd),)) for name, cores, usd in sizes)
    decision = consolidate(fleet(crowded, other, rules=PoolRules(BALANCED), types=types))
    assert decision is not None
    (replacement,) = decision.replacements
    assert replacement.claim.price == 0.1
    assert replacement.ceiling == pytest.approx(0.2)
