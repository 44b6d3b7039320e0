"""The launch template of a group. Machines, disks and interfaces are ours from their first moment by its tags: rights
over them are given by these. It encrypts the disk, and keeps pods from the keys of the machine's role. For a capacity
block or EFA it says besides what EKS alone cannot ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stockyard.domain.records import Resource
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.catalog import images
from stockyard.providers.clouds.aws.catalog.reserved import EKS_DISK_GIB
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clouds.aws.kinds.base import State
from stockyard.providers.clusters.eks.building import Builder, Wish
from stockyard.providers.clusters.eks.configuration import EFA, is_by_template

ROOT_DEVICE = "/dev/xvda"
"""Of Amazon Linux."""
CARDS: Mapping[str, int] = {
    "p5.48xlarge": 32,
    "p5e.48xlarge": 32,
    "p5en.48xlarge": 16,
    "p4d.24xlarge": 4,
    "p4de.24xlarge": 4,
}
"""Network cards with EFA, by instance type; any other type that has EFA has one."""
NAME = "launch template"
"""What it is called in messages."""
SECURITY_GROUPS = "security_groups"
"""In the line's detail: the groups that the template names."""
_OF_INSTANCES = ("instance", "volume", "network-interface")


def ensure(builder: Builder, key: str, name: str, group: Mapping[str, Any], security_groups: Sequence[str]) -> None:
    """The template of a group's machines, which the group names by ``name``."""

    def create(line: Resource, marks: dict[str, str]) -> str:
        # What the machines carry: not the key of the template's line, which is the template's own.
        own = {k: v for k, v in marks.items() if k not in (tags.KEY, tags.SINCE)}
        answer = builder.calls.call(
            "ec2",
            "create_launch_template",
            LaunchTemplateName=name,
            LaunchTemplateData={**data(group, security_groups), "TagSpecifications": _specifications(own)},
            ClientToken=line.token,
            TagSpecifications=tags.specification(["launch-template"], marks),
        )
        return str(answer["LaunchTemplate"]["LaunchTemplateId"])

    detail = {SECURITY_GROUPS: list(security_groups)}
    builder.want(Wish(ec2_kinds.LAUNCH_TEMPLATE, key, name, create, detail=detail, identity=True))


def lack(builder: Builder, key: str, security_groups: Sequence[str]) -> str | None:
    """What the template that a group was made with lacks: it is gone itself, or names a security group that is; None
    where nothing is known to be missing. A line of an earlier release names no groups."""
    line = builder.ledger.find(ec2_kinds.LAUNCH_TEMPLATE.name, key)
    if line is None or line.state != "made" or builder.recent(line.made_at):
        return None
    if ec2_kinds.LAUNCH_TEMPLATE.state(builder.calls, line.vendor_id) is State.ABSENT:
        return f"{NAME} {line.vendor_id}"
    gone_groups = sorted(set(line.detail.get(SECURITY_GROUPS) or ()) - set(security_groups))
    return f"security group {', '.join(gone_groups)}" if gone_groups else None


def data(group: Mapping[str, Any], security_groups: Sequence[str]) -> dict[str, Any]:
    """What the template says. It names no subnet: the group does, and the type too where EKS can ask for it."""
    gib = int(group.get("disk_gib") or EKS_DISK_GIB)
    content: dict[str, Any] = {
        "BlockDeviceMappings": [images.root_volume(ROOT_DEVICE, gib)],
        "MetadataOptions": dict(images.METADATA),
    }
    if is_by_template(group):
        content["InstanceType"] = group["instance_type"]
    if group.get("fabric") == EFA:
        content["NetworkInterfaces"] = interfaces(str(group["instance_type"]), security_groups)
    reservation = group.get("capacity_reservation_id")
    if reservation:
        content["InstanceMarketOptions"] = {"MarketType": "capacity-block"}
        content["CapacityReservationSpecification"] = {
            "CapacityReservationPreference": "capacity-reservations-only",
            "CapacityReservationTarget": {"CapacityReservationId": reservation},
        }
    return content


def interfaces(instance_type: str, security_groups: Sequence[str]) -> list[dict[str, Any]]:
    """One interface for each card: the first carries IP too, the others EFA alone."""
    return [
        {
            "NetworkCardIndex": card,
            "DeviceIndex": 0 if card == 0 else 1,
            "InterfaceType": "efa" if card == 0 else "efa-only",
            "Groups": list(security_groups),
        }
        for card in range(CARDS.get(instance_type, 1))
    ]


def _specifications(marks: Mapping[str, str]) -> list[dict[str, Any]]:
    return tags.specification(_OF_INSTANCES, marks)
