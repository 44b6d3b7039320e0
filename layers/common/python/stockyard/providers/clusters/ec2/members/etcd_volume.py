"""The volume that outlives the control plane's machine, and the policy by which AWS takes a snapshot of it each day.

etcd's data are on it, its own snapshots, and the keys without which they cannot be read. It is made once the machine
runs, in its zone, and goes with the cluster, not with the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from stockyard.domain.records import Resource
from stockyard.errors import NotYetVisible, VendorConflict, VendorNotFound, VendorRefused
from stockyard.ports import Outcome
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.catalog import images, volume_keys
from stockyard.providers.clouds.aws.kinds import dlm as dlm_kinds
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clusters.ec2.building import Builder, DesiredResource
from stockyard.providers.clusters.ec2.configuration import etcd_snapshots, etcd_volume_gib

KEY = "etcd"
DEVICE = "/dev/sdf"
"""What the attachment is called; machines with NVMe disks find it by the service's name of its disks instead."""
MOST_TAGS = 45
"""That a policy may give its snapshots."""


def ensure(builder: Builder, instance: Mapping[str, Any]) -> str | None:
    """The volume, attached to the running ``instance``, and its snapshots. What is waited for; None when all is."""
    zone = str(instance["Placement"]["AvailabilityZone"])
    volume = _volume(builder, zone)
    waiting = _attached(builder, volume, str(instance["InstanceId"]), zone)
    if not waiting:
        ensure_snapshots(builder)
    return waiting


def ensure_snapshots(builder: Builder) -> Outcome:
    """The policy as the settings want it. Where they want no snapshots it rests: those that it has taken are worth
    keeping, and go with the cluster."""
    count, line = etcd_snapshots(builder.work.cluster), builder.ledger.find(dlm_kinds.SNAPSHOT_POLICY.name, KEY)
    if line is None and not count:
        return Outcome(True, "There is no policy of daily snapshots.")
    if line is None or line.state != "made":
        _policy(builder)
        return Outcome(True, _in_words(count))
    policy = dlm_kinds.policy(builder.calls, line.vendor_id)
    if policy is None:
        if count:
            _policy(builder)
        return Outcome(True, _in_words(count))
    details = {**policy["PolicyDetails"]}
    retained = {"Count": count} if count else details["Schedules"][0]["RetainRule"]
    schedules = [{**schedule, "RetainRule": retained} for schedule in details["Schedules"]]
    state = "ENABLED" if count else "DISABLED"
    if (policy.get("State"), details["Schedules"]) != (state, schedules):
        builder.calls.call(
            "dlm",
            "update_lifecycle_policy",
            PolicyId=line.vendor_id,
            State=state,
            PolicyDetails={**details, "Schedules": schedules},
        )
    return Outcome(True, _in_words(count))


def _in_words(count: int) -> str:
    return f"{count} daily snapshots are kept." if count else "No snapshot is taken any more."


def _volume(builder: Builder, zone: str) -> str:
    def create(line: Resource, marks: dict[str, str]) -> str:
        answer = builder.calls.call(
            "ec2",
            "create_volume",
            AvailabilityZone=line.detail["zone"],
            Size=line.detail["gib"],
            VolumeType="gp3",
            Encrypted=True,
            **images.by_key(str(line.detail.get("volume_key") or "")),
            ClientToken=line.token,
            TagSpecifications=tags.specification(["volume"], marks),
        )
        return str(answer["VolumeId"])

    key = volume_keys.of_account(builder.work.account, builder.calls.region)
    detail = {"zone": zone, "gib": etcd_volume_gib(builder.work.cluster), "volume_key": key}
    target = dlm_kinds.target(builder.work.cluster.id)
    return builder.want(
        DesiredResource(ec2_kinds.VOLUME, KEY, builder.name(KEY), create, detail=detail, extra_tags=target)
    ).vendor_id


def _attached(builder: Builder, volume: str, instance: str, zone: str) -> str | None:
    try:
        item = ec2_kinds.VOLUME.describe(builder.calls, volume)
    except VendorNotFound as error:
        raise NotYetVisible(f"{volume} is not shown yet", code=error.code) from error
    if item is None:
        raise NotYetVisible(f"{volume} is not shown yet")
    if item["AvailabilityZone"] != zone:
        raise VendorRefused(
            f"{volume} with the data of etcd is in {item['AvailabilityZone']}, and {instance} is in {zone}",
            hint="Make a volume in the machine's zone of a snapshot; docs/restore.md says how.",
        )
    attached_to = {str(a["InstanceId"]) for a in item.get("Attachments", ()) if a.get("State") != "detached"}
    if instance in attached_to:
        return None
    if attached_to:
        return f"{volume} is still attached to {', '.join(sorted(attached_to))}"
    try:
        builder.calls.call("ec2", "attach_volume", VolumeId=volume, InstanceId=instance, Device=DEVICE)
    except VendorConflict as error:
        return f"{volume} cannot be attached yet: {error.detail}"
    return None


def of_snapshots(marks: Mapping[str, str], owner: tags.Owner) -> list[dict[str, str]]:
    """Select the tags that a snapshot gets. Ours come first: by them a deletion and the sweep find the snapshots."""
    carried = {name: marks[name] for name in sorted(marks, key=lambda name: name in owner.own_tags)}
    return tags.pairs(carried)[:MOST_TAGS]


def _policy(builder: Builder) -> None:
    name = builder.name("etcd-snapshots")
    builder.want(DesiredResource(dlm_kinds.SNAPSHOT_POLICY, KEY, name, partial(_create_policy, builder)))


def _create_policy(builder: Builder, line: Resource, marks: dict[str, str]) -> str:
    schedule = {
        "Name": "daily",
        "CopyTags": False,
        "TagsToAdd": of_snapshots(marks, builder.owner),
        # AWS begins within an hour of it; a fixed time would be every cluster's.
        "CreateRule": {"Interval": 24, "IntervalUnit": "HOURS", "Times": [f"{int(line.token[:8], 16) % 24:02d}:00"]},
        "RetainRule": {"Count": etcd_snapshots(builder.work.cluster)},
    }
    answer = builder.calls.call(
        "dlm",
        "create_lifecycle_policy",
        ExecutionRoleArn=dlm_kinds.role_arn(builder.work.account, builder.config.name_prefix),
        Description=f"Daily snapshots of etcd of {builder.work.cluster.client_id}",
        State="ENABLED",
        PolicyDetails={
            "PolicyType": "EBS_SNAPSHOT_MANAGEMENT",
            "ResourceTypes": ["VOLUME"],
            "TargetTags": tags.pairs(dlm_kinds.target(builder.work.cluster.id)),
            "Schedules": [schedule],
        },
        Tags=marks,
    )
    return str(answer["PolicyId"])
