"""The control plane phase: one machine that turns itself into a control plane and stands behind the endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockyard.domain.control_plane import DISK_GIB
from stockyard.domain.records import Resource
from stockyard.errors import NotYetVisible, VendorNotFound, VendorRefused
from stockyard.machines import control_plane
from stockyard.ports import Outcome
from stockyard.providers.clouds.aws import console as ec2_console
from stockyard.providers.clouds.aws import ec2_kinds, images, tags
from stockyard.providers.clusters.ec2 import etcd_volume, identity, network, security
from stockyard.providers.clusters.ec2.building import Builder, Wish
from stockyard.providers.clusters.ec2.configuration import control_plane_type
from stockyard.providers.clusters.ec2.endpoint import made_target_group
from stockyard.providers.clusters.ec2.security import API_PORT

KEY = "control-plane"


def ensure(builder: Builder) -> Outcome:
    """The machine, running and registered, with the volume of etcd. Facts: ``instance_id``."""
    line = builder.work.ledger.find(ec2_kinds.INSTANCE.name, KEY)
    detail = dict(line.detail) if line else _choice(builder)
    wish = Wish(
        ec2_kinds.INSTANCE,
        KEY,
        builder.name("control-plane"),
        lambda line, marks: _run(builder, line, marks),
        detail=detail,
        extra_tags={tags.kubernetes(builder.work.cluster.client_id): "owned"},
    )
    instance = builder.want(wish)
    item = _described(builder, instance.vendor_id)
    state = item["State"]["Name"]
    facts = {"instance_id": instance.vendor_id}
    if state == "pending":
        return Outcome(False, f"{instance.vendor_id} is starting", wait_seconds=10, facts=facts)
    if state != "running":
        reason = item.get("StateReason", {}).get("Message", "") or "no reason given"
        raise VendorRefused(
            f"{instance.vendor_id} is {state}: {reason}", hint="See the reason, then delete the cluster or resume."
        )
    waiting = etcd_volume.ensure(builder, item)
    if waiting:
        return Outcome(False, waiting, wait_seconds=5, facts=facts)
    builder.calls.call(
        "elbv2",
        "register_targets",
        TargetGroupArn=made_target_group(builder),
        Targets=[{"Id": instance.vendor_id, "Port": API_PORT}],
    )
    return Outcome(True, f"{instance.vendor_id} runs", facts=facts)


def console(builder: Builder) -> str | None:
    """What its console shows; None when there is no machine."""
    line = builder.work.ledger.find(ec2_kinds.INSTANCE.name, KEY)
    return ec2_console.read(builder.calls, line.vendor_id) if line is not None and line.vendor_id else None


def _choice(builder: Builder) -> dict[str, Any]:
    """Image and type, chosen once and written with the intent: a repeated request must not differ."""
    instance_type = control_plane_type(builder.work.cluster)
    descriptions = builder.calls.call("ec2", "describe_instance_types", InstanceTypes=[instance_type])["InstanceTypes"]
    if not descriptions:
        raise VendorRefused(f"{instance_type} is not offered in {builder.calls.region}", hint="Choose another type.")
    arm = "arm64" in descriptions[0].get("ProcessorInfo", {}).get("SupportedArchitectures", ())
    return {"type": instance_type, "image": images.current(builder.calls, arm=arm)}


def _run(builder: Builder, line: Resource, marks: dict[str, str]) -> str:
    settings, config, cluster = builder.work.cluster.settings, builder.config, builder.work.cluster
    interface = {
        "DeviceIndex": 0,
        "SubnetId": network.of(builder).subnet_id,
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
        ClientToken=line.token,
        KeyName=settings["key_pair"],
        IamInstanceProfile={"Name": identity.profile_name(builder)},
        MetadataOptions={**images.METADATA},
        BlockDeviceMappings=[images.root_volume(images.ROOT_DEVICE, DISK_GIB)],
        NetworkInterfaces=[interface],
        UserData=control_plane.render(
            api_url=config.api_url,
            cluster_id=cluster.id,
            client_id=cluster.client_id,
            kubernetes_version=cluster.kubernetes_version,
            issuer=config.issuer,
            audience=config.audience,
            tenant=builder.work.tenant,
            creator=control_plane.person(cluster.created_by),
        ),
        TagSpecifications=tags.specification(["instance", "volume", "network-interface"], marks),
    )
    return str(answer["Instances"][0]["InstanceId"])


def _described(builder: Builder, instance: str) -> Mapping[str, Any]:
    try:
        item = ec2_kinds.INSTANCE.describe(builder.calls, instance)
    except VendorNotFound as error:
        raise NotYetVisible(f"{instance} is not shown yet", code=error.code) from error
    if item is None:
        raise NotYetVisible(f"{instance} is not shown yet")
    return item
