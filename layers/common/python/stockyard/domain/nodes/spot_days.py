"""Spot prices of the last day, by type and zone: a point for each hour in which the price was another one.

A region has some thousand types in six zones. They stand in ``PARTS`` records, so that a question about one type reads
one of some 20 KB, and the hourly refresh writes no more than it has to.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from stockyard.domain.nodes.offers import SpotPrice
from stockyard.domain.values import times

PARTS = 8
SPAN = timedelta(days=1)
_MINUTE = 60
Points = dict[str, dict[str, list[list[float]]]]
"""By type and zone: minutes since 1970, and USD an hour from then on."""


def merged(day: Points, prices: Mapping[str, Mapping[str, SpotPrice]], now: datetime) -> Points:
    """The day with these prices behind it. What was before the day is left out, but for what held at its beginning; a
    type or zone that has no price any more goes with its last point."""
    minute = _minute(now)
    since = minute - int(SPAN.total_seconds()) // _MINUTE
    points: Points = {name: {zone: list(each) for zone, each in zones.items()} for name, zones in day.items()}
    for name, zones in prices.items():
        for zone, price in zones.items():
            own = points.setdefault(name, {}).setdefault(zone, [])
            if not own or own[-1][1] != price.now:
                own.append([minute, price.now])
    for name, by_zone in list(points.items()):
        for zone, own in list(by_zone.items()):
            sold = zone in prices.get(name, {})
            first = max((n for n, point in enumerate(own) if point[0] <= since), default=0)
            by_zone[zone] = own[first:]
            if not sold and own[-1][0] <= since:
                del by_zone[zone]
        if not by_zone:
            del points[name]
    return points


def part_of(name: str) -> int:
    """Number of the part in which a type stands."""
    return zlib.crc32(name.encode()) % PARTS


def moment(minute: float) -> str:
    """The moment of a point."""
    return times.to_text(datetime.fromtimestamp(minute * _MINUTE, UTC))


def _minute(time: datetime) -> int:
    return times.epoch(time) // _MINUTE
