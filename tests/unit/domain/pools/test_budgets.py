"""Disruption budgets: the strictest that is open counts, and what cannot be read allows nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stockyard.domain.pools.budgets import (
    DRIFTED,
    EMPTY,
    EXPIRED,
    REASONS,
    UNBOUNDED,
    UNDERUTILIZED,
    Budget,
    NodeState,
    allowed,
    budgets_of,
    next_change,
    remaining,
)

NOON = datetime(2026, 6, 15, 12, tzinfo=UTC)
NIGHT = {"schedule": "0 22 * * *", "duration": "8h"}


def budgets(*entries: dict[str, Any]) -> tuple[Budget, ...]:
    return budgets_of({"budgets": list(entries)})


@pytest.mark.parametrize(
    ("entries", "reason", "expected"),
    [
        ([], EMPTY, UNBOUNDED),
        ([{"nodes": "10%"}], EMPTY, 2),
        ([{"nodes": "10%"}, {"nodes": "1"}], EMPTY, 1),
        ([{"nodes": "5"}], EMPTY, 5),
        ([{"nodes": 5}], EMPTY, 5),
        ([{"nodes": "0%"}], DRIFTED, 0),
        ([{"nodes": "100%", "reasons": []}], DRIFTED, 15),
        ([{"nodes": "30", "reasons": None}], DRIFTED, 30),
        ([{"nodes": "1", "reasons": ["Drifted"]}], EMPTY, UNBOUNDED),
        ([{"nodes": "1", "reasons": ["Drifted"]}, {"nodes": "4"}], UNDERUTILIZED, 4),
        ([{"nodes": "0", **NIGHT}], EMPTY, UNBOUNDED),
        ([{"nodes": "0", **NIGHT, "timeZone": "Asia/Tokyo"}, {"nodes": "7"}], EMPTY, 7),
        ([{"nodes": "0", **NIGHT, "timeZone": "Pacific/Auckland"}, {"nodes": "7"}], EMPTY, 0),
        ([{"nodes": "0", "schedule": "TZ=Pacific/Auckland 0 22 * * *", "duration": "8h"}], EMPTY, 0),
    ],
)
def test_the_strictest_open_budget_of_the_reason_counts(entries: list[Any], reason: str, expected: int) -> None:
    assert allowed(budgets(*entries), reason, 15, NOON) == expected


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, "nodes: must be a number"),
        ({"nodes": None}, "nodes: must be a number"),
        ({"nodes": "101%"}, "nodes: must be a number"),
        ({"nodes": "-1"}, "nodes: must be a number"),
        ({"nodes": "1.5"}, "nodes: must be a number"),
        ({"nodes": "\u0661"}, "nodes: must be a number"),
        ({"nodes": "1", "reasons": ["Repaired"]}, "reasons: 1 of them"),
        ({"nodes": "1", "reasons": [["Empty"]]}, "unhashable"),
        ({"nodes": "1", "schedule": "@daily"}, "must be set with duration"),
        ({"nodes": "1", "duration": "1h"}, "must be set with duration"),
        ({"nodes": "1", "timeZone": "Europe/Berlin"}, "must be set with schedule"),
        ({"nodes": "1", "schedule": "@wrongly", "duration": "1h"}, "must be five fields"),
        ({"nodes": "1", "schedule": "@daily", "duration": "long"}, "must be a duration"),
        ({"nodes": "1", "schedule": "@daily", "duration": "Never"}, "must end"),
        ({"nodes": "0", "schedule": "@daily", "duration": "0h0m"}, "longer than 0"),
        ({"nodes": "1", "schedule": "@daily", "duration": "1h", "timeZone": "Nowhere"}, "time zone is not known"),
        ({"nodes": "1", "schedule": 5, "duration": "1h"}, "startswith"),
        ("10%", "nodes: must be a number"),
    ],
)
def test_a_budget_that_cannot_be_read_allows_nothing_for_any_reason(entry: Any, words: str) -> None:
    broken = Budget.of(entry)
    assert words in broken.fault
    for reason in REASONS:
        assert allowed((Budget.of({"nodes": "50%"}), broken), reason, 100, NOON) == 0


@pytest.mark.parametrize(
    ("percentage", "nodes", "expected"),
    [("5%", 10, 1), ("10%", 19, 2), ("10%", 0, 0), ("0%", 9, 0), ("1%", 100, 1), ("1%", 101, 2), ("100%", 7, 7)],
)
def test_a_percentage_rounds_up(percentage: str, nodes: int, expected: int) -> None:
    assert allowed(budgets({"nodes": percentage}), EMPTY, nodes, NOON) == expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (NodeState(), 5),
        (NodeState(ready=False), 4),
        (NodeState(disrupting=True), 4),
        (NodeState(ready=False, disrupting=True), 4),
        (NodeState(managed=False, ready=False), 4 + 1),
        (NodeState(initialized=False, ready=False), 4 + 1),
        (NodeState(terminated=True, disrupting=True), 4 + 1),
    ],
)
def test_nodes_that_are_missing_already_take_from_the_budget(state: NodeState, expected: int) -> None:
    # Nine that are well, and this one: of ten the half is five, and so it is of nine, rounded up.
    assert remaining(budgets({"nodes": "50%"}), EMPTY, [*[NodeState()] * 9, state], NOON) == expected


def test_a_pool_that_says_nothing_has_one_budget_of_ten_percent() -> None:
    assert budgets_of({}) == budgets({"nodes": "10%"})
    assert budgets_of({"budgets": []}) == ()


def test_what_remains_is_never_below_zero_and_has_no_bound_without_budgets() -> None:
    leaving = [NodeState(disrupting=True)] * 3
    assert remaining(budgets({"nodes": "1"}), EMPTY, leaving, NOON) == 0
    assert remaining((), EMPTY, leaving, NOON) == UNBOUNDED - 3


def test_nodes_that_expired_are_under_budgets_that_name_the_reason_alone() -> None:
    general, both = {"nodes": "0"}, {"nodes": "2", "reasons": ["Expired", "Empty"]}
    assert allowed((Budget.of(general),), EXPIRED, 10, NOON) == UNBOUNDED
    assert allowed((Budget.of(general), Budget.of(both)), EXPIRED, 10, NOON) == 2
    assert allowed((Budget.of(both),), EMPTY, 10, NOON) == 2
    assert allowed((Budget.of(both),), DRIFTED, 10, NOON) == UNBOUNDED


def test_next_change_is_the_first_of_all_windows() -> None:
    both = budgets({"nodes": "0", **NIGHT}, {"nodes": "1", "schedule": "0 13 * * *", "duration": "30m"}, {"nodes": "9"})
    moments = [NOON]
    for _ in range(4):
        moment = next_change(both, moments[-1])
        assert moment is not None
        moments.append(moment)
    assert [moment - NOON for moment in moments[1:]] == [
        timedelta(hours=1),
        timedelta(hours=1.5),
        timedelta(hours=10),
        timedelta(hours=18),
    ]


def test_without_windows_nothing_changes_by_itself() -> None:
    assert next_change(budgets({"nodes": "10%"}, {"nodes": "broken"}), NOON) is None
    assert next_change((), NOON) is None
