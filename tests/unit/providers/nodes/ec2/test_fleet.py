"""The fleet request of a launch, and the meaning of each answer."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from stockyard.domain.nodes.node_types import ANY
from stockyard.domain.values import times
from stockyard.errors import CapacityAwaited, InsufficientCapacity, VendorError, VendorQuotaExceeded, VendorRefused


def test_options_are_tried_in_order_and_zone_by_zone(hand: Any, limits: dict[str, int], build: Any) -> None:
    hand.place(build.option("t3.medium"), build.option("m6i.large"))
    limits["t3.medium/us-east-1a"] = 0
    hand.prepare()
    facts = hand.launch().facts
    assert (facts["type"], facts["zone"]) == ("aws.t3.medium", "us-east-1b")
    hand.terminate()
    hand.again()
    limits["t3.medium"] = 0
    assert hand.launch().facts["type"] == "aws.m6i.large"


def test_insufficient_capacity_names_offerings_and_leaves_nothing(
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


def test_quota_of_account_is_no_insufficient_capacity(hand: Any, build: Any, answers: Any) -> None:
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
def test_other_error_codes_are_insufficient_capacity(hand: Any, answers: Any, code: str) -> None:
    hand.prepare()
    answers.errors(("m6i.large", code))
    with pytest.raises(InsufficientCapacity) as caught:
        hand.launch()
    assert ("m6i.large", "on-demand", ANY) in caught.value.refused


def test_empty_answer_is_insufficient_capacity(hand: Any, answers: Any) -> None:
    hand.prepare()
    answers.errors()
    with pytest.raises(InsufficientCapacity) as caught:
        hand.launch()
    assert ("m6i.large", "on-demand", ANY) in caught.value.refused


def test_spot_request_uses_strategy_of_ec2(hand: Any, build: Any, sent: list[dict[str, Any]]) -> None:
    hand.provider = build.provider(capacityTypes=["spot"])
    hand.place(build.option("m6i.large", "spot"), build.option("t3.medium", "on-demand"))
    hand.prepare()
    assert hand.launch().facts["capacity_type"] == "spot"
    assert hand.instances()[0]["InstanceLifecycle"] == "spot"
    (request,) = sent
    assert request["SpotOptions"] == {"AllocationStrategy": "price-capacity-optimized"}
    assert request["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "spot"
    overrides = request["LaunchTemplateConfigs"][0]["Overrides"]
    assert {override["InstanceType"] for override in overrides} == {"m6i.large"}
    assert not [override for override in overrides if "Priority" in override]
    hand.ledger.fail_made = ""
    hand.later(3600)
    assert hand.launch().facts["capacity_type"] == "spot"


@pytest.mark.parametrize("strategy", ["lowest-price", "diversified", "capacity-optimized", "price-capacity-optimized"])
def test_spot_strategy_is_passed_to_ec2(hand: Any, build: Any, sent: list[dict[str, Any]], strategy: str) -> None:
    hand.provider = build.provider(capacityTypes=["spot"], allocationStrategy=strategy)
    hand.place(build.option("m6i.large", "spot"))
    hand.prepare()
    hand.launch()
    assert sent[0]["SpotOptions"] == {"AllocationStrategy": strategy}


def bidding(hand: Any, build: Any, **max_price: float) -> None:
    hand.provider = build.provider(capacityTypes=["spot"])
    hand.claim = replace(hand.claim, max_price=max_price)
    hand.place(build.option("m6i.large", "spot"), build.option("t3.medium", "spot"))
    hand.prepare()


def test_each_way_has_the_bid_of_its_own_type(hand: Any, build: Any, sent: list[dict[str, Any]]) -> None:
    bidding(hand, build, percent=150)
    hand.launch()
    overrides = sent[0]["LaunchTemplateConfigs"][0]["Overrides"]
    assert {(each["InstanceType"], each["MaxPrice"]) for each in overrides} == {
        ("m6i.large", "0.144"),
        ("t3.medium", "0.0624"),
    }


def test_a_bid_in_usd_holds_for_every_type_and_none_for_on_demand(
    hand: Any, build: Any, sent: list[dict[str, Any]]
) -> None:
    bidding(hand, build, usd_hour=0.2)
    hand.launch()
    assert {each["MaxPrice"] for each in sent[0]["LaunchTemplateConfigs"][0]["Overrides"]} == {"0.2"}
    hand.terminate()
    hand.again()
    hand.provider = build.provider()
    hand.place(build.option("m6i.large"))
    hand.prepare()
    hand.launch()
    assert not any("MaxPrice" in each for each in sent[1]["LaunchTemplateConfigs"][0]["Overrides"])


def test_what_costs_more_than_its_bid_waits_and_is_no_refusal_for_others(hand: Any, build: Any) -> None:
    """The local cloud sells a type for a quarter of its price on demand at least."""
    bidding(hand, build, percent=10)
    with pytest.raises(CapacityAwaited) as caught:
        hand.launch()
    assert (caught.value.reason, caught.value.code) == ("SpotPriceAboveBid", "SpotMaxPriceTooLow")
    assert caught.value.refused == ()
    assert caught.value.again_at == times.to_text(hand.yard.now + timedelta(seconds=300))
    assert hand.ledger.lines() == []


def test_scarce_zones_are_remembered_though_others_cost_too_much(hand: Any, build: Any, answers: Any) -> None:
    bidding(hand, build, percent=150)
    answers.errors(("m6i.large", "SpotMaxPriceTooLow"), ("t3.medium", "InsufficientInstanceCapacity"))
    with pytest.raises(InsufficientCapacity) as caught:
        hand.launch()
    assert {name for name, _, _ in caught.value.refused} == {"t3.medium"}


def test_a_part_of_a_price_that_nobody_knows_is_refused(hand: Any, build: Any) -> None:
    bidding(hand, build, percent=150)
    hand.place(build.option("hpc7a.12xlarge", "spot"))
    with pytest.raises(VendorRefused, match="is not known"):
        hand.launch()


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
def test_zone_without_type_or_capacity_is_insufficient_capacity(
    hand: Any, answers: Any, errors: list[tuple[str, str]]
) -> None:
    """The claim waits and is tried again, because the other zone may get capacity at any time."""
    hand.prepare()
    answers.errors_with_messages(*(("m6i.large", *code_and_message) for code_and_message in errors))
    with pytest.raises(InsufficientCapacity) as caught:
        hand.launch()
    assert ("m6i.large", "on-demand", ANY) in caught.value.refused


def test_other_invalid_configuration_is_refused(hand: Any, answers: Any) -> None:
    hand.prepare()
    answers.errors_with_messages(("m6i.large", "InvalidFleetConfiguration", "The launch template has no image."))
    with pytest.raises(VendorError) as caught:
        hand.launch()
    assert not isinstance(caught.value, InsufficientCapacity)
