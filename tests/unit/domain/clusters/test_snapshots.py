"""Times when a snapshot of etcd is due or overdue, and snapshots that stay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from stockyard.domain.clusters.snapshots import Schedule, moment, schedule_of

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("hours", "minute", "slot"),
    [(6, 0, "20260301T120000Z"), (6, 359, "20260301T120000Z"), (6, 360, "20260301T180000Z"),
     (24, 719, "20260301T000000Z"), (24, 720, "20260302T000000Z"), (1, 61, "20260301T130000Z")],
)  # fmt: skip
def test_a_moment_belongs_to_the_slot_that_has_begun(hours: int, minute: int, slot: str) -> None:
    assert Schedule(hours, 1).slot(NOON + timedelta(minutes=minute)) == slot
    assert moment(slot) <= NOON + timedelta(minutes=minute) < moment(slot) + timedelta(hours=hours)


def test_a_snapshot_is_overdue_an_hour_after_the_next_slot_has_begun() -> None:
    schedule, last = Schedule(6, 28), "20260301T120000Z"
    assert schedule.overdue_since(last, NOON, NOON + timedelta(hours=7)) is None
    assert schedule.overdue_since(last, NOON, NOON + timedelta(hours=7, minutes=1)) == "2026-03-01T19:00:00.000Z"


def test_the_first_snapshot_has_as_long_as_any_other_since_somebody_has_asked_for_them() -> None:
    schedule = Schedule(6, 28)
    assert schedule.overdue_since("", NOON, NOON + timedelta(hours=7)) is None
    assert schedule.overdue_since("", NOON, NOON + timedelta(hours=8)) != ""
    # Turned off for a month and on again, the old one does not count against it.
    assert schedule.overdue_since("20260201T000000Z", NOON, NOON + timedelta(hours=1)) is None


def test_the_newest_stay() -> None:
    ids = [f"2026030{day}T000000Z" for day in range(1, 6)]
    assert Schedule(24, 2).surplus(reversed(ids)) == ids[:3]
    assert Schedule(24, 5).surplus(ids) == []


def test_without_the_setting_there_is_no_schedule() -> None:
    assert schedule_of({}) is None
    assert schedule_of({"etcd_backup": None}) is None
    assert schedule_of({"etcd_backup": {"interval_hours": 3, "keep": 7}}) == Schedule(3, 7)
