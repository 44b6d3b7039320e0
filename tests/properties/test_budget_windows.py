"""Windows of budgets beside a scan of every minute, in zones whose clocks change, and what budgets allow together.

``STOCKYARD_SOAK`` raises the count.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from math import ceil
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from stockyard.domain.pools.budgets import REASONS, UNBOUNDED, Budget, NodeState, allowed, remaining
from stockyard.domain.pools.schedules import is_open, next_change, parse, time_zone

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
WINDOWS = 1_000 if "STOCKYARD_SOAK" in os.environ else 40
CHANGES = {
    "Europe/Berlin": ("2026-03-29T01:00", "2026-10-25T01:00"),
    "America/New_York": ("2026-03-08T07:00", "2026-11-01T06:00"),
    "Australia/Lord_Howe": ("2026-04-04T15:00", "2026-10-03T15:30"),
    "Asia/Kathmandu": ("2026-03-29T01:00", "2026-10-25T01:00"),
    "Pacific/Apia": ("2011-12-30T10:00", "2020-09-26T14:00", "2021-04-03T14:00"),
    "America/Santiago": ("2026-04-05T03:00", "2026-09-06T04:00"),
    "UTC": ("2026-02-28T23:00", "2024-02-29T12:00"),
}
"""Moments in UTC at or near which a zone's clock is changed. In Santiago that is at midnight."""


def field(chance: Random, least: int, most: int, near: int) -> str:
    """A field of a schedule, often with what the clock shows near the change."""
    value = (
        min(most, max(least, near + chance.randint(-1, 1))) if chance.random() < 0.6 else chance.randint(least, most)
    )
    last = chance.randint(value, most)
    steps = chance.randint(2, 20)
    return chance.choice(
        ("*", f"*/{steps}", f"{value}", f"{value}", f"{value}-{last}", f"{value}-{last}/{steps}", f"{least},{value}")
    )


def schedule(chance: Random, local: datetime) -> str:
    days, months = chance.choice(
        (("*", "*"), (f"{local.day}", "*"), (f"*/{local.day + 1}", f"{local.month}"), ("*", "*"))
    )
    weekday = chance.choice(("*", "*", "sat-sat", "0,3", "1-5/2"))
    return f"{field(chance, 0, 59, 0)} {field(chance, 0, 23, local.hour)} {days} {months} {weekday}"


@lru_cache
def numbers(text: str, least: int, most: int) -> set[int]:
    values: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.replace("sat", "6").partition("-")
        bounds = (least, most) if span == "*" else (int(first), int(last or first))
        values |= set(range(bounds[0], bounds[1] + 1, int(step or 1)))
    return values


def fits(text: str, local: datetime) -> bool:
    """Whether the schedule has the time that a clock shows."""
    minutes, hours, days, months, weekdays = text.split()
    if local.minute not in numbers(minutes, 0, 59) or local.hour not in numbers(hours, 0, 23):
        return False
    day = local.day in numbers(days, 1, 31)
    weekday = (local.weekday() + 1) % 7 in numbers(weekdays, 0, 6)
    either = (day and weekday) if "*" in (days, weekdays) else (day or weekday)
    return local.month in numbers(months, 1, 12) and either


def scanned(text: str, zone: str, start: datetime, end: datetime) -> list[datetime]:
    """All times of a schedule, minute by minute: what names its times once each, else whenever the clock shows it."""
    tz = time_zone(zone)
    minutes = [
        (moment, moment.astimezone(tz))
        for moment in (start + MINUTE * count for count in range(int((end - start) / MINUTE)))
    ]
    if "*" in "".join(text.split()[:2]) or zone == "UTC":
        return [moment for moment, local in minutes if fits(text, local)]
    times: list[datetime] = []
    latest = minutes[0][1].replace(tzinfo=None, fold=0) - MINUTE
    for moment, local in minutes:
        clock = local.replace(tzinfo=None, fold=0)
        # All that the clock has not shown before: one minute, none in an hour that comes again, many after a gap.
        passed = int((clock - latest) / MINUTE)
        if any(fits(text, latest + MINUTE * count) for count in range(1, passed + 1)):
            times.append(moment)
        latest = max(latest, clock)
    return times


def test_windows_are_open_as_a_scan_of_every_minute_says() -> None:
    for seed in range(WINDOWS):
        chance = Random(seed)
        zone = chance.choice(list(CHANGES))
        change = datetime.fromisoformat(chance.choice(CHANGES[zone])).replace(tzinfo=UTC)
        text = schedule(chance, change.astimezone(time_zone(zone)))
        duration = MINUTE * chance.choice((1, 7, 30, 60, 90, 480, 1440))
        times = scanned(text, zone, change - 3 * DAY, change + 2 * DAY)
        read = parse(text, zone)
        for _ in range(40):
            now = change + timedelta(
                seconds=chance.randint(-86_400, 86_400) if chance.random() < 0.5 else 60 * chance.randint(-200, 200)
            )
            expected = any(time <= now < time + duration for time in times)
            assert is_open(read, duration, now) == expected, (seed, text, zone, duration, now)
            turn = next_change(read, duration, now)
            if turn is not None:
                assert turn > now
                # Until then the answer stays, and often it is another one from then on.
                middle = min(now + (turn - now) * chance.random(), change + DAY)
                assert is_open(read, duration, middle) == expected, (seed, text, zone, duration, now, turn)


def test_times_follow_each_other_as_a_scan_of_every_minute_says() -> None:
    for seed in range(WINDOWS):
        chance = Random(f"times {seed}")
        zone = chance.choice(list(CHANGES))
        change = datetime.fromisoformat(chance.choice(CHANGES[zone])).replace(tzinfo=UTC)
        text = schedule(chance, change.astimezone(time_zone(zone)))
        start, end = change - DAY, change + DAY
        times, moment = [], start - MINUTE
        read = parse(text, zone)
        while (later := read.next_after(moment)) is not None and later < end and len(times) < 200:
            times.append(later)
            moment = later
        assert all(first < second for first, second in pairwise(times))
        expected = [time for time in scanned(text, zone, start - 2 * DAY, end) if time >= start]
        assert times == expected[: len(times)], (seed, text, zone)
        assert len(times) == min(len(expected), 200), (seed, text, zone)


ENTRIES = st.fixed_dictionaries(
    {"nodes": st.one_of(st.integers(0, 100).map("{}%".format), st.integers(0, 200).map(str))},
    optional={
        "reasons": st.lists(st.sampled_from(REASONS), max_size=3),
        "window": st.sampled_from(
            [("@daily", "1h"), ("0 * * * *", "10m"), ("*/5 9-17 * * 1-5", "5m"), ("31 9 * *", "1h")]
        ),
    },
)
MOMENTS = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


def budget(entry: dict[str, object]) -> Budget:
    window = entry.get("window")
    fields = {name: value for name, value in entry.items() if name != "window"}
    return Budget.of({**fields, **(dict(zip(("schedule", "duration"), window, strict=True)) if window else {})})  # type: ignore[call-overload]


@settings(max_examples=2_000 if "STOCKYARD_SOAK" in os.environ else 50)
@given(st.lists(ENTRIES, max_size=4), ENTRIES, st.sampled_from(REASONS), st.integers(0, 500), MOMENTS)
def test_one_more_budget_never_allows_more(entries, entry, reason, nodes, now):
    budgets = [budget(each) for each in entries]
    before, after = (allowed(every, reason, nodes, now) for every in (budgets, [*budgets, budget(entry)]))
    assert 0 <= after <= before <= UNBOUNDED
    assert after == min(before, allowed([budget(entry)], reason, nodes, now))


@settings(max_examples=2_000 if "STOCKYARD_SOAK" in os.environ else 50)
@given(st.integers(0, 100), st.integers(0, 10_000), MOMENTS)
def test_percentages_round_up_and_never_beyond_the_nodes(percentage, nodes, now):
    count = allowed([Budget.of({"nodes": f"{percentage}%"})], "Empty", nodes, now)
    assert count == ceil(percentage * nodes / 100 - 1e-9)
    assert count <= nodes


@settings(max_examples=2_000 if "STOCKYARD_SOAK" in os.environ else 50)
@given(st.lists(ENTRIES, max_size=4), st.lists(st.builds(NodeState, *[st.booleans()] * 5), max_size=30), MOMENTS)
def test_what_remains_never_rises_when_a_node_goes(entries, nodes, now):
    budgets = [budget(each) for each in entries]
    before = remaining(budgets, "Empty", nodes, now)
    assert before >= 0
    for index, node in enumerate(nodes):
        going = NodeState(node.managed, node.initialized, node.ready, True, node.terminated)
        assert remaining(budgets, "Empty", [*nodes[:index], going, *nodes[index + 1 :]], now) <= before
