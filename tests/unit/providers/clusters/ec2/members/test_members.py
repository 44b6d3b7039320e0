"""Members of a control plane behind their balancer, as EC2 has them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from moto.iam.models import iam_backends

from local.aws import tenant_role
from local.aws.corrections.compute.compute import idempotent_calls
from local.aws.permissions.asked import Guard, asked_permissions
from stockyard.machines.on_machine.stockyard_machine_member import ANONYMOUS
from stockyard.ports import CloudWork
from stockyard.ports.clusters import DRAINING, GONE, HEALTHY
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.policies import tenant_template
from tests.harness.worlds.stage import Stage

ZONES = ["us-east-1a", "us-east-1b", "us-east-1c"]


@pytest.fixture
def yard_with_member(yard: Any) -> Any:
    """A cluster with its first member."""
    yard.with_settings(zones=ZONES, control_plane_size=3)
    with idempotent_calls():
        for phase in ("network", "security", "identity", "endpoint", "control_plane"):
            yard.ensure(phase)
    return yard


def members_work(yard: Any) -> CloudWork:
    work: CloudWork = yard.work("members")
    return work


def second(yard: Any) -> str:
    """Another machine beside the first."""
    client = yard.tenant().client("ec2")
    first = client.describe_instances()["Reservations"][0]["Instances"][0]
    copy = {"ImageId": first["ImageId"], "InstanceType": "t3.large", "SubnetId": first["SubnetId"]}
    return str(client.run_instances(**copy, MinCount=1, MaxCount=1)["Instances"][0]["InstanceId"])


def first_of(yard: Any) -> str:
    return next(line.vendor_id for line in yard.ledger.lines() if line.kind == "instance")


def test_members_are_sent_requests_while_they_are_admitted(yard_with_member: Any) -> None:
    yard, provider = yard_with_member, yard_with_member.provider
    first, other = first_of(yard), second(yard)
    assert dict(provider.targets(members_work(yard), [first, other])) == {first: HEALTHY}
    for _ in range(2):
        provider.admit(members_work(yard), other)
    assert dict(provider.targets(members_work(yard), [first, other])) == {first: HEALTHY, other: HEALTHY}
    assert dict(provider.targets(members_work(yard), [first])) == {first: HEALTHY}, "who is asked for"
    for _ in range(2):
        provider.withdraw(members_work(yard), first)
    assert provider.targets(members_work(yard), [first, other]).get(first, DRAINING) == DRAINING


def test_a_machine_that_is_ended_is_gone_whatever_the_balancer_says(yard_with_member: Any) -> None:
    yard, other = yard_with_member, second(yard_with_member)
    yard.provider.admit(members_work(yard), other)
    yard.tenant().client("ec2").terminate_instances(InstanceIds=[other])
    assert yard.provider.targets(members_work(yard), [other, "i-0123456789abcdef0"]) == {other: GONE}


def test_all_members_are_looked_at_by_one_call(yard_with_member: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    yard, machines = yard_with_member, [first_of(yard_with_member), *(second(yard_with_member) for _ in range(3))]
    yard.tenant().client("ec2").terminate_instances(InstanceIds=machines[1:3])
    operations: list[str] = []
    call = BaseClient._make_api_call  # type: ignore[attr-defined]
    monkeypatch.setattr(BaseClient, "_make_api_call", lambda *of: operations.append(of[1]) or call(*of))
    states = yard.provider.targets(members_work(yard), machines)
    assert [machine for machine in machines if states.get(machine) == GONE] == machines[1:3]
    assert operations.count("DescribeInstances") == 1


def test_nobody_is_asked_about_no_machine(yard_with_member: Any) -> None:
    """A filter without values is refused."""
    assert yard_with_member.provider.targets(members_work(yard_with_member), []) == {}


def test_members_may_stand_in_each_zone_and_take_pods_where_that_is_wanted(yard_with_member: Any) -> None:
    yard = yard_with_member
    assert yard.provider.member_zones(members_work(yard)) == ZONES
    (taint,) = yard.provider.member_pool(yard.cluster).taints
    assert taint["effect"] == "NoSchedule"
    yard.with_settings(control_plane_workloads=True)
    assert yard.provider.member_pool(yard.cluster).taints == ()


def test_what_the_first_member_alone_had_goes_after_it(yard_with_member: Any) -> None:
    yard, client = yard_with_member, yard_with_member.tenant().client("ec2")
    (volume,) = [line.vendor_id for line in yard.ledger.lines() if line.kind == "volume"]
    dlm = yard.tenant().client("dlm")
    (policy,) = dlm.get_lifecycle_policies()["Policies"]
    client.terminate_instances(InstanceIds=[first_of(yard)])
    for _ in range(20):
        outcome = yard.provider.release_first(members_work(yard))
        if outcome.done:
            break
        yard.later(outcome.wait_seconds)
    assert outcome.done
    assert volume not in {item["VolumeId"] for item in client.describe_volumes()["Volumes"]}
    assert yard.provider.release_first(members_work(yard)).done, "twice is once"
    # It takes snapshots of the disks of the members that stay, and goes with the cluster.
    assert [item["PolicyId"] for item in dlm.get_lifecycle_policies()["Policies"]] == [policy["PolicyId"]]
    yard.later(120)
    yard.delete()
    assert dlm.get_lifecycle_policies()["Policies"] == []


def test_a_member_is_healthy_when_its_api_server_answers(yard_with_member: Any) -> None:
    (group,) = yard_with_member.tenant().client("elbv2").describe_target_groups()["TargetGroups"]
    assert (group["HealthCheckProtocol"], group["HealthCheckPath"]) == ("HTTPS", "/readyz")
    assert group["HealthCheckPath"] in ANONYMOUS, "the balancer is not logged in"


@contextmanager
def asked_by_template(yard: Any, version: int) -> Iterator[None]:
    """The tenant's role may do what that version of the template lets it, and is asked at each call."""
    account = yard.account.attributes["role_arn"].split(":")[4]
    role = next(role for role in iam_backends[account]["aws"].roles.values() if role.name == "stockyard")
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "111111111111"}}
    role.assume_role_policy_document = json.dumps({"Statement": [trust]})
    template = tenant_template.render(yard.account, members_work(yard).installation, Stage())
    for name, properties in tenant_role.resources(tenant_role.of_version(template, version)).items():
        if "PolicyDocument" in properties and "ManagedPolicyName" not in properties:
            role.policies[name] = json.dumps(properties["PolicyDocument"])
    with asked_permissions(Guard(lambda number: number == account)):
        yield


def older(yard: Any) -> str:
    """A member that an earlier release made: it has all of a machine's tags but that with the cluster's name."""
    client, machine = yard.tenant().client("ec2"), second(yard)
    first = client.describe_instances(InstanceIds=[first_of(yard)])["Reservations"][0]["Instances"][0]
    carried = {key: text for key, text in tags.mapping(first["Tags"]).items() if not key.startswith("kubernetes.io/")}
    client.create_tags(Resources=[machine], Tags=tags.pairs(carried))
    return machine


def carried_tags(yard: Any, machine: str) -> dict[str, str]:
    client = yard.tenant().client("ec2")
    (reservation,) = client.describe_instances(InstanceIds=[machine])["Reservations"]
    return tags.mapping(reservation["Instances"][0]["Tags"])


def test_members_of_an_earlier_release_get_their_clusters_name_where_the_template_lets_us(
    yard_with_member: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard, machine = yard_with_member, older(yard_with_member)
    yard.with_settings(cloud_controllers=True)
    first, name, before = first_of(yard), yard.cluster.client_id, carried_tags(yard, machine)
    with asked_by_template(yard, 6):
        text = yard.provider.tag_members(members_work(yard), [first, machine])
    assert text.startswith(f"{machine}: no tag KubernetesCluster = {name}")
    assert "version 7" in text
    assert "deploy the account's current template again" in text
    with asked_by_template(yard, 7):
        assert yard.provider.tag_members(members_work(yard), [first, machine, "i-0123456789abcdef0"]) is None
        assert carried_tags(yard, machine) == {**before, tags.CLUSTER_OF_MEMBER: name}
        assert tags.CLUSTER_OF_MEMBER not in carried_tags(yard, first), "it has the newer key"
        operations: list[str] = []
        call = BaseClient._make_api_call  # type: ignore[attr-defined]
        with monkeypatch.context() as watched:
            watched.setattr(BaseClient, "_make_api_call", lambda *of: operations.append(of[1]) or call(*of))
            assert yard.provider.tag_members(members_work(yard), [first, machine]) is None
        assert "CreateTags" not in operations, "twice is once"


def test_the_role_may_give_a_machine_no_other_name_and_no_other_tag_of_ours(yard_with_member: Any) -> None:
    yard, machine = yard_with_member, older(yard_with_member)
    name, strange = yard.cluster.client_id, second(yard_with_member)
    client = yard.tenant().client("ec2")
    with asked_by_template(yard, 7):
        for target, pairs in (
            (machine, {tags.CLUSTER_OF_MEMBER: "another"}),
            (machine, {tags.CLUSTER_OF_MEMBER: name, tags.RESOURCE: "another"}),
            (strange, {tags.CLUSTER_OF_MEMBER: name}),
        ):
            with pytest.raises(ClientError, match="UnauthorizedOperation"):
                client.create_tags(Resources=[target], Tags=tags.pairs(pairs))
        client.create_tags(Resources=[machine], Tags=tags.pairs({tags.CLUSTER_OF_MEMBER: name}))


def test_a_cluster_without_cloud_controllers_needs_no_name_on_its_machines(yard_with_member: Any) -> None:
    yard, machine = yard_with_member, older(yard_with_member)
    yard.with_settings(cloud_controllers=False)
    assert yard.provider.tag_members(members_work(yard), [machine]) is None
    assert tags.CLUSTER_OF_MEMBER not in carried_tags(yard, machine)
