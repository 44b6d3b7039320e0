"""Faults in words: the field that was meant, and no word of the library."""

from __future__ import annotations

import re

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.clusters import ClusterCreate
from stockyard.domain.models.manifests.manifests import provider_manifest
from stockyard.domain.models.nodes.node_claims import NodeClaimCreate
from stockyard.domain.models.pools.own_pools import read_own_pool
from stockyard.domain.models.pools.pools import PoolPatch
from stockyard.errors import InvalidInput

LIBRARY = re.compile(r"[Ii]nput should|[Vv]alue error|[Ee]xtra inputs|\bstr\b|\blist\[|pydantic|\bNone\b")
NAMED = {"name": "one", "cloud_account_id": 1, "cluster_type": "k8s", "settings": {"key_pair": "k"}}
CLUSTER = {**NAMED, "description": "the first"}


def faults(call, *arguments, **more):
    with pytest.raises(InvalidInput) as caught:
        call(*arguments, **more)
    details = {fault.pointer: fault.detail for fault in caught.value.errors}
    assert not [text for text in details.values() if LIBRARY.search(text)]
    return details


def lab(node_type=None, **spec):
    types = [{"name": "small", "resources": {"cpu": "1", "memory": "1Gi"}, **(node_type or {})}]
    document = {
        "apiVersion": "stockyard/v1",
        "kind": "NodeProvider",
        "metadata": {"name": "lab"},
        "spec": {"simulated": {"nodeTypes": types}, **spec},
    }
    return provider_manifest(own=True), document


@pytest.mark.parametrize(
    "mark", ["\x00", "\x1b[2J", "\x07", "\r", "\x7f", "\x9b", "\u200b", "\u202e", "\u2069", "\ufeff"]
)
def test_texts_for_people_have_nothing_that_steers_a_terminal(mark):
    text = "must be text without control characters but tabs and line ends, and without marks of direction"
    assert faults(read, ClusterCreate, {**CLUSTER, "description": f"a{mark}b"})["/description"] == text
    model, document = lab(displayName=f"a{mark}b")
    assert list(faults(read, model, document, at=(0,)).values()) == [text]


def test_texts_for_people_have_any_other_character():
    text = "line\n\ttab, é, 한국어, \U0001f468\u200d\U0001f469"
    assert read(ClusterCreate, {**CLUSTER, "description": text}).description == text


def test_an_unknown_field_comes_with_the_one_that_was_meant():
    assert faults(read, *lab({"maxCapactiy": 3}), at=(0,)) == {
        "/0/spec/simulated/nodeTypes/0/maxCapactiy": "unknown field; did you mean maxCapacity?"
    }
    assert faults(read, *lab(display_name="x")) == {"/spec/display_name": "unknown field; did you mean displayName?"}
    assert faults(read, *lab(colour="red")) == {"/spec/colour": "unknown field"}
    settings = {"key_pair": "k", "regionName": "us-east-1", "bastion": {"enabeld": False}}
    assert faults(read, ClusterCreate, {**NAMED, "descripton": "", "settings": settings}) == {
        "/description": "this field is required",
        "/descripton": "unknown field; did you mean description?",
        "/settings/regionName": "unknown field; did you mean region_name?",
        "/settings/bastion/enabeld": "unknown field; did you mean enabled?",
    }
    pool = {"kind": "Pool", "apiVersion": "stockyard/v1", "metadata": {"name": "a"}, "spec": {"cluster": "d"}}
    assert faults(read_own_pool, {**pool, "spec": {"cluster": "d", "quanttiy": 1}}, at=(3,)) == {
        "/3/spec/quanttiy": "unknown field; did you mean quantity?"
    }


def test_the_name_of_the_same_setting_elsewhere_is_told():
    details = faults(read, ClusterCreate, {**CLUSTER, "settings": {"key_pair": "k", "node_groups": []}})
    assert details == {
        "/settings/node_groups": "is a field of clusters made by the driver eks; here it is autoscaler_node_groups"
    }


@pytest.mark.parametrize(
    ("fields", "pointer", "words"),
    [
        ({"priority": 101}, "/priority", "must be at most 100"),
        ({"priority": -101}, "/priority", "must be at least -100"),
        ({"priority": "1"}, "/priority", "must be a whole number"),
        ({"power": "on"}, "/power", "must be 'On' or 'Off'"),
        ({"max_price": {"usd_hour": 0}}, "/max_price/usd_hour", "must be more than 0"),
        ({"max_price": {"usd_hour": "1"}}, "/max_price/usd_hour", "must be a number"),
        ({"requirements": {}}, "/requirements", "must be a list"),
        ({"cluster": ""}, "/cluster", "must have at least 1 character"),
    ],
)
def test_bounds_and_choices_are_told_plainly(fields, pointer, words):
    assert faults(read, NodeClaimCreate, {"cluster": "demo", **fields})[pointer] == words


def test_a_value_of_none_of_several_types_has_one_fault_at_its_field():
    whole, figure = "must be a whole number", "must be a number of nodes, or a percentage from 0% to 100%"
    strategy = {"type": "custom", "max_surge": [], "max_unavailable": "101%"}
    assert faults(read, PoolPatch, {"update_strategy": strategy, "limits": {"usd_month": True}}) == {
        "/update_strategy/max_surge": f"{whole} or a string",
        "/update_strategy/max_unavailable": figure,
        "/limits/usd_month": "must be a string or a whole number or a number",
    }
    # Keys of people that are called as types are.
    assert faults(read, PoolPatch, {"labels": {"str": 1, "int": "-"}}).keys() == {"/labels/str", "/labels/int"}
