"""Cost of disrupting pods and nodes."""

from __future__ import annotations

import pytest

from stockyard.lifecycle.disruption.costs import (
    disruption_cost,
    eviction_cost,
    in_order,
    savings_ratio,
)


@pytest.mark.parametrize(
    ("deletion_cost", "priority", "expected"),
    [
        (0, 0, 1.0),
        (2**27, 0, 2.0),
        (-(2**27), 0, 0.0),
        (0, 2**25, 2.0),
        (0, -(2**26), -1.0),
        (2**31 - 1, 2_000_000_000, 10.0),
        (-(2**31), -(2**31), -10.0),
    ],
)
def test_the_cost_of_an_eviction(deletion_cost: float, priority: int, expected: float) -> None:
    assert eviction_cost(deletion_cost, priority) == pytest.approx(expected)


def test_a_node_costs_one_and_its_pods_and_none_makes_it_cheaper() -> None:
    assert disruption_cost([]) == 1.0
    assert disruption_cost([1.0, 2.5, -10.0]) == 4.5


def test_candidates_with_much_saving_come_first_and_equal_ones_by_name() -> None:
    nodes = {"b": (4.0, 2.0), "a": (2.0, 1.0), "c": (9.0, 3.0), "d": (0.0, 1.0)}
    assert in_order(nodes, lambda name: savings_ratio(*nodes[name]), str) == ["c", "a", "b", "d"]
