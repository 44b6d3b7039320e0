"""Other tags for what stands in the account: everything gets them, whatever fails on the way or goes meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import pytest

from stockyard.errors import PermissionDenied, VendorError, VendorNotFound, VendorThrottled, VendorTimeout
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.resources import retagging
from stockyard.providers.clusters.ec2.members.etcd_volume import MOST_TAGS
from tests.harness.worlds import inventory
from tests.unit.providers.conftest import ACME, Yard

BEFORE, AFTER = {"team": "a", "a/b c": "old", "stage": "one"}, {"a/b c": "new", "stage": "one", "cost": "7"}
STALE = ["team"]
WRITES = ("add_tags", "create_tags", "delete_tags", "remove_tags", "update_lifecycle_policy")


Tags = dict[str, dict[str, str]]
"""By the id of a resource."""


def is_write(operation: str) -> bool:
    return operation in WRITES or operation.startswith(("tag_", "untag_"))


@pytest.fixture
def cluster(yard: Yard) -> Yard:
    """A cluster with tags."""
    with_tags(yard, BEFORE).create()
    return yard


def with_tags(yard: Yard, own_tags: dict[str, str]) -> Yard:
    yard.cluster = yard.ledger.cluster = replace(yard.cluster, tags=own_tags)
    return yard


def all_tags() -> Tags:
    return inventory.tags(ACME, "us-east-1")


def node_tags(yard: Yard) -> dict[str, str]:
    """Tags of a node's machine, whose metadata refuses a slash or a space in a key."""
    owner = tags.Owner(
        "inst-1", "acme", "ncl_1", "1", yard.cluster.client_id, "vantage", tags.of_instances(yard.cluster.tags)
    )
    return tags.full(owner, "instance", "machine", "node", "2026-01-01T00:00:00.000Z")


def make_node(yard: Yard) -> str:
    ec2 = yard.tenant().client("ec2")
    answer = ec2.run_instances(
        ImageId=ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"], MinCount=1, MaxCount=1,
        TagSpecifications=tags.specification(["instance", "volume", "network-interface"], node_tags(yard)),
    )  # fmt: skip
    return str(answer["Instances"][0]["InstanceId"])


def change(yard: Yard) -> None:
    with_tags(yard, AFTER)
    assert yard.provider.retag(yard.work("tags"), STALE).done


def assert_changed(before: Tags, own_tags: dict[str, str] = AFTER, former_keys: Collection[str] = BEFORE) -> None:
    after = all_tags()
    assert after.keys() == before.keys()
    for name, former in before.items():
        if "stage" not in former:
            assert after[name] == former, name
            continue
        fixed = {key: value for key, value in former.items() if key not in former_keys}
        assert {**fixed, **own_tags} == after[name], name


def snapshot_tags(yard: Yard) -> dict[str, str]:
    line = yard.ledger.find("snapshot_policy", "etcd")
    assert line is not None
    policy = yard.tenant().client("dlm").get_lifecycle_policy(PolicyId=line.vendor_id)["Policy"]
    (schedule,) = policy["PolicyDetails"]["Schedules"]
    return tags.mapping(schedule["TagsToAdd"])


def break_call(monkeypatch: pytest.MonkeyPatch, number: int, error: Callable[[], Exception], *, late: bool) -> None:
    """The write of that number fails, before it reaches AWS or after."""
    original, writes = Calls.call, iter(range(1000))

    def call(self: Calls, service: str, operation: str, **parameters: Any) -> Any:
        strikes = is_write(operation) and next(writes) == number
        if strikes and not late:
            raise error()
        answer = original(self, service, operation, **parameters)
        if strikes:
            raise error()
        return answer

    monkeypatch.setattr(Calls, "call", call)


def count_writes(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    original, operations = Calls.call, []

    def call(self: Calls, service: str, operation: str, **parameters: Any) -> Any:
        if is_write(operation):
            operations.append(operation)
        return original(self, service, operation, **parameters)

    with monkeypatch.context() as patched:
        patched.setattr(Calls, "call", call)
        change(yard)
    return operations


def test_everything_has_the_new_tags_and_new_snapshots_get_them(cluster: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    before = all_tags()
    assert len([former for former in before.values() if "stage" in former]) >= 20
    former = snapshot_tags(cluster)
    operations = count_writes(cluster, monkeypatch)
    # Most of what EC2 has lacks the same, so that two calls do.
    assert operations.count("create_tags") == operations.count("delete_tags") == 1
    assert_changed(before)
    fixed = {key: value for key, value in former.items() if key not in BEFORE}
    assert snapshot_tags(cluster) == {**fixed, **AFTER}
    assert count_writes(cluster, monkeypatch) == [], "a second run writes nothing"


@pytest.mark.parametrize(
    ("error", "late"),
    [(VendorThrottled, False), (VendorTimeout, True), (RuntimeError, False), (RuntimeError, True)],
)
def test_next_try_finishes_after_failure_of_any_write(
    cluster: Yard, monkeypatch: pytest.MonkeyPatch, error: type[Exception], late: bool
) -> None:
    """The n-th change of the tags fails at its n-th write, as a refusal or as a crash before or after the write."""
    stale = [*BEFORE]
    for number in range(100):
        before = all_tags()
        own_tags = {"stage": f"{number}", f"key-{number}": "v"}
        with_tags(cluster, own_tags)
        with monkeypatch.context() as patched:
            break_call(patched, number, error, late=late)
            try:
                cluster.provider.retag(cluster.work("tags"), stale)
            except (VendorError, RuntimeError):
                assert all_tags() != before or number == 0
            else:
                break
        assert cluster.provider.retag(cluster.work("tags"), stale).done
        assert_changed(before, own_tags, {*stale, "stage"})
        stale = [f"key-{number}"]
    assert number >= 12, "as many writes as there are at least"


def test_node_has_what_its_metadata_takes(cluster: Yard) -> None:
    machine = make_node(cluster)
    (interface,) = (
        cluster.tenant()
        .client("ec2")
        .describe_network_interfaces(Filters=[{"Name": "attachment.instance-id", "Values": [machine]}])[
            "NetworkInterfaces"
        ]
    )
    former = all_tags()[machine]
    assert former["team"] == "a"
    change(cluster)
    expected = {**{key: value for key, value in former.items() if key not in BEFORE}, "stage": "one", "cost": "7"}
    assert all_tags()[machine] == all_tags()[interface["NetworkInterfaceId"]] == expected


def test_what_is_fixed_stays_whatever_is_asked(cluster: Yard) -> None:
    with_tags(cluster, {**AFTER, "vantage-cluster": "mine", "Name": "mine"})
    before = all_tags()
    keys = sorted({key for carried in before.values() for key in carried})
    cluster.provider.retag(cluster.work("tags"), keys)
    assert_changed(before)


def test_resource_of_another_cluster_or_the_tenant_is_left_alone(cluster: Yard) -> None:
    ec2 = cluster.tenant().client("ec2")
    foreign = ec2.create_volume(AvailabilityZone="us-east-1a", Size=1)["VolumeId"]
    marks = {**node_tags(cluster), "vantage-cluster": "other"}
    ec2.create_tags(Resources=[foreign], Tags=tags.pairs(marks))
    change(cluster)
    assert all_tags()[foreign] == marks


@pytest.mark.parametrize("error", [VendorNotFound, PermissionDenied])
def test_what_goes_meanwhile_keeps_nobody_from_the_tags(
    cluster: Yard, monkeypatch: pytest.MonkeyPatch, error: type[VendorError]
) -> None:
    """EC2 refuses the whole call for the one thing that has gone: as absent, or as one without our tag."""
    machine = make_node(cluster)
    before = {name: former for name, former in all_tags().items() if name != machine}
    original = Calls.call

    def call(self: Calls, service: str, operation: str, **parameters: Any) -> Any:
        if is_write(operation) and machine in parameters.get("Resources", ()):
            cluster.tenant().client("ec2").terminate_instances(InstanceIds=[machine])
            raise error("no such thing", code="X")
        return original(self, service, operation, **parameters)

    monkeypatch.setattr(Calls, "call", call)
    change(cluster)
    after = all_tags()
    for name, former in before.items():
        if name in after and former.get(tags.RESOURCE) == cluster.cluster.id and "stage" in former:
            assert after[name]["cost"] == "7", name


def test_refusal_names_the_resource_and_the_code_of_aws(cluster: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Calls.call

    def call(self: Calls, service: str, operation: str, **parameters: Any) -> Any:
        if operation == "tag_role":
            raise PermissionDenied("iam tag_role: no", code="AccessDenied")
        return original(self, service, operation, **parameters)

    monkeypatch.setattr(Calls, "call", call)
    with pytest.raises(PermissionDenied) as raised:
        change(cluster)
    assert raised.value.code == "AccessDenied"
    assert raised.value.detail.startswith("role vantage-")
    assert raised.value.detail.endswith("iam tag_role: no (AccessDenied)")


def test_many_things_are_written_by_batches(cluster: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retagging, "_BATCH", 4)
    before = all_tags()
    assert count_writes(cluster, monkeypatch).count("create_tags") >= 4
    assert_changed(before)


def test_snapshots_carry_no_more_tags_than_a_policy_takes(cluster: Yard) -> None:
    with_tags(cluster, {f"key-{number:02}": "v" for number in range(40)})
    cluster.provider.retag(cluster.work("tags"), [*BEFORE])
    carried = snapshot_tags(cluster)
    assert len(carried) == MOST_TAGS
    assert tags.INSTALLATION in carried
    assert not BEFORE.keys() & carried.keys()


def test_deleted_cluster_has_nothing_to_tag(cluster: Yard) -> None:
    cluster.delete()
    change(cluster)
    assert cluster.living() == []
