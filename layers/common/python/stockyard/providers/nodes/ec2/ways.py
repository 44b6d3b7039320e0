"""How a placed claim may be launched: its placement's options, in their order, where the cluster has subnets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from stockyard.domain.node_types import ANY, ON_DEMAND
from stockyard.domain.records import NodeClaim, NodeProvider, Placement
from stockyard.domain.requirements import ZONE, Requirements
from stockyard.errors import NodeCouldNotBeProvisioned, VendorRefused
from stockyard.providers.nodes.ec2.fleet import DIVERSIFIED, Way
from stockyard.providers.nodes.ec2.place import Place


def placement(claim: NodeClaim) -> Placement:
    """Where the scheduler put it. ``NodeCouldNotBeProvisioned`` when it did not."""
    if claim.placement is None or not claim.placement.options:
        raise NodeCouldNotBeProvisioned("The claim is not placed.")
    return claim.placement


def types(claim: NodeClaim, provider: NodeProvider, capacity_type: str) -> list[str]:
    """The instance types of one capacity type that may be launched, cheapest first."""
    own = f"{provider.name}."
    return [
        str(option["type"]).removeprefix(own)
        for option in placement(claim).options
        if str(option["type"]).startswith(own) and option["capacity_type"] == capacity_type
    ]


def ways(
    claim: NodeClaim,
    provider: NodeProvider,
    place: Place,
    architectures: Mapping[str, str],
    capacity_type: str,
    strategy: str | None,
    first: str = "",
) -> tuple[Way, ...]:
    """Types times zones, in the order in which they are wanted; one subnet a zone, since a fleet takes no more.

    The zones of a type cost the same: claims begin with different ones. With ``diversified`` they begin with different
    types as well. ``first`` decides with which, instead of the claim's id. ``VendorRefused`` when nothing is left.
    """
    turn = int(hashlib.sha256((first or claim.id).encode()).hexdigest()[:8], 16)
    asked = Requirements.of(claim.requirements).get(ZONE)
    zones = [zone for zone in place.by_zone if asked is None or asked.has(zone)]
    subnets = {zone: _turned(place.by_zone[zone], turn)[0] for zone in zones}
    own = f"{provider.name}."
    offered = {
        str(option["type"]).removeprefix(own): option["zones"]
        for option in placement(claim).options
        if option["capacity_type"] == capacity_type
    }
    names = [name for name in types(claim, provider, capacity_type) if architectures.get(name) in place.images]
    if strategy == DIVERSIFIED and capacity_type == ON_DEMAND:
        names = _turned(names, turn)
    found = tuple(
        Way(name, zone, subnets[zone], place.images[architectures[name]], anywhere=ANY in offered[name])
        for name in names
        for zone in _turned(zones, turn)
        if ANY in offered[name] or zone in offered[name]
    )
    if not found:
        raise VendorRefused(
            f"no subnet of {', '.join(place.by_zone)} and image for {', '.join(place.images)} serves"
            f" {', '.join(offered)}",
            hint="Name more subnets or another image in the node provider, or ask for another zone or type.",
        )
    return found


def _turned(items: Iterable[str], turn: int) -> list[str]:
    found = list(items)
    start = turn % len(found) if found else 0
    return found[start:] + found[:start]
