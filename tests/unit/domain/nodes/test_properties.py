"""Properties of a claim's node, and so its labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.nodes.declared_types import node_types_of
from stockyard.domain.nodes.properties import node_labels, select_values
from stockyard.domain.records import NodeClaim, NodeProvider, Placement

NOW = "2026-01-01T00:00:00.000Z"
BUILT_IN = {
    "karpenter.sh/capacity-type": "spot",
    "kubernetes.io/os": "linux",
    "node.kubernetes.io/instance-type": "lab.small",
    "topology.kubernetes.io/zone": "b",
    "vcluster.com/node-type": "lab.small",
}
ENTRY: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "zones": ["a", "b"]}
PLACED = Placement("npr_1", "lab.small", "spot", ("b",), 28, NOW)


def claim(*requirements: dict[str, Any], **fields: Any) -> NodeClaim:
    return NodeClaim("ncl_1", "one", NOW, NOW, requirements=requirements, **fields)


def labels(node_claim: NodeClaim, of_type: dict[str, str], of_provider: dict[str, str] | None = None) -> dict[str, str]:
    block = {"simulated": {"nodeTypes": [{**ENTRY, "properties": of_type}]}}
    provider = NodeProvider("npr_1", "lab", "simulated", block, NOW, NOW, properties=of_provider or {})
    (node_type,) = node_types_of(provider, built=True)
    all_labels = node_labels(node_type, node_claim, PLACED)
    return {key: value for key, value in all_labels.items() if BUILT_IN.get(key) != value}


def test_built_in_ones_say_what_was_placed() -> None:
    assert labels(claim(), {}) == {}
    assert node_labels(None, claim(), PLACED) == {
        key: BUILT_IN[key]
        for key in ("karpenter.sh/capacity-type", "topology.kubernetes.io/zone", "vcluster.com/node-type")
    }
    anywhere = replace(PLACED, zones=("*",))
    assert "topology.kubernetes.io/zone" not in node_labels(None, claim(), anywhere)
    named = claim(properties={"topology.kubernetes.io/zone": "a"})
    for node_claim in (claim(), named):
        assert "topology.kubernetes.io/zone" not in node_labels(None, node_claim, replace(PLACED, zones=("a", "b")))


def test_the_claims_property_wins_over_the_types_and_that_over_the_providers() -> None:
    of_provider = {"a": "provider", "b": "provider", "c": "provider"}
    of_type = {"b": "type", "c": "type"}
    assert labels(claim(properties={"c": "claim"}), of_type, of_provider) == {
        "a": "provider",
        "b": "type",
        "c": "claim",
    }


def test_a_claim_cannot_rename_what_stockyard_sets() -> None:
    assert labels(claim(properties={"vcluster.com/node-type": "x", "topology.kubernetes.io/zone": "a"}), {}) == {}


@pytest.mark.parametrize("key", ["vcluster.com/node-type", "node.kubernetes.io/instance-type"])
@pytest.mark.parametrize("name", ["small", "lab.small"])
def test_the_names_of_the_type_are_there_however_the_claim_spells_them(key: str, name: str) -> None:
    provider = NodeProvider("npr_1", "lab", "simulated", {"simulated": {"nodeTypes": [ENTRY]}}, NOW, NOW)
    (node_type,) = node_types_of(provider, built=True)
    node_claim = claim({"key": key, "operator": "In", "values": ["large", name]})
    assert node_labels(node_type, node_claim, PLACED) == BUILT_IN


@pytest.mark.parametrize(
    ("requirement", "value"),
    [
        (None, "gold"),
        ({"key": "tier", "operator": "In", "values": ["iron", "silver"]}, "silver"),
        ({"key": "tier", "operator": "NotIn", "values": ["gold"]}, "silver"),
        ({"key": "tier", "operator": "Exists"}, "gold"),
    ],
)
def test_of_a_list_the_node_has_the_value_that_the_claim_chose(requirement: Any, value: str) -> None:
    node_claim = claim(*([requirement] if requirement else []))
    assert labels(node_claim, {"tier": "gold,silver,bronze"}) == {"tier": value}


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (None, {}),
        ({"key": "tier", "operator": "In", "values": ["b", "a"]}, {"tier": "a"}),
        ({"key": "tier", "operator": "Exists"}, {}),
        ({"key": "tier", "operator": "NotIn", "values": ["a"]}, {}),
    ],
)
def test_of_any_value_the_node_has_the_one_that_the_claim_names(requirement: Any, expected: dict[str, str]) -> None:
    assert labels(claim(*([requirement] if requirement else [])), {"tier": "*"}) == expected


def test_texts_that_are_no_labels_become_none() -> None:
    settings = {"vcluster.com/image": "an image: x", "kubevirt.vcluster.com/url": "https://x/y"}
    assert labels(claim(properties={"vcluster.com/more": "no label: x"}), settings) == {}


def test_a_name_that_is_too_long_for_a_label_becomes_none() -> None:
    long = replace(PLACED, type=f"{'p' * 40}.{'t' * 40}")
    assert set(node_labels(None, claim(), long)) == {"karpenter.sh/capacity-type", "topology.kubernetes.io/zone"}


def test_what_was_chosen_before_stays_while_it_is_permitted() -> None:
    permitted = {"tier": ("gold", "silver"), "any": ("*",)}
    assert select_values(permitted, claim(), {"tier": "silver", "any": "x"}) == {"tier": "silver", "any": "x"}
    assert select_values(permitted, claim(), {"tier": "iron"}) == {"tier": "gold"}
    wants_gold = claim({"key": "tier", "values": ["gold"]}, {"key": "any", "operator": "NotIn", "values": ["x"]})
    assert select_values(permitted, wants_gold, {"tier": "silver", "any": "x"}) == {"tier": "gold"}
