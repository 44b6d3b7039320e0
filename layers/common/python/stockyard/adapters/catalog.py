"""The EC2 catalogue: offline data of us-east-1, and what the schedule refreshed of any region.

A refreshed sheet counts for its region alone. Nothing is ever taken from one region for another: prices differ.
"""

from __future__ import annotations

import gzip
import json
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, astuple
from functools import cache
from pathlib import Path
from typing import Any

from stockyard.domain.offers import Gpus, InstanceOffer, RegionOffers
from stockyard.domain.records import PriceSheet
from stockyard.ports import Put, Store

OFFLINE_REGION = "us-east-1"
_OFFLINE = Path(__file__).with_name("data") / "ec2_catalog.json.gz"
_FIXED = 7
"""Fields of a stored row that are always there."""
_PREVIOUS, _BARE_METAL = 1, 2
_KEEP_SECONDS = 900.0
"""How long a warm function uses a sheet before it looks for a newer one."""


class Ec2PriceList:
    """Implements ``ports.PriceList``. ``store`` is the platform's, ``monotonic`` counts seconds."""

    def __init__(self, store: Store, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._monotonic = monotonic
        self._kept: dict[str, tuple[float, RegionOffers | None]] = {}

    def instance(self, region: str, name: str) -> Mapping[str, Any] | None:
        """What is known of a type; see ``ports.PriceList.instance``. Besides: max_pods, interfaces, gpus.

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

    def region(self, region: str) -> RegionOffers | None:
        """Everything known of a region and as of when; None when nothing is."""
        return self._sheet(region) or (_offline()[0] if region == OFFLINE_REGION else None)

    def _sheet(self, region: str) -> RegionOffers | None:
        now = self._monotonic()
        cached = self._kept.get(region)
        if cached is None or now - cached[0] >= _KEEP_SECONDS:
            record = self._store.get(PriceSheet, region) if region else None
            cached = self._kept[region] = (now, None if record is None else _unpack(record))
        return cached[1]


class StoredPriceSheets:
    """Keeps refreshed sheets in the platform's ``store``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def write(self, offers: RegionOffers) -> None:
        """Keep a region's offers; the last writer is right. Raises ``StoreError`` leaves."""
        self._store.commit(Put(pack(offers)))

    def moments(self) -> Mapping[str, str]:
        """When each region was refreshed; by one query, some 20 KB a region. Raises ``StoreError`` leaves."""
        times: dict[str, str] = {}
        after: str | None = None
        while True:
            page = self._store.list(PriceSheet, after=after)
            times.update((sheet.id, sheet.refreshed_at) for sheet in page.items)
            if page.next_id is None:
                return times
            after = page.next_id


def pack(offers: RegionOffers) -> PriceSheet:
    """A region's offers as a record of some 20 KB."""
    document = {"instances": [row(offer) for offer in offers.instances.values()], "rates": dict(offers.rates)}
    text = json.dumps(document, separators=(",", ":"))
    return PriceSheet(offers.region, offers.as_of, zlib.compress(text.encode(), 9))


def row(offer: InstanceOffer) -> list[Any]:
    """One type as a compact list: the fields of ``InstanceOffer`` up to the price, the GPUs, the flags as a number.

    GPUs and flags are left out where there are none: 1 stands for a previous generation, 2 for bare metal.
    """
    *fixed, gpus, current_generation, bare_metal = astuple(offer)
    flags = _PREVIOUS * (not current_generation) | _BARE_METAL * bare_metal
    return [*fixed, gpus, flags] if flags else [*fixed, gpus] if gpus else fixed


def _instance(row: list[Any]) -> InstanceOffer:
    gpus, flags = (row[_FIXED:] + [(), 0][len(row) - _FIXED :])[:2]
    read_gpus = tuple(Gpus(*gpu) for gpu in gpus)
    return InstanceOffer(*(*row[:_FIXED], read_gpus, not flags & _PREVIOUS, bool(flags & _BARE_METAL)))


def _unpack(record: PriceSheet) -> RegionOffers:
    document = json.loads(zlib.decompress(record.data))
    return RegionOffers(record.id, record.refreshed_at, _instances(document["instances"]), document["rates"])


def _instances(rows: list[list[Any]]) -> dict[str, InstanceOffer]:
    return {row[0]: _instance(row) for row in rows}


def _properties(offer: InstanceOffer, usd_hour: float | None) -> dict[str, Any]:
    return {
        "vcpu": offer.vcpu,
        "memory_mib": offer.memory_mib,
        "architecture": offer.architecture,
        "usd_hour": usd_hour,
        "max_pods": offer.max_pods,
        "interfaces": offer.interfaces,
        "gpus": [asdict(gpu) for gpu in offer.gpus],
    }


@cache
def _offline() -> tuple[RegionOffers, frozenset[str]]:
    """The offers of the data file, and the types it has a price or a size of but no proof that they are offered."""
    document = json.loads(gzip.decompress(_OFFLINE.read_bytes()))
    offers = RegionOffers(document["region"], document["as_of"], _instances(document["instances"]), document["rates"])
    return offers, frozenset(document["doubtful"])
