"""Rules of simulated hours as their judge reads them: when budgets are open, and whether pods have places together.

Nothing of the product's is used here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from agent.stockyard_agent.kubernetes import Object

MINUTE = timedelta(minutes=1)
ALIASES = {"@hourly": "0 * * * *", "@daily": "0 0 * * *"}
WEEKDAYS = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
SECONDS = {"s": 1, "m": 60, "h": 3600}
_WEIGHTS = ((1, 0), (0, 1), (1, 1))
"""Of cores and memory in the size of a pod."""


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
    """How many of a pool's nodes may be missing at a time; None: any number."""
    amounts = []
    for budget in disruption.get("budgets", [{"nodes": "10%"}]):
        reasons = budget.get("reasons") or ()
        if (reason in reasons or (not reasons and reason != "Expired")) and is_open(budget, now):
            text = str(budget["nodes"])
            amounts.append(-(-int(text[:-1]) * nodes // 100) if text.endswith("%") else int(text))
    return min(amounts, default=None)


# --- places of pods ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Space:
    """What is free on a node, and who is there."""

    labels: frozenset[tuple[str, str]]
    cpu: int
    mib: int
    apps: frozenset[str]

    def takes(self, pod: Object) -> bool:
        """Whether the pod may be here."""
        selector = pod["spec"].get("nodeSelector") or {}
        return (
            pod["cpu"] <= self.cpu
            and pod["mib"] <= self.mib
            and self.labels.issuperset(selector.items())
            and not ("affinity" in pod["spec"] and pod["app"] in self.apps)
        )

    def with_pod(self, pod: Object) -> Space:
        """What is free beside it."""
        return Space(self.labels, self.cpu - pod["cpu"], self.mib - pod["mib"], self.apps | {pod["app"]})


def have_places(pods: Sequence[Object], spaces: Sequence[Space], tries: int = 400) -> bool:
    """Whether all of the pods have places together: the largest first where it is tightest, or in some other order."""
    chance = Random(0)
    for number in range(tries):
        noise = 0.0 if number < len(_WEIGHTS) else chance.uniform(0.05, 0.5)
        sizes = {id(pod): _size(pod, number) * (1 + noise * chance.random()) for pod in pods}
        # Pods that keep apart have the fewest places.
        ranked = sorted(pods, key=lambda pod: ("affinity" not in pod["spec"], -sizes[id(pod)]))
        if _have_places_in_turn(ranked, list(spaces), chance if number % 2 else None):
            return True
    return False


def _size(pod: Object, number: int) -> float:
    """How large the pod is, by one of some measures."""
    cores, memory = _WEIGHTS[number % len(_WEIGHTS)]
    return float(cores * pod["cpu"] / 1000 + memory * pod["mib"] / 4096)


def _have_places_in_turn(pods: Sequence[Object], spaces: list[Space], chance: Random | None) -> bool:
    for pod in pods:
        fitting = [place for place, space in enumerate(spaces) if space.takes(pod)]
        if not fitting:
            return False
        place = min(fitting, key=lambda place: spaces[place].cpu / 1000 + spaces[place].mib / 4096)
        if chance is not None and chance.random() < 0.2:
            place = chance.choice(fitting)
        spaces[place] = spaces[place].with_pod(pod)
    return True
