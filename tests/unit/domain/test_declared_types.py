"""Declared node types: resources from templates, capacity, costs, and how the scheduler sees them."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain import ids
from stockyard.domain.declared_types import capacity_counter, choosable, declared, kinds, provider_state, type_id
from stockyard.domain.node_records import NodeProvider
from stockyard.domain.node_types import ANY, Offering
from stockyard.domain.requirements import INSTANCE_TYPE, NODE_TYPE, OS, ZONE

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
    assert [kind.cost for kind in kinds(provider("terraform", {"name": "a", "resources": resources}), built=True)] == [
        cost
    ]
    given = {"name": "a", "resources": resources, "cost": 7}
    assert [kind.cost for kind in kinds(provider("terraform", given), built=True)] == [7]


@pytest.mark.parametrize(
    ("block", "entry", "found"),
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
def test_resources_of_virtual_machines_are_those_of_their_template(block, entry, found):
    (one,) = declared(provider("kubeVirt", {"name": "vm", **entry}, **block))
    assert dict(one.resources) == found
    known = {"cpu", "memory"} <= set(found)
    assert (one.phase, one.reason) == ("Pending", "ProviderNotAvailable" if known else "ResourcesUnknown")


def test_a_type_without_resources_is_listed_and_never_available():
    (kind,) = kinds(provider("bcm", {"name": "a", "nodeGroups": ["g"]}), built=True)
    assert (kind.name, kind.available, kind.allocatable["cpu"]) == ("p.a", False, 0)


def test_kinds_that_are_not_built_are_listed_and_not_available():
    (kind,) = kinds(provider("terraform", SMALL), built=False)
    assert (kind.name, kind.available) == ("p.small", False)
    assert declared(provider("terraform", SMALL))[0].reason == "ProviderNotAvailable"
    phase, reason, message = provider_state("terraform")
    assert (phase, reason) == ("Pending", "ProviderNotAvailable")
    assert "terraform" in message
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
    given = provider(kind, entry)
    assert [one.max_capacity for one in declared(given)] == [limit]
    assert [one.limited for one in kinds(given, built=True)] == [limit is not None]


def test_types_properties_win_over_the_providers_and_lists_are_values():
    given = provider(
        "simulated",
        {**SMALL, "properties": {"team": "b,c", "any": "*"}, "overhead": {"kubeReserved": {"cpu": "500m"}}},
        properties={
            "team": "a",
            "region": "r",
            "kubevirt.vcluster.com/image-url": "docker://x:1",
            "vcluster.com/vpc-cidr": "10.0.0.0/16",
        },
    )
    (kind,) = kinds(given, built=True)
    assert dict(kind.properties) == {
        "team": ("b", "c"),
        "any": (ANY,),
        "region": ("r",),
        NODE_TYPE: ("p.small",),
        INSTANCE_TYPE: ("p.small",),
        OS: ("linux",),
    }
    assert (kind.capacity["cpu"], kind.allocatable["cpu"], kind.capacity["pods"]) == (2000, 1500, 110_000)
    assert kind.unit_price == 0.001


def test_settings_of_providers_are_no_properties_to_choose_by():
    given = {"vcluster.com/vpc-cidr": "10.0.0.0/16", "vcluster.com/os-image": "ubuntu-noble", "a": "b"}
    assert choosable(given) == {"vcluster.com/os-image": "ubuntu-noble", "a": "b"}


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
    (kind,) = kinds(provider("simulated", {**SMALL, **entry}, properties=properties), built=True)
    assert kind.offerings == offerings


def test_types_of_ec2_come_from_its_catalogue_and_the_document_says_what_differs():
    given = provider("ec2", {"name": "m6i.large", "maxCapacity": 3}, cloudAccount=1)
    assert kinds(given, built=True) == []
    (one,) = declared(given)
    assert (one.name, one.max_capacity, one.phase, one.offerings) == ("m6i.large", 3, "Available", None)


def test_ids_and_counters_follow_from_provider_and_name():
    given = provider("simulated", SMALL)
    assert ids.is_id(type_id(given, "small"))
    assert type_id(given, "small") == type_id(given, "small") != type_id(given, "large")
    assert capacity_counter(given, "small") == f"capacity/{given.id}/small"
