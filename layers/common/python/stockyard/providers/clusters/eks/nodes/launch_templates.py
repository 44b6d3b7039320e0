"""The launch template of a group. Machines, disks and interfaces are ours from their first moment by its tags: rights
over them are given by these. It encrypts the disk, and keeps pods from the keys of the machine's role. For a capacity
block or EFA it says besides what EKS alone cannot ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stockyard.domain.records import Resource
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.catalog import images, volume_keys
from stockyard.providers.clouds.aws.catalog.reserved import EKS_DISK_GIB
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clouds.aws.kinds.base import State
from stockyard.providers.clouds.aws.policies import template_versions
from stockyard.providers.clusters.eks import names
from stockyard.providers.clusters.eks.building import Builder, DesiredResource
from stockyard.providers.clusters.eks.configuration import EFA, has_placement_group, is_by_template

ROOT_DEVICE = "/dev/xvda"
"""Of Amazon Linux."""
NAME = "launch template"
"""What it is called in messages."""
SECURITY_GROUPS = "security_groups"
"""In the line's detail: the groups that the template names."""
PLACEMENT = "placement_group"
"""In the line's detail: the name of the placement group of its machines; empty for none."""
VOLUME_KEY = "volume_key"
"""In the line's detail: the ARN of the key of its disks; empty for the account's default one."""
_OF_INSTANCES = ("instance", "volume", "network-interface")


def ensure(builder: Builder, key: str, name: str, group: Mapping[str, Any], security_groups: Sequence[str]) -> None:
    """The template of a group's machines, which the group names by ``name``."""
    placement = _placement_group(builder, key, group)

    def create(line: Resource, marks: dict[str, str]) -> str:
        # What the machines carry: not the key of the template's line, which is the template's own.
        own = {k: v for k, v in marks.items() if k not in (tags.KEY, tags.SINCE)}
        answer = builder.calls.call(
            "ec2",
            "create_launch_template",
            LaunchTemplateName=name,
            LaunchTemplateData={
                **data(group, str(line.detail.get(VOLUME_KEY) or "")),
                **_network(builder, group, security_groups),
                **({"Placement": {"GroupName": line.detail[PLACEMENT]}} if line.detail.get(PLACEMENT) else {}),
                "TagSpecifications": _specifications(own),
            },
            ClientToken=line.token,
            TagSpecifications=tags.specification(["launch-template"], marks),
        )
        return str(answer["LaunchTemplate"]["LaunchTemplateId"])

    key_of_disks = volume_keys.of_account(builder.work.account, builder.calls.region)
    detail = {SECURITY_GROUPS: list(security_groups), VOLUME_KEY: key_of_disks, PLACEMENT: placement}
    builder.want(DesiredResource(ec2_kinds.LAUNCH_TEMPLATE, key, name, create, detail=detail, identity=True))


def lack(builder: Builder, key: str, security_groups: Sequence[str]) -> str | None:
    """Lack of the template that a group was made with: it is gone itself, or names a security group or a placement
    group that is; None where nothing is known to be missing. A line of an earlier release names no groups."""
    line = builder.ledger.find(ec2_kinds.LAUNCH_TEMPLATE.name, key)
    if line is None or line.state != "made" or builder.recent(line.made_at):
        return None
    if ec2_kinds.LAUNCH_TEMPLATE.state(builder.calls, line.vendor_id) is State.ABSENT:
        return f"{NAME} {line.vendor_id}"
    if _has_lost_placement(builder, key):
        return f"placement group {line.detail.get(PLACEMENT)}"
    gone_groups = sorted(set(line.detail.get(SECURITY_GROUPS) or ()) - set(security_groups))
    return f"security group {', '.join(gone_groups)}" if gone_groups else None


def _has_lost_placement(builder: Builder, key: str) -> bool:
    """Whether the placement group that the template names is gone."""
    line = builder.ledger.find(ec2_kinds.PLACEMENT_GROUP.name, key)
    if line is None or line.state != "made" or builder.recent(line.made_at):
        return False
    return ec2_kinds.PLACEMENT_GROUP.state(builder.calls, line.vendor_id) is State.ABSENT


def data(group: Mapping[str, Any], key: str = "") -> dict[str, Any]:
    """Content of the template beside its network; ``key`` as in ``images.root_volume``. It names no subnet: the group
    does, and the type too where EKS can ask for it."""
    gib = int(group.get("disk_gib") or EKS_DISK_GIB)
    content: dict[str, Any] = {
        "BlockDeviceMappings": [images.root_volume(ROOT_DEVICE, gib, key)],
        "MetadataOptions": dict(images.METADATA),
    }
    if is_by_template(group):
        content["InstanceType"] = group["instance_type"]
    reservation = group.get("capacity_reservation_id")
    if reservation:
        content["InstanceMarketOptions"] = {"MarketType": "capacity-block"}
        content["CapacityReservationSpecification"] = {
            "CapacityReservationPreference": "capacity-reservations-only",
            "CapacityReservationTarget": {"CapacityReservationId": reservation},
        }
    return content


def interfaces(network: Mapping[str, Any], security_groups: Sequence[str]) -> list[dict[str, Any]]:
    """One interface for each network card of a type, as EC2 describes it (``NetworkInfo``): the first carries IP too,
    the others EFA alone. A card without EFA has an interface only where it is the first one."""
    cards = sorted(network.get("NetworkCards") or ({},), key=lambda card: int(card.get("NetworkCardIndex", 0)))
    return [_interface(card, security_groups) for card in cards if _has_efa(card) or not card.get("NetworkCardIndex")]


def _interface(card: Mapping[str, Any], security_groups: Sequence[str]) -> dict[str, Any]:
    index = int(card.get("NetworkCardIndex", 0))
    kind = {"InterfaceType": "efa" if index == 0 else "efa-only"} if _has_efa(card) else {}
    device = 0 if index == 0 else 1
    return {"NetworkCardIndex": index, "DeviceIndex": device, **kind, "Groups": list(security_groups)}


def _has_efa(card: Mapping[str, Any]) -> bool:
    return EFA in (card.get("InterfaceTypes") or (EFA,))


def _network(builder: Builder, group: Mapping[str, Any], security_groups: Sequence[str]) -> dict[str, Any]:
    """The interfaces of machines with EFA; others have EKS's."""
    if group.get("fabric") != EFA:
        return {}
    name = str(group["instance_type"])
    described = builder.calls.described_items("describe_instance_types", "InstanceTypes", InstanceTypes=[name])
    network = described[0].get("NetworkInfo") if described else None
    return {"NetworkInterfaces": interfaces(network or {}, security_groups)}


def _placement_group(builder: Builder, key: str, group: Mapping[str, Any]) -> str:
    """The name of the placement group in which the machines of a group with EFA stand close to each other; empty where
    it has none: see ``has_placement_group``; and an account with an earlier template may not make one."""
    if not has_placement_group(group):
        return ""
    if builder.ledger.find(ec2_kinds.PLACEMENT_GROUP.name, key) is None:
        version = template_versions.deployed(builder.calls, builder.work.account).version
        if version < template_versions.PLACEMENT:
            return ""
    name = names.part(builder.work.cluster, f"pg-{key.replace('/', '.')}")

    def create(_line: Resource, marks: dict[str, str]) -> str:
        answer = builder.calls.call(
            "ec2",
            "create_placement_group",
            GroupName=name,
            Strategy="cluster",
            TagSpecifications=tags.specification(["placement-group"], marks),
        )
        return str(answer["PlacementGroup"]["GroupId"])

    builder.want(DesiredResource(ec2_kinds.PLACEMENT_GROUP, key, name, create))
    return name


def _specifications(marks: Mapping[str, str]) -> list[dict[str, Any]]:
    return tags.specification(_OF_INSTANCES, marks)
