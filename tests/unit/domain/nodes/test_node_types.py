"""Node types from declarations: properties, costs, overhead, offerings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from stockyard.domain.nodes.node_types import (
    Declaration,
    NodeType,
    Offering,
    effective_properties,
    formula_cost,
    is_extended,
    node_type_of,
    parse_property,
    read_properties,
    read_resources,
)
from stockyard.domain.values.requirements import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, NODE_TYPE, OS, ZONE

GOLDEN = Path(__file__).resolve().parents[5] / "shared" / "examples" / "vcluster" / "golden-cost.json"
PLAIN = Declaration("tf", "medium", {"cpu": "2", "memory": "4Gi"})


@pytest.mark.parametrize(
    ("resources", "cost"),
    [
        ({"cpu": "2", "memory": "4Gi"}, 28),
        ({"cpu": 4, "memory": "16Gi"}, 72),
        ({"cpu": "250m", "memory": "512Mi"}, 3.5),
        ({"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "2"}, 20012),
        ({"cpu": "1", "memory": "1Gi", "pods": "250"}, 12),
        ({"cpu": "1", "memory": "1Gi", "ephemeral-storage": "100Gi", "hugepages-2Mi": "1Gi"}, 12),
        ({}, 0),
    ],
)
def test_the_formula(resources, cost):
    cost_found = formula_cost(read_resources(resources))
    assert cost_found == cost
    assert isinstance(cost_found, int) == (cost == int(cost))


@pytest.mark.skipif(not GOLDEN.is_file(), reason="the shared examples are not beside this repository")
def test_the_golden_costs():
    cases = json.loads(GOLDEN.read_text())
    assert cases
    assert [formula_cost(read_resources(case["resources"])) for case in cases] == [case["cost"] for case in cases]


def test_a_plain_declaration():
    assert node_type_of(PLAIN) == NodeType(
        name="tf.medium",
        provider="tf",
        properties={NODE_TYPE: ("tf.medium",), INSTANCE_TYPE: ("tf.medium",), OS: ("linux",)},
        allocatable={"cpu": 2000, "memory": 4 * 2**30 * 1000, "pods": 110_000},
        capacity={"cpu": 2000, "memory": 4 * 2**30 * 1000, "pods": 110_000},
        cost=28,
        offerings=(Offering("on-demand", ("global",), None),),
    )


def test_overhead_is_taken_off_and_may_be_too_much():
    node_type = node_type_of(replace(PLAIN, overhead={"cpu": "2500m", "memory": "1Gi", "vendor.com/x": 1}))
    assert node_type.allocatable == {
        "cpu": -500,
        "memory": 3 * 2**30 * 1000,
        "pods": 110_000,
        "vendor.com/x": -1000,
    }
    assert node_type.capacity["cpu"] == 2000
    assert node_type.cost == 28


def test_the_type_wins_over_its_provider_and_built_in_over_both():
    properties = effective_properties(
        replace(
            PLAIN,
            provider_properties={"a": "1", "b": "2", OS: "windows", "kubevirt.vcluster.com/image-url": "docker://a:1"},
            properties={"b": "3,4", CAPACITY_TYPE: "spot", NODE_TYPE: "mine", "beta.kubernetes.io/arch": "arm64"},
        )
    )
    assert properties == {
        "a": ("1",),
        "b": ("3", "4"),
        ARCH: ("arm64",),
        NODE_TYPE: ("tf.medium",),
        INSTANCE_TYPE: ("tf.medium",),
        OS: ("linux",),
        ZONE: ("global",),
        CAPACITY_TYPE: ("on-demand",),
    }


@pytest.mark.parametrize(
    ("zone", "properties", "zones"),
    [
        (None, {}, ("global",)),
        ("eu-1a", {ZONE: "eu-1b"}, ("eu-1a",)),
        (None, {ZONE: "eu-1b,eu-1c"}, ("eu-1b", "eu-1c")),
        (None, {"failure-domain.beta.kubernetes.io/zone": "*"}, ("*",)),
    ],
)
def test_the_zone(zone, properties, zones):
    node_type = node_type_of(replace(PLAIN, zone=zone, properties=properties))
    assert node_type.offerings == (Offering("on-demand", zones, None),)
    assert ZONE not in node_type.properties
    assert CAPACITY_TYPE not in node_type.properties


def test_an_ec2_type_keeps_its_own_name_as_label():
    ways = (Offering("on-demand", ("a", "b"), 0.1), Offering("spot", ("a",), 0.04))
    node_type = node_type_of(
        replace(PLAIN, provider="ec2", name="m6i.large", instance_type="m6i.large", arch="amd64", offerings=ways)
    )
    assert (node_type.name, node_type.bare) == ("ec2.m6i.large", "m6i.large")
    assert node_type.properties[INSTANCE_TYPE] == ("m6i.large",)
    assert node_type.properties[ARCH] == ("amd64",)
    assert node_type.usd_hour == 0.04


@pytest.mark.parametrize(
    ("change", "ranks", "money", "usd_hour"),
    [
        ({}, (28, 28), (None, None), None),
        ({"unit_price": 0.5}, (28, 28), (14, 14), 14),
        ({"offerings": (Offering("spot", ("a",), 0.2), Offering("spot", ("b",)))}, (0.2, 28), (0.2, None), 0.2),
        (
            {"offerings": (Offering("spot", ("a",), 0.2), Offering("spot", ("b",))), "unit_price": 0.1},
            (2, 28),
            (0.2, 2.8),
            0.2,
        ),
        ({"cost": 7, "usd_hour": 0.2}, (7,), (0.2,), 0.2),
        ({"cost": 7, "usd_hour": 0.2, "unit_price": 0.5}, (7,), (0.2,), 0.2),
        ({"usd_hour": 0.2, "unit_price": 0.0}, (0.2,), (0.2,), 0.2),
        ({"cost": 7, "unit_price": 0.0}, (7,), (0,), 0),
        ({"cost": 0, "unit_price": 1.0}, (0,), (0,), 0),
    ],
)
def test_what_orders_kinds(change, ranks, money, usd_hour):
    node_type = node_type_of(replace(PLAIN, **change))
    ways = node_type.offerings if len(ranks) == len(node_type.offerings) else node_type.offerings * len(ranks)
    assert tuple(node_type.rank(way) for way in ways) == pytest.approx(ranks)
    assert [None if (price := node_type.money(way)) is None else pytest.approx(price) for way in ways] == list(money)
    assert node_type.effective_cost == pytest.approx(min(ranks)), "what is shown as cost is what orders"
    assert node_type.usd_hour == pytest.approx(usd_hour) if usd_hour is not None else node_type.usd_hour is None


def test_extended_resources():
    named = ["cpu", "memory", "pods", "ephemeral-storage", "hugepages-1Gi", "nvidia.com/gpu", "smarter-devices/fuse"]
    assert [name for name in named if is_extended(name)] == ["nvidia.com/gpu", "smarter-devices/fuse"]
    node_type = node_type_of(replace(PLAIN, resources={**PLAIN.resources, "nvidia.com/gpu": 1, "vendor.com/none": "0"}))
    assert node_type.extended() == {"nvidia.com/gpu"}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a", ("a",)),
        ("a,b", ("a", "b")),
        (" a , b ", ("a", "b")),
        ("a,a", ("a",)),
        ("*", ("*",)),
        ("", ("",)),
        ("A_1.x-y", ("A_1.x-y",)),
    ],
)
def test_property_values(text, values):
    assert parse_property("key", text) == values


@pytest.mark.parametrize("text", ["a b", "-a", "a-", "a,,b", "*,a", "a/b", "x" * 64, "é", "a,", "docker://x"])
def test_a_value_that_is_no_label_is_refused_by_its_key(text):
    with pytest.raises(ValueError, match=r"^team: "):
        parse_property("team", text)
    with pytest.raises(ValueError, match=r"^team: "):
        node_type_of(replace(PLAIN, properties={"team": text}))


def test_settings_of_a_provider_may_be_any_text():
    written = {"kubevirt.vcluster.com/image-url": "docker://a:1", "bcm.vcluster.com/network-interface": "bond0"}
    assert read_properties(written) == {"bcm.vcluster.com/network-interface": ("bond0",)}
    with pytest.raises(ValueError, match=r"^vcluster\.com/os-image: "):
        read_properties({"vcluster.com/os-image": "a b"})


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        ({"cpu": "2"}, "^memory: a node type needs it"),
        ({"memory": "2"}, "^cpu: a node type needs it"),
        ({"cpu": "two", "memory": "1Gi"}, "^cpu: 'two' is not a quantity"),
        ({"cpu": "-2", "memory": "1Gi"}, "^cpu: '-2' is negative"),
    ],
)
def test_wrong_resources_are_refused_by_name(resources, words):
    with pytest.raises(ValueError, match=words):
        node_type_of(replace(PLAIN, resources=resources))
