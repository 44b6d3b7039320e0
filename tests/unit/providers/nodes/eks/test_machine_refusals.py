"""A claim is told why AWS refuses its node group another machine, and the group is lowered again."""

from __future__ import annotations

from typing import Any

import pytest

from local.aws.corrections.pace import paced
from stockyard.errors import InsufficientCapacity, VendorRefused
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.nodes.eks import scaling


def test_refused_capacity_names_the_ways_and_the_group_is_lowered_again(yard: Any) -> None:
    group = yard.groups.group("workers", "m6i.xlarge")
    claim = yard.claim("A")
    yard.full.add("m6i.xlarge")
    assert not yard.step(claim).done
    assert yard.groups.size(group) == 1
    with pytest.raises(InsufficientCapacity, match="do not have sufficient m6i") as caught:
        yard.step(claim)
    ways = {("m6i.xlarge", "on-demand", zone) for zone in (*yard.groups.zones, "*")}
    assert (set(caught.value.refused), caught.value.code) == (ways, "InsufficientInstanceCapacity")
    assert yard.groups.size(group) == 0, "it would try it for ever"


def test_a_full_zone_is_no_failure_while_the_group_has_another(yard: Any) -> None:
    group = yard.groups.group("workers", "m6i.xlarge")
    full, other = yard.groups.zones
    yard.full.add(f"m6i.xlarge/{full}")
    claim = yard.claim("A")
    waits = {"launch": 40.0, "next zone": 15.0}
    with paced(lambda kind: waits.get(kind, 0.0), lambda: yard.clock.now().timestamp()):
        assert not yard.step(claim).done
        assert not yard.step(claim).done, "the other zone was not tried yet"
        assert yard.groups.size(group) == 1
        yard.clock.advance(15)
        assert yard.launch(claim).facts["zone"] == other


def test_a_full_zone_is_a_failure_of_a_claim_that_may_be_nowhere_else(yard: Any) -> None:
    yard.groups.group("workers", "m6i.xlarge")
    full, _ = yard.groups.zones
    yard.full.add(f"m6i.xlarge/{full}")
    only = ({"key": "topology.kubernetes.io/zone", "operator": "In", "values": [full]},)
    claim = yard.claim("A", requirements=only)
    with paced(lambda kind: 600.0 if kind == "next zone" else 0.0, lambda: yard.clock.now().timestamp()):
        assert not yard.step(claim).done
        with pytest.raises(InsufficientCapacity, match="do not have sufficient"):
            yard.step(claim)


@pytest.mark.parametrize(
    ("zones", "is_failure"), [(("us-west-2a",), True), (("us-west-2a", "us-west-2b"), False), ((), True)]
)
def test_ec2_names_the_zone_that_was_tried_before_those_that_may_do(zones: tuple[str, ...], is_failure: bool) -> None:
    message = (
        "Could not launch On-Demand Instances. InsufficientInstanceCapacity - We currently do not have sufficient "
        "g6.xlarge capacity in the Availability Zone you requested (us-west-2a). You can currently get it by choosing "
        "us-west-2b (or none). Launching EC2 instance failed."
    )
    activity = {"ActivityId": "1", "StatusCode": "Failed", "StatusMessage": message}
    assert isinstance(scaling.failure_after([activity], "0 ", zones), InsufficientCapacity) is is_failure


def test_what_failed_before_a_claim_came_is_not_its_failure(yard: Any) -> None:
    yard.groups.group("workers", "m6i.xlarge")
    yard.full.add("m6i.xlarge")
    first = yard.claim("A")
    yard.step(first)
    with pytest.raises(InsufficientCapacity):
        yard.step(first)
    yard.end(first)
    yard.full.clear()
    assert yard.launch(yard.claim("B")).done


def test_each_claim_is_told_of_a_failure_that_repeats_itself(yard: Any) -> None:
    group = yard.groups.group("workers", "m6i.xlarge")
    yard.full.add("m6i.xlarge")
    for letter in "ABC":
        claim = yard.claim(letter)
        yard.clock.advance(60)
        assert not yard.step(claim).done
        with pytest.raises(InsufficientCapacity):
            yard.step(claim)
        yard.end(claim)
        assert yard.groups.size(group) == 0


def test_lowering_spares_the_machines_that_are_there(yard: Any) -> None:
    group = yard.groups.group("workers", "m6i.xlarge", size=2)
    yard.launch(yard.claim("A"))
    yard.full.add("m6i.xlarge")
    yard.launch(yard.claim("B"))
    refused = yard.claim("C")
    assert not yard.step(refused).done
    with pytest.raises(InsufficientCapacity):
        yard.step(refused)
    assert (yard.groups.size(group), len(yard.groups.members(group))) == (2, 2)


QUOTA = "ask AWS to raise it"
READINGS: list[tuple[str, Any, str, str]] = [
    ("VcpuLimitExceeded - You have requested more vCPU capacity.", InsufficientCapacity, "VcpuLimitExceeded", QUOTA),
    ("That is more than your current vCPU limit.", InsufficientCapacity, "VcpuLimitExceeded", QUOTA),
    ("Max spot instance count exceeded.", InsufficientCapacity, "MaxSpotInstanceCountExceeded", QUOTA),
    (
        "There are not enough free addresses in subnet 'subnet-1' to satisfy the requested number of instances.",
        InsufficientCapacity,
        "InsufficientFreeAddressesInSubnet",
        "no free address",
    ),
    ("InsufficientInstanceCapacity - None left.", InsufficientCapacity, "InsufficientInstanceCapacity", "None left"),
    ("Something else is wrong.", VendorRefused, "", "Something else"),
]


def test_failed_activities_are_read_by_the_table_of_errors() -> None:
    for message, kind, code, text in READINGS:
        error = scaling.error_of(message)
        assert (type(error), error.code) == (kind, code)
        assert text in error.detail


def test_a_full_subnet_is_no_failure_while_the_group_has_another_zone() -> None:
    activity = {
        "ActivityId": "1",
        "StatusCode": "Failed",
        "StatusMessage": READINGS[3][0],
        "Details": '{"Subnet ID":"subnet-1","Availability Zone":"us-west-2a"}',
    }
    assert scaling.failure_after([activity], "0 ", ("us-west-2a", "us-west-2b")) is None
    assert isinstance(scaling.failure_after([activity], "0 ", ("us-west-2a",)), InsufficientCapacity)


def test_a_group_without_a_machine_in_the_zone_is_said(yard: Any) -> None:
    yard.groups.group("workers", "m6i.xlarge")
    (zone, other) = yard.groups.zones
    elsewhere = ({"key": "topology.kubernetes.io/zone", "operator": "In", "values": [other]},)
    claim = yard.claim("A", requirements=elsewhere)
    assert not yard.step(claim).done
    with pytest.raises(InsufficientCapacity, match="no machine in a zone that was asked for") as caught:
        yard.step(claim)
    assert {way[2] for way in caught.value.refused} == {other, "*"}
    assert zone not in {way[2] for way in caught.value.refused}


def test_what_eks_says_of_a_degraded_group_is_told_with_its_launches(
    yard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case b60: a template or a role that is gone, for which EC2 Auto Scaling tries nothing."""
    yard.groups.group("workers", "m6i.xlarge")
    issues = [{"code": "Ec2LaunchTemplateNotFound", "message": "Launch template lt-1 not found."}]
    call = Calls.call

    def degraded(self: Calls, service: str, operation: str, **parameters: Any) -> Any:
        answer = call(self, service, operation, **parameters)
        if operation == "describe_nodegroup":
            answer["nodegroup"] |= {"status": "DEGRADED", "health": {"issues": issues}}
        return answer

    monkeypatch.setattr(Calls, "call", degraded)
    outcome = yard.step(yard.claim("A"))
    text = "EKS says of node group workers: Ec2LaunchTemplateNotFound: Launch template lt-1 not found."
    assert (outcome.done, outcome.facts["blocker"]) == (False, text)
    assert text in outcome.message
