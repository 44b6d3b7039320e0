"""The volume of etcd outlives its machine and not its cluster, and AWS is told to take snapshots of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.clusters import ClusterCreate
from stockyard.errors import InvalidInput, VendorRefused
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clusters.ec2 import planning
from stockyard.providers.clusters.ec2.members.etcd_volume import MOST_TAGS
from tests.unit.domain.models.clusters.test_clusters import MINIMAL
from tests.unit.operations.conftest import MemoryPrices
from tests.unit.providers.conftest import CREATE


def volume(yard: Any) -> dict[str, Any]:
    line = yard.ledger.find("volume", "etcd")
    answer = yard.tenant().client("ec2").describe_volumes(VolumeIds=[line.vendor_id])
    description: dict[str, Any] = answer["Volumes"][0]
    return description


def policies(yard: Any) -> list[Any]:
    return list(yard.tenant().client("dlm").get_lifecycle_policies()["Policies"])


def test_volume_is_encrypted_attached_and_stays_when_its_machine_ends(yard: Any) -> None:
    yard.with_settings(etcd_volume_gib=30).create()
    machine = yard.ledger.find("instance", "control-plane").vendor_id
    before = volume(yard)
    assert (before["Size"], before["VolumeType"], before["Encrypted"]) == (30, "gp3", True)
    assert [a["InstanceId"] for a in before["Attachments"]] == [machine]
    yard.tenant().client("ec2").terminate_instances(InstanceIds=[machine])
    assert volume(yard)["State"] == "available"
    yard.later(120)
    yard.delete()
    assert yard.living() == []


def test_next_machine_gets_the_volume_of_the_one_before(yard: Any) -> None:
    yard.create()
    first = volume(yard)["VolumeId"]
    yard.tenant().client("ec2").terminate_instances(
        InstanceIds=[yard.ledger.find("instance", "control-plane").vendor_id]
    )
    yard.later(3600)
    yard.ensure("control_plane")
    attachments = volume(yard)["Attachments"]
    assert volume(yard)["VolumeId"] == first
    assert [a["InstanceId"] for a in attachments] == [yard.ledger.find("instance", "control-plane").vendor_id]


def test_volume_of_another_zone_is_refused_with_the_way_out(yard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.create()
    monkeypatch.setattr(
        "stockyard.providers.clusters.ec2.members.machine._described",
        lambda builder, instance: {
            "State": {"Name": "running"}, "InstanceId": instance, "Placement": {"AvailabilityZone": "us-east-1f"},
        },
    )  # fmt: skip
    with pytest.raises(VendorRefused, match=r"is in us-east-1a, and i-.* is in us-east-1f") as refusal:
        yard.ensure("control_plane")
    assert "docs/restore.md" in refusal.value.hint


def test_volume_that_another_machine_still_has_is_waited_for(yard: Any) -> None:
    for phase in CREATE[:-1]:
        yard.ensure(phase)
    yard.ensure("control_plane")
    ec2, etcd = yard.tenant().client("ec2"), volume(yard)["VolumeId"]
    machine = yard.ledger.find("instance", "control-plane").vendor_id
    other = ec2.run_instances(ImageId="ami-12c6146b", MinCount=1, MaxCount=1)["Instances"][0]["InstanceId"]
    ec2.detach_volume(VolumeId=etcd, InstanceId=machine)
    ec2.attach_volume(VolumeId=etcd, InstanceId=other, Device="/dev/sdf")
    outcome = yard.provider.ensure("control_plane", yard.work("control_plane"))
    assert (outcome.done, outcome.message) == (False, f"{etcd} is still attached to {other}")
    ec2.detach_volume(VolumeId=etcd, InstanceId=other)
    yard.ensure("control_plane")
    assert [a["InstanceId"] for a in volume(yard)["Attachments"]] == [machine]


def test_policy_takes_daily_snapshots_of_that_volume_alone(yard: Any) -> None:
    yard.with_settings(etcd_snapshots=3).create()
    (policy,) = policies(yard)
    assert (policy["State"], policy["Tags"][tags.RESOURCE]) == ("ENABLED", yard.cluster.id)
    snapshots = yard.tenant().client("ec2").describe_snapshots(OwnerIds=["self"])["Snapshots"]
    (own,) = [snapshot for snapshot in snapshots if snapshot.get("Tags")]
    assert own["VolumeId"] == volume(yard)["VolumeId"]
    carried = tags.mapping(own["Tags"])
    assert carried[tags.KEY] == "snapshot_policy/etcd"
    assert {tags.INSTALLATION, tags.TENANT, tags.RESOURCE, tags.GENERATION} <= set(carried)


def test_snapshots_of_a_cluster_with_many_tags_can_be_found(yard: Any) -> None:
    many = {f"own-{number}": "x" for number in range(40)}
    yard.cluster = replace(yard.cluster, tags=many)
    yard.create()
    snapshots = yard.tenant().client("ec2").describe_snapshots(OwnerIds=["self"])["Snapshots"]
    (own,) = [snapshot for snapshot in snapshots if snapshot.get("Tags")]
    carried = tags.mapping(own["Tags"])
    assert len(carried) == MOST_TAGS
    assert {tags.INSTALLATION, tags.TENANT, tags.RESOURCE, tags.GENERATION, tags.KEY, tags.SINCE} <= set(carried)


def test_nobody_takes_snapshots_where_none_are_wanted(yard: Any) -> None:
    yard.with_settings(etcd_snapshots=0).create()
    assert policies(yard) == []
    names = [item.name for item in planning.plan(yard.cluster, MemoryPrices(), "vantage").items]
    assert not [name for name in names if "snapshot" in name]


def test_plan_names_and_prices_volume_and_snapshots(yard: Any) -> None:
    plan = planning.plan(yard.with_settings(etcd_volume_gib=100).cluster, MemoryPrices(), "vantage")
    months = {item.name: round((item.hour or 0) * 730, 2) for item in plan.items}
    assert months["etcd volume gp3 100 GiB"] == 8.0
    assert months["etcd snapshots, 7 daily, at most 100 GiB"] == 5.0
    assert {"volume", "snapshot policy"} <= {kind for kind, _ in plan.creates}
    plan = planning.plan(yard.with_settings(control_plane_size=3).cluster, MemoryPrices(), "vantage")
    months = {item.name: round((item.hour or 0) * 730, 2) for item in plan.items}
    assert months["etcd snapshots, 7 daily, at most 200 GiB"] == 10.0, "two members have it on disks of 50 GiB"


@pytest.mark.parametrize(
    ("field", "value"),
    [("etcd_volume_gib", 9), ("etcd_volume_gib", 1025), ("etcd_snapshots", -1), ("etcd_snapshots", 366)],
)
def test_sizes_that_make_no_sense_are_refused_by_name(field: str, value: int) -> None:
    with pytest.raises(InvalidInput) as refusal:
        read(ClusterCreate, {**MINIMAL, "settings": {**MINIMAL["settings"], field: value}})
    assert f"/settings/{field}" in str(refusal.value.errors)
