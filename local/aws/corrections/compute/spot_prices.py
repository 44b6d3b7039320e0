"""Spot prices that move. moto has one price for everything, of the year 2006.

A type costs between a quarter and half of its price on demand, in each zone another part, and every six hours that
changes by up to a tenth. Prices are a function of type, zone and time: each start of the local cloud has the same ones.
A series for a type, or for a type in a zone, takes their place: the prices of a plan, each from a moment on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any
from unittest.mock import patch
from zlib import crc32

from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS
from moto.ec2.responses.spot_instances import SpotInstances

from local.aws.corrections.compute.pricing import on_demand_prices

PERIOD = timedelta(hours=6)
"""How long a price holds."""
PAGE = 1000
"""The largest page, in prices, as in AWS."""
PRODUCT = "Linux/UNIX"


Series = Mapping[str, Sequence[tuple[float, float]]]
"""By type, or type and zone: seconds after the start, and the price in USD an hour from then on."""


class Played:
    """The series that are played, since when."""

    series: Series = MappingProxyType({})
    began = datetime.fromtimestamp(0, UTC)
    answers: Mapping[tuple[Any, ...], list[str]] = MappingProxyType({})
    """The latest answer, by what was query for: its later pages are query for one by one."""


@contextmanager
def moving_spot_prices(series: Series = MappingProxyType({})) -> Iterator[None]:
    """Inside this context moto's server answers ``ec2:DescribeSpotPriceHistory`` with prices that move; those of
    ``series`` as they say."""
    began = datetime.now(UTC)
    with (
        patch.object(SpotInstances, "describe_spot_price_history", _history),
        patch.object(Played, "series", series),
        patch.object(Played, "began", began),
        patch.object(Played, "answers", MappingProxyType({})),
    ):
        yield


def market_price(name: str, zone: str, zone_id: str, moment: datetime) -> float | None:
    """USD an hour of a type in a zone of that name and id at that moment; None where it is not sold."""
    steps = Played.series.get(f"{name}/{zone}") or Played.series.get(name)
    if steps:
        since = (moment - Played.began).total_seconds()
        return [usd for begins, usd in steps if begins <= since or begins == steps[0][0]][-1]
    on_demand = on_demand_prices().get(name)
    return None if on_demand is None else spot_price(on_demand, name, zone_id, moment)


def _steps(name: str, zone: str, since: datetime, until: datetime) -> list[datetime]:
    """Times of the price's changes in that span, and of the price at its begin."""
    steps = Played.series.get(f"{name}/{zone}") or Played.series.get(name)
    if steps:
        moments = [Played.began + timedelta(seconds=begins) for begins, _ in steps]
        return [since, *(moment for moment in moments if since < moment <= until)]
    periods = range(_period(since), _period(until) + 1)
    return [datetime.fromtimestamp(period * PERIOD.total_seconds(), UTC) for period in periods]


def spot_price(on_demand: float, name: str, zone_id: str, moment: datetime) -> float:
    """USD an hour of a type in a zone at that moment."""
    part = 0.25 + 0.25 * _chance(name, zone_id)
    move = 0.9 + 0.2 * _chance(name, zone_id, str(_period(moment)))
    return round(on_demand * part * move, 6)


def _chance(*seeds: str) -> float:
    return crc32(" ".join(seeds).encode()) / 2**32


def _period(moment: datetime) -> int:
    return int(moment.timestamp() // PERIOD.total_seconds())


def _history(self: Any) -> str:
    products = self._get_param("ProductDescriptions", [])
    first = int(self._get_param("NextToken") or 0)
    after = first + min(int(self._get_param("MaxResults") or PAGE), PAGE)
    moments = self._get_param("StartTime"), self._get_param("EndTime")
    query = (self.ec2_backend.region_name, *moments, *sorted(self._get_param("InstanceTypes", [])))
    if not first or query not in Played.answers:
        now = datetime.now(UTC)
        since, until = (_moment(moment) or now for moment in moments)
        Played.answers = {query: _points(query[0], set(query[3:]), since, until)}  # pages of one answer agree
    points = Played.answers[query] if not products or PRODUCT in products else []
    token = str(after) if after < len(points) else ""
    # moto's own way from values to XML takes a hundred times as long for an answer of ten thousand prices
    return f"{_HEAD}{''.join(points[first:after])}</spotPriceHistorySet><nextToken>{token}</nextToken>{_END}"


_HEAD = (
    '<DescribeSpotPriceHistoryResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
    "<requestId>00000000-0000-0000-0000-000000000000</requestId><spotPriceHistorySet>"
)
_END = "</DescribeSpotPriceHistoryResponse>"


def _points(region: str, types: Set[str], since: datetime, until: datetime) -> list[str]:
    """Every price of the types, or of all, as an item of the answer."""
    zone_ids = {zone.name: zone.zone_id for zone in RegionsAndZonesBackend.zones.get(region, [])}
    offered = [
        (offering["InstanceType"], offering["Location"])
        for offering in INSTANCE_TYPE_OFFERINGS["availability-zone"].get(region, [])
        if not types or offering["InstanceType"] in types
    ]
    return [
        f"<item><availabilityZone>{zone}</availabilityZone><availabilityZoneId>{zone_ids[zone]}</availabilityZoneId>"
        f"<instanceType>{name}</instanceType><productDescription>{PRODUCT}</productDescription>"
        f"<spotPrice>{usd:.6f}</spotPrice><timestamp>{begins:%Y-%m-%dT%H:%M:%S.%fZ}</timestamp></item>"
        for name, zone in offered
        if zone in zone_ids
        for begins in _steps(name, zone, since, until)
        if (usd := market_price(name, zone, zone_ids[zone], begins)) is not None
    ]


def _moment(moment: datetime | None) -> datetime | None:
    return moment if moment is None or moment.tzinfo else moment.replace(tzinfo=UTC)
