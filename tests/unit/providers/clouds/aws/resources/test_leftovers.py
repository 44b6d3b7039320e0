"""Resources of a cluster's own controllers are deleted with it, and those that our role may not delete are named."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.errors import PermissionDenied
from stockyard.providers.clouds.aws.calls import Calls


def _marks(yard: Any) -> dict[str, list[dict[str, str]]]:
    client_id = yard.cluster.client_id
    return {
        "cloud controller": [{"Key": f"kubernetes.io/cluster/{client_id}", "Value": "owned"}],
        "load balancer controller": [{"Key": "elbv2.k8s.aws/cluster", "Value": client_id}],
    }


def _create_for_controller(yard: Any, marks: list[dict[str, str]], stem: str = "k8s-a") -> list[str]:
    ec2, elbv2 = yard.tenant().client("ec2"), yard.tenant().client("elbv2")
    vpc = yard.ledger.find("vpc", "main").vendor_id
    subnet = yard.ledger.find("subnet", "public-a").vendor_id
    group = ec2.create_security_group(
        GroupName=stem, Description="d", VpcId=vpc,
        TagSpecifications=[{"ResourceType": "security-group", "Tags": marks}],
    )["GroupId"]  # fmt: skip
    balancer = elbv2.create_load_balancer(Name=stem, Type="network", Subnets=[subnet], Tags=marks)
    target = elbv2.create_target_group(Name=stem, Protocol="TCP", Port=80, VpcId=vpc, Tags=marks)
    return [
        group,
        balancer["LoadBalancers"][0]["LoadBalancerArn"],
        target["TargetGroups"][0]["TargetGroupArn"],
    ]


def _volume(yard: Any) -> str:
    marks = _marks(yard)["cloud controller"]
    volume = yard.tenant().client("ec2").create_volume(
        AvailabilityZone="us-east-1a", Size=1, TagSpecifications=[{"ResourceType": "volume", "Tags": marks}]
    )  # fmt: skip
    return str(volume["VolumeId"])


def _deny(monkeypatch: pytest.MonkeyPatch, *operations: str) -> None:
    real = Calls.call

    def call(self: Calls, service: str, operation: str, **parameters: Any) -> Any:
        if operation in operations:
            raise PermissionDenied(f"{operation} is not allowed", code="UnauthorizedOperation")
        return real(self, service, operation, **parameters)

    monkeypatch.setattr(Calls, "call", call)


@pytest.mark.parametrize("whose", ["cloud controller", "load balancer controller"])
def test_resources_of_either_controller_are_found_by_tag(yard: Any, whose: str) -> None:
    yard.ensure("network")
    own_things = set(_create_for_controller(yard, _marks(yard)[whose]))
    foreign_things = set(_create_for_controller(yard, [{"Key": "elbv2.k8s.aws/cluster", "Value": "another"}], "k8s-b"))
    yard.remove("leftovers")
    assert own_things & set(yard.living()) == set()
    assert foreign_things <= set(yard.living())


def test_late_controller_resources_are_removed_after_machine(yard: Any) -> None:
    yard.create()
    yard.later(120)
    yard.remove("leftovers")
    late = {*_create_for_controller(yard, _marks(yard)["load balancer controller"]), _volume(yard)}
    yard.remove("control_plane")
    assert late & set(yard.living()) == set()


def test_attached_volume_is_removed_after_machine(yard: Any) -> None:
    yard.create()
    yard.later(120)
    volume, ec2 = _volume(yard), yard.tenant().client("ec2")
    instance_id = ec2.run_instances(ImageId="ami-12c6146b", MinCount=1, MaxCount=1)["Instances"][0]["InstanceId"]
    ec2.attach_volume(VolumeId=volume, InstanceId=instance_id, Device="/dev/sdf")
    assert yard.provider.remove("leftovers", yard.work("leftovers")).done
    outcome = None
    for _ in range(5):
        outcome = yard.provider.remove("control_plane", yard.work("control_plane"))
        yard.later(60)
    assert outcome is not None
    assert (outcome.done, outcome.remaining) == (False, (f"volume {volume}",))
    assert yard.ledger.lines("control_plane") == []
    ec2.detach_volume(VolumeId=volume, InstanceId=instance_id)
    yard.remove("control_plane")
    assert volume not in yard.living()


def test_undeletable_resource_is_reported_and_does_not_keep_machine(yard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = yard.create()
    yard.later(120)
    group, balancer, target = _create_for_controller(yard, _marks(yard)["cloud controller"])
    volume = _volume(yard)
    with monkeypatch.context() as patched:
        _deny(patched, "delete_target_group", "delete_security_group")
        outcome = yard.remove("leftovers")
        assert outcome.done
        assert group in outcome.message
        assert {balancer, volume} & set(yard.living()) == set(), "the others go"
        with pytest.raises(PermissionDenied) as raised:
            yard.remove("control_plane")
    assert facts["instance_id"] not in yard.living()
    assert group in raised.value.detail
    assert target in raised.value.detail
    yard.delete()
    assert yard.living() == []
