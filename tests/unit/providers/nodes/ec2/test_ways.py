"""Ways of a launch, and the request that they become."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import NodeClaim
from stockyard.errors import VendorRefused
from stockyard.providers.aws import tags
from stockyard.providers.nodes.ec2 import fleet, templates
from stockyard.providers.nodes.ec2.place import Place
from stockyard.providers.nodes.ec2.ways import types, ways

PLACE = Place({"subnet-1": "a", "subnet-2": "b", "subnet-3": "b"}, ("sg-1",), "p", {"amd64": "ami-1", "arm64": "ami-2"})
ARCHITECTURES = {"t3.medium": "amd64", "m6i.large": "amd64", "m7g.large": "arm64"}


def claim(build: Any, number: int = 0, *options: Any) -> NodeClaim:
    chosen = options or (build.option("t3.medium"), build.option("m7g.large"), build.option("m6i.large"))
    return NodeClaim(f"ncl_{number}", "n", "t", "t", placement=build.placed(*chosen))


def found(build: Any, one: NodeClaim, place: Place = PLACE, strategy: str | None = None) -> list[tuple[str, str]]:
    listed = ways(one, build.provider(), place, ARCHITECTURES, "on-demand", strategy)
    return [(way.type, way.zone) for way in listed]


def test_types_keep_their_order_and_claims_begin_with_different_zones(build: Any) -> None:
    orders = [found(build, claim(build, number)) for number in range(50)]
    for order in orders:
        assert [kind for kind, _ in order[::2]] == ["t3.medium", "m7g.large", "m6i.large"]
        assert {zone for _, zone in order[:2]} == {"a", "b"}
    assert {order[0][1] for order in orders} == {"a", "b"}


def test_one_subnet_a_zone_and_the_image_of_the_architecture(build: Any) -> None:
    for number in range(20):
        listed = ways(claim(build, number), build.provider(), PLACE, ARCHITECTURES, "on-demand", None)
        by_zone = {way.zone: {other.subnet for other in listed if other.zone == way.zone} for way in listed}
        assert all(len(subnets) == 1 for subnets in by_zone.values())
        assert {way.image for way in listed if way.type == "m7g.large"} == {"ami-2"}
        assert {way.image for way in listed if way.type != "m7g.large"} == {"ami-1"}


def test_diversified_claims_begin_with_different_types(build: Any) -> None:
    firsts = {found(build, claim(build, number), strategy="diversified")[0][0] for number in range(50)}
    assert firsts == {"t3.medium", "m7g.large", "m6i.large"}


def test_zones_of_an_option_and_of_the_claim_both_hold(build: Any) -> None:
    one = claim(build, 0, build.option("t3.medium", zones=["a", "c"]), build.option("m6i.large"))
    assert set(found(build, one)) == {("t3.medium", "a"), ("m6i.large", "a"), ("m6i.large", "b")}
    asked = ({"key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": ["a"]},)
    assert found(build, replace(one, requirements=asked)) == [("m6i.large", "b")]


def test_an_image_of_one_architecture_rules_out_types_of_the_other(build: Any) -> None:
    assert {kind for kind, _ in found(build, claim(build), replace(PLACE, images={"arm64": "ami-2"}))} == {"m7g.large"}
    with pytest.raises(VendorRefused) as caught:
        found(build, claim(build, 0, build.option("t3.medium")), replace(PLACE, images={"arm64": "ami-2"}))
    assert "t3.medium" in str(caught.value)


def test_options_of_another_provider_or_capacity_type_are_no_ways(build: Any) -> None:
    other = {**build.option("t3.medium"), "type": "theirs.t3.medium"}
    one = claim(build, 0, build.option("m6i.large"), build.option("t3.medium", "spot"), other)
    assert types(one, build.provider(), "on-demand") == ["m6i.large"]
    assert {kind for kind, _ in found(build, one)} == {"m6i.large"}


def test_a_request_is_the_same_each_time_and_no_larger_than_ec2_takes(build: Any) -> None:
    many = tuple(fleet.Way(f"t{number}.large", "a", "subnet-1", "ami-1") for number in range(400))
    request = fleet.Request("token", "template", "on-demand", many, {"a": "b"}, count=3)
    made = fleet.parameters(request)
    assert made == fleet.parameters(request)
    (config,) = made["LaunchTemplateConfigs"]
    assert len(config["Overrides"]) == fleet.MOST_WAYS
    assert [one["Priority"] for one in config["Overrides"][:3]] == [0.0, 1.0, 2.0]
    assert made["OnDemandOptions"] == {"AllocationStrategy": "prioritized"}
    assert made["TargetCapacitySpecification"]["TotalTargetCapacity"] == 3
    assert {one["ResourceType"] for one in made["TagSpecifications"]} == {"fleet", "instance", "volume"}


def test_a_long_name_of_a_template_is_cut_to_what_ec2_takes(build: Any) -> None:
    owner = tags.Owner("i", "t", "nev_1", "1", "c" * 46, "p" * 16)
    names = [
        templates.Wanted(owner, pool, "provider" * 7, spot=False, place=PLACE, user_data="", since="").names()
        for pool in ("p" * 63, "p" * 62 + "q")
    ]
    assert all(len(name) <= templates.LONGEST for pair in names for name in pair)
    assert len({name for pair in names for name in pair}) == 4
