"""A control plane is tried by each of its types in each of its zones, and there is never a second machine."""

from __future__ import annotations

from typing import Any

import pytest

from local.aws.corrections.compute.compute import idempotent_calls
from local.aws.corrections.refusals import scarce_capacity
from stockyard.errors import InsufficientCapacity, VendorError, VendorTimeout
from stockyard.ports import Outcome
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clusters.ec2 import planning
from tests.unit.operations.conftest import MemoryPrices

TYPES = ["t3.large", "m5.large"]


@pytest.fixture
def yard_with_endpoint(yard: Any) -> Any:
    """A cluster whose control plane is next, with two types."""
    yard.with_settings(control_plane_instance_types=TYPES)
    for phase in ("network", "security", "identity", "endpoint"):
        yard.ensure(phase)
    return yard


def instances(yard: Any) -> list[tuple[str, str]]:
    """Type and zone of each machine that is there."""
    reservations = yard.tenant().client("ec2").describe_instances()["Reservations"]
    return [
        (i["InstanceType"], i["Placement"]["AvailabilityZone"])
        for r in reservations
        for i in r["Instances"]
        if i["State"]["Name"] != "terminated"
    ]


def refusals(yard: Any) -> list[str]:
    return [line.key for line in yard.ledger.lines() if line.kind == "refused_capacity"]


def step(yard: Any) -> Outcome:
    outcome: Outcome = yard.provider.ensure("control_plane", yard.work("control_plane"))
    yard.later(outcome.wait_seconds)
    return outcome


@pytest.mark.parametrize(
    ("limits", "type_and_subnet"),
    [
        ({}, ("t3.large", "us-east-1a")),
        ({"t3.large/us-east-1a": 0}, ("t3.large", "us-east-1b")),
        ({"t3.large/us-east-1a": -1}, ("t3.large", "us-east-1b")),
        ({"t3.large": 0}, ("m5.large", "us-east-1a")),
        ({"t3.large/us-east-1a": -1, "t3.large/us-east-1b": 0, "m5.large/us-east-1a": 0}, ("m5.large", "us-east-1b")),
    ],
)
def test_next_way_is_tried_where_one_is_refused(
    yard_with_endpoint: Any, limits: dict[str, int], type_and_subnet: tuple[str, str]
) -> None:
    with idempotent_calls(), scarce_capacity(limits):
        outcome = yard_with_endpoint.ensure("control_plane")
    assert instances(yard_with_endpoint) == [type_and_subnet]
    assert outcome.facts["instance_id"]
    assert refusals(yard_with_endpoint) == [], "forgotten once the machine is there"


def test_a_control_plane_stands_in_the_zones_of_its_group_alone(yard: Any) -> None:
    zones = ["us-east-1b", "us-east-1a", "us-east-1c"]
    group = {"name": "cp", "role": "control", "instance_types": ["t3.large"], "zones": ["us-east-1c", "us-east-1b"]}
    yard.with_settings(zones=zones, autoscaler_node_groups=[group])
    for phase in ("network", "security", "identity", "endpoint"):
        yard.ensure(phase)
    assert yard.provider.member_zones(yard.work("members")) == ["us-east-1b", "us-east-1c"]
    with idempotent_calls(), scarce_capacity({"t3.large/us-east-1b": 0}):
        yard.ensure("control_plane")
    assert instances(yard) == [("t3.large", "us-east-1c")]


def test_all_ways_are_tried_at_once_so_that_the_workflow_counts_rounds(yard_with_endpoint: Any) -> None:
    """A wait between two ways would leave the state, and its count of retries would begin anew for ever."""
    with scarce_capacity({"t3.large": 0, "m5.large/us-east-1a": 0}):
        step(yard_with_endpoint)
    assert instances(yard_with_endpoint) == [("m5.large", "us-east-1b")]


def test_refusal_of_all_is_raised_and_a_later_try_begins_anew(yard_with_endpoint: Any) -> None:
    with idempotent_calls():
        with scarce_capacity({"t3.large": 0, "m5.large": 0}):
            for _ in range(2):
                with pytest.raises(InsufficientCapacity):
                    step(yard_with_endpoint)
        assert (instances(yard_with_endpoint), refusals(yard_with_endpoint)) == ([], [])
        yard_with_endpoint.ensure("control_plane")
    assert instances(yard_with_endpoint) == [("t3.large", "us-east-1a")]


def test_worker_that_takes_over_does_not_try_again_what_was_refused(
    yard_with_endpoint: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_types: list[str] = []
    real = Calls.call

    def call(self: Calls, service: str, operation: str, **parameters: Any) -> Any:
        if operation == "run_instances":
            asked_types.append(parameters["InstanceType"])
        return real(self, service, operation, **parameters)

    monkeypatch.setattr(Calls, "call", call)
    with idempotent_calls(), scarce_capacity({"t3.large": 0}):
        for _ in range(2):
            step(yard_with_endpoint)
        yard_with_endpoint.ledger = yard_with_endpoint.ledger.copy()
        yard_with_endpoint.ensure("control_plane")
    assert asked_types == ["t3.large", "t3.large", "m5.large"]


@pytest.mark.parametrize("failed_write", ["refused_capacity/t3.large/us-east-1a", "instance/control-plane"])
def test_crash_between_call_and_record_makes_no_second_machine(yard_with_endpoint: Any, failed_write: str) -> None:
    yard_with_endpoint.ledger.fail_made = failed_write
    with idempotent_calls(), scarce_capacity({"t3.large/us-east-1a": 0}):
        for _ in range(2):
            try:
                step(yard_with_endpoint)
            except RuntimeError:
                break
        yard_with_endpoint.later(90)
        yard_with_endpoint.ensure("control_plane")
    assert instances(yard_with_endpoint) == [("t3.large", "us-east-1b")]


def test_lost_answer_is_waited_for_in_its_own_zone(yard_with_endpoint: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call has made a machine: no other way may be tried, whatever has no capacity by then."""
    real = Calls.call
    lost: list[str] = []

    def call(self: Calls, service: str, operation: str, **parameters: Any) -> Any:
        answer = real(self, service, operation, **parameters)
        if operation == "run_instances" and not lost:
            lost.append(parameters["ClientToken"])
            raise VendorTimeout("no answer")
        return answer

    monkeypatch.setattr(Calls, "call", call)
    with idempotent_calls():
        with pytest.raises(VendorTimeout):
            step(yard_with_endpoint)
        with scarce_capacity({"t3.large/us-east-1a": 0, "m5.large": 0}):
            yard_with_endpoint.ensure("control_plane")
    assert instances(yard_with_endpoint) == [("t3.large", "us-east-1a")]


def test_other_errors_try_no_other_way(yard_with_endpoint: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Calls.call

    def call(self: Calls, service: str, operation: str, **parameters: Any) -> Any:
        if operation == "run_instances":
            raise VendorError("no", code="InvalidParameterValue")
        return real(self, service, operation, **parameters)

    monkeypatch.setattr(Calls, "call", call)
    with pytest.raises(VendorError, match="no"):
        step(yard_with_endpoint)
    assert refusals(yard_with_endpoint) == []


def test_machine_follows_the_volume_of_the_one_before(yard_with_endpoint: Any) -> None:
    with idempotent_calls(), scarce_capacity({"t3.large/us-east-1a": 0}):
        yard_with_endpoint.ensure("control_plane")
        (instance,) = [line for line in yard_with_endpoint.ledger.lines() if line.kind == "instance"]
        yard_with_endpoint.tenant().client("ec2").terminate_instances(InstanceIds=[instance.vendor_id])
        yard_with_endpoint.ledger.gone(instance)
    with idempotent_calls(), scarce_capacity({"t3.large": 0}):
        yard_with_endpoint.later(120)
        yard_with_endpoint.ensure("control_plane")
    assert instances(yard_with_endpoint) == [("m5.large", "us-east-1b")], "the volume of etcd is in that zone"


def test_deletion_after_refusals_leaves_nothing(yard_with_endpoint: Any) -> None:
    with scarce_capacity({"t3.large": 0}):
        step(yard_with_endpoint)
    yard_with_endpoint.later(120)
    yard_with_endpoint.delete()
    assert yard_with_endpoint.ledger.lines() == []


def test_record_of_an_earlier_release_has_one_subnet(yard_with_endpoint: Any) -> None:
    yard_with_endpoint.with_settings(control_plane_instance_types=None, control_plane_instance_type="t3.large")
    ledger, phase = yard_with_endpoint.ledger, "control_plane"
    yard_with_endpoint.work(phase)
    image = yard_with_endpoint.tenant().client("ec2").describe_images()["Images"][0]["ImageId"]
    ledger.intend("instance", "control-plane", {"type": "t3.large", "image": image})
    yard_with_endpoint.later(90)
    yard_with_endpoint.ensure(phase)
    assert instances(yard_with_endpoint) == [("t3.large", "us-east-1a")]


def test_plan_says_what_would_be_tried_and_prices_the_first(yard: Any) -> None:
    yard.with_settings(control_plane_instance_types=TYPES, vpc_cidr="172.20.0.0/20")
    plan = yard.provider.plan(yard.cluster, MemoryPrices())
    kinds = dict(plan.creates)
    assert kinds["instance"].endswith("-control-plane (t3.large, else m5.large, in any of its zones)")
    assert kinds["vpc"].endswith("(172.20.0.0/20)")
    assert next(item.name for item in plan.items) == "control plane instance t3.large"
    yard.with_settings(control_plane_instance_types=["t3.large", "x9.none"])
    (fault,) = planning.faults(yard.cluster, MemoryPrices(), "vantage")
    assert fault.pointer == "/settings/control_plane_instance_types/1"
