"""The node types of a provider: what its region offers by the product's own catalogue, less what its document says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import translate

from stockyard.domain.nodes.declared_types import DeclaredType, choosable, declared, declared_type, written_zone
from stockyard.domain.nodes.node_types import (
    ANY,
    ON_DEMAND,
    SPOT,
    Declaration,
    NodeType,
    Offering,
    node_type_of,
    parse_property,
)
from stockyard.domain.nodes.offers import InstanceOffer, RegionOffers, SpotPrice, SpotPrices
from stockyard.domain.records import NodeProvider, Placement
from stockyard.domain.values.prices import by_the_hour
from stockyard.domain.values.requirements import REGION, ZONE
from stockyard.providers.clouds.aws.catalog.images import GPU_DISK_GIB, has_gpu_image
from stockyard.providers.clouds.aws.catalog.reserved import DISK_GIB, capacity, overhead, pods
from stockyard.providers.clouds.aws.catalog.type_labels import labels
from stockyard.providers.nodes.ec2.configuration import setting

ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}
"""EC2's architectures that Linux nodes have, and Kubernetes' names of them."""


def capacity_types(provider: NodeProvider) -> tuple[str, ...]:
    """The capacity types that the document lets through."""
    return tuple(setting(provider, "capacityTypes") or (ON_DEMAND,))


def node_types(provider: NodeProvider, offers: RegionOffers, spot: SpotPrices | None = None) -> tuple[NodeType, ...]:
    """The node type of each instance type that the document's globs let through, cheapest known facts included.

    Spot has the price of its dearest zone, and those of all zones beside. While none is known, such an offering has no
    price and ranks last.
    """
    written = {declaration.name: declaration for declaration in declared(provider)}
    nothing = DeclaredType("")
    common = choosable(provider.properties)
    spot_prices = spot.instances if spot is not None else {}
    return tuple(
        _kind(provider, offers, offer, written.get(name, nothing), common, spot_prices.get(name, {}))
        for name, offer in matching(provider, offers).items()
    )


def matching(provider: NodeProvider, offers: RegionOffers) -> dict[str, InstanceOffer]:
    """The instance types that Linux nodes can be and that the document's globs let through."""
    pattern = re.compile("|".join(translate(glob) for glob in setting(provider, "instanceTypes") or (ANY,)))
    return {
        name: offer
        for name, offer in offers.instances.items()
        if offer.architecture in ARCHITECTURES and pattern.match(name)
    }


def unserved(provider: NodeProvider, offer: InstanceOffer) -> str | None:
    """Reason why no node of the type can be made; None: one can. No image of ours has a driver for accelerators that
    are not NVIDIA's newer GPUs: it would make a dear node without them."""
    has_devices = bool(offer.gpus) or (offer.traits is not None and offer.traits.accelerator is not None)
    has_driver = has_gpu_image(offer.name) or bool(setting(provider, "image"))
    return _NO_DRIVER if has_devices and not has_driver else None


_NO_DRIVER = (
    "AWS's image with NVIDIA's driver does not serve its GPUs or accelerators; a provider with an image that has their"
    " driver does"
)


def _kind(
    provider: NodeProvider,
    offers: RegionOffers,
    offer: InstanceOffer,
    written: DeclaredType,
    common: dict[str, str],
    spot_prices: Mapping[str, SpotPrice],
) -> NodeType:
    own = choosable(written.properties)
    zones = parse_property(ZONE, written_zone(own, common) or ANY)
    by_capacity_type = {
        ON_DEMAND: Offering(ON_DEMAND, zones, offer.usd_hour),
        SPOT: Offering(
            SPOT, zones, max((price.now for price in spot_prices.values()), default=None), spot_prices, offer.usd_hour
        ),
    }
    offerings = tuple(offering for name, offering in by_capacity_type.items() if name in capacity_types(provider))
    return node_type_of(
        Declaration(
            provider=provider.name,
            name=offer.name,
            resources=capacity(offer),
            overhead=overhead(offer),
            provider_properties=common,
            properties={**labels(offer, pods(offer)), REGION: offers.region, **own},
            cost=written.cost,
            unit_price=provider.price_per_cost_unit,
            limited=written.max_capacity is not None,
            instance_type=offer.name,
            arch=ARCHITECTURES[offer.architecture],
            offerings=offerings,
            boots=True,
            unserved=unserved(provider, offer),
            disk_gib=disk_gib(provider, offer.name),
            gib_usd_hour=by_the_hour(offers.rates.get("gp3")),
        )
    )


def disk_gib(provider: NodeProvider, instance_type: str) -> int:
    """The size of the root volume of machines that name none."""
    uses_gpu_image = has_gpu_image(instance_type) and not setting(provider, "image")
    return GPU_DISK_GIB if uses_gpu_image else DISK_GIB


def still_offers(provider: NodeProvider, placement: Placement) -> bool:
    """Whether the document still lets the placement's type, capacity type and zone through."""
    written = declared_type(provider, placement.type.removeprefix(f"{provider.name}."))
    globs = "|".join(translate(glob) for glob in setting(provider, "instanceTypes") or (ANY,))
    zones = written_zone(written.properties if written else {}, provider.properties) or ANY
    return (
        re.match(globs, placement.type.removeprefix(f"{provider.name}.")) is not None
        and placement.capacity_type in capacity_types(provider)
        and placement.may_be_in(parse_property(ZONE, zones))
    )
