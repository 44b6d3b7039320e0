"""Settings of a cluster's network: zones, gateways, subnets of a VPC that is there, and the bastion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Network
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from stockyard.domain.clusters.control_plane import POD_CIDR, SERVICE_CIDR
from stockyard.domain.models import fields
from stockyard.domain.models.base import Fault, Input
from stockyard.domain.values.pointers import pointer
from stockyard.errors import FieldProblem
from stockyard.providers.clouds.aws import fields as aws_fields
from stockyard.providers.clusters.ec2.network.layout import MOST_ZONES
from stockyard.providers.clusters.ec2.network.network_configuration import BASTION_TYPE, PER_ZONE, RDP_FAULT, is_given

RDP = "rdp"
_PRIVATE = tuple(IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))
_INSIDE = ((POD_CIDR, "pods"), (SERVICE_CIDR, "services"))


def _vpc_cidr(text: str) -> str:
    """A range that the layout of our own network fits into, and that nothing inside the cluster uses."""
    network = IPv4Network(text)
    if not 16 <= network.prefixlen <= 24:
        raise ValueError("must be between /16 and /24: a VPC takes no more, and its subnets need no less")
    if not any(network.subnet_of(private) for private in _PRIVATE):
        raise ValueError("must be private: within 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16")
    for cidr, users in _INSIDE:
        if network.overlaps(IPv4Network(cidr)):
            raise ValueError(f"overlaps {cidr}, which the {users} of the cluster have")
    return text


def _protocol(text: str) -> str:
    if text.lower() == RDP:
        raise ValueError(RDP_FAULT)
    if text != "ssh":
        raise ValueError("must be ssh")
    return text


VpcCidr = Annotated[fields.Cidr, AfterValidator(_vpc_cidr)]
"""The range of the cluster's own VPC, between /16 and /24."""
Zones = Annotated[
    list[aws_fields.Zone],
    Field(max_length=MOST_ZONES, json_schema_extra={"uniqueItems": True}),
    AfterValidator(fields.distinct),
]


def _per_zone(word: str) -> str:
    return PER_ZONE if word == "zone" else word


NatGateways = Annotated[Literal["one", "per_zone", "zone"], AfterValidator(_per_zone)]
"""One NAT gateway for all zones, or one in each, which clusters on EKS call ``zone``."""
Protocol = Annotated[str, Field(max_length=8, json_schema_extra={"enum": ["ssh"]}), AfterValidator(_protocol)]


class Bastion(Input):
    """The machine that is the single way in for SSH, from ``ssh_cidrs``."""

    enabled: bool = True
    """Whether there is one."""
    instance_type: aws_fields.InstanceType = BASTION_TYPE
    """The instance type of the machine."""
    image: aws_fields.ImageId | None = None
    """The image that it starts from; the current Ubuntu 24.04 where none is given."""
    protocol: Protocol = "ssh"
    """How people log in."""


class ZoneSubnets(Input):
    """Subnets of an existing VPC in one zone."""

    zone: aws_fields.Zone
    """The zone of the subnets."""
    private: aws_fields.SubnetId
    """The subnet for machines."""
    public: aws_fields.SubnetId | None = None
    """The subnet for what the internet reaches."""


Subnets = Annotated[list[ZoneSubnets], Field(max_length=MOST_ZONES)]


def placement_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    """Faults of settings that contradict each other about where a cluster stands; ``document`` has them by name."""
    subnets: Sequence[ZoneSubnets] = document["subnets"]
    zones: Sequence[str] = document["zones"]
    given_field = next((name for name in ("vpc_id", "subnet_id") if document[name]), "")
    if given_field:
        if document["vpc_cidr"]:
            yield ("vpc_cidr",), "cannot be given beside vpc_id or subnet_id: that VPC has its range"
        if zones and document["subnet_id"]:
            yield ("zones",), "cannot be given beside subnet_id, which is in one zone"
        if document["nat_gateways"]:
            yield ("nat_gateways",), "cannot be given beside vpc_id or subnet_id: that VPC has its own ways out"
    for index, zone in enumerate(zones):
        if not zone.startswith(document["region_name"]):
            yield ("zones", index), f"must be a zone of region {document['region_name']}"
    if subnets:
        yield from _subnet_faults(document, subnets)
        if zones and set(zones) != {entry.zone for entry in subnets}:
            yield ("zones",), "must be the zones of subnets, or left out"


def placement_changes(
    before: Mapping[str, Any], zones: Sequence[str], subnets: Sequence[ZoneSubnets]
) -> Iterator[FieldProblem]:
    """Changes that a cluster in a given VPC cannot make: it grows by naming subnets."""
    if not is_given(before):
        return
    if before.get("subnets") and not subnets:
        yield FieldProblem(pointer("subnets"), "must name the subnets that the cluster stands in")
    if not subnets and list(zones) != list(before.get("zones") or ()):
        text = "cannot be changed after creation in a VPC of yours: name the subnets of all zones instead"
        yield FieldProblem(pointer("zones"), text)


def _subnet_faults(document: Mapping[str, Any], subnets: Sequence[ZoneSubnets]) -> Iterator[Fault]:
    if not document["vpc_id"]:
        yield ("subnets",), "needs vpc_id, the VPC that they are of"
    if document["subnet_id"]:
        yield ("subnet_id",), "cannot be given beside subnets"
    zones: set[str] = set()
    ids: set[str] = set()
    for index, entry in enumerate(subnets):
        if entry.zone in zones:
            yield ("subnets", index, "zone"), "another entry is of this zone"
        elif not entry.zone.startswith(document["region_name"]):
            yield ("subnets", index, "zone"), f"must be a zone of region {document['region_name']}"
        zones.add(entry.zone)
        for name, subnet in (("private", entry.private), ("public", entry.public)):
            if subnet in ids:
                yield ("subnets", index, name), "is named twice"
            elif subnet:
                ids.add(subnet)
        if (entry.public is None) != (subnets[0].public is None):
            yield ("subnets", index, "public"), "must be given for each zone or for none: the load balancer is in all"
