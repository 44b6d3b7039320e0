"""Rules of simulated hours as their judge reads them: when budgets are open. Nothing of the product's is used here."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
ALIASES = {"@hourly": "0 * * * *", "@daily": "0 0 * * *"}
WEEKDAYS = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
SECONDS = {"s": 1, "m": 60, "h": 3600}


# --- windows of budgets -----------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _numbers(text: str, least: int, most: int) -> frozenset[int]:
    values: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        begin = least if span == "*" else WEEKDAYS.get(first, -1) if first in WEEKDAYS else int(first)
        end = most if span == "*" or (step and not last) else WEEKDAYS[last] if last in WEEKDAYS else int(last or begin)
        values.update(range(begin, end + 1, int(step or 1)))
    return frozenset(values)


def _shows(schedule: str, local: datetime) -> bool:
    """Whether the clock shows a time of the schedule. Its day of the month and month are always ``*`` here."""
    minute, hour, _, _, weekday = schedule.split()
    return (
        local.minute in _numbers(minute, 0, 59)
        and local.hour in _numbers(hour, 0, 23)
        and local.isoweekday() % 7 in _numbers(weekday, 0, 6)
    )


@lru_cache(maxsize=100_000)
def _begins(schedule: str, zone: str, moment: datetime) -> bool:
    """Whether a window begins in this minute of UTC."""
    local = moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    before = (moment - MINUTE).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    if any(part.startswith("*") for part in schedule.split()[:2]):
        return _shows(schedule, local)
    skipped = [before + MINUTE * step for step in range(1, int((local - before) / MINUTE))]
    if any(_shows(schedule, time) for time in skipped):
        return True
    # Of two equal times the first counts.
    return _shows(schedule, local) and moment.astimezone(ZoneInfo(zone)).fold == 0


def seconds_of(text: str) -> int:
    """The seconds of a duration such as ``6h30m``."""
    total, digits = 0, ""
    for letter in text:
        if letter.isdigit():
            digits += letter
        else:
            total, digits = total + int(digits) * SECONDS[letter], ""
    return total


def is_open(budget: Mapping[str, Any], now: datetime) -> bool:
    """Whether the budget counts now."""
    schedule = budget.get("schedule")
    if not schedule:
        return True
    schedule, zone = ALIASES.get(schedule, schedule), budget.get("timeZone") or "UTC"
    duration = timedelta(seconds=seconds_of(budget["duration"]))
    minute = now.replace(second=0, microsecond=0)
    while minute > now - duration:
        if _begins(schedule, zone, minute):
            return True
        minute -= MINUTE
    return False


def most_at_a_time(disruption: Mapping[str, Any], reason: str, nodes: int, now: datetime) -> int | None:
    """Number of a pool's nodes that may be missing at a time; None: any number."""
    amounts = []
    for budget in disruption.get("budgets", [{"nodes": "10%"}]):
        reasons = budget.get("reasons") or ()
        if (reason in reasons or (not reasons and reason != "Expired")) and is_open(budget, now):
            text = str(budget["nodes"])
            amounts.append(-(-int(text[:-1]) * nodes // 100) if text.endswith("%") else int(text))
    return min(amounts, default=None)
