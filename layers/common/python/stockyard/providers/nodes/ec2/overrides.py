"""Ways in which a placed claim may be launched: its placement's options, in their order, where the cluster has
subnets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace

from stockyard.domain.nodes.node_types import ANY, ON_DEMAND
from stockyard.domain.nodes.zone_ids import by_name
from stockyard.domain.records import NodeClaim, NodeProvider, Placement
from stockyard.domain.values.requirements import ZONE, Requirements
from stockyard.errors import NodeCouldNotBeProvisioned, VendorRefused
from stockyard.providers.clouds.aws.catalog.images import has_gpu_image
from stockyard.providers.nodes.ec2.fleet import DIVERSIFIED, Override
from stockyard.providers.nodes.ec2.node_class import NodeClass


def placement(claim: NodeClaim) -> Placement:
    """Placement of the claim by the scheduler. ``NodeCouldNotBeProvisioned`` without any."""
    if claim.placement is None or not claim.placement.options:
        raise NodeCouldNotBeProvisioned("The claim is not placed.")
    return claim.placement


def types(claim: NodeClaim, provider: NodeProvider, capacity_type: str) -> list[str]:
    """The instance types of one capacity type that may be launched, cheapest first."""
    return [
        name
        for option in placement(claim).options
        if (name := option.type_of(provider.name)) and option.capacity_type == capacity_type
    ]


def overrides(
    claim: NodeClaim,
    provider: NodeProvider,
    node_class: NodeClass,
    architectures: Mapping[str, str],
    capacity_type: str,
    strategy: str | None,
    first: str = "",
) -> tuple[Override, ...]:
    """Types times zones, in the order in which they are wanted; one subnet a zone, since a fleet takes no more.

    The zones of a type cost the same: claims begin with different ones. With ``diversified`` they begin with different
    types as well. ``first`` decides with which, instead of the claim's id. ``VendorRefused`` when nothing is left.
    """
    offset = int(hashlib.sha256((first or claim.id).encode()).hexdigest()[:8], 16)
    requirement = by_name(Requirements.of(claim.requirements), node_class.zone_ids).get(ZONE)
    zones = [zone for zone in node_class.by_zone if requirement is None or requirement.has(zone)]
    # What is refused to a claim in the zones that it names says nothing of the others.
    named = requirement is not None and not requirement.complement and requirement.values <= set(node_class.by_zone)
    narrowed = named and len(zones) < len(node_class.by_zone)
    subnets = {zone: _turned(node_class.by_zone[zone], offset)[0] for zone in zones}
    offered = {
        option.type_of(provider.name): option.zones
        for option in placement(claim).options
        if option.capacity_type == capacity_type
    }
    names = _of_one_disk(
        [name for name in types(claim, provider, capacity_type) if architectures.get(name) in node_class.images]
    )
    if strategy == DIVERSIFIED and capacity_type == ON_DEMAND:
        names = _turned(names, offset)
    possible = tuple(
        Override(
            name,
            zone,
            subnets[zone],
            node_class.images[architectures[name]],
            anywhere=ANY in offered[name] and not narrowed,
        )
        for name in names
        for zone in _turned(zones, offset)
        if ANY in offered[name] or zone in offered[name]
    )
    if not possible:
        raise VendorRefused(
            f"no subnet of {', '.join(node_class.by_zone)} and image for {', '.join(node_class.images)} serves"
            f" {', '.join(offered)}",
            hint="Name more subnets or another image in the node provider, ask for another zone or type, or update the"
            " template of the account.",
        )
    return possible


def _of_one_disk(names: list[str]) -> list[str]:
    """The types whose machines have the disk of the first one's: a call has one launch template. Those with NVIDIA's
    driver have a larger one."""
    return [name for name in names if has_gpu_image(name) == has_gpu_image(names[0])]


def bid_for(possible: tuple[Override, ...], max_prices: str) -> tuple[Override, ...]:
    """The ways with the most that each may cost, of ``max_prices`` as a launch keeps them. Of a type whose price on
    demand is not known nobody knows what a part of it is: it is left out. ``VendorRefused`` when nothing is left."""
    limits = dict(entry.split("=") for entry in max_prices.split(",") if entry)
    able = tuple(replace(override, max_price=limits[override.type]) for override in possible if override.type in limits)
    if not able:
        names = ", ".join(dict.fromkeys(override.type for override in possible))
        raise VendorRefused(f"the price on demand of {names} is not known", hint="Give the bid in USD an hour.")
    return able


def _turned(items: Iterable[str], offset: int) -> list[str]:
    ordered = list(items)
    start = offset % len(ordered) if ordered else 0
    return ordered[start:] + ordered[:start]
