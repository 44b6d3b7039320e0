"""The EC2 catalogue: offline data of us-east-1, and what the schedule refreshed of any region.

A refreshed sheet counts for its region alone. Nothing is ever taken from one region for another: prices differ.
"""

from __future__ import annotations

import gzip
import json
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, astuple, fields, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from stockyard.domain.nodes import spot_days
from stockyard.domain.nodes.offers import (
    Accelerator,
    ClusterVersion,
    Gpus,
    InstanceOffer,
    InstanceTraits,
    RegionOffers,
    SpotPrice,
    SpotPrices,
)
from stockyard.domain.records import PriceRequest, PriceSheet, SpotDay
from stockyard.domain.values import times
from stockyard.errors import Conflict
from stockyard.ports import Put, Replace, Store

OFFLINE_REGION = "us-east-1"
_DATA = Path(__file__).with_name("data")
_OFFLINE = _DATA / "ec2_catalog.json.gz"
_FIXED = 7
"""Fields of a stored row that are always there."""
_PREVIOUS, _BARE_METAL = 1, 2
_TRAITS = tuple(field.name for field in fields(InstanceTraits))
_SPOT = ".spot"
"""What the id of a sheet with spot prices ends with, behind the region."""
_SPOT_LASTS = timedelta(days=1)
"""How long spot prices count that could not be refreshed."""
_KEEP_SECONDS = 900.0
"""How long a warm function uses a sheet before it looks for a newer one."""
_KEEP_NOTHING_SECONDS = 1.0
"""How long it believes that there is no sheet: somebody may wait for the first one."""
_KEEP_SPOT_SECONDS = 10.0
"""The same of spot prices: claims that wait for one are to be placed within a minute of it."""


class Ec2PriceList:
    """Implements ``ports.PriceList``. ``store`` is the platform's, ``monotonic`` counts seconds."""

    def __init__(
        self,
        store: Store,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._monotonic = monotonic
        self._now = now
        self._kept: dict[str, tuple[float, PriceSheet | None, Any]] = {}

    def instance(self, region: str, name: str) -> Mapping[str, Any] | None:
        """Facts about a type; see ``ports.PriceList.instance``. Besides: max_pods, interfaces, gpus.

        A type that only another region is known to offer has its size but no price.
        """
        sheet = self.region(region)
        offer = sheet.instances.get(name) if sheet else None
        if offer is not None:
            return _properties(offer, offer.usd_hour)
        elsewhere = _offline()[0].instances.get(name)
        return None if elsewhere is None else _properties(elsewhere, None)

    def offered(self, region: str, name: str) -> bool | None:
        """Whether the region offers the type; None when nothing is known of the region or, offline, of the type."""
        sheet = self._sheet(region)
        if sheet is not None:
            return name in sheet.instances
        if region != OFFLINE_REGION:
            return None
        offers, doubtful = _offline()
        return None if name in doubtful else name in offers.instances

    def rate(self, region: str, item: str) -> float | None:
        """USD of an item; see ``ports.PriceList.rate``. Also ``nat_gateway_gb``: a GB through a NAT gateway."""
        sheet = self.region(region)
        rate = sheet.rates.get(item) if sheet else None
        if rate is None and region == OFFLINE_REGION:
            rate = _offline()[0].rates.get(item)
        return rate

    def versions(self, region: str) -> Sequence[ClusterVersion]:
        """See ``ports.PublicPrices.versions``: as the region has last told them, else those of the data file."""
        sheet = self._sheet(region)
        return sheet.versions if sheet is not None and sheet.versions else _offline_versions()

    def why_unknown(self, region: str) -> str:
        """See ``ports.PublicPrices.why_unknown``."""
        request = self._store.get(PriceRequest, region)
        if request is None:
            return f"Prices of {region} are not known yet."
        if request.failure is not None:
            return f"Prices of {region} could not be fetched ({request.failure}); that is tried again later."
        if request.ended_at is None:
            return f"Prices of {region} are being fetched, which takes about a minute; ask again then."
        return f"Some prices of {region} are not known."

    def forget(self, region: str) -> None:
        """Read a region anew when it is next asked for."""
        for name in (region, region + _SPOT):
            self._kept.pop(name, None)

    def region(self, region: str) -> RegionOffers | None:
        """Everything known of a region and as of when; None when nothing is."""
        return self._sheet(region) or (_offline()[0] if region == OFFLINE_REGION else None)

    def spot(self, region: str) -> SpotPrices | None:
        """The spot prices of a region; None when none are known, or none that are younger than a day."""
        prices: SpotPrices | None = self._stored(region and region + _SPOT, _unpack_spot, _KEEP_SPOT_SECONDS)
        if prices is None or self._now() - times.from_text(prices.as_of) > _SPOT_LASTS:
            return None
        return prices

    def spot_history(self, region: str, name: str) -> Mapping[str, Sequence[tuple[str, float]]]:
        """See ``ports.PublicPrices.spot_history``. One read."""
        record = self._store.get(SpotDay, _part_id(region, spot_days.part_of(name)))
        zones = _unpack_day(record).get(name, {})
        return {zone: [(spot_days.moment(n), usd) for n, usd in points] for zone, points in sorted(zones.items())}

    def _sheet(self, region: str) -> RegionOffers | None:
        sheet: RegionOffers | None = self._stored(region, _unpack)
        return sheet

    def _stored(self, name: str, unpack: Callable[[PriceSheet], Any], keep: float = _KEEP_SECONDS) -> Any:
        """Content of a stored sheet; None where there is none. One that is as it was is not unpacked again."""
        now = self._monotonic()
        cached = self._kept.get(name)
        if cached is not None and cached[1] is None:
            keep = min(keep, _KEEP_NOTHING_SECONDS)
        if cached is None or now - cached[0] >= keep:
            record = self._store.get(PriceSheet, name) if name else None
            unchanged = cached is not None and cached[1] == record
            unpacked = cached[2] if cached is not None and unchanged else None if record is None else unpack(record)
            cached = self._kept[name] = (now, record, unpacked)
        return cached[2]


class StoredPriceSheets:
    """Keeps refreshed sheets in the platform's ``store``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def write(self, offers: RegionOffers) -> None:
        """Keep a region's offers; the last writer is right. Raises ``StoreError`` leaves."""
        self._store.commit(Put(pack(offers)))

    def write_spot(self, prices: SpotPrices) -> None:
        """Keep a region's spot prices, and add them to its day; the last writer is right. Raises ``StoreError``."""
        self._store.commit(Put(pack_spot(prices)))
        for part in range(spot_days.PARTS):
            self._add_to_day(prices, part)

    def _add_to_day(self, prices: SpotPrices, part: int) -> None:
        offered = {name: zones for name, zones in prices.instances.items() if spot_days.part_of(name) == part}
        record = self._store.get(SpotDay, _part_id(prices.region, part))
        if offered or record is not None:
            day = spot_days.merged(_unpack_day(record), offered, times.from_text(prices.as_of))
            self._store.commit(Put(SpotDay(_part_id(prices.region, part), prices.as_of, pack_day(day))))

    def end_request(self, region: str, ended_at: str, failure: str | None) -> None:
        """Write on the region's request, if there is one, that it has ended. A newer request is left alone. Raises
        ``StoreError`` leaves."""
        request = self._store.get(PriceRequest, region)
        if request is not None:
            changed = replace(request, ended_at=ended_at, failure=failure, version=request.version + 1)
            with suppress(Conflict):
                self._store.commit(Replace(changed))

    def moments(self, *, spot: bool = False) -> Mapping[str, str]:
        """Moments when the offers of each region, or its spot prices, were refreshed; by one query, some 90 KB a
        region. Raises ``StoreError`` leaves."""
        moments: dict[str, str] = {}
        after: str | None = None
        while True:
            page = self._store.list(PriceSheet, after=after)
            moments.update(
                (sheet.id.removesuffix(_SPOT), sheet.refreshed_at)
                for sheet in page.items
                if sheet.id.endswith(_SPOT) == spot
            )
            if page.next_id is None:
                return moments
            after = page.next_id


def pack(offers: RegionOffers) -> PriceSheet:
    """A region's offers as a record of some 40 KB."""
    document = {
        "instances": [row(offer) for offer in offers.instances.values()],
        "rates": dict(offers.rates),
        "versions": [astuple(version) for version in offers.versions],
    }
    text = json.dumps(document, separators=(",", ":"))
    return PriceSheet(offers.region, offers.as_of, zlib.compress(text.encode(), 9))


def row(offer: InstanceOffer) -> list[Any]:
    """One type as a compact list: the fields of ``InstanceOffer`` up to the price, the GPUs, the flags as a number, the
    interfaces of its fabric, the traits as a list.

    What is none at the end is left out. Of the flags 1 stands for a previous generation, 2 for bare metal.
    """
    *fixed, gpus, current_generation, bare_metal, fabric_interfaces, _ = astuple(offer)
    flags = _PREVIOUS * (not current_generation) | _BARE_METAL * bare_metal
    more = [gpus, flags, fabric_interfaces, traits_row(offer.traits)]
    while more and not more[-1]:
        more.pop()
    return [*fixed, *more]


def traits_row(traits: InstanceTraits | None) -> list[Any]:
    """The fields of ``InstanceTraits`` in their order; what is not told at the end is left out."""
    row = list(astuple(traits)) if traits is not None else []
    while row and row[-1] is None:
        row.pop()
    return row


def _instance(row: list[Any]) -> InstanceOffer:
    gpus, flags, fabric_interfaces, traits = (row[_FIXED:] + [(), 0, 0, []][len(row) - _FIXED :])[:4]
    read_gpus = tuple(Gpus(*gpu) for gpu in gpus)
    previous, bare_metal = bool(flags & _PREVIOUS), bool(flags & _BARE_METAL)
    return InstanceOffer(*(*row[:_FIXED], read_gpus, not previous, bare_metal, fabric_interfaces, _traits(traits)))


def _traits(values: list[Any]) -> InstanceTraits | None:
    if not values:
        return None
    fields = dict(zip(_TRAITS, values, strict=False))
    if fields.get("accelerator"):
        fields["accelerator"] = Accelerator(*fields["accelerator"])
    return InstanceTraits(**fields)


def _unpack(record: PriceSheet) -> RegionOffers:
    document = json.loads(zlib.decompress(record.data))
    versions = tuple(ClusterVersion(*row) for row in document.get("versions") or ())  # older sheets have none
    instances = _instances(document["instances"])
    return RegionOffers(record.id, record.refreshed_at, instances, document["rates"], versions)


def _instances(rows: list[list[Any]]) -> dict[str, InstanceOffer]:
    return {row[0]: _instance(row) for row in rows}


def pack_spot(prices: SpotPrices) -> PriceSheet:
    """A region's spot prices as a record of some 70 KB: by type, number of the zone, price now, least and most."""
    zones = sorted({zone for by_zone in prices.instances.values() for zone in by_zone})
    instances = {
        name: [[zones.index(zone), price.now, price.low, price.high] for zone, price in sorted(by_zone.items())]
        for name, by_zone in sorted(prices.instances.items())
    }
    text = json.dumps({"zones": zones, "instances": instances}, separators=(",", ":"))
    return PriceSheet(prices.region + _SPOT, prices.as_of, zlib.compress(text.encode(), 9))


def _unpack_spot(record: PriceSheet) -> SpotPrices:
    document = json.loads(zlib.decompress(record.data))
    instances = {
        name: {document["zones"][number]: SpotPrice(*prices) for number, *prices in rows}
        for name, rows in document["instances"].items()
    }
    return SpotPrices(record.id.removesuffix(_SPOT), record.refreshed_at, instances)


def pack_day(day: spot_days.Points) -> bytes:
    """A part of the spot prices of a day as a record keeps it."""
    return zlib.compress(json.dumps(day, separators=(",", ":")).encode(), 6)


def _unpack_day(record: SpotDay | None) -> spot_days.Points:
    day: spot_days.Points = {} if record is None else json.loads(zlib.decompress(record.data))
    return day


def _part_id(region: str, part: int) -> str:
    return f"{region}/{part}"


def _properties(offer: InstanceOffer, usd_hour: float | None) -> dict[str, Any]:
    return {
        "vcpu": offer.vcpu,
        "memory_mib": offer.memory_mib,
        "architecture": offer.architecture,
        "usd_hour": usd_hour,
        "max_pods": offer.max_pods,
        "interfaces": offer.interfaces,
        "gpus": [asdict(gpu) for gpu in offer.gpus],
        "fabric_interfaces": offer.fabric_interfaces,
    }


@cache
def _offline() -> tuple[RegionOffers, frozenset[str]]:
    """The offers of the data file, and the types it has a price or a size of but no proof that they are offered."""
    document = json.loads(gzip.decompress(_OFFLINE.read_bytes()))
    offers = RegionOffers(document["region"], document["as_of"], _instances(document["instances"]), document["rates"])
    return offers, frozenset(document["doubtful"])


@cache
def _offline_versions() -> tuple[ClusterVersion, ...]:
    """EKS's versions in the data file. A region's own answer counts more; see ``docs/data.md``."""
    document = json.loads((_DATA / "eks_versions.json").read_text())
    return tuple(ClusterVersion(*row) for row in document["versions"])
