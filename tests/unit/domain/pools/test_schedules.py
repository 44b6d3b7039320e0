"""Schedules of budgets in cron's syntax, in a time zone and when its clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from time import process_time

import pytest

from stockyard.domain.pools.schedules import is_open, next_change, parse, time_zone, with_zone, zone_of

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def hits(text: str, after: str, count: int) -> list[str]:
    """The first times after a moment, as the schedule's clock shows them."""
    schedule, moment = parse(text), at(after)

    def times():
        latest = moment
        while (latest := schedule.next_after(latest)) is not None:
            yield latest.astimezone(time_zone(schedule.zone)).isoformat(timespec="minutes")

    return list(islice(times(), count))


def test_five_fields() -> None:
    days = ",".join(map(str, range(9, 18)))
    assert parse("*/20 9-17 1,15 jan-mar mon-fri").fields == f"0,20,40 {days} 1,15 1,2,3 1,2,3,4,5"


def test_a_step_from_a_number_goes_to_the_end() -> None:
    assert parse("50/3 * * * */3").fields == "50,53,56,59 * * * 0,3,6"


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 ? * ?"),
        ("@weekly", "0 0 * * sun"),
        ("@monthly", "0 0 1 */1 *,3"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 JAN *"),
    ],
)
def test_a_name_stands_for_fields(name: str, fields: str) -> None:
    assert parse(name) == parse(fields)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("0 0 13 * fri", ["2026-02-06", "2026-02-13", "2026-02-20"]),
        ("0 0 */10 * fri", ["2026-02-06", "2026-02-11", "2026-02-13"]),
        ("0 0 13 * *", ["2026-02-13", "2026-03-13", "2026-04-13"]),
        ("0 0 * * fri", ["2026-02-06", "2026-02-13", "2026-02-20"]),
    ],
)
def test_of_two_restricted_days_either_fits(text: str, days: list[str]) -> None:
    assert [hit[:10] for hit in hits(text, "2026-02-02T00:00Z", 3)] == days


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "five fields"),
        ("* * * *", "five fields"),
        ("* * * * * *", "five fields"),
        ("@reboot", "one of @yearly"),
        ("@every 5m", "one of @yearly"),
        ("TZ=UTC", "five fields"),
        ("TZ= 0 0 * * *", "TZ= must be followed by a time zone"),
        ("CRON_TZ=Europe/Nowhere 0 0 * * *", "the time zone is not known"),
        ("CRON_TZ=europe/berlin 0 0 * * *", "the time zone is not known"),
        ("TZ=../../etc/passwd 0 0 * * *", "the time zone is not known"),
        ("TZ=Europe 0 0 * * *", "the time zone is not known"),
        ("TZ=UTC TZ=UTC 0 0 * *", "numbers, ranges and steps"),
        ("60 * * * *", "minute must be from 0 to 59"),
        ("* 24 * * *", "hour must be from 0 to 23"),
        ("* * 0 * *", "day of the month must be from 1 to 31"),
        ("* * * 13 *", "month must be from 1 to 12"),
        ("* * * * 7", "day of the week must be from 0 to 6"),
        ("* * * * fri-mon", "a range must not end before it begins"),
        ("0 9 * * sat-sun", "so Saturday and Sunday are sat,sun"),
        ("0 18-6 * * *", "hour must be from 0 to 23, and a range must not end before it begins"),
        ("*/0 * * * *", "a step of 0"),
        ("*/x * * * *", "numbers, ranges and steps"),
        ("1- * * * *", "numbers, ranges and steps"),
        ("1,,2 * * * *", "numbers, ranges and steps"),
        ("jan * * * *", "numbers, ranges and steps"),
        ("99999 * * * *", "numbers, ranges and steps"),
        ("* * L * *", "numbers, ranges and steps"),
        ("0 0 31 2 *", "never comes"),
        ("0 0 31 4,6 *", "never comes"),
        ("0 0 30,31 feb *", "never comes"),
    ],
)
def test_another_text_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse(text)


def test_a_zone_stands_before_the_fields_or_beside_them() -> None:
    schedule = parse("CRON_TZ=Europe/Berlin 0 9 * * *")
    assert schedule == parse("TZ=Europe/Berlin 0 9 * * *") == parse("0 9 * * *", "Europe/Berlin")
    assert schedule == parse("TZ=Europe/Berlin 0 9 * * *", "Europe/Berlin") != parse("0 9 * * *")
    assert parse("TZ=Asia/Kathmandu @daily") == parse("@midnight", "Asia/Kathmandu")
    assert zone_of("TZ=Europe/Berlin 0 9 * * *") == "Europe/Berlin"
    assert with_zone("0 9 * * *", "Europe/Berlin") == "CRON_TZ=Europe/Berlin 0 9 * * *"
    assert with_zone("TZ=Europe/Berlin @daily", "Europe/Berlin") == "TZ=Europe/Berlin @daily"
    assert with_zone("@daily", "") == "@daily"
    with pytest.raises(ValueError, match="begins with another time zone"):
        parse("TZ=Europe/Berlin 0 9 * * *", "Europe/Rome")
    with pytest.raises(ValueError, match="the time zone is not known"):
        parse("0 9 * * *", "Local")


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        # The hour that is left out: what names its time comes when the hour is over, once.
        ("TZ=Europe/Berlin 30 2 * * *", "2026-03-28T12:00Z", ["2026-03-29T03:00+02:00", "2026-03-30T02:30+02:00"]),
        ("TZ=Europe/Berlin 0,30 2 * * *", "2026-03-28T12:00Z", ["2026-03-29T03:00+02:00", "2026-03-30T02:00+02:00"]),
        ("TZ=America/New_York 15 2 * * *", "2026-03-07T12:00Z", ["2026-03-08T03:00-04:00", "2026-03-09T02:15-04:00"]),
        (
            "TZ=Australia/Lord_Howe 15 2 * * *",
            "2026-10-03T12:00Z",
            ["2026-10-04T02:30+11:00", "2026-10-05T02:15+11:00"],
        ),
        ("TZ=Pacific/Apia 30 3 * * *", "2020-09-26T00:00Z", ["2020-09-27T04:00+14:00", "2020-09-28T03:30+14:00"]),
        ("TZ=Asia/Kathmandu 30 2 * * *", "2026-03-28T12:00Z", ["2026-03-29T02:30+05:45", "2026-03-30T02:30+05:45"]),
        # A whole day was left out when the island moved over the date line.
        ("TZ=Pacific/Apia 0 12 30 12 *", "2011-12-29T12:00Z", ["2011-12-31T00:00+14:00", "2012-12-30T12:00+14:00"]),
        # The hour that is there twice: what names its time comes in the first.
        ("TZ=Europe/Berlin 30 2 * * *", "2026-10-24T12:00Z", ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"]),
        ("TZ=Europe/Berlin 30 2 * * *", "2026-10-25T01:10Z", ["2026-10-26T02:30+01:00", "2026-10-27T02:30+01:00"]),
        ("TZ=America/New_York 30 1 * * *", "2026-10-31T12:00Z", ["2026-11-01T01:30-04:00", "2026-11-02T01:30-05:00"]),
        (
            "TZ=Australia/Lord_Howe 45 1 * * *",
            "2026-04-04T12:00Z",
            ["2026-04-05T01:45+11:00", "2026-04-06T01:45+10:30"],
        ),
        ("TZ=Pacific/Apia 30 3 * * *", "2021-04-03T00:00Z", ["2021-04-04T03:30+14:00", "2021-04-05T03:30+13:00"]),
        ("TZ=Asia/Kathmandu 30 2 * * *", "2026-10-24T12:00Z", ["2026-10-25T02:30+05:45", "2026-10-26T02:30+05:45"]),
    ],
)
def test_times_that_are_named_come_once_when_the_clocks_change(text: str, after: str, expected: list[str]) -> None:
    assert hits(text, after, 2) == expected


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("TZ=Europe/Berlin */30 2 * * *", "2026-03-28T12:00Z", ["2026-03-30T02:00+02:00", "2026-03-30T02:30+02:00"]),
        ("TZ=Europe/Berlin 0 * * * *", "2026-03-29T00:30Z", ["2026-03-29T03:00+02:00", "2026-03-29T04:00+02:00"]),
        ("TZ=Europe/Berlin */30 2 * * *", "2026-10-25T00:15Z", ["2026-10-25T02:30+02:00", "2026-10-25T02:00+01:00"]),
        ("TZ=Europe/Berlin 5 * * * *", "2026-10-25T00:15Z", ["2026-10-25T02:05+01:00", "2026-10-25T03:05+01:00"]),
        ("TZ=America/New_York */30 2 * * *", "2026-03-08T06:00Z", ["2026-03-09T02:00-04:00", "2026-03-09T02:30-04:00"]),
        ("TZ=America/New_York */30 1 * * *", "2026-11-01T05:15Z", ["2026-11-01T01:30-04:00", "2026-11-01T01:00-05:00"]),
        (
            "TZ=Australia/Lord_Howe */20 2 * * *",
            "2026-10-03T15:00Z",
            ["2026-10-04T02:40+11:00", "2026-10-05T02:00+11:00"],
        ),
        (
            "TZ=Australia/Lord_Howe */20 1 * * *",
            "2026-04-04T14:30Z",
            ["2026-04-05T01:40+11:00", "2026-04-05T01:40+10:30"],
        ),
        (
            "TZ=Australia/Lord_Howe */30 2 * * *",
            "2026-04-04T14:30Z",
            ["2026-04-05T02:00+10:30", "2026-04-05T02:30+10:30"],
        ),
        ("TZ=Pacific/Apia */30 3 * * *", "2021-04-03T13:15Z", ["2021-04-04T03:30+14:00", "2021-04-04T03:00+13:00"]),
        ("TZ=Pacific/Apia 0 * * * *", "2020-09-26T13:30Z", ["2020-09-27T04:00+14:00", "2020-09-27T05:00+14:00"]),
        ("TZ=Asia/Kathmandu */45 2 * * *", "2026-10-24T12:00Z", ["2026-10-25T02:00+05:45", "2026-10-25T02:45+05:45"]),
        # Far ahead, and with two changes of the clock on the way.
        ("TZ=Europe/Berlin * * 29 2 *", "2025-01-01T00:00Z", ["2028-02-29T00:00+01:00", "2028-02-29T00:01+01:00"]),
        ("TZ=Europe/Berlin */30 2 25 10 *", "2026-10-25T00:31Z", ["2026-10-25T02:00+01:00", "2026-10-25T02:30+01:00"]),
    ],
)
def test_times_with_a_star_come_when_the_clock_shows_them(text: str, after: str, expected: list[str]) -> None:
    assert hits(text, after, 2) == expected


@pytest.mark.parametrize(
    ("text", "duration", "now", "expected"),
    [
        ("@daily", HOUR, "2026-06-15T00:00:00Z", True),
        ("@daily", HOUR, "2026-06-15T00:59:59.999Z", True),
        ("@daily", HOUR, "2026-06-15T01:00:00Z", False),
        ("@daily", HOUR, "2026-06-14T23:59:59.999Z", False),
        ("@daily", timedelta(), "2026-06-15T00:00:00Z", False),
        ("@yearly", DAY, "1000-01-01T12:00:00Z", True),
        ("TZ=Europe/Berlin @yearly", DAY, "1000-01-01T12:00:00Z", True),
        ("@yearly", 999_999 * HOUR, "0002-01-01T00:00:00Z", True),
        ("@yearly", HOUR, "9999-12-31T23:59:59Z", False),
        ("TZ=Asia/Kathmandu */5 0 * * *", HOUR, "9999-12-31T23:59:59Z", False),
        ("0 0 29 2 *", HOUR, "2027-06-15T00:00:00Z", False),
        # Eight hours from nine are eight hours, also on the day with 23 and with 25.
        ("TZ=Europe/Berlin 0 0 * * *", 8 * HOUR, "2026-03-29T08:59:59+02:00", True),
        ("TZ=Europe/Berlin 0 0 * * *", 8 * HOUR, "2026-03-29T09:00:00+02:00", False),
        ("TZ=Europe/Berlin 0 0 * * *", 8 * HOUR, "2026-10-25T06:59:59+01:00", True),
        ("TZ=Europe/Berlin 0 0 * * *", 8 * HOUR, "2026-10-25T07:00:00+01:00", False),
        # A window that never closes is open in the hour that is there twice.
        ("TZ=Europe/Berlin * * * * *", MINUTE, "2026-10-25T02:30:30+01:00", True),
        ("TZ=Europe/Berlin */5 * * * *", 5 * MINUTE, "2026-10-25T02:04:59+01:00", True),
    ],
)
def test_a_window_is_open_for_its_duration(text: str, duration: timedelta, now: str, expected: bool) -> None:
    assert is_open(parse(text), duration, at(now)) is expected


@pytest.mark.parametrize(
    ("text", "duration", "now", "expected"),
    [
        ("@daily", HOUR, "2026-06-15T00:10:00Z", "2026-06-15T01:00:00Z"),
        ("@daily", HOUR, "2026-06-15T01:00:00Z", "2026-06-16T00:00:00Z"),
        ("0 9,10,12 * * *", HOUR, "2026-06-15T09:30:00Z", "2026-06-15T11:00:00Z"),
        ("0 9-12 * * *", HOUR, "2026-06-15T09:30:00Z", "2026-06-15T13:00:00Z"),
        ("TZ=Europe/Berlin 0 9 * * *", HOUR, "2026-03-28T12:00Z", "2026-03-29T07:00Z"),
    ],
)
def test_the_next_change_of_a_window(text: str, duration: timedelta, now: str, expected: str) -> None:
    assert next_change(parse(text), duration, at(now)) == at(expected)


def test_a_window_that_never_closes_is_looked_at_again() -> None:
    moment = next_change(parse("* * * * *"), HOUR, at("2026-06-15T09:30:30Z"))
    assert moment is not None
    assert at("2026-06-15T09:31:00Z") < moment < at("2026-06-15T11:00:00Z")


def test_an_empty_window_never_changes() -> None:
    assert next_change(parse("@daily"), timedelta(), at("2026-06-15T00:00:00Z")) is None
    assert next_change(parse("@yearly"), HOUR, at("9999-12-31T23:59:59Z")) is None


@pytest.mark.parametrize("text", ["0 9 * * mon-fri", "TZ=Europe/Berlin 0 9 * * mon-fri", "@yearly", "* * * * *"])
def test_a_look_is_cheap(text: str) -> None:
    now, looks = at("2026-06-15T09:30:00Z"), 100
    is_open(parse(text), 365 * DAY, now)
    seconds = []
    for _ in range(3):
        start = process_time()
        for _ in range(looks):
            is_open(parse(text), 365 * DAY, now)
        seconds.append((process_time() - start) / looks)
    assert min(seconds) < 0.001  # some 30 microseconds where nothing else runs
