"""Number of nodes of a pool that may come and be missing while drifted ones are replaced."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.nodes.records import NodeClaim
from stockyard.domain.pools.budgets import DRIFTED, UNBOUNDED, NodeState
from stockyard.domain.pools.records import DYNAMIC, STATIC, Pool
from stockyard.domain.values.conditions import Condition
from stockyard.lifecycle.disruption.update_strategy import (
    Allowance,
    allowance,
    budgets_of_updates,
    most_new,
    replaceable_now,
    size_of,
)
from stockyard.lifecycle.nodes.node_phases import NOT_DRIFTED

TIME = "2026-01-31T12:00:00.000Z"
REMOVE_FIRST = {"type": "remove_first"}


def custom(surge: int | str, unavailable: int | str) -> dict[str, Any]:
    return {"type": "custom", "max_surge": surge, "max_unavailable": unavailable}


def pool(strategy: dict[str, Any], **fields: Any) -> Pool:
    return Pool("clu/p", "clu", "p", TIME, TIME, update_strategy=strategy, **{"quantity": 3, **fields})


def claims(*phases: str) -> list[NodeClaim]:
    return [NodeClaim(f"n{n}", f"n{n}", TIME, TIME, pool="p", phase=phase) for n, phase in enumerate(phases)]


@pytest.mark.parametrize(
    ("strategy", "nodes", "expected"),
    [
        ({}, 10, None),
        ({"type": "add_first"}, 10, None),
        (REMOVE_FIRST, 10, Allowance(0, 1)),
        (custom(2, 1), 10, Allowance(2, 1)),
        (custom("25%", "25%"), 10, Allowance(3, 2)),
        (custom(0, "10%"), 5, Allowance(0, 1)),
        (custom("1%", 0), 5, Allowance(1, 0)),
    ],
    ids=str,
)
def test_surge_is_rounded_up_and_unavailable_down(
    strategy: dict[str, Any], nodes: int, expected: Allowance | None
) -> None:
    assert allowance(pool(strategy), nodes) == expected


def test_a_pool_has_what_it_is_to_have_or_what_it_has() -> None:
    present = claims("Available", "Pending", "Failed")
    assert size_of(pool({}, kind=STATIC), present) == 3
    assert size_of(pool({}, kind=DYNAMIC, floor=1), present) == 2
    assert size_of(pool({}, kind=DYNAMIC, floor=9), present) == 9
    assert size_of(pool({}, kind=DYNAMIC), present, TIME) == 0


def test_what_comes_goes_or_is_not_ready_is_being_replaced_already() -> None:
    ready, leaving, unready = NodeState(), NodeState(disrupting=True), NodeState(ready=False)
    starting = NodeState(initialized=False, ready=False)
    everything = claims("Available", "Available", "Available")
    assert replaceable_now(pool({}), everything, [ready] * 3) == UNBOUNDED
    strategy = pool(custom(1, 1))
    assert replaceable_now(strategy, everything, [ready] * 3) == 2
    assert replaceable_now(strategy, everything, [ready, leaving, ready]) == 1
    assert replaceable_now(strategy, everything, [ready, leaving, unready]) == 0
    coming = claims("Available", "Available", "Pending")
    assert replaceable_now(strategy, coming, [ready, ready, starting]) == 1
    assert replaceable_now(strategy, coming, [ready, leaving, starting]) == 0


def test_beside_figures_only_budgets_of_drift_or_with_a_window_count() -> None:
    budgets = [
        {"nodes": "10%"},
        {"nodes": "2", "reasons": [DRIFTED]},
        {"nodes": "0", "schedule": "@daily", "duration": "8h"},
        {"nodes": "broken"},
    ]
    assert len(budgets_of_updates(pool({}, disruption={"budgets": budgets}))) == 4
    assert [each.amount for each in budgets_of_updates(pool(REMOVE_FIRST, disruption={"budgets": budgets}))] == [
        2,
        0,
        0,
    ]


def test_what_leaves_to_be_replaced_counts_until_it_is_gone() -> None:
    drifted = Condition(NOT_DRIFTED, "False", "NodePoolDrifted", "", TIME)
    two = claims("Available", "Available")
    leaving = replace(claims("Available")[0], id="old", deleting=True, conditions=(drifted,))
    assert most_new(pool({}), [*two, leaving]) == UNBOUNDED
    assert most_new(pool(REMOVE_FIRST), [*two, leaving]) == 0
    assert most_new(pool(REMOVE_FIRST), two) == 1
    assert most_new(pool(custom(2, 0)), [*two, leaving]) == 2
    lost = replace(leaving, conditions=())
    assert most_new(pool(REMOVE_FIRST), [*two, lost]) == 1, "a node that is lost is made anew at once"
