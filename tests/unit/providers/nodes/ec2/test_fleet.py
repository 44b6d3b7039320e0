"""The fleet request of a launch, and the meaning of each answer."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from stockyard.domain.nodes.node_types import ANY
from stockyard.domain.nodes.records import PASSED_OVER
from stockyard.domain.values import times
from stockyard.errors import CapacityAwaited, InsufficientCapacity, VendorError, VendorQuotaExceeded, VendorRefused
from stockyard.providers.nodes.ec2 import fleet


def test_options_are_tried_in_order_and_zone_by_zone(hand: Any, limits: dict[str, int], build: Any) -> None:
    hand.bind(build.option("t3.medium"), build.option("m6i.large"))
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
    hand.bind(build.option("t3.medium", zones=["us-east-1b"]), build.option("m6i.large"))
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


REQUEST = fleet.Request(
    "token",
    "template",
    "spot",
    tuple(
        fleet.Override(name, zone, subnet, "ami-1", anywhere=True)
        for name in ("m6i.large", "t3.medium", "g5.xlarge")
        for zone, subnet in (("a", "subnet-1"), ("b", "subnet-2"))
    ),
    {},
)


class Refusing:
    """Calls whose fleets are answered by these errors, each a code, a message, a type and a subnet."""

    def __init__(self, *errors: tuple[str, str, str, str]) -> None:
        self.errors = [
            {
                "ErrorCode": code,
                "ErrorMessage": message,
                "LaunchTemplateAndOverrides": {"Overrides": {"InstanceType": name, "SubnetId": subnet}},
            }
            for code, message, name, subnet in errors
        ]

    def call(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {"Instances": [], "Errors": self.errors}


def refusal(*errors: tuple[str, str, str, str]) -> InsufficientCapacity:
    with pytest.raises(InsufficientCapacity) as caught:
        fleet.launch(Refusing(*errors), REQUEST)
    return caught.value


def ways_of(*names: str, zones: str = "ab*") -> set[tuple[str, str, str]]:
    return {(name, "spot", zone) for name in names for zone in zones}


EVERY = ("m6i.large", "t3.medium", "g5.xlarge")


def test_a_quota_that_is_used_up_is_scarce_for_the_account_alone() -> None:
    """Case b56: Karpenter, too, goes on with its next choice."""
    for code in ("MaxSpotInstanceCountExceeded", "VcpuLimitExceeded", "InstanceLimitExceeded", "VolumeLimitExceeded"):
        error = refusal((code, "no more", "", ""))
        assert set(error.refused) == set(error.own) == ways_of(*EVERY), code
        assert "ask AWS to raise it" in error.detail
    family = refusal(("MaxSpotInstanceCountExceeded", "no more", "t3.medium", "subnet-1"))
    assert set(family.own) == ways_of("m6i.large", "t3.medium"), "GPUs have a quota of their own"


def test_a_full_subnet_is_scarce_in_its_zone_alone() -> None:
    """Case b58."""
    code, text = "InsufficientFreeAddressesInSubnet", "There are not enough free addresses in subnet "
    for error in (refusal((code, f"{text}subnet-1 for it", "", "")), refusal((code, "none", "m6i.large", "subnet-1"))):
        assert set(error.refused) == set(error.own) == ways_of(*EVERY, zones="a")
    full = refusal((code, text, "m6i.large", "subnet-1"), (code, text, "m6i.large", "subnet-2"))
    assert set(full.own) == ways_of(*EVERY), "so that zones that nobody has named are refused too"


def test_what_everybody_is_refused_is_told_from_what_the_account_is_refused() -> None:
    error = refusal(
        ("InsufficientInstanceCapacity", "none", "m6i.large", "subnet-1"), ("VcpuLimitExceeded", "", "g5.xlarge", "")
    )
    assert (error.code, set(error.own)) == ("InsufficientInstanceCapacity", ways_of("g5.xlarge"))
    assert set(error.refused) == ways_of("m6i.large", "g5.xlarge")
    for code, leaf in (("InvalidParameterValue", VendorRefused), ("TooManyTags", VendorQuotaExceeded)):
        with pytest.raises(leaf):
            fleet.launch(Refusing((code, "wrong", "m6i.large", "")), REQUEST)


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
    hand.bind(build.option("m6i.large", "spot"), build.option("t3.medium", "on-demand"))
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
    hand.bind(build.option("m6i.large", "spot"))
    hand.prepare()
    hand.launch()
    assert sent[0]["SpotOptions"] == {"AllocationStrategy": strategy}


def bidding(hand: Any, build: Any, **max_price: float) -> None:
    hand.provider = build.provider(capacityTypes=["spot"])
    hand.claim = replace(hand.claim, max_price=max_price)
    hand.bind(build.option("m6i.large", "spot"), build.option("t3.medium", "spot"))
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
    hand.bind(build.option("m6i.large"))
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
    hand.bind(build.option("hpc7a.12xlarge", "spot"))
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


def test_types_that_ec2_passed_over_have_its_reason(hand: Any, answers: Any, build: Any) -> None:
    hand.bind(build.option("t3.medium"), build.option("m6i.large"))
    hand.prepare()
    names = [option.type.partition(".")[2] for option in hand.claim.placement.options]
    real = {"Instances": [{"InstanceIds": ["i-1"], "InstanceType": names[1]}]}
    error = {"LaunchTemplateAndOverrides": {"Overrides": {"InstanceType": names[0]}}}
    answers.left.append({**real, "Errors": [{**error, "ErrorCode": "InsufficientInstanceCapacity"}]})
    reasons = json.loads(hand.launch().facts[PASSED_OVER])
    assert reasons == {hand.claim.placement.options[0].type: "EC2 had none: InsufficientInstanceCapacity"}
    for capacity_type, strategy, words in (
        ("spot", "", "price-capacity-optimized"),
        ("spot", "capacity-optimized", "capacity-optimized"),
        ("spot", "lowest-price", None),
        ("on-demand", "", None),
        ("on-demand", "diversified", "diversified"),
    ):
        reason = fleet.preference(capacity_type, strategy)
        assert reason is None if words is None else reason is not None and f"({words})" in reason, strategy
