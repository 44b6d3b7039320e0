"""What EC2 is asked for in one call, and what its answers mean."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.node_types import ANY
from stockyard.errors import InsufficientCapacity, VendorError, VendorQuotaExceeded, VendorRefused


def test_options_are_tried_in_their_order_zone_by_zone(hand: Any, limits: dict[str, int], build: Any) -> None:
    hand.place(build.option("t3.medium"), build.option("m6i.large"))
    limits["t3.medium/us-east-1a"] = 0
    hand.prepare()
    facts = hand.launch().facts
    assert (facts["type"], facts["zone"]) == ("aws.t3.medium", "us-east-1b")
    hand.terminate()
    hand.again()
    limits["t3.medium"] = 0
    assert hand.launch().facts["type"] == "aws.m6i.large"


def test_a_refused_capacity_names_types_and_zones_and_leaves_nothing(
    hand: Any, limits: dict[str, int], build: Any, answers: Any
) -> None:
    limits.update({"t3.medium": 0, "m6i.large": 0})
    hand.place(build.option("t3.medium", zones=["us-east-1b"]), build.option("m6i.large"))
    hand.prepare()
    with pytest.raises(InsufficientCapacity) as caught:
        hand.launch()
    assert caught.value.code == "InsufficientInstanceCapacity"
    assert set(caught.value.refused) == {
        ("t3.medium", "on-demand", "us-east-1b"),
        ("m6i.large", "on-demand", "us-east-1a"),
        ("m6i.large", "on-demand", "us-east-1b"),
        ("m6i.large", "on-demand", ANY),
    }
    assert "t3.medium" in str(caught.value)
    assert hand.ledger.lines() == []
    limits.clear()
    hand.later(1)
    hand.launch()
    assert answers.sent[0]["ClientToken"] != answers.sent[1]["ClientToken"], "EC2 would only repeat its answer"


def test_what_the_account_lacks_is_no_capacity_for_others_to_avoid(hand: Any, build: Any, answers: Any) -> None:
    hand.place(build.option("t3.medium"), build.option("m6i.large"))
    hand.prepare()
    answers.errors(("t3.medium", "VcpuLimitExceeded"), ("m6i.large", "InsufficientInstanceCapacity"))
    with pytest.raises(InsufficientCapacity) as caught:
        hand.launch()
    assert {kind for kind, _, _ in caught.value.refused} == {"m6i.large"}
    for code in ("VcpuLimitExceeded", "MaxSpotInstanceCountExceeded"):
        answers.errors(("t3.medium", code))
        with pytest.raises(VendorQuotaExceeded):
            hand.launch()
    answers.errors(("t3.medium", "InsufficientFreeAddressesInSubnet"))
    with pytest.raises(VendorRefused):
        hand.launch()


@pytest.mark.parametrize("code", ["UnfulfillableCapacity", "Unsupported", "ReservationCapacityExceeded"])
def test_other_codes_of_scarcity(hand: Any, answers: Any, code: str) -> None:
    hand.prepare()
    answers.errors(("m6i.large", code))
    with pytest.raises(InsufficientCapacity) as caught:
        hand.launch()
    assert ("m6i.large", "on-demand", ANY) in caught.value.refused


def test_an_answer_with_neither_machines_nor_errors_refuses_everything(hand: Any, answers: Any) -> None:
    hand.prepare()
    answers.errors()
    with pytest.raises(InsufficientCapacity) as caught:
        hand.launch()
    assert ("m6i.large", "on-demand", ANY) in caught.value.refused


def test_spot_is_handed_to_ec2(hand: Any, build: Any, sent: list[dict[str, Any]]) -> None:
    hand.provider = build.provider(capacityTypes=["spot"])
    hand.place(build.option("m6i.large", "spot"), build.option("t3.medium", "on-demand"))
    hand.prepare()
    assert hand.launch().facts["capacity_type"] == "spot"
    assert hand.instances()[0]["InstanceLifecycle"] == "spot"
    (request,) = sent
    assert request["SpotOptions"] == {"AllocationStrategy": "price-capacity-optimized"}
    assert request["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "spot"
    overrides = request["LaunchTemplateConfigs"][0]["Overrides"]
    assert {one["InstanceType"] for one in overrides} == {"m6i.large"}
    assert not [one for one in overrides if "Priority" in one]
    hand.ledger.fail_made = ""
    hand.later(3600)
    assert hand.launch().facts["capacity_type"] == "spot"


@pytest.mark.parametrize("strategy", ["lowest-price", "diversified", "capacity-optimized", "price-capacity-optimized"])
def test_a_spot_strategy_is_ec2s_own(hand: Any, build: Any, sent: list[dict[str, Any]], strategy: str) -> None:
    hand.provider = build.provider(capacityTypes=["spot"], allocationStrategy=strategy)
    hand.place(build.option("m6i.large", "spot"))
    hand.prepare()
    hand.launch()
    assert sent[0]["SpotOptions"] == {"AllocationStrategy": strategy}


NOT_OFFERED = "Your requested instance type (m6i.large) is not supported in your requested Availability Zone (a)."


@pytest.mark.parametrize(
    "errors",
    [
        [("InvalidFleetConfiguration", NOT_OFFERED)],
        [("InvalidFleetConfiguration", NOT_OFFERED), ("InsufficientInstanceCapacity", "none")],
        [("InsufficientFreeAddressesInSubnet", "full"), ("InsufficientInstanceCapacity", "none")],
        [("InsufficientInstanceCapacity", "none"), ("SpotMaxPriceTooLow", "low")],
    ],
)
def test_a_zone_without_the_type_and_one_without_room_is_scarcity(
    hand: Any, answers: Any, errors: list[tuple[str, str]]
) -> None:
    """The claim waits and is tried again; it would be had as soon as the other zone has one."""
    hand.prepare()
    answers.told(*(("m6i.large", *one) for one in errors))
    with pytest.raises(InsufficientCapacity) as caught:
        hand.launch()
    assert ("m6i.large", "on-demand", ANY) in caught.value.refused


def test_another_wrong_configuration_is_a_refusal(hand: Any, answers: Any) -> None:
    hand.prepare()
    answers.told(("m6i.large", "InvalidFleetConfiguration", "The launch template has no image."))
    with pytest.raises(VendorError) as caught:
        hand.launch()
    assert not isinstance(caught.value, InsufficientCapacity)
