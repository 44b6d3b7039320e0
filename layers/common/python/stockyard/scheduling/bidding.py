"""The price of a row in the zones of a claim, and SpotPriceAboveBid: the zones in which it costs at most the bid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from stockyard.domain.nodes.node_types import ANY, Offering
from stockyard.domain.nodes.prices import price_in
from stockyard.domain.pools.bids import Bid, zones_in_range
from stockyard.domain.values.requirements import ZONE, Requirements
from stockyard.scheduling.order import RankedOffering, ranked

ZoneIds = Mapping[str, Mapping[str, str]]
"""The ids of zones by name, by provider, where prices go by them and the claim's cluster has subnets."""


def in_zones(
    row: RankedOffering,
    zone_ids: ZoneIds,
    requirements: Requirements,
    refused: Iterable[tuple[str, str, str]] = (),
) -> RankedOffering:
    """The row at its price in the zones that the claim asks for and that have not refused lately."""
    offering = offering_of(row)
    if not offering.zone_prices:
        return row
    ids = zone_ids.get(row.node_type.provider, {})
    names, away = asked_zones(row.zones, ids, requirements), _refused_zones(row, refused)
    return _priced(row, row.zones, [zone for zone in names if zone not in away] or names, ids)


def in_range(
    bid: Bid,
    row: RankedOffering,
    zone_ids: ZoneIds,
    requirements: Requirements,
    refused: Iterable[tuple[str, str, str]],
) -> RankedOffering | None:
    """The row in the zones in which it costs at most the bid, at its price there; None for no zone.

    Its zones are those that the claim asks for. ``*`` becomes names, so that the claim's requirement and what was
    refused of late hold for them too.
    """
    node_type = row.node_type
    offering = offering_of(row)
    ids = zone_ids.get(node_type.provider, {})
    zones = zones_in_range(bid, node_type, offering, row.zones, ids)
    if zones == row.zones:
        return in_zones(row, zone_ids, requirements, refused) if zones else None
    requirement, away = requirements.get(ZONE), _refused_zones(row, refused)
    usable = tuple(
        zone for zone in zones if zone == ANY or (zone not in away and (requirement is None or requirement.has(zone)))
    )
    return _priced(row, usable, usable, ids) if usable else None


def _refused_zones(row: RankedOffering, refused: Iterable[tuple[str, str, str]]) -> set[str]:
    kind = (row.node_type.name, row.capacity_type)
    return {zone for name, capacity_type, zone in refused if (name, capacity_type) == kind}


def _priced(
    row: RankedOffering, zones: tuple[str, ...], price_zones: Sequence[str], ids: Mapping[str, str]
) -> RankedOffering:
    """The row in ``zones``, at its price in ``price_zones``."""
    offering = offering_of(row)
    return ranked(row.node_type, replace(offering, zones=zones, usd_hour=price_in(offering, price_zones, ids)))


def offering_of(row: RankedOffering) -> Offering:
    """The offering that the row is of, in all of its zones or in some."""
    alike = [each for each in row.node_type.offerings if each.capacity_type == row.capacity_type]
    return next((each for each in alike if set(row.zones) <= set(each.zones)), alike[0])


def asked_zones(zones: Sequence[str], ids: Mapping[str, str], requirements: Requirements) -> list[str]:
    """The zones of an offering that a claim asks for, by name where they are known."""
    requirement = requirements.get(ZONE)
    names = sorted(ids) if ANY in zones and ids else list(zones)
    return [zone for zone in names if requirement is None or zone == ANY or requirement.has(zone)]
