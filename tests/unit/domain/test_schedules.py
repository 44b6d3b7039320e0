"""Schedules of budgets in cron's syntax."""

from __future__ import annotations

import pytest

from stockyard.domain.schedules import parse


def test_five_fields() -> None:
    schedule = parse("*/20 9-17 1,15 jan-mar mon-fri")
    assert schedule.minutes == {0, 20, 40}
    assert schedule.hours == set(range(9, 18))
    assert schedule.days == {1, 15}
    assert schedule.months == {1, 2, 3}
    assert schedule.weekdays == {1, 2, 3, 4, 5}
    assert not schedule.any_day
    assert not schedule.any_weekday


def test_a_step_from_a_number_goes_to_the_end() -> None:
    assert parse("50/3 * * * *").minutes == {50, 53, 56, 59}


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 ? * ?"),
        ("@weekly", "0 0 * * sun"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 JAN *"),
    ],
)
def test_a_name_stands_for_fields(name: str, fields: str) -> None:
    assert parse(name) == parse(fields)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "five fields"),
        ("* * * *", "five fields"),
        ("* * * * * *", "five fields"),
        ("@reboot", "one of @yearly"),
        ("@every 5m", "one of @yearly"),
        ("TZ=Europe/Berlin 0 0 * * *", "time zones are not supported"),
        ("CRON_TZ=UTC 0 0 * * *", "time zones are not supported"),
        ("60 * * * *", "minute must be from 0 to 59"),
        ("* 24 * * *", "hour must be from 0 to 23"),
        ("* * 0 * *", "day of the month must be from 1 to 31"),
        ("* * * 13 *", "month must be from 1 to 12"),
        ("* * * * 7", "day of the week must be from 0 to 6"),
        ("* * * * fri-mon", "day of the week must be from 0 to 6"),
        ("*/0 * * * *", "a step of 0"),
        ("*/x * * * *", "numbers, ranges and steps"),
        ("1- * * * *", "numbers, ranges and steps"),
        ("1,,2 * * * *", "numbers, ranges and steps"),
        ("jan * * * *", "numbers, ranges and steps"),
        ("99999 * * * *", "numbers, ranges and steps"),
    ],
)
def test_another_text_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse(text)
