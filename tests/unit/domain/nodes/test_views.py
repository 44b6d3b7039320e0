"""Views of node records: exactly the fields of the API, nothing else."""

from __future__ import annotations

import json
from dataclasses import replace

from stockyard.domain.models.nodes.node_claims import NodeClaimView
from stockyard.domain.models.nodes.node_environments import NodeEnvironmentView
from stockyard.domain.models.nodes.node_providers import NodeProviderView
from stockyard.domain.models.nodes.node_types import NodeTypeView
from stockyard.domain.nodes.declared_types import declared, node_types_of
from stockyard.domain.nodes.records import NodeClaim, NodeEnvironment, NodeProvider, Placement, PlacementOption
from stockyard.domain.nodes.views import (
    Capacity,
    node_claim_view,
    node_environment_view,
    node_provider_view,
    node_type_view,
)
from stockyard.domain.values.conditions import Condition

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


def validated(view, model):
    json.dumps(view)
    assert set(view) == {field.alias or name for name, field in model.model_fields.items()}
    return model.model_validate(view)


def test_a_provider():
    view = node_provider_view(PROVIDER, "acme")
    provider_view = validated(view, NodeProviderView)
    assert (provider_view.spec, provider_view.node_types) == (PROVIDER.spec["simulated"], ["small"])
    assert [warning.pointer for warning in provider_view.warnings] == ["/properties/kubernetes.io~1os"]
    none = NodeProvider("npr_1", "p", "terraform", {"terraform": {}}, "t1", "t2")
    assert [warning["pointer"] for warning in node_provider_view(none, "acme")["warnings"]] == ["/spec"]


def test_a_shared_provider_is_shown_to_tenants_without_its_document():
    settings = {"terraform.vcluster.com/credentials": "ops/admin", "vcluster.com/node-type": "x", "team": "a"}
    shared = replace(PROVIDER, id="spr_1", properties=settings, annotations={"last-applied": "all of it"})
    platform_view, tenant_view = (
        validated(node_provider_view(shared, viewer), NodeProviderView) for viewer in ("_platform", "acme")
    )
    assert (platform_view.shared, platform_view.spec, len(platform_view.warnings)) == (
        True,
        PROVIDER.spec["simulated"],
        1,
    )
    assert (platform_view.properties, platform_view.annotations) == (shared.properties, shared.annotations)
    assert (tenant_view.shared, tenant_view.spec, tenant_view.warnings, tenant_view.annotations) == (True, {}, [], {})
    assert tenant_view.properties == {"vcluster.com/node-type": "x", "team": "a"}
    assert tenant_view.node_types == platform_view.node_types == ["small"]


def test_a_shared_type_is_shown_to_tenants_without_what_configures_it():
    entry = {**TYPE, "properties": {"terraform.vcluster.com/zone": "z"}, "metadata": {"annotations": {"a": "b"}}}
    shared = replace(PROVIDER, id="spr_1", spec={"simulated": {"nodeTypes": [entry]}})
    (node_type,), (declared_type,) = node_types_of(shared, built=True), declared(shared)
    platform_view, tenant_view = (
        validated(node_type_view(shared, node_type, declared_type, Capacity(3, 0), viewer), NodeTypeView)
        for viewer in ("_platform", "acme")
    )
    assert platform_view.properties["terraform.vcluster.com/zone"] == "z"
    assert platform_view.annotations == {"a": "b"}
    assert tenant_view.annotations == {}
    assert set(platform_view.properties) - set(tenant_view.properties) == {"terraform.vcluster.com/zone"}
    keys = [
        {requirement["key"] for requirement in type_view.requirements} for type_view in (platform_view, tenant_view)
    ]
    assert keys[0] - keys[1] == {"terraform.vcluster.com/zone"}


def shown_type(claimed, built=True):
    (node_type,), capacity = node_types_of(PROVIDER, built=built), Capacity(3, claimed)
    return validated(node_type_view(PROVIDER, node_type, declared(PROVIDER)[0], capacity, "acme"), NodeTypeView)


def test_a_type_with_room_a_full_one_and_one_over_its_limit():
    type_view = shown_type(1)
    assert (type_view.name, type_view.type, type_view.display_name) == ("p.small", "small", "Small")
    assert type_view.capacity.model_dump() == {"total": 3, "claimed": 1, "available": 2, "counted_at": None}
    assert [(condition.type, condition.status) for condition in type_view.conditions] == [
        ("Synced", "True"),
        ("HasCapacity", "True"),
    ]
    assert type_view.resources == {"cpu": "1500m", "memory": "4Gi", "pods": "110"}
    assert shown_type(3).conditions[1].reason == "Full"
    # a limit that was lowered leaves the nodes that are there
    assert shown_type(5).capacity.available == -2


def test_properties_are_texts_and_requirements():
    type_view = shown_type(0)
    assert type_view.properties["team"] == "a,b"
    assert type_view.properties["topology.kubernetes.io/zone"] == "global"
    assert type_view.properties["kubernetes.io/os"] == "linux"
    by_key = {requirement["key"]: requirement for requirement in type_view.requirements}
    assert by_key["team"] == {"key": "team", "operator": "In", "values": ["a", "b"]}
    assert by_key["any"] == {"key": "any", "operator": "Exists"}


def test_a_type_that_cannot_be_had_says_so():
    (node_type,) = node_types_of(PROVIDER, built=False)
    view = node_type_view(PROVIDER, node_type, None, Capacity(None, 0), "acme")
    assert (view["phase"], view["conditions"][0]["status"]) == ("Pending", "False")
    assert view["capacity"] == {"total": None, "claimed": None, "available": None, "counted_at": None}


def test_a_type_of_which_no_node_can_be_made_yet_says_why():
    (node_type,) = node_types_of(PROVIDER, built=True)
    view = validated(
        node_type_view(PROVIDER, replace(node_type, unserved="no image"), None, Capacity(None, 0), "acme"),
        NodeTypeView,
    )
    assert (view.phase, view.reason, view.message) == (
        "Unavailable",
        "NotServed",
        "No node can be made of it yet: no image.",
    )
    assert view.conditions[0].status == "True"


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
    claim_view = validated(node_claim_view(claim), NodeClaimView)
    assert [requirement.model_dump() for requirement in claim_view.requirements] == [
        {"key": "a", "operator": "Gt", "values": ["1"], "min_values": None},
        {"key": "b", "operator": "In", "values": [], "min_values": None},
    ]
    assert (claim_view.cluster_id, claim_view.placement) == (None, None)
    option = PlacementOption("p.small", "spot", ("a",), usd_hour=None, cost=28)
    placement = Placement("npr_1", "p.small", "spot", ("a",), 28, "t3", options=(option,), considered={"Full": 2})
    placed = validated(node_claim_view(NodeClaim("ncl_1", "one", "t1", "t2", placement=placement)), NodeClaimView)
    pooled = NodeClaim("ncl_2", "burst-1", "t1", "t2", pool="burst", expire_after="720h")
    assert (placed.expire_after, node_claim_view(pooled)["expire_after"]) == ("", "720h")
    assert placed.placement is not None
    assert (placed.placement.options[0].zones, placed.placement.considered) == (["a"], {"Full": 2})


def test_an_environment():
    environment = NodeEnvironment(
        "nev_1", "clu_1", "npr_1", "p", "t1", "t2", conditions=(CONDITION,), outputs={"vpc": "v"}
    )
    assert validated(node_environment_view(environment), NodeEnvironmentView).provider == "p"
