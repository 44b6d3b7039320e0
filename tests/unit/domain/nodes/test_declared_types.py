"""Declared node types: resources from templates, capacity, costs, and how the scheduler sees them."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.nodes.declared_types import (
    capacity_counter,
    choosable,
    declared,
    node_types_of,
    provider_state,
    type_id,
)
from stockyard.domain.nodes.node_types import ANY, Offering
from stockyard.domain.nodes.records import NodeProvider
from stockyard.domain.values import ids
from stockyard.domain.values.requirements import INSTANCE_TYPE, NODE_TYPE, OS, ZONE

SMALL = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}}


def provider(kind: str, *types: dict[str, Any], properties: dict[str, str] | None = None, **block: Any) -> NodeProvider:
    spec = {kind: {**block, "nodeTypes": list(types)}}
    number = "npr_01ARZ3NDEKTSV4RRFFQ69G5FAV"
    return NodeProvider(number, "p", kind, spec, "t", "t", properties=properties or {}, price_per_cost_unit=0.001)


def machine(**domain: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"domain": domain}}}}


def requests(**resources: str) -> dict[str, Any]:
    return machine(resources={"requests": resources})


@pytest.mark.parametrize(
    ("resources", "cost"),
    [
        ({"cpu": "2", "memory": "4Gi"}, 28),
        ({"cpu": 4, "memory": "16Gi"}, 72),
        ({"cpu": "2", "memory": "4Gi", "x/y": 1}, 10028),
    ],
)
def test_costs_follow_the_formula_unless_they_are_given(resources, cost):
    assert [
        node_type.cost
        for node_type in node_types_of(provider("terraform", {"name": "a", "resources": resources}), built=True)
    ] == [cost]
    entry = {"name": "a", "resources": resources, "cost": 7}
    assert [node_type.cost for node_type in node_types_of(provider("terraform", entry), built=True)] == [7]


@pytest.mark.parametrize(
    ("block", "entry", "expected"),
    [
        ({"virtualMachineTemplate": requests(cpu="1", memory="2Gi")}, {}, {"cpu": "1", "memory": "2Gi"}),
        (
            {"virtualMachineTemplate": requests(cpu="1", memory="2Gi")},
            {"mergeVirtualMachineTemplate": requests(cpu="3")},
            {"cpu": "3", "memory": "2Gi"},
        ),
        (
            {"virtualMachineTemplate": requests(cpu="1", memory="2Gi")},
            {"virtualMachineTemplate": machine(cpu={"cores": 2, "sockets": 2}, memory={"guest": "8Gi"})},
            {"cpu": 4, "memory": "8Gi"},
        ),
        (
            {"virtualMachineTemplate": requests(cpu="1", memory="2Gi")},
            {"resources": {"memory": "3Gi", "x/y": 1}},
            {"cpu": "1", "memory": "3Gi", "x/y": 1},
        ),
        (
            {
                "virtualMachineTemplate": machine(
                    cpu={"cores": 4}, resources={"requests": {"cpu": "500m", "memory": "1Gi"}}
                )
            },
            {},
            {"cpu": "500m", "memory": "1Gi"},
        ),
        (
            {"virtualMachineTemplate": requests(cpu="1", memory="2Gi")},
            {"mergeVirtualMachineTemplate": machine(resources=None)},
            {},
        ),
        ({"virtualMachineTemplate": requests(cpu="{{ .cpu }}", memory="2Gi")}, {}, {"memory": "2Gi"}),
        ({"virtualMachineTemplate": {"spec": []}}, {}, {}),
        ({}, {}, {}),
    ],
)
def test_resources_of_virtual_machines_are_those_of_their_template(block, entry, expected):
    (declared_type,) = declared(provider("kubeVirt", {"name": "vm", **entry}, **block))
    assert dict(declared_type.resources) == expected
    complete = {"cpu", "memory"} <= set(expected)
    expected_state = ("Available", "") if complete else ("Pending", "ResourcesUnknown")
    assert (declared_type.phase, declared_type.reason) == expected_state


def test_a_type_without_resources_is_listed_and_never_available():
    (node_type,) = node_types_of(provider("bcm", {"name": "a", "nodeGroups": ["g"]}), built=True)
    assert (node_type.name, node_type.available, node_type.allocatable["cpu"]) == ("p.a", False, 0)


def test_kinds_that_are_not_built_are_listed_and_not_available():
    (node_type,) = node_types_of(provider("clusterAPI", SMALL), built=False)
    assert (node_type.name, node_type.available) == ("p.small", False)
    assert declared(provider("clusterAPI", SMALL))[0].reason == "ProviderNotAvailable"
    phase, reason, message = provider_state("clusterAPI")
    assert (phase, reason) == ("Pending", "ProviderNotAvailable")
    assert "clusterAPI" in message
    assert [provider_state(kind) for kind in ("ec2", "simulated")] == [("Available", "", "")] * 2


@pytest.mark.parametrize(
    ("kind", "entry", "limit"),
    [
        ("simulated", {**SMALL, "maxCapacity": 0}, 0),
        ("simulated", SMALL, None),
        ("bcm", {**SMALL, "nodes": ["a", "b"]}, 2),
        ("bcm", {**SMALL, "nodes": ["a", "b"], "nodeGroups": ["g"]}, None),
        ("metal3", SMALL, None),
    ],
)
def test_capacity_is_what_is_written_or_named(kind, entry, limit):
    node_provider = provider(kind, entry)
    assert [declared_type.max_capacity for declared_type in declared(node_provider)] == [limit]
    assert [node_type.limited for node_type in node_types_of(node_provider, built=True)] == [limit is not None]


def test_types_properties_win_over_the_providers_and_lists_are_values():
    node_provider = provider(
        "simulated",
        {**SMALL, "properties": {"team": "b,c", "any": "*"}, "overhead": {"kubeReserved": {"cpu": "500m"}}},
        properties={
            "team": "a",
            "region": "r",
            "kubevirt.vcluster.com/image-url": "docker://x:1",
            "vcluster.com/vpc-cidr": "10.0.0.0/16",
        },
    )
    (node_type,) = node_types_of(node_provider, built=True)
    assert dict(node_type.properties) == {
        "team": ("b", "c"),
        "any": (ANY,),
        "region": ("r",),
        NODE_TYPE: ("p.small",),
        INSTANCE_TYPE: ("p.small",),
        OS: ("linux",),
    }
    assert (node_type.capacity["cpu"], node_type.allocatable["cpu"], node_type.capacity["pods"]) == (
        2000,
        1500,
        110_000,
    )
    assert node_type.unit_price == 0.001


def test_settings_of_providers_are_no_properties_to_choose_by():
    properties = {"vcluster.com/vpc-cidr": "10.0.0.0/16", "vcluster.com/os-image": "ubuntu-noble", "a": "b"}
    assert choosable(properties) == {"vcluster.com/os-image": "ubuntu-noble", "a": "b"}


@pytest.mark.parametrize(
    ("entry", "properties", "offerings"),
    [
        ({}, {}, (Offering("on-demand", ("global",), None),)),
        ({"zone": "z1", "usdPerHour": 1}, {}, (Offering("on-demand", ("z1",), 1.0),)),
        (
            {"zones": ["a", "b"], "usdPerHour": 0.5, "spotUsdPerHour": 0},
            {},
            (Offering("on-demand", ("a", "b"), 0.5), Offering("spot", ("a", "b"), 0.0)),
        ),
        ({}, {ZONE: "a, b"}, (Offering("on-demand", ("a", "b"), None),)),
        ({}, {"failure-domain.beta.kubernetes.io/zone": "a"}, (Offering("on-demand", ("a",), None),)),
        ({"zone": "z1"}, {ZONE: "a"}, (Offering("on-demand", ("z1",), None),)),
    ],
)
def test_simulated_types_have_zones_and_prices(entry, properties, offerings):
    (node_type,) = node_types_of(provider("simulated", {**SMALL, **entry}, properties=properties), built=True)
    assert node_type.offerings == offerings


def test_types_of_ec2_come_from_its_catalogue_and_the_document_says_what_differs():
    node_provider = provider("ec2", {"name": "m6i.large", "maxCapacity": 3}, cloudAccount=1)
    assert node_types_of(node_provider, built=True) == []
    (declared_type,) = declared(node_provider)
    assert (declared_type.name, declared_type.max_capacity, declared_type.phase, declared_type.offerings) == (
        "m6i.large",
        3,
        "Available",
        None,
    )


def test_ids_and_counters_follow_from_provider_and_name():
    node_provider = provider("simulated", SMALL)
    assert ids.is_id(type_id(node_provider, "small"))
    assert type_id(node_provider, "small") == type_id(node_provider, "small") != type_id(node_provider, "large")
    assert capacity_counter(node_provider, "small") == f"capacity/{node_provider.id}/small"
