"""Machines of node groups: taken, waited for, given back by name; each of them by one claim."""

from __future__ import annotations

from typing import Any

import pytest

from local.aws.corrections.eks.scaling_groups import scaling_backends
from stockyard.domain.records import MachineHold
from stockyard.errors import Fenced, NodeCouldNotBeProvisioned, NotYetVisible, VendorRefused, VendorTimeout
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.listing import every
from stockyard.providers.clouds.aws.calls import Calls


def holders(yard: Any) -> dict[str, str]:
    return {hold.id.partition("/")[2]: hold.claim_id for hold in every(yard.store, MachineHold)}


def tags_of(yard: Any, machine: str) -> dict[str, str]:
    (instance,) = yard.groups.ec2.describe_instances(InstanceIds=[machine])["Reservations"][0]["Instances"]
    return {tag["Key"]: tag["Value"] for tag in instance["Tags"]}


def test_a_machine_that_nobody_holds_is_taken_before_the_group_grows(yard: Any) -> None:
    group = yard.groups.group("workers", "m6i.xlarge", size=1)
    claim = yard.claim("A")
    outcome = yard.step(claim)
    (machine,) = yard.groups.members(group)
    (instance,) = yard.groups.ec2.describe_instances(InstanceIds=[machine])["Reservations"][0]["Instances"]
    assert outcome.done
    assert dict(outcome.facts) == {
        "machine_id": machine,
        "host_name": instance["PrivateDnsName"],
        "type": "aws.m6i.xlarge",
        "capacity_type": "on-demand",
        "zone": instance["Placement"]["AvailabilityZone"],
    }
    marks = {
        "stockyard:installation": "inst",
        "stockyard:tenant": "acme",
        "stockyard:resource": claim.id,
        "stockyard:key": "instance/machine",
    }
    assert marks.items() <= tags_of(yard, machine).items()
    assert holders(yard) == {machine: claim.id}
    assert yard.groups.size(group) == 1


def test_group_grows_to_what_its_claims_need_and_each_has_a_machine_of_its_own(yard: Any) -> None:
    group = yard.groups.group("workers", "m6i.xlarge", size=1)
    claims = [yard.claim(letter) for letter in "ABC"]
    assert [yard.step(claim).done for claim in claims] == [True, False, True], "one grows it for two"
    assert yard.groups.size(group) == 3
    machines = [yard.launch(claim).facts["machine_id"] for claim in claims]
    assert sorted(machines) == sorted(yard.groups.members(group))
    assert len(set(machines)) == 3
    assert yard.groups.size(group) == 3


def test_claims_of_another_pool_do_not_make_a_group_grow(yard: Any) -> None:
    group = yard.groups.group("workers", "m6i.xlarge")
    other = yard.groups.group("gpu", "p5.48xlarge")
    yard.claim("A", "gpu", "p5.48xlarge")
    yard.step(yard.claim("B"))
    assert (yard.groups.size(group), yard.groups.size(other)) == (1, 0)


def test_group_never_grows_beyond_its_maximum_and_the_claim_is_told(yard: Any) -> None:
    group = yard.groups.group("workers", "m6i.xlarge", most=1)
    yard.launch(yard.claim("A"))
    outcome = yard.step(yard.claim("B"))
    assert not outcome.done
    assert outcome.message == "Node group workers has all of the 1 machines that it may have."
    assert yard.groups.size(group) == 1


def test_claim_waits_for_a_group_that_is_not_made_yet(yard: Any) -> None:
    with pytest.raises(NotYetVisible, match="no node group workers that makes machines yet"):
        yard.step(yard.claim("A"))


def test_claim_of_no_pool_is_refused(yard: Any) -> None:
    with pytest.raises(NodeCouldNotBeProvisioned, match="of no node group"):
        yard.step(yard.claim("A", pool=""))


def test_another_attempt_takes_no_machine(yard: Any) -> None:
    yard.groups.group("workers", "m6i.xlarge", size=1)
    claim = yard.claim("A")
    with pytest.raises(Fenced):
        yard.source.launch(yard.work(claim, "op_stale"))
    assert holders(yard) == {}


@pytest.mark.parametrize("lost", ["create_tags", "set_desired_capacity", "describe_nodegroup"])
def test_a_lost_answer_makes_no_second_machine(yard: Any, lost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    group = yard.groups.group("workers", "m6i.xlarge")
    claim, real, failed = yard.claim("A"), Calls.call, []

    def call(calls: Calls, service: str, operation: str, **parameters: Any) -> Any:
        answer = real(calls, service, operation, **parameters)
        if operation == lost and not failed:
            failed.append(operation)
            raise VendorTimeout("no answer in time")
        return answer

    monkeypatch.setattr(Calls, "call", call)
    for _ in range(4):
        try:
            outcome = yard.step(claim)
        except VendorTimeout:
            continue
        if outcome.done:
            break
    assert (failed, outcome.done) == ([lost], True)
    assert yard.groups.members(group) == [outcome.facts["machine_id"]]
    assert list(holders(yard).values()) == [claim.id]


# --- former groups of a pool -----------------------------------------------------------------------------------------


def test_machines_are_made_in_the_newest_group_of_a_pool(yard: Any) -> None:
    former = yard.groups.group("workers", "m6i.xlarge", size=1)
    old = yard.claim("A")
    first = yard.launch(old).facts["machine_id"]
    newest = yard.groups.group("workers", "m6i.2xlarge", generation=2)
    added = yard.launch(yard.claim("B", kind="m6i.2xlarge"))
    assert added.facts["type"] == "aws.m6i.2xlarge"
    assert (yard.groups.members(former), yard.groups.members(newest)) == ([first], [added.facts["machine_id"]])
    yard.end(old)
    assert (yard.groups.size(former), yard.groups.size(newest)) == (0, 1)


def test_a_machine_of_a_former_group_that_nobody_holds_is_taken_before_another_is_made(yard: Any) -> None:
    former = yard.groups.group("workers", "m6i.xlarge", size=1)
    newest = yard.groups.group("workers", "m6i.2xlarge", generation=2)
    assert [yard.launch(yard.claim("A")).facts["machine_id"]] == yard.groups.members(former)
    assert yard.groups.size(newest) == 0


# --- the end ---------------------------------------------------------------------------------------------------------


def test_node_leaves_by_name_and_the_group_gets_smaller(yard: Any) -> None:
    group = yard.groups.group("workers", "m6i.xlarge", size=3)
    claims = [yard.claim(letter) for letter in "ABC"]
    machines = [yard.launch(claim).facts["machine_id"] for claim in claims]
    yard.end(claims[1])
    assert sorted(yard.groups.members(group)) == sorted([machines[0], machines[2]])
    assert yard.groups.size(group) == 2
    assert holders(yard) == {machines[0]: claims[0].id, machines[2]: claims[2].id}


def test_at_its_minimum_the_group_replaces_the_machine(yard: Any) -> None:
    group = yard.groups.group("workers", "m6i.xlarge", least=1)
    claim = yard.claim("A")
    first = yard.launch(claim).facts["machine_id"]
    yard.end(claim)
    (replacement,) = yard.groups.members(group)
    assert replacement != first
    assert (yard.groups.size(group), holders(yard)) == (1, {})
    assert yard.launch(yard.claim("B")).facts["machine_id"] == replacement


def test_claim_given_back_while_it_waits_leaves_the_group_as_others_need_it(yard: Any) -> None:
    group = yard.groups.group("workers", "m6i.xlarge")
    waiting, other = yard.claim("A"), yard.claim("B")
    yard.full.add("m6i.xlarge")
    yard.step(waiting)
    assert yard.groups.size(group) == 2
    yard.end(waiting)
    assert yard.groups.size(group) == 1
    yard.end(other)
    assert (yard.groups.machines(), holders(yard)) == ([], {})


def test_a_machine_that_was_taken_and_not_written_down_is_ended_too(yard: Any) -> None:
    group = yard.groups.group("workers", "m6i.xlarge", size=1)
    claim = yard.claim("A")
    work = yard.work(claim)
    work.ledger.intend("instance", "machine", {})
    (machine,) = yard.groups.members(group)
    assert work.holds is not None
    assert work.holds.take(machine)
    yard.end(claim)
    assert (yard.groups.machines(), holders(yard), yard.groups.size(group)) == ([], {}, 0)


def test_machine_of_a_group_that_is_gone_is_ended_by_itself(yard: Any) -> None:
    yard.groups.group("workers", "m6i.xlarge", size=1)
    claim = yard.claim("A")
    yard.launch(claim)
    scaling_backends["222222222222"]["us-east-1"].groups.clear()
    yard.end(claim)
    assert (yard.groups.machines(), holders(yard)) == ([], {})


def test_machine_that_ends_while_its_group_is_looked_at_is_not_ended_again(
    yard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard.groups.group("workers", "m6i.xlarge", size=1)
    claim = yard.claim("A")
    machine = yard.launch(claim).facts["machine_id"]
    real, terminations = Calls.call, []

    def call(calls: Calls, service: str, operation: str, **parameters: Any) -> Any:
        if operation == "terminate_instances":
            terminations.append(parameters)
        if operation == "describe_auto_scaling_groups" and not terminations:
            yard.groups.ec2.terminate_instances(InstanceIds=[machine])
            scaling_backends["222222222222"]["us-east-1"].groups.clear()
        return real(calls, service, operation, **parameters)

    monkeypatch.setattr(Calls, "call", call)
    yard.end(claim)
    assert (terminations, yard.groups.machines(), holders(yard)) == ([], [], {})


def test_a_machine_that_ended_before_it_joined_is_said_at_once(yard: Any) -> None:
    yard.groups.group("workers", "m6i.xlarge", size=1)
    claim = yard.claim("A")
    machine = yard.launch(claim).facts["machine_id"]
    yard.groups.ec2.terminate_instances(InstanceIds=[machine])
    with pytest.raises(NodeCouldNotBeProvisioned, match=f"{machine} was ended"):
        yard.step(claim)


def test_machine_that_somebody_ended_leaves_no_hold(yard: Any) -> None:
    yard.groups.group("workers", "m6i.xlarge", size=1)
    claim = yard.claim("A")
    machine = yard.launch(claim).facts["machine_id"]
    yard.groups.ec2.terminate_instances(InstanceIds=[machine])
    assert yard.source.look(yard.work(claim)).state == "gone"
    yard.end(claim)
    assert (holders(yard), lines_of(yard.services, claim.id)) == ({}, [])


def test_deletion_that_dies_after_the_call_ends_no_second_machine(yard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    group = yard.groups.group("workers", "m6i.xlarge", size=2)
    claims = [yard.claim(letter) for letter in "AB"]
    machines = [yard.launch(claim).facts["machine_id"] for claim in claims]
    real, failed = Calls.call, []

    def call(calls: Calls, service: str, operation: str, **parameters: Any) -> Any:
        answer = real(calls, service, operation, **parameters)
        if operation == "terminate_instance_in_auto_scaling_group" and not failed:
            failed.append(operation)
            raise VendorTimeout("no answer in time")
        return answer

    monkeypatch.setattr(Calls, "call", call)
    yard.put(claims[0], deleting=True)
    with pytest.raises(VendorTimeout):
        yard.source.terminate(yard.work(claims[0]))
    yard.end(claims[0])
    assert (yard.groups.members(group), yard.groups.size(group)) == ([machines[1]], 1)


# --- looks and switches ----------------------------------------------------------------------------------------------


def test_machine_is_looked_at_and_rebooted_once_and_never_switched_off(yard: Any) -> None:
    yard.groups.group("workers", "m6i.xlarge", size=1)
    claim = yard.claim("A")
    assert yard.source.look(yard.work(claim)).state == "absent"
    with pytest.raises(NodeCouldNotBeProvisioned):
        yard.source.power(yard.work(claim), "Reboot")
    facts = yard.launch(claim).facts
    observed = yard.source.look(yard.work(claim))
    assert (observed.state, observed.machine_id, observed.zone) == ("running", facts["machine_id"], facts["zone"])
    assert observed.node_name == "", "only its cluster's agent says that it has joined"
    for state in ("On", "Reboot", "Reboot"):
        assert yard.source.power(yard.work(claim), state).facts == {"power": "On"}
    assert [line.kind for line in lines_of(yard.services, claim.id)] == ["instance", "reboot"]
    with pytest.raises(VendorRefused, match="the group would replace it"):
        yard.source.power(yard.work(claim), "Off")
    yard.end(claim)
