"""Node types as pods meet them: with a price for each zone of the cluster, and only what pods ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from stockyard.domain.nodes.node_types import ANY, NodeType, Offering
from stockyard.domain.nodes.prices import priced_zones
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.requirements import ARCH, CAPACITY_TYPE, REGION, ZONE, Requirements
from stockyard.scheduling.bidding import offering_of
from stockyard.scheduling.opt_in import asked_by, opt_in_labels
from stockyard.scheduling.order import RankedOffering
from stockyard.scheduling.packing.model import Pod

_ASKED_OFTEN = (ARCH, REGION)
"""Labels that every node has in the packer's eyes. Claims that ask for them get only types that declare them."""
_OF_OFFERINGS = (ZONE, CAPACITY_TYPE)


class ZoneSupply(Protocol):
    """Zones where a cluster's nodes can be, as ``templates.Supply`` has them."""

    @property
    def zones(self) -> Mapping[str, frozenset[str]]:
        """The zones by provider, where they are known."""

    @property
    def zone_ids(self) -> Mapping[str, Mapping[str, str]]:
        """The ids of a provider's zones by name, where prices go by them."""


@dataclass(frozen=True, slots=True)
class PodRequests:
    """Requests of pods to the node types that their pools have. ``asked_keys`` are the labels by which they ask for
    more (``domain.nodes.defaults``), ``likely`` those that may need a type for which nobody has looked for images."""

    asked_keys: frozenset[str] = frozenset()
    likely: tuple[Pod, ...] = ()

    @classmethod
    def of(cls, pods: Iterable[Pod], *, likely: bool) -> PodRequests:
        """Read all pods that are to be placed, of which equal ones are mostly one object. ``likely``: there are zones
        where nobody has looked for images."""
        different_pods = list({id(pod): pod for pod in pods}.values())
        return cls(asked_by(different_pods), tuple(dict.fromkeys(different_pods)) if likely else ())


NO_PODS = PodRequests()
"""Nobody asks for anything."""


def priced_type(
    supply: ZoneSupply,
    rows: Sequence[RankedOffering],
    requirements: Requirements,
    defaults: Mapping[str, str],
    *,
    dearest: bool,
) -> NodeType:
    """The type of these rows with an offering for each price in the zones of the cluster, and with the marks of what
    ``defaults`` are not. Prices are those of now, or with ``dearest`` the most of late."""
    node_type = rows[0].node_type
    offerings = tuple(offering for row in rows for offering in _by_price(supply, row, dearest=dearest))
    # The packer lets a node have any value of a label that its type does not tell; the scheduler of claims does not.
    absent = {key: () for key in (*requirements, *_ASKED_OFTEN) if not _is_told(node_type, key)}
    own = opt_in_labels(defaults, node_type, offering_of(rows[0]))
    properties = {**node_type.properties, **absent, **own} if absent or own else node_type.properties
    return replace(node_type, offerings=offerings, properties=properties)


def _by_price(supply: ZoneSupply, row: RankedOffering, *, dearest: bool) -> Sequence[Offering]:
    """An offering for each price that a row has in the zones of the cluster."""
    provider = row.node_type.provider
    known_zones = supply.zones.get(provider)
    zones = row.zones if known_zones is None else _within(row.zones, known_zones)
    offering = offering_of(row)
    if not offering.zone_prices or not zones:
        return [Offering(row.capacity_type, zones, offering.usd_hour)] if zones else []
    ids = supply.zone_ids.get(provider, {})
    if not all(zone in ids for zone in zones):
        # Until the zones are known, the dearest one counts.
        most = max(price.high if dearest else price.now for price in offering.zone_prices.values())
        return [Offering(row.capacity_type, zones, most)]
    # A zone without a price does not have the type.
    return [
        Offering(row.capacity_type, (zone,), price.high if dearest else price.now)
        for zone, price in priced_zones(offering, zones, ids)
    ]


def _is_told(node_type: NodeType, key: str) -> bool:
    return key in node_type.properties or key in _OF_OFFERINGS


def _within(zones: Sequence[str], known_zones: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(known_zones)) if ANY in zones else tuple(zone for zone in zones if zone in known_zones)
