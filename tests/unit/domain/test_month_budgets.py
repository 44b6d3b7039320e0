"""Budgets of a month: what is compared with them, which of them is named, and what is told of them."""

from __future__ import annotations

import pytest

from stockyard.domain.month_budgets import (
    NEARLY,
    REACHED,
    BudgetLedger,
    BudgetWatch,
    MonthBudget,
    Scope,
    hours_left,
    month_end,
    refusal_text,
    thresholds_to_announce,
    usd_of,
)

TENANT, CLUSTER, POOL = Scope(), Scope("clu_1"), Scope("clu_1", "gpu")


def budget(scope: Scope = CLUSTER, usd: float = 100.0, spent: float = 0.0, hour: float = 0.0) -> MonthBudget:
    return MonthBudget(scope, "it", usd, "2026-11", 100.0, spent, hour)


@pytest.mark.parametrize(
    ("now", "end", "hours"),
    [
        ("2026-11-30T23:59:59.999Z", "2026-12-01T00:00:00.000Z", 1 / 3_600_000),
        ("2026-12-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z", 744.0),
        ("2028-02-01T00:00:00.000Z", "2028-03-01T00:00:00.000Z", 696.0),
    ],
)
def test_months_change_at_midnight_of_utc(now: str, end: str, hours: float) -> None:
    assert month_end(now) == end
    assert hours_left(now) == pytest.approx(hours)


def test_forecast_is_what_is_spent_and_what_stands_until_the_end() -> None:
    counted = budget(spent=20.0, hour=0.5)
    assert (counted.forecast, counted.room, counted.percent, counted.threshold) == (70.0, 30.0, 70, 0)
    assert (counted.allows(0.3), counted.allows(0.31)) == (True, False)
    counted.launching = 0.1
    assert (counted.allows(0.2), counted.allows(0.21), counted.is_reached_for(0.21)) == (True, False, False)


def test_narrowest_budget_without_room_is_named_and_all_count() -> None:
    sums = BudgetLedger([budget(TENANT, 90), budget(CLUSTER, 80), budget(POOL, 70)])
    assert [each.scope for each in sums.over("clu_1", "gpu")] == [POOL, CLUSTER, TENANT]
    assert [each.scope for each in sums.over("clu_2", "gpu")] == [TENANT]
    assert [each.scope for each in sums.over("", "")] == [TENANT]
    for usd_hour, scope in ((0.7, None), (0.75, POOL), (0.95, POOL)):
        refusing = sums.refusing("clu_1", "gpu", usd_hour)
        assert (refusing.scope if refusing else None) == scope
    sums.take("clu_1", "web", 0.2, 0.2)
    refusing = sums.refusing("clu_1", "gpu", 0.65)
    assert refusing is not None
    assert refusing.scope == CLUSTER


def test_threshold_is_announced_once_a_month() -> None:
    watch = BudgetWatch("month", "", month="2026-11", announced={CLUSTER.key: NEARLY})
    for counted, noted, refused, expected in (
        (budget(spent=79.0), None, (), []),
        (budget(spent=80.0), None, (), [NEARLY]),
        (budget(spent=80.0), watch, (), []),
        (budget(spent=100.0), watch, (), [REACHED]),
        (budget(spent=10.0), watch, (CLUSTER.key,), [REACHED]),
        (budget(spent=85.0), BudgetWatch("month", "", month="2026-10", announced=watch.announced), (), [NEARLY]),
        (budget(usd=0.0), None, (), [REACHED]),
    ):
        assert [part for _, part in thresholds_to_announce([counted], noted, refused)] == expected


def test_texts_of_claims_stay_while_time_passes() -> None:
    early, late = budget(spent=99.0), budget(spent=99.5)
    assert refusal_text(early, "lab.s", 0.5) == refusal_text(late, "lab.s", 0.5)
    assert "no" in refusal_text(early, "lab.s", None)


def test_limits_in_money_are_read_to_the_last_digit() -> None:
    assert [usd_of(text) for text in ("0.0001", "2k", "1500m")] == [0.0001, 2000.0, 1.5]
