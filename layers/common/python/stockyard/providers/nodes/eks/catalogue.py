"""The node types of a provider: what its region offers by the product's own catalogue."""

from __future__ import annotations

from stockyard.domain.nodes.node_types import (
    ANY,
    CAPACITY_BLOCK,
    ON_DEMAND,
    Declaration,
    NodeType,
    Offering,
    node_type_of,
)
from stockyard.domain.nodes.offers import InstanceOffer, RegionOffers
from stockyard.domain.records import NodeEnvironment, NodeProvider
from stockyard.domain.values.prices import by_the_hour
from stockyard.domain.values.requirements import REGION
from stockyard.providers.clouds.aws.catalog.reserved import EKS_DISK_GIB, capacity, overhead, pods_on_eks
from stockyard.providers.clouds.aws.catalog.type_labels import labels

ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}
"""EC2's architectures that nodes of EKS have, and Kubernetes' names of them."""


def architectures(provider: NodeProvider, environment: NodeEnvironment | None) -> frozenset[str]:  # noqa: ARG001
    """See ``ports.nodes.NeedsImages``: the image types of node groups, with and without GPUs, are all for one."""
    return frozenset({ARCHITECTURES["x86_64"]})


def node_types(provider: NodeProvider, offers: RegionOffers) -> tuple[NodeType, ...]:
    """The node type of each instance type of the region: those with GPUs too, since EKS has an image for them."""
    return tuple(
        _node_type(provider, offers, offer)
        for offer in offers.instances.values()
        if offer.architecture in ARCHITECTURES
    )


def _node_type(provider: NodeProvider, offers: RegionOffers, offer: InstanceOffer) -> NodeType:
    pods = pods_on_eks(offer)
    # What a capacity block costs was said when it was bought, and no price list has it.
    on_offer = (Offering(ON_DEMAND, (ANY,), offer.usd_hour), Offering(CAPACITY_BLOCK, (ANY,)))
    return node_type_of(
        Declaration(
            provider=provider.name,
            name=offer.name,
            resources=capacity(offer, pods),
            overhead=overhead(offer, pods),
            properties={**labels(offer, pods), REGION: offers.region},
            unit_price=provider.price_per_cost_unit,
            instance_type=offer.name,
            arch=ARCHITECTURES[offer.architecture],
            offerings=on_offer,
            disk_gib=EKS_DISK_GIB,
            gib_usd_hour=by_the_hour(offers.rates.get("gp3")),
        )
    )
