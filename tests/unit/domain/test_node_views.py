"""Views of node records: exactly the fields of the API, nothing else."""

from __future__ import annotations

import json
from dataclasses import replace

from stockyard.domain.conditions import Condition
from stockyard.domain.declared_types import declared, kinds
from stockyard.domain.models.node_claims import NodeClaimView
from stockyard.domain.models.node_environments import NodeEnvironmentView
from stockyard.domain.models.node_providers import NodeProviderView
from stockyard.domain.models.node_types import NodeTypeView
from stockyard.domain.node_records import NodeClaim, NodeEnvironment, NodeProvider, Placement
from stockyard.domain.node_views import (
    node_claim_view,
    node_environment_view,
    node_provider_view,
    node_type_view,
)

TYPE = {"name": "small", "resources": {"cpu": "1500m", "memory": "4Gi"}, "maxCapacity": 3, "displayName": "Small"}
PROVIDER = NodeProvider(
    "npr_01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "p",
    "simulated",
    {"simulated": {"nodeTypes": [TYPE]}},
    "t1",
    "t2",
    properties={"team": "a,b", "any": "*", "kubernetes.io/os": "windows"},
)
CONDITION = Condition("Scheduled", "True", "Placed", "m", "t1")


def same(view, model):
    json.dumps(view)
    assert set(view) == {field.alias or name for name, field in model.model_fields.items()}
    return model.model_validate(view)


def test_a_provider():
    view = node_provider_view(PROVIDER, "acme")
    shown = same(view, NodeProviderView)
    assert (shown.spec, shown.node_types) == (PROVIDER.spec["simulated"], ["small"])
    assert [one.pointer for one in shown.warnings] == ["/properties/kubernetes.io~1os"]
    none = NodeProvider("npr_1", "p", "terraform", {"terraform": {}}, "t1", "t2")
    assert [one["pointer"] for one in node_provider_view(none, "acme")["warnings"]] == ["/spec"]


def test_a_shared_provider_is_shown_to_tenants_without_its_document():
    settings = {"terraform.vcluster.com/credentials": "ops/admin", "vcluster.com/node-type": "x", "team": "a"}
    shared = replace(PROVIDER, id="spr_1", properties=settings, annotations={"last-applied": "all of it"})
    ours, theirs = (same(node_provider_view(shared, who), NodeProviderView) for who in ("_platform", "acme"))
    assert (ours.shared, ours.spec, len(ours.warnings)) == (True, PROVIDER.spec["simulated"], 1)
    assert (ours.properties, ours.annotations) == (shared.properties, shared.annotations)
    assert (theirs.shared, theirs.spec, theirs.warnings, theirs.annotations) == (True, {}, [], {})
    assert theirs.properties == {"vcluster.com/node-type": "x", "team": "a"}
    assert theirs.node_types == ours.node_types == ["small"]


def test_a_shared_type_is_shown_to_tenants_without_what_configures_it():
    entry = {**TYPE, "properties": {"terraform.vcluster.com/zone": "z"}, "metadata": {"annotations": {"a": "b"}}}
    shared = replace(PROVIDER, id="spr_1", spec={"simulated": {"nodeTypes": [entry]}})
    (kind,), (one,) = kinds(shared, built=True), declared(shared)
    ours, theirs = (same(node_type_view(shared, kind, one, 0, who), NodeTypeView) for who in ("_platform", "acme"))
    assert ours.properties["terraform.vcluster.com/zone"] == "z"
    assert ours.annotations == {"a": "b"}
    assert theirs.annotations == {}
    assert set(ours.properties) - set(theirs.properties) == {"terraform.vcluster.com/zone"}
    keys = [{one["key"] for one in shown.requirements} for shown in (ours, theirs)]
    assert keys[0] - keys[1] == {"terraform.vcluster.com/zone"}


def shown_type(claimed, built=True):
    (kind,) = kinds(PROVIDER, built=built)
    return same(node_type_view(PROVIDER, kind, declared(PROVIDER)[0], claimed, "acme"), NodeTypeView)


def test_a_type_with_room_a_full_one_and_one_over_its_limit():
    shown = shown_type(1)
    assert (shown.name, shown.type, shown.display_name) == ("p.small", "small", "Small")
    assert shown.capacity.model_dump() == {"total": 3, "claimed": 1, "available": 2}
    assert [(one.type, one.status) for one in shown.conditions] == [("Synced", "True"), ("HasCapacity", "True")]
    assert shown.resources == {"cpu": "1500m", "memory": "4Gi", "pods": "110"}
    assert shown_type(3).conditions[1].reason == "Full"
    # a limit that was lowered leaves the nodes that are there
    assert shown_type(5).capacity.available == -2


def test_properties_are_texts_and_requirements():
    shown = shown_type(0)
    assert shown.properties["team"] == "a,b"
    assert shown.properties["topology.kubernetes.io/zone"] == "global"
    assert shown.properties["kubernetes.io/os"] == "linux"
    by_key = {one["key"]: one for one in shown.requirements}
    assert by_key["team"] == {"key": "team", "operator": "In", "values": ["a", "b"]}
    assert by_key["any"] == {"key": "any", "operator": "Exists"}


def test_a_type_that_cannot_be_had_says_so():
    (kind,) = kinds(PROVIDER, built=False)
    view = node_type_view(PROVIDER, kind, None, 0, "acme")
    assert (view["phase"], view["conditions"][0]["status"]) == ("Pending", "False")
    assert view["capacity"] == {"total": None, "claimed": None, "available": None}


def test_a_claim_before_and_after_it_was_placed():
    claim = NodeClaim(
        "ncl_1",
        "one",
        "t1",
        "t2",
        requirements=({"key": "a", "operator": "Gt", "values": ["1"]}, {"key": "b"}),
        conditions=(CONDITION,),
        resources={"cpu": "1"},
    )
    shown = same(node_claim_view(claim), NodeClaimView)
    assert [one.model_dump() for one in shown.requirements] == [
        {"key": "a", "operator": "Gt", "values": ["1"], "min_values": None},
        {"key": "b", "operator": "In", "values": [], "min_values": None},
    ]
    assert (shown.cluster_id, shown.placement) == (None, None)
    option = {"type": "p.small", "capacity_type": "spot", "zones": ["a"], "usd_hour": None, "cost": 28, "more": 1}
    placement = Placement("npr_1", "p.small", "spot", ("a",), 28, "t3", options=(option,), considered={"Full": 2})
    placed = same(node_claim_view(NodeClaim("ncl_1", "one", "t1", "t2", placement=placement)), NodeClaimView)
    assert placed.placement is not None
    assert (placed.placement.options[0].zones, placed.placement.considered) == (["a"], {"Full": 2})


def test_an_environment():
    one = NodeEnvironment("nev_1", "clu_1", "npr_1", "p", "t1", "t2", conditions=(CONDITION,), outputs={"vpc": "v"})
    assert same(node_environment_view(one), NodeEnvironmentView).provider == "p"
