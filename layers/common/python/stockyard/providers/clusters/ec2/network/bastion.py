"""The bastion phase: a machine in a public subnet, the single way in for SSH. Off unless somebody wants it.

It has no role, so whoever is on it has no right in the account; what it may reach is port 22 of the cluster's machines,
by the key pair that they have.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from stockyard.domain.records import Resource
from stockyard.domain.values.times import to_text
from stockyard.errors import NotYetVisible, VendorNotFound, VendorRefused
from stockyard.ports import Outcome
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.catalog import images, offerings, volume_keys
from stockyard.providers.clouds.aws.errors import accepting
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clouds.aws.kinds.base import State
from stockyard.providers.clusters.ec2.building import Builder, DesiredResource
from stockyard.providers.clusters.ec2.network import network, rules, security
from stockyard.providers.clusters.ec2.network.network_configuration import BASTION_DISK_GIB, bastion_of
from stockyard.providers.clusters.ec2.network.rules import port_rule
from stockyard.providers.clusters.ec2.network.security import SSH_PORT

PHASE = KEY = "bastion"


def ensure(builder: Builder) -> Outcome:
    """The bastion, running, and the way from it to the cluster's machines; or none, where it is off. The fact
    ``bastion`` is its public address."""
    settings = bastion_of(builder.work.cluster.settings)
    if settings is None:
        outcome = remove(builder)
        return Outcome(True, "no bastion is wanted", facts={"bastion": ""}) if outcome.done else outcome
    net = network.of(builder)
    if not net.public:
        hint = "Name public subnets, or leave the bastion off."
        raise VendorRefused(f"{net.vpc_id} has no public subnet for a bastion", hint=hint)
    ssh = [port_rule(SSH_PORT, str(cidr)) for cidr in builder.work.cluster.settings.get("ssh_cidrs") or ()]
    group = rules.group(builder, KEY, net.vpc_id, "Bastion of a Stockyard cluster", ssh)
    for machines in _groups_of_machines(builder):
        rules.replace(builder, machines, [], [port_rule(SSH_PORT, group)])
    waiting = _without_former(builder, settings)
    if waiting:
        return Outcome(False, waiting, wait_seconds=10)
    key_pair = str(builder.work.cluster.settings["key_pair"])
    if not _is_there(builder) and not offerings.has_key_pair(builder.calls, key_pair):
        # Nobody could log in to it, and what else the cluster needs does not wait for it.
        return Outcome(True, "no bastion: its key pair is gone", facts={"bastion": ""})
    described = _machine(builder, settings, net.balanced[0], group)
    state, machine_id = described["State"]["Name"], described["InstanceId"]
    address = str(described.get("PublicIpAddress") or "")
    if state == "pending" or (state == "running" and not address):
        return Outcome(False, f"bastion {machine_id} is starting", wait_seconds=10)
    if state != "running":
        raise VendorRefused(f"bastion {machine_id} is {state}", hint="Start or terminate it, then resume.")
    return Outcome(True, f"{machine_id} answers at {address}", facts={"bastion": address})


def remove(builder: Builder) -> Outcome:
    """The machine goes, then its group, which other groups name no more."""
    line = builder.work.ledger.find(ec2_kinds.SECURITY_GROUP.name, KEY)
    if line is not None and line.state == "made":
        for machines in _groups_of_machines(builder):
            with accepting("InvalidGroup.NotFound"):
                rules.revoke(builder, machines, port_rule(SSH_PORT, line.vendor_id))
    return builder.unmake(PHASE)


def _groups_of_machines(builder: Builder) -> Iterator[str]:
    """The groups that let the bastion in: members of the control plane are in both."""
    for key in (security.CONTROL_PLANE, security.NODE):
        line = builder.work.ledger.find(ec2_kinds.SECURITY_GROUP.name, key)
        if line is not None and line.state == "made":
            yield line.vendor_id


def _without_former(builder: Builder, settings: Mapping[str, Any]) -> str | None:
    """Remove a machine that is not what is wanted any more, and forget one that somebody has ended. What is waited
    for."""
    line = builder.work.ledger.find(ec2_kinds.INSTANCE.name, KEY)
    if line is None or line.state != "made":
        return None
    former = (line.detail["type"], line.detail.get("own_image"))
    if former != (settings["instance_type"], settings.get("image")):
        return builder.remove(line)
    state = ec2_kinds.INSTANCE.state(builder.calls, line.vendor_id)
    if state is State.ABSENT and not builder.recent(line.made_at):
        builder.work.ledger.gone(line)
    return f"bastion {line.vendor_id} is going" if state is State.LEAVING else None


def _is_there(builder: Builder) -> bool:
    line = builder.work.ledger.find(ec2_kinds.INSTANCE.name, KEY)
    return line is not None and line.state == "made"


def _machine(builder: Builder, settings: Mapping[str, Any], subnet: str, group: str) -> Mapping[str, Any]:
    line = builder.work.ledger.find(ec2_kinds.INSTANCE.name, KEY)
    detail = dict(line.detail) if line else _choice(builder, settings)

    def create(line: Resource, marks: dict[str, str]) -> str:
        return _run(builder, line, marks, {"SubnetId": subnet, "Groups": [group]})

    desired = DesiredResource(ec2_kinds.INSTANCE, KEY, builder.name(KEY), create, detail=detail)
    machine_id = builder.want(desired).vendor_id
    try:
        described = ec2_kinds.INSTANCE.describe(builder.calls, machine_id)
    except VendorNotFound as error:
        raise NotYetVisible(f"{machine_id} is not shown yet", code=error.code) from error
    if described is None:
        raise NotYetVisible(f"{machine_id} is not shown yet")
    return described


def _choice(builder: Builder, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Type and image, written with the intent: a repeated request must not differ. ``asked_at`` makes the client token
    of a machine that was ended another than its successor's."""
    name = str(settings["instance_type"])
    image = own_image = settings.get("image")
    if not image:
        named = [{"Name": "instance-type", "Values": [name]}]
        described = list(builder.calls.pages("ec2", "describe_instance_types", "InstanceTypes", Filters=named))
        if not described:
            raise VendorRefused(f"{builder.calls.region} offers no {name}", hint="Choose another type.")
        image = images.current(builder.calls, arm="arm64" in described[0]["ProcessorInfo"]["SupportedArchitectures"])
    return {
        "type": name,
        "image": str(image),
        "own_image": own_image,
        "asked_at": to_text(builder.work.now),
        "volume_key": volume_keys.of_account(builder.work.account, builder.calls.region),
    }


def _run(builder: Builder, line: Resource, marks: dict[str, str], subnet_options: Mapping[str, Any]) -> str:
    interface = {"DeviceIndex": 0, **subnet_options, "AssociatePublicIpAddress": True, "DeleteOnTermination": True}
    key = str(line.detail.get("volume_key") or "")
    answer = builder.calls.call(
        "ec2",
        "run_instances",
        ImageId=line.detail["image"],
        InstanceType=line.detail["type"],
        MinCount=1,
        MaxCount=1,
        ClientToken=hashlib.sha256(f"{line.token}/{line.detail['asked_at']}".encode()).hexdigest()[:32],
        KeyName=builder.work.cluster.settings["key_pair"],
        MetadataOptions={**images.METADATA},
        BlockDeviceMappings=[images.root_volume(images.ROOT_DEVICE, BASTION_DISK_GIB, key)],
        NetworkInterfaces=[interface],
        TagSpecifications=tags.specification(["instance", "volume", "network-interface"], marks),
    )
    return str(answer["Instances"][0]["InstanceId"])
