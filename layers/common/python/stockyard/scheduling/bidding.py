"""SpotPriceAboveBid: of a row for spot, the zones in which it costs no more than the claim's bid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from stockyard.domain.nodes.node_types import ANY, Offering
from stockyard.domain.pools.bids import Bid, price_of_zones, zones_in_range
from stockyard.domain.values.requirements import ZONE, Requirements
from stockyard.scheduling.order import RankedOffering, ranked

ZoneIds = Mapping[str, Mapping[str, str]]
"""The ids of zones by name, by provider, where prices go by them and the claim's cluster has subnets."""


def in_range(
    bid: Bid,
    row: RankedOffering,
    zone_ids: ZoneIds,
    requirements: Requirements,
    refused: Iterable[tuple[str, str, str]],
) -> RankedOffering | None:
    """The row in the zones in which it costs at most the bid, at the most that it costs there; None for no zone.

    Its zones are those that the claim asks for. ``*`` becomes names, so that the claim's requirement and what was
    refused of late hold for them too.
    """
    node_type = row.node_type
    offering = offering_of(row)
    ids = zone_ids.get(node_type.provider, {})
    zones = zones_in_range(bid, node_type, offering, row.zones, ids)
    if zones == row.zones:
        return row if zones else None
    requirement = requirements.get(ZONE)
    away = {
        zone for name, capacity_type, zone in refused if (name, capacity_type) == (node_type.name, row.capacity_type)
    }
    usable = tuple(
        zone for zone in zones if zone == ANY or (zone not in away and (requirement is None or requirement.has(zone)))
    )
    return (
        ranked(node_type, replace(offering, zones=usable, usd_hour=price_of_zones(offering, usable, ids)))
        if usable
        else None
    )


def offering_of(row: RankedOffering) -> Offering:
    """The offering that the row is of, in all of its zones or in some."""
    alike = [way for way in row.node_type.offerings if way.capacity_type == row.capacity_type]
    return next((way for way in alike if set(row.zones) <= set(way.zones)), alike[0])


def asked_zones(zones: Sequence[str], ids: Mapping[str, str], requirements: Requirements) -> list[str]:
    """The zones of an offering that a claim asks for, by name where they are known."""
    requirement = requirements.get(ZONE)
    names = sorted(ids) if ANY in zones and ids else list(zones)
    return [zone for zone in names if requirement is None or zone == ANY or requirement.has(zone)]
