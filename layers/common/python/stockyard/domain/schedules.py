"""Schedules of disruption budgets in the syntax of cron: five fields, or a name such as ``@daily``. Times are UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_NAMED: Mapping[str, str] = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: place for place, name in enumerate(_NAMES, 1)}
_WEEKDAYS = {name: place for place, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    least: int
    most: int
    names: Mapping[str, int]


_FIELDS = (
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _Field("day of the month", 1, 31, {}),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 0, 6, _WEEKDAYS),
)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The values of each field at which a schedule begins.

    ``days`` and ``weekdays`` are both asked where both are restricted: then either may fit, as in cron.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    """Whether the day of the month is ``*``."""
    any_weekday: bool
    """Whether the day of the week is ``*``."""


def parse(text: str) -> Schedule:
    """The schedule that a text says. Raises ``ValueError`` with the field at fault."""
    if text.startswith(("TZ=", "CRON_TZ=")):
        raise ValueError("time zones are not supported: schedules are in UTC")
    if text.startswith("@") and text not in _NAMED:
        raise ValueError(f"must be five fields or one of {', '.join(_NAMED)}")
    parts = _NAMED.get(text, text).split()
    if len(parts) != len(_FIELDS):
        raise ValueError("must have five fields: minute, hour, day of the month, month, day of the week")
    minutes, hours, days, months, weekdays = map(_values, parts, _FIELDS)
    return Schedule(minutes, hours, days, months, weekdays, parts[2] in ("*", "?"), parts[4] in ("*", "?"))


def _values(text: str, field: _Field) -> frozenset[int]:
    values: set[int] = set()
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        step = _number(step_text, field, {}) if slash else 1
        if step < 1:
            raise ValueError(f"the {field.name} has a step of 0")
        if span in ("*", "?"):
            first, last = field.least, field.most
        else:
            first_text, dash, last_text = span.partition("-")
            first = _number(first_text, field, field.names)
            last = _number(last_text, field, field.names) if dash else field.most if slash else first
        if first < field.least or last > field.most or first > last:
            raise ValueError(f"the {field.name} must be from {field.least} to {field.most}")
        values.update(range(first, last + 1, step))
    return frozenset(values)


def _number(text: str, field: _Field, names: Mapping[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not (text.isascii() and text.isdigit()) or len(text) > 4:
        raise ValueError(f"the {field.name} must be numbers, ranges and steps such as 1,3-5,*/10")
    return int(text)
