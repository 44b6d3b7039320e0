"""The ways in which a claim can be launched, and the fleet request for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import NodeClaim
from stockyard.errors import VendorRefused
from stockyard.providers.clouds.aws import tags
from stockyard.providers.nodes.ec2 import fleet, templates
from stockyard.providers.nodes.ec2.node_class import NodeClass
from stockyard.providers.nodes.ec2.overrides import overrides, types

NODE_CLASS = NodeClass(
    {"subnet-1": "a", "subnet-2": "b", "subnet-3": "b"}, ("sg-1",), "p", {"amd64": "ami-1", "arm64": "ami-2"}
)
ARCHITECTURES = {"t3.medium": "amd64", "m6i.large": "amd64", "m7g.large": "arm64"}


def claim(build: Any, number: int = 0, *options: Any) -> NodeClaim:
    placement_options = options or (build.option("t3.medium"), build.option("m7g.large"), build.option("m6i.large"))
    return NodeClaim(f"ncl_{number}", "n", "t", "t", placement=build.placed(*placement_options))


def types_and_zones(
    build: Any, node_claim: NodeClaim, node_class: NodeClass = NODE_CLASS, strategy: str | None = None
) -> list[tuple[str, str]]:
    listed = overrides(node_claim, build.provider(), node_class, ARCHITECTURES, "on-demand", strategy)
    return [(way.type, way.zone) for way in listed]


@pytest.mark.parametrize(
    ("operator", "values", "anywhere"),
    [("In", ["b"], False), ("In", ["a", "b"], True), ("NotIn", ["a"], True), ("In", ["b", "elsewhere"], True)],
)
def test_a_refusal_in_zones_that_are_named_says_nothing_of_others(
    build: Any, operator: str, values: list[str], anywhere: bool
) -> None:
    """A requirement of a claim's own that the scheduler cannot read is refused everywhere."""
    zones = ({"key": "topology.kubernetes.io/zone", "operator": operator, "values": values},)
    node_claim = replace(claim(build), requirements=zones)
    listed = overrides(node_claim, build.provider(), NODE_CLASS, ARCHITECTURES, "on-demand", None)
    assert {way.anywhere for way in listed} == {anywhere}
    assert all(
        way.anywhere for way in overrides(claim(build), build.provider(), NODE_CLASS, ARCHITECTURES, "on-demand", None)
    )


def test_types_with_a_gpu_start_from_the_image_with_its_driver_and_not_with_others(build: Any) -> None:
    """A call has one launch template, and that image needs a larger disk."""
    node_class = replace(NODE_CLASS, images={**NODE_CLASS.images, "amd64-gpu": "ami-3"})
    kinds = {**ARCHITECTURES, "g6.xlarge": "amd64-gpu", "g5.xlarge": "amd64-gpu", "g5g.xlarge": "arm64-gpu"}

    def launched(*names: str) -> set[tuple[str, str]]:
        node_claim = claim(build, 0, *map(build.option, names))
        return {
            (way.type, way.image)
            for way in overrides(node_claim, build.provider(), node_class, kinds, "on-demand", None)
        }

    assert launched("g6.xlarge", "m6i.large", "g5.xlarge") == {("g6.xlarge", "ami-3"), ("g5.xlarge", "ami-3")}
    assert launched("m6i.large", "g6.xlarge") == {("m6i.large", "ami-1")}
    with pytest.raises(VendorRefused, match=r"no subnet .* and image") as refused:
        launched("g5g.xlarge")
    assert "update the template" in refused.value.hint


def test_ways_keep_order_of_types_and_spread_zones(build: Any) -> None:
    orders = [types_and_zones(build, claim(build, number)) for number in range(50)]
    for order in orders:
        assert [kind for kind, _ in order[::2]] == ["t3.medium", "m7g.large", "m6i.large"]
        assert {zone for _, zone in order[:2]} == {"a", "b"}
    assert {order[0][1] for order in orders} == {"a", "b"}


def test_ways_have_one_subnet_per_zone_and_image_of_architecture(build: Any) -> None:
    for number in range(20):
        listed = overrides(claim(build, number), build.provider(), NODE_CLASS, ARCHITECTURES, "on-demand", None)
        by_zone = {way.zone: {neighbour.subnet for neighbour in listed if neighbour.zone == way.zone} for way in listed}
        assert all(len(subnets) == 1 for subnets in by_zone.values())
        assert {way.image for way in listed if way.type == "m7g.large"} == {"ami-2"}
        assert {way.image for way in listed if way.type != "m7g.large"} == {"ami-1"}


def test_diversified_claims_begin_with_different_types(build: Any) -> None:
    firsts = {types_and_zones(build, claim(build, number), strategy="diversified")[0][0] for number in range(50)}
    assert firsts == {"t3.medium", "m7g.large", "m6i.large"}


def test_ways_are_in_zones_of_option_and_claim(build: Any) -> None:
    node_claim = claim(build, 0, build.option("t3.medium", zones=["a", "c"]), build.option("m6i.large"))
    assert set(types_and_zones(build, node_claim)) == {("t3.medium", "a"), ("m6i.large", "a"), ("m6i.large", "b")}
    outside_zone_a = ({"key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": ["a"]},)
    assert types_and_zones(build, replace(node_claim, requirements=outside_zone_a)) == [("m6i.large", "b")]


def test_a_zone_is_named_by_its_id(build: Any) -> None:
    by_id = ({"key": "topology.k8s.aws/zone-id", "operator": "In", "values": ["use1-az4"]},)
    node_claim = replace(claim(build, 0, build.option("t3.medium")), requirements=by_id)
    node_class = replace(NODE_CLASS, zone_ids={"a": "use1-az1", "b": "use1-az4"})
    assert types_and_zones(build, node_claim, node_class) == [("t3.medium", "b")]


def test_missing_image_rules_out_types_of_architecture(build: Any) -> None:
    assert {
        kind for kind, _ in types_and_zones(build, claim(build), replace(NODE_CLASS, images={"arm64": "ami-2"}))
    } == {"m7g.large"}
    with pytest.raises(VendorRefused) as caught:
        types_and_zones(
            build, claim(build, 0, build.option("t3.medium")), replace(NODE_CLASS, images={"arm64": "ami-2"})
        )
    assert "t3.medium" in str(caught.value)


def test_options_of_other_provider_or_capacity_type_are_ignored(build: Any) -> None:
    foreign_option = replace(build.option("t3.medium"), type="theirs.t3.medium")
    node_claim = claim(build, 0, build.option("m6i.large"), build.option("t3.medium", "spot"), foreign_option)
    assert types(node_claim, build.provider(), "on-demand") == ["m6i.large"]
    assert {kind for kind, _ in types_and_zones(build, node_claim)} == {"m6i.large"}


def test_request_is_deterministic_and_within_limits(build: Any) -> None:
    many = tuple(fleet.Override(f"t{number}.large", "a", "subnet-1", "ami-1") for number in range(400))
    request = fleet.Request("token", "template", "on-demand", many, {"a": "b"}, count=3)
    parameters = fleet.parameters(request)
    assert parameters == fleet.parameters(request)
    (config,) = parameters["LaunchTemplateConfigs"]
    assert len(config["Overrides"]) == fleet.MOST_OVERRIDES
    assert [override["Priority"] for override in config["Overrides"][:3]] == [0.0, 1.0, 2.0]
    assert parameters["OnDemandOptions"] == {"AllocationStrategy": "prioritized"}
    assert parameters["TargetCapacitySpecification"]["TotalTargetCapacity"] == 3
    assert {specification["ResourceType"] for specification in parameters["TagSpecifications"]} == {
        "fleet",
        "instance",
        "volume",
    }


def test_long_template_name_is_shortened(build: Any) -> None:
    owner = tags.Owner("i", "t", "nev_1", "1", "c" * 46, "p" * 16)
    names = [
        templates.TemplateRequest(
            owner, pool, "provider" * 7, spot=False, node_class=NODE_CLASS, user_data="", since=""
        ).names()
        for pool in ("p" * 63, "p" * 62 + "q")
    ]
    assert all(len(name) <= templates.LONGEST for pair in names for name in pair)
    assert len({name for pair in names for name in pair}) == 4
