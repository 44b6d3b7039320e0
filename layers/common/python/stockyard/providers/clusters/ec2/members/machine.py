"""The control plane phase: one machine that turns itself into a control plane and stands behind the endpoint."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from stockyard.domain.clusters import overlay
from stockyard.domain.clusters.control_plane import takes_pods
from stockyard.domain.records import Resource
from stockyard.domain.values.times import to_text
from stockyard.errors import InsufficientCapacity, NotYetVisible, VendorError, VendorNotFound, VendorRefused
from stockyard.machines import control_plane
from stockyard.ports import Outcome
from stockyard.providers.clouds.aws import console as ec2_console
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.catalog import images, volume_keys
from stockyard.providers.clouds.aws.catalog.type_labels import GPU_NAME
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clusters.ec2.building import Builder, DesiredResource
from stockyard.providers.clusters.ec2.configuration import cloud_controllers, control_plane_disk_gib
from stockyard.providers.clusters.ec2.members import etcd_volume, identity, machine_options
from stockyard.providers.clusters.ec2.network import hubs, network, security
from stockyard.providers.clusters.ec2.network.endpoint import made_target_group
from stockyard.providers.clusters.ec2.network.security import API_PORT

KEY = "control-plane"
_ENDED_FOR_CAPACITY = "Server.InsufficientInstanceCapacity"
"""Why EC2 has ended a machine that it had begun to start."""


def ensure(builder: Builder) -> Outcome:
    """The machine, running and registered, with the volume of etcd. Facts: ``instance_id``, ``private_address``.

    Where EC2 has none of a type in a zone, the ledger remembers that and the next way is tried. When all were refused,
    the last refusal is raised, and a later try begins anew.
    """
    line = builder.work.ledger.find(ec2_kinds.INSTANCE.name, KEY)
    detail = dict(line.detail) if line else _choice(builder)
    desired = DesiredResource(
        ec2_kinds.INSTANCE,
        KEY,
        builder.name("control-plane"),
        lambda line, marks: _run(builder, line, marks),
        detail=detail,
        extra_tags={tags.kubernetes(builder.work.cluster.client_id): "owned"},
    )
    try:
        instance = builder.want(desired)
    except VendorError as error:
        # At once: the workflow counts its retries of a state, and a wait between would begin its count anew.
        _next_option(builder, detail, error)
        return ensure(builder)
    item = _described(builder, instance.vendor_id)
    state = item["State"]["Name"]
    facts = {"instance_id": instance.vendor_id}
    if state == "pending":
        return Outcome(False, f"{instance.vendor_id} is starting", wait_seconds=10, facts=facts)
    if state != "running":
        reason = item.get("StateReason", {})
        text = f"{instance.vendor_id} is {state}: {reason.get('Message') or 'no reason given'}"
        refusal = VendorRefused(text, hint="See the reason, then delete the cluster or resume.")
        made_line = builder.work.ledger.find(ec2_kinds.INSTANCE.name, KEY)
        if state != "terminated" or reason.get("Code") != _ENDED_FOR_CAPACITY or made_line is None:
            raise refusal
        builder.work.ledger.gone(made_line)
        following = _next_option(builder, detail, InsufficientCapacity(text, code=_ENDED_FOR_CAPACITY))
        return Outcome(False, f"{text}; {following.key} is next", wait_seconds=1)
    waiting = etcd_volume.ensure(builder, item)
    if waiting:
        return Outcome(False, waiting, wait_seconds=5, facts=facts)
    builder.calls.call(
        "elbv2",
        "register_targets",
        TargetGroupArn=made_target_group(builder),
        Targets=[{"Id": instance.vendor_id, "Port": API_PORT}],
    )
    hubs.admit(builder, instance.vendor_id, hubs.FIRST)
    machine_options.forget(builder)
    facts["private_address"] = str(item.get("PrivateIpAddress") or "")
    return Outcome(True, f"{instance.vendor_id} runs", facts=facts)


def _next_option(builder: Builder, detail: Mapping[str, Any], error: VendorError) -> machine_options.MachineOption:
    """The way to go on with after a refusal that another may not meet; raises every other error as it is, and the
    refusal itself when no way is left."""
    if not machine_options.may_do_elsewhere(error):
        raise error
    option = machine_options.MachineOption.of(detail)
    machine_options.refuse(builder, option, error.code)
    following = next(iter(machine_options.remaining(builder)), None)
    if following is None:
        machine_options.forget(builder)
        raise error
    return following


def console(builder: Builder) -> str | None:
    """Output of the machine's console; None when there is no machine."""
    line = builder.work.ledger.find(ec2_kinds.INSTANCE.name, KEY)
    return ec2_console.read(builder.calls, line.vendor_id) if line is not None and line.vendor_id else None


def _choice(builder: Builder) -> dict[str, Any]:
    """The first way that was not refused, and its image, written with the intent: a repeated request must not differ.

    ``asked_at`` makes the client token of a request that was refused another than the next one's.
    """
    possible = machine_options.remaining(builder)
    if not possible:
        # A worker died between the last refusal and its report.
        machine_options.forget(builder)
        possible = machine_options.remaining(builder)
    named = [{"Name": "instance-type", "Values": sorted({option.type for option in possible})}]
    described = builder.calls.pages("ec2", "describe_instance_types", "InstanceTypes", Filters=named)
    architectures = {
        str(kind["InstanceType"]): kind.get("ProcessorInfo", {}).get("SupportedArchitectures", ()) for kind in described
    }
    option = next((option for option in possible if option.type in architectures), None)
    if option is None:
        names = " or ".join(dict.fromkeys(option.type for option in possible))
        raise VendorRefused(f"{builder.calls.region} offers no {names}", hint="Choose another type.")
    baked = builder.work.cluster.settings.get("image")
    image = baked or images.current(builder.calls, arm="arm64" in architectures[option.type])
    key = volume_keys.of_account(builder.work.account, builder.calls.region)
    return {**asdict(option), "image": image, "asked_at": to_text(builder.work.now), "volume_key": key}


def _run(builder: Builder, line: Resource, marks: dict[str, str]) -> str:
    settings, config, cluster = builder.work.cluster.settings, builder.config, builder.work.cluster
    controllers, key = cloud_controllers(cluster), str(line.detail.get("volume_key") or "")
    interface = {
        "DeviceIndex": 0,
        # A line of an earlier release has none.
        "SubnetId": line.detail.get("subnet") or network.of(builder).subnet_id,
        "Groups": [security.group(builder, security.CONTROL_PLANE), security.group(builder, security.NODE)],
        "AssociatePublicIpAddress": bool(settings.get("public_control_plane")),
        "DeleteOnTermination": True,
    }
    answer = builder.calls.call(
        "ec2",
        "run_instances",
        ImageId=line.detail["image"],
        InstanceType=line.detail["type"],
        MinCount=1,
        MaxCount=1,
        ClientToken=_token(line),
        **({"KeyName": settings["key_pair"]} if settings.get("key_pair") else {}),
        IamInstanceProfile={"Name": identity.control_plane_profile(builder)},
        MetadataOptions={**images.METADATA},
        BlockDeviceMappings=[images.root_volume(images.ROOT_DEVICE, control_plane_disk_gib(settings), key)],
        NetworkInterfaces=[interface],
        UserData=control_plane.ControlPlaneMachine(
            api_url=config.api_url,
            cluster_id=cluster.id,
            client_id=cluster.client_id,
            kubernetes_version=cluster.kubernetes_version,
            issuer=config.issuer,
            tenant=builder.work.tenant,
            creator=control_plane.person(cluster.created_by),
            volume_tags=tags.of_tenant(builder.work.installation, builder.work.tenant) if controllers else None,
            volume_key=key or None,
            gpu_label=GPU_NAME,
            takes_pods=takes_pods(settings),
            overlay=bool(settings.get(overlay.SETTING)),
            sources=config.sources,
        )
        .first_boot()
        .cloud_config(),
        TagSpecifications=tags.specification(["instance", "volume", "network-interface"], marks),
    )
    return str(answer["Instances"][0]["InstanceId"])


def _token(line: Resource) -> str:
    asked_at = line.detail.get("asked_at")
    if not asked_at:
        return line.token
    option = machine_options.MachineOption.of(line.detail)
    return hashlib.sha256(f"{line.token}/{asked_at}/{option.type}/{option.subnet}".encode()).hexdigest()[:32]


def _described(builder: Builder, instance: str) -> Mapping[str, Any]:
    try:
        item = ec2_kinds.INSTANCE.describe(builder.calls, instance)
    except VendorNotFound as error:
        raise NotYetVisible(f"{instance} is not shown yet", code=error.code) from error
    if item is None:
        raise NotYetVisible(f"{instance} is not shown yet")
    return item
