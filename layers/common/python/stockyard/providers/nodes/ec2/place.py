"""Where the nodes of a cluster stand: subnets by zone, security groups, instance profile and images.

They are the cluster's own, found by its tags, where the provider's document names no others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stockyard.domain.reach import out_of_reach
from stockyard.domain.records import Cluster, NodeProvider
from stockyard.errors import NodeCouldNotBeProvisioned, NotYetVisible, VendorNotFound, VendorRefused
from stockyard.providers.aws import subnets, tags
from stockyard.providers.aws.calls import Calls
from stockyard.providers.aws.images import ROOT_DEVICE, current
from stockyard.providers.nodes.ec2.catalogue import ARCHITECTURES
from stockyard.providers.nodes.ec2.configuration import chosen

NODE_GROUP = "security_group/node"
"""What the cluster's own tags call the group that its machines are in."""


@dataclass(frozen=True, slots=True)
class Place:
    """``zones`` by subnet id; ``images`` by Kubernetes' name of the architecture."""

    zones: Mapping[str, str]
    security_groups: tuple[str, ...]
    instance_profile: str
    images: Mapping[str, str]
    root_device: str = ROOT_DEVICE
    generation: int = 1
    """The provider's, of which it was found."""
    by_zone: Mapping[str, tuple[str, ...]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        found: dict[str, tuple[str, ...]] = {}
        for subnet, zone in sorted(self.zones.items()):
            found[zone] = (*found.get(zone, ()), subnet)
        object.__setattr__(self, "by_zone", dict(sorted(found.items())))

    def facts(self) -> dict[str, str]:
        """As an environment's outputs; :func:`of_facts` reads them."""
        return {
            "subnets": ",".join(f"{subnet}={zone}" for subnet, zone in self.zones.items()),
            "security_groups": ",".join(self.security_groups),
            "instance_profile": self.instance_profile,
            "images": ",".join(f"{image}={architecture}" for architecture, image in self.images.items()),
            "root_device": self.root_device,
            "provider_generation": str(self.generation),
        }


def of_facts(facts: Mapping[str, str]) -> Place:
    """The place that an environment's outputs, or a ledger line's detail, describe."""
    found = [entry.split("=") for entry in facts["subnets"].split(",")]
    made = [entry.split("=") for entry in facts["images"].split(",")]
    return Place(
        zones=dict(found),
        security_groups=tuple(facts["security_groups"].split(",")),
        instance_profile=facts["instance_profile"],
        images={architecture: image for image, architecture in made},
        root_device=facts["root_device"],
        generation=int(facts["provider_generation"]),
    )


def check(provider: NodeProvider, cluster: Cluster) -> None:
    """Raise ``NodeCouldNotBeProvisioned`` when the provider's machines would not be in the cluster's own network."""
    why = out_of_reach(provider, cluster)
    if why:
        raise NodeCouldNotBeProvisioned(why)


def find(calls: Calls, provider: NodeProvider, cluster: Cluster, owner: tags.Owner) -> Place:
    """Look it up. ``owner`` is anything of the cluster's tenant.

    ``NotYetVisible`` while the cluster's group is not shown, ``VendorRefused`` where no subnet will do.
    """
    group = _group(calls, cluster, owner)
    found, device = _images(calls, provider)
    return Place(
        zones=_zones(calls, provider, cluster, str(group["VpcId"])),
        security_groups=tuple(chosen(provider, "securityGroups") or (str(group["GroupId"]),)),
        instance_profile=chosen(provider, "instanceProfile") or f"{owner.prefix}-{cluster.client_id}-instance-profile",
        images=found,
        root_device=device,
        generation=provider.generation,
    )


def _group(calls: Calls, cluster: Cluster, owner: tags.Owner) -> Mapping[str, Any]:
    mine = {**tags.ours(owner.installation, owner.tenant), tags.RESOURCE: cluster.id, tags.KEY: NODE_GROUP}
    for group in calls.pages("ec2", "describe_security_groups", "SecurityGroups", Filters=tags.filters(mine)):
        if tags.carries(tags.mapping(group.get("Tags")), mine):
            return group
    raise NotYetVisible("The security group of the cluster's nodes is not shown.")


def _zones(calls: Calls, provider: NodeProvider, cluster: Cluster, vpc: str) -> dict[str, str]:
    """Subnets with their zones: the provider's, else the cluster's one, else all private ones of its VPC that have a
    way out."""
    named: Sequence[str] = chosen(provider, "subnets") or ()
    if named:
        return _named(calls, provider, named, vpc)
    usable = [one for one in subnets.of_vpc(calls, vpc) if one.routes.egress and not one.routes.public]
    only = cluster.settings.get("subnet_id")
    found = {one.id: one.zone for one in usable if only in (None, "", one.id)}
    if not found:
        raise VendorRefused(
            f"{only or vpc} has no private subnet with a way out for nodes",
            hint="Name the subnets of the nodes in the node provider.",
        )
    return found


def _named(calls: Calls, provider: NodeProvider, named: Sequence[str], vpc: str) -> dict[str, str]:
    try:
        found = calls.call("ec2", "describe_subnets", SubnetIds=list(named))["Subnets"]
    except VendorNotFound as error:
        raise VendorRefused(error.detail, code=error.code, hint="Correct the subnets of the node provider.") from error
    elsewhere = sorted(str(one["SubnetId"]) for one in found if one["VpcId"] != vpc)
    if elsewhere and not chosen(provider, "securityGroups"):
        raise VendorRefused(
            f"{', '.join(elsewhere)} is not in {vpc}, where the cluster's security group is",
            hint="Name security groups of that VPC in the node provider too, or subnets of the cluster's VPC.",
        )
    return {str(one["SubnetId"]): str(one["AvailabilityZone"]) for one in found}


def _images(calls: Calls, provider: NodeProvider) -> tuple[dict[str, str], str]:
    """Images by architecture, and where they have their root volume."""
    named = chosen(provider, "image")
    if not named:
        return _current(calls), ROOT_DEVICE
    try:
        shown = calls.call("ec2", "describe_images", ImageIds=[named])["Images"]
    except VendorNotFound:
        shown = []
    if not shown:
        raise VendorRefused(f"{named} is not shown in {calls.region}", hint="Correct the image of the node provider.")
    architecture = ARCHITECTURES.get(str(shown[0].get("Architecture")), "amd64")
    return {architecture: str(named)}, str(shown[0].get("RootDeviceName") or ROOT_DEVICE)


def _current(calls: Calls) -> dict[str, str]:
    """The publisher's images; a region may have none of one architecture."""
    found: dict[str, str] = {}
    refused: VendorRefused | None = None
    for architecture in ARCHITECTURES.values():
        try:
            found[architecture] = current(calls, arm=architecture == "arm64")
        except VendorRefused as error:
            refused = error
    if refused is not None and not found:
        raise refused
    return found
