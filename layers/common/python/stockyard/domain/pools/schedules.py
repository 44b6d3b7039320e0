"""Schedules of disruption budgets in the syntax of cron: five fields, or a name such as ``@daily``, in a time zone.

The zone stands before the fields (``CRON_TZ=Europe/Berlin 0 9 * * mon-fri``, or ``TZ=``) or beside them. Without one it
is UTC. The fields are those of robfig/cron, which Karpenter reads them with; when the clocks change, times are those of
cron (Debian's, and ``cronsim``'s):

- A schedule that names its minutes and hours comes once for each of them. One in the hour that is left out comes when
  that hour is over; one in the hour that is there twice comes the first time.
- A schedule with ``*`` or ``*/n`` in its minutes or hours comes whenever the clock shows such a time: never in the hour
  that is left out, and in both of those that are equal.

A window lasts its duration in real time, whatever the clock shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

from stockyard.domain.values.frozen import dataclass

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
_MONTHS = {name: index for index, name in enumerate(_NAMES, 1)}
_WEEKDAYS = {name: index for index, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_PREFIXES = ("TZ=", "CRON_TZ=")
_ANY = ("*", "?")
_SECOND, _DAY = timedelta(seconds=1), timedelta(days=1)
_EARLIEST = datetime(1, 1, 3, tzinfo=UTC)
"""Before this moment a calendar of some zone has no days."""
_WINDOWS = 16
"""Windows that are joined to say when the last of them ends."""


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
    """Moments when something begins.

    ``fields`` are the five, each ``*`` or a list of all its numbers. Where day of the month and day of the week are
    both restricted either may fit, as in cron. ``follows_clock``: it comes whenever the clock shows such a time.
    """

    fields: str
    zone: str = "UTC"
    follows_clock: bool = False

    def next_after(self, moment: datetime) -> datetime | None:
        """The first time after ``moment``, in UTC; None when there is none that a calendar holds."""
        try:
            if self.zone == "UTC":
                return _next(self.fields, moment.astimezone(UTC))
            zone = time_zone(self.zone)
            if self.follows_clock:
                return self._next_shown(moment.astimezone(UTC), zone)
            return _next(self.fields, moment.astimezone(zone))
        except OverflowError:
            return None

    def _next_shown(self, moment: datetime, zone: tzinfo) -> datetime | None:
        """The first moment after ``moment`` at which the zone's clock shows a time of the schedule.

        The fields are followed on the clock as it goes now, up to its next change; then on the changed clock.
        """
        clock, offset = _clock(moment, zone)
        while (reading := _next(self.fields, clock.replace(tzinfo=UTC))) is not None:
            hit = reading - offset
            horizon = min(hit, moment + _DAY)
            change = _first_change(zone, moment, horizon)
            if change is not None:
                moment = change
                clock, offset = _clock(moment, zone)
                clock -= _SECOND  # the moment of the change may be a time of the schedule itself
            elif hit <= horizon:
                return hit
            else:
                # Changes on the way do not matter, but near the time itself they do. No clock was ever moved by more
                # than a day.
                moment = max(horizon, hit - 2 * _DAY)
                clock, offset = _clock(moment, zone)
        return None


@lru_cache(maxsize=4096)
def parse(text: str, zone: str = "") -> Schedule:
    """The schedule that a text says; ``zone`` is the time zone that is given beside it, empty for none.

    Raises ``ValueError`` with the field at fault, also for a schedule that never comes, such as 31 February.
    """
    prefix_zone, text = _split(text)
    if zone and prefix_zone and zone != prefix_zone:
        raise ValueError("the schedule begins with another time zone than the one that is given beside it")
    zone = zone or prefix_zone or "UTC"
    time_zone(zone)
    if text.startswith("@") and text not in _NAMED:
        raise ValueError(f"must be five fields or one of {', '.join(_NAMED)}")
    parts = _NAMED.get(text, text).split()
    if len(parts) != len(_FIELDS):
        raise ValueError("must have five fields: minute, hour, day of the month, month, day of the week")
    fields = " ".join(_normal(part, field) for part, field in zip(parts, _FIELDS, strict=True))
    _check_days(fields)
    follows_clock = any(span.startswith(_ANY) for part in parts[:2] for span in part.split(","))
    # Where every day has all hours there is nothing to follow.
    return Schedule(fields, zone, follows_clock and zone != "UTC")


def zone_of(text: str) -> str:
    """The time zone that a schedule begins with; empty for none. It is not checked."""
    return _split(text)[0]


def with_zone(text: str, zone: str) -> str:
    """The schedule with its time zone before it, where it is not there already; ``zone`` is empty for none."""
    return text if not zone or zone_of(text) else f"{_PREFIXES[-1]}{zone} {text}"


@lru_cache(maxsize=1024)
def time_zone(name: str) -> tzinfo:
    """The zone of that name in the IANA database. Raises ``ValueError`` when there is none."""
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo

    if name not in _zone_names():
        raise ValueError("the time zone is not known: use a name of the IANA database such as Europe/Berlin")
    return ZoneInfo(name)


def is_open(schedule: Schedule, duration: timedelta, now: datetime) -> bool:
    """Whether a window of the schedule is open: it came within ``duration``. Windows that overlap are one."""
    hit = schedule.next_after(_before(now, duration))
    return hit is not None and hit <= now


def next_change(schedule: Schedule, duration: timedelta, now: datetime) -> datetime | None:
    """Until when ``is_open`` stays what it is, but for windows that go on for long: then a moment before that.

    None: for ever.
    """
    hit = schedule.next_after(_before(now, duration))
    if hit is None or hit > now:
        return hit if duration else None
    for _ in range(_WINDOWS):
        later = schedule.next_after(hit)
        if later is None or later > hit + duration:
            break
        hit = later
    return hit + duration


def _before(now: datetime, duration: timedelta) -> datetime:
    return now - duration if now - _EARLIEST > duration else _EARLIEST


def _next(fields: str, moment: datetime) -> datetime | None:
    """The first time after ``moment`` by cronsim, in UTC. It reads the fields as those of the moment's zone."""
    from cronsim import CronSim

    for hit in CronSim(fields, moment):
        # In the second of two equal hours cronsim begins with times of the first.
        if (first := hit.astimezone(UTC)) > moment:
            return first
    return None


def _clock(moment: datetime, zone: tzinfo) -> tuple[datetime, timedelta]:
    """Time that the zone's clock shows, and how far that is from UTC."""
    local = moment.astimezone(zone)
    return local.replace(tzinfo=None, fold=0), local.utcoffset() or timedelta()


def _first_change(zone: tzinfo, start: datetime, end: datetime) -> datetime | None:
    """First change of the zone's clock after ``start`` and not after ``end``, to the second; None for never."""
    offset = _clock(start, zone)[1]
    if _clock(end, zone)[1] == offset:
        return None
    unchanged, changed = 0, int((end - start).total_seconds()) + 1
    while changed - unchanged > 1:
        middle = (unchanged + changed) // 2
        if _clock(start + timedelta(seconds=middle), zone)[1] == offset:
            unchanged = middle
        else:
            changed = middle
    return (start + timedelta(seconds=changed)).replace(microsecond=0)


@lru_cache(maxsize=1)
def _zone_names() -> frozenset[str]:
    from importlib import resources

    return frozenset(resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split())


def _split(text: str) -> tuple[str, str]:
    """The zone before the fields, empty for none, and the fields."""
    for prefix in _PREFIXES:
        if text.startswith(prefix):
            zone, _, fields = text.removeprefix(prefix).partition(" ")
            if not zone:
                raise ValueError(f"{prefix} must be followed by a time zone such as Europe/Berlin")
            return zone, fields.strip()
    return "", text


def _normal(text: str, field: _Field) -> str:
    """The field as ``*`` or a list of numbers."""
    # As robfig/cron has it: with a step of more than 1 a field is restricted, though it begins with a star.
    if any(part in _ANY or part.removesuffix("/1") in _ANY for part in text.split(",")):
        _values(text, field)
        return "*"
    return ",".join(map(str, sorted(_values(text, field))))


def _check_days(fields: str) -> None:
    from cronsim import CronSim, CronSimError

    try:
        CronSim(fields, _EARLIEST)
    except CronSimError:
        raise ValueError("never comes: none of the months has such a day") from None


def _values(text: str, field: _Field) -> frozenset[int]:
    values: set[int] = set()
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        step = _number(step_text, field, {}) if slash else 1
        if step < 1:
            raise ValueError(f"the {field.name} has a step of 0")
        if span in _ANY:
            first, last = field.least, field.most
        else:
            first_text, dash, last_text = span.partition("-")
            first = _number(first_text, field, field.names)
            last = _number(last_text, field, field.names) if dash else field.most if slash else first
        bounds = f"the {field.name} must be from {field.least} to {field.most}"
        if first < field.least or last > field.most:
            raise ValueError(bounds)
        if first > last:
            week = (
                "; the week begins with Sunday, so Saturday and Sunday are sat,sun" if field.names is _WEEKDAYS else ""
            )
            raise ValueError(f"{bounds}, and a range must not end before it begins{week}")
        values.update(range(first, last + 1, step))
    return frozenset(values)


def _number(text: str, field: _Field, names: Mapping[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not (text.isascii() and text.isdigit()) or len(text) > 4:
        raise ValueError(f"the {field.name} must be numbers, ranges and steps such as 1,3-5,*/10")
    return int(text)
