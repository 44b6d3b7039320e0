"""Node class of a cluster: subnets by zone, security groups, instance profile and images.

They are the cluster's own, found by its tags, where the provider's document names no others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from stockyard.domain.records import Cluster, NodeProvider
from stockyard.errors import NotYetVisible, VendorNotFound, VendorRefused
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.catalog.images import ROOT_DEVICE, current, with_driver
from stockyard.providers.clouds.aws.network import subnets
from stockyard.providers.nodes.ec2.catalogue import ARCHITECTURES
from stockyard.providers.nodes.ec2.configuration import setting

NODE_GROUP = "security_group/node"
"""What the cluster's own tags call the group that its machines are in."""


IMAGE_KINDS = "2"
"""Which images were looked for: with those that have NVIDIA's driver. Outputs of earlier releases do not say it."""


@dataclass(frozen=True, slots=True)
class NodeClass:
    """``zones`` by subnet id; ``images`` by their kind, see ``catalog.images.kind_of``."""

    zones: Mapping[str, str]
    security_groups: tuple[str, ...]
    instance_profile: str
    images: Mapping[str, str]
    root_device: str = ROOT_DEVICE
    generation: int = 1
    """The provider's, of which it was found."""
    found_on: str = ""
    """The day on which it was found, ``2026-01-31``; empty for one of an earlier release."""
    zone_ids: Mapping[str, str] = field(default_factory=dict)
    """The ids of the zones by the names that the account has for them; none for one of an earlier release."""
    service_cidr: str = ""
    """The addresses of the cluster's services, where its machines have to be told; else empty."""
    by_zone: Mapping[str, tuple[str, ...]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        subnets_by_zone = {
            zone: sorted(s for s in self.zones if self.zones[s] == zone) for zone in sorted(self.zones.values())
        }
        object.__setattr__(self, "by_zone", {zone: tuple(there) for zone, there in subnets_by_zone.items()})

    def facts(self) -> dict[str, str]:
        """As an environment's outputs; :func:`of_facts` reads them."""
        return {
            "subnets": ",".join(f"{subnet}={zone}" for subnet, zone in self.zones.items()),
            "security_groups": ",".join(self.security_groups),
            "instance_profile": self.instance_profile,
            "images": ",".join(f"{image}={architecture}" for architecture, image in self.images.items()),
            "root_device": self.root_device,
            "provider_generation": str(self.generation),
            "found_on": self.found_on,
            "image_kinds": IMAGE_KINDS,
            "zone_ids": ",".join(f"{zone}={zone_id}" for zone, zone_id in sorted(self.zone_ids.items())),
            **({"service_cidr": self.service_cidr} if self.service_cidr else {}),
        }


def of_facts(facts: Mapping[str, str]) -> NodeClass:
    """The node class that an environment's outputs, or a ledger line's detail, describe."""
    zones = [entry.split("=") for entry in facts["subnets"].split(",")]
    images = [entry.split("=") for entry in facts["images"].split(",") if entry]
    return NodeClass(
        zones=dict(zones),
        security_groups=tuple(facts["security_groups"].split(",")),
        instance_profile=facts["instance_profile"],
        images={architecture: image for image, architecture in images},
        root_device=facts["root_device"],
        generation=int(facts["provider_generation"]),
        found_on=facts.get("found_on", ""),
        zone_ids=dict(entry.split("=") for entry in facts.get("zone_ids", "").split(",") if entry),
        service_cidr=facts.get("service_cidr", ""),
    )


def is_stale(facts: Mapping[str, str], provider: NodeProvider, now: datetime, image_days: int) -> bool:
    """Whether it has to be found again: the document has changed, or the publisher's images may be old by now. Images
    that the document names are the tenant's to change."""
    if facts.get("provider_generation") != str(provider.generation):
        return True
    day = facts.get("found_on", "")
    if setting(provider, "image"):
        return False
    if facts.get("image_kinds") != IMAGE_KINDS:
        return True
    return not day or now.date() - date.fromisoformat(day) >= timedelta(days=image_days)


def find(calls: Calls, provider: NodeProvider, cluster: Cluster, owner: tags.Owner, now: datetime) -> NodeClass:
    """Look it up at the moment ``now``. ``owner`` is anything of the cluster's tenant.

    ``NotYetVisible`` while the cluster's group is not shown, ``VendorRefused`` where no subnet will do.
    """
    group = group_of(calls, cluster, owner, NODE_GROUP)
    images, device = images_of(calls, provider)
    usable = usable_subnets(calls, provider, cluster, str(group["VpcId"]))
    return NodeClass(
        zones={subnet.id: subnet.zone for subnet in usable},
        security_groups=tuple(setting(provider, "securityGroups") or (str(group["GroupId"]),)),
        instance_profile=setting(provider, "instanceProfile") or f"{owner.prefix}-{cluster.client_id}-instance-profile",
        images=images,
        root_device=device,
        generation=provider.generation,
        found_on=now.date().isoformat(),
        zone_ids={subnet.zone: subnet.zone_id for subnet in usable if subnet.zone_id},
    )


def group_of(calls: Calls, cluster: Cluster, owner: tags.Owner, key: str) -> Mapping[str, Any]:
    """The security group of the cluster that its own tags call so. ``NotYetVisible`` while it is not shown."""
    group_tags = {**tags.of_tenant(owner.installation, owner.tenant), tags.RESOURCE: cluster.id, tags.KEY: key}
    for group in calls.pages("ec2", "describe_security_groups", "SecurityGroups", Filters=tags.filters(group_tags)):
        if tags.carries(tags.mapping(group.get("Tags")), group_tags):
            return group
    raise NotYetVisible(f"The cluster's {key} is not shown.")


def usable_subnets(calls: Calls, provider: NodeProvider, cluster: Cluster, vpc: str) -> Sequence[subnets.Subnet]:
    """The provider's subnets, else the cluster's subnets, else all private ones of its VPC with a way out, in the named
    zones."""
    named: Sequence[str] = setting(provider, "subnets") or ()
    if named:
        return _named(calls, provider, named, vpc)
    usable = [subnet for subnet in subnets.of_vpc(calls, vpc) if subnet.routes.egress and not subnet.routes.public]
    zones = [] if cluster.settings.get("vpc_id") else list(cluster.settings.get("zones") or ())
    # Of our own network: subnets of a zone that the cluster leaves may be there for a while.
    usable = [subnet for subnet in usable if not zones or subnet.zone in zones]
    by_zone = [str(entry["private"]) for entry in cluster.settings.get("subnets") or ()]
    only = by_zone or [str(subnet) for subnet in [cluster.settings.get("subnet_id")] if subnet]
    usable = [subnet for subnet in usable if not only or subnet.id in only]
    if not usable:
        raise VendorRefused(
            f"{', '.join(only) or vpc} has no private subnet with a way out for nodes",
            hint="Name the subnets of the nodes in the node provider.",
        )
    return usable


def _named(calls: Calls, provider: NodeProvider, named: Sequence[str], vpc: str) -> Sequence[subnets.Subnet]:
    try:
        described = calls.call("ec2", "describe_subnets", SubnetIds=list(named))["Subnets"]
    except VendorNotFound as error:
        raise VendorRefused(error.detail, code=error.code, hint="Correct the subnets of the node provider.") from error
    elsewhere = sorted(str(subnet["SubnetId"]) for subnet in described if subnet["VpcId"] != vpc)
    if elsewhere and not setting(provider, "securityGroups"):
        raise VendorRefused(
            f"{', '.join(elsewhere)} is not in {vpc}, where the cluster's security group is",
            hint="Name security groups of that VPC in the node provider too, or subnets of the cluster's VPC.",
        )
    return [subnets.read(subnet) for subnet in described]


def images_of(calls: Calls, provider: NodeProvider) -> tuple[dict[str, str], str]:
    """Images by their kind, and where they have their root volume."""
    named = setting(provider, "image")
    if not named:
        return _current(calls), ROOT_DEVICE
    images = calls.described_items("describe_images", "Images", ImageIds=[named])
    if not images:
        raise VendorRefused(f"{named} is not shown in {calls.region}", hint="Correct the image of the node provider.")
    architecture = ARCHITECTURES.get(str(images[0].get("Architecture")), "amd64")
    return {architecture: str(named)}, str(images[0].get("RootDeviceName") or ROOT_DEVICE)


def _current(calls: Calls) -> dict[str, str]:
    """The publisher's images; a region may have none of one architecture."""
    images: dict[str, str] = {}
    refused: VendorRefused | None = None
    for architecture in ARCHITECTURES.values():
        try:
            images[architecture] = current(calls, arm=architecture == "arm64")
        except VendorRefused as error:
            refused = error
    if refused is not None and not images:
        raise refused
    return {**images, **with_driver(calls)}
