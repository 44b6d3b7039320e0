"""Applying manifests creates, changes or leaves each resource; all manifests are checked before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import pytest

from stockyard.domain.manifests import CLUSTER, NAMESPACE, PROVIDER, claim_manifest, provider_manifest
from stockyard.domain.node_records import NodeClaimSpec
from stockyard.domain.records import NodeClaim, NodeProvider
from stockyard.errors import Forbidden, IllegalTransition, InUse, InvalidInput, QuotaExceeded
from stockyard.operations.engine.find import find_claim
from stockyard.operations.manifests import desired
from stockyard.operations.manifests.apply import apply_manifests, plan_manifests
from stockyard.operations.manifests.desired import read_desired
from stockyard.operations.node_claims.power import power_claim
from stockyard.operations.node_providers.visible import find_provider
from stockyard.operations.quotas.limits import set_quota
from stockyard.ports import Replace
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

VC, KA, OWN = "management.loft.sh/v1", "karpenter.sh/v1", "stockyard/v1"
SMALL: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.1}


@pytest.fixture
def nodes(world: World) -> Nodes:
    world.create("demo")
    return Nodes.of(world.registry, world.services, world.clock)


@pytest.fixture
def alone(world: World) -> Nodes:
    """A tenant without a cluster: a Karpenter's claims are of none then."""
    return Nodes.of(world.registry, world.services, world.clock)


def manifest(version: str, kind: str, name: str, spec: Any, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def lab(*types: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return manifest(OWN, "NodeProvider", "lab", {**spec, "simulated": {"nodeTypes": list(types or (SMALL,))}})


def claim(name: str = "one", **spec: Any) -> dict[str, Any]:
    return manifest(OWN, "NodeClaim", name, {"cluster": "demo", **spec})


def foreign(**spec: Any) -> dict[str, Any]:
    return manifest(VC, "NodeClaim", "one", {"vClusterRef": "v", "providerRef": "p", **spec}, namespace="p-x")


def apply(nodes: Nodes, *documents: Mapping[str, Any], admin: bool = True) -> list[dict[str, Any]]:
    desired = read_desired(nodes.services, documents, "user:ann", admin=admin)
    return apply_manifests(nodes.services, desired, "user:ann", "req-1")


def actions(results: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(result["name"], result["action"]) for result in results]


def faults(nodes: Nodes, *documents: Mapping[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidInput) as refused:
        read_desired(nodes.services, documents, "user:ann", admin=True)
    return {error.pointer: error.detail for error in refused.value.errors}


def count(nodes: Nodes) -> tuple[int, int]:
    store = nodes.services.store
    return len(store.list(NodeProvider).items), len(store.list(NodeClaim).items)


def test_apply_creates_providers_before_claims(nodes: Nodes) -> None:
    results = apply(nodes, claim(provider="lab", type="small"), lab())
    assert actions(results) == [("one", "created"), ("lab", "created")]
    stored = find_claim(nodes.services, "one")
    assert (results[0]["id"], results[0]["operation_id"]) == (stored.id, stored.operation_id)
    assert results[1]["operation_id"] is None
    assert stored.provider_ref == "lab"


def test_apply_of_same_manifests_changes_nothing(nodes: Nodes) -> None:
    manifests = [lab(displayName="L"), claim(type="lab.small"), foreign(typeRef="x", power={"state": "Off"}) | {}]
    manifests[2]["metadata"]["name"] = "two"
    apply(nodes, *manifests)
    before = find_provider(nodes.services, "lab"), find_claim(nodes.services, "one"), find_claim(nodes.services, "two")
    assert [result["action"] for result in apply(nodes, *manifests)] == ["unchanged"] * 3
    assert before == (
        find_provider(nodes.services, "lab"),
        find_claim(nodes.services, "one"),
        find_claim(nodes.services, "two"),
    )
    assert claim_manifest(before[1])["spec"] == manifests[1]["spec"]
    assert claim_manifest(before[2]) == {
        **manifests[2],
        "spec": {**manifests[2]["spec"], "controlPlane": False},
    }


def test_apply_leaves_placed_claim_unchanged(nodes: Nodes) -> None:
    apply(nodes, lab(), claim(name="free") | {"spec": {"cluster": "demo", "priority": 3}})
    stored = find_claim(nodes.services, "free")
    nodes.services.store.commit(Replace(replace(stored, type_ref="lab.small", version=stored.version + 1)))
    results = apply(nodes, claim(name="free", priority=3))
    assert [result["action"] for result in results] == ["unchanged"]
    document = claim_manifest(find_claim(nodes.services, "free"))
    assert document["spec"]["type"] == "lab.small"
    assert [result["action"] for result in apply(nodes, document)] == ["unchanged"]
    assert set(faults(nodes, claim(name="free", priority=3, type="lab.other"))) == {"/0/spec/type"}


def test_apply_of_changed_provider_raises_its_generation(nodes: Nodes) -> None:
    apply(nodes, lab())
    results = apply(nodes, lab({**SMALL, "cost": 5}, properties={"a": "b"}))
    assert actions(results) == [("lab", "changed")]
    stored = find_provider(nodes.services, "lab")
    assert (stored.version, stored.generation, stored.properties) == (2, 2, {"a": "b"})
    assert provider_manifest(stored)["spec"]["simulated"]["nodeTypes"] == [{**SMALL, "cost": 5}]


def test_apply_changes_labels_power_and_display_name_of_claim(nodes: Nodes) -> None:
    apply(nodes, foreign())
    changed = foreign(displayName="D", power={"state": "Off"})
    changed["metadata"] |= {"labels": {"a": "b"}, "annotations": {"c": "d"}, "namespace": "p-y"}
    assert actions(apply(nodes, changed)) == [("one", "changed")]
    stored = find_claim(nodes.services, "one")
    assert (stored.display_name, stored.power, stored.annotations) == ("D", "Off", {"c": "d"})
    assert stored.labels == {"a": "b", NAMESPACE: "p-y"}


@pytest.mark.parametrize(
    ("spec", "pointer"),
    [
        ({"vClusterRef": "w"}, "/0/spec/vClusterRef"),
        ({"providerRef": "q"}, "/0/spec/providerRef"),
        ({"typeRef": "p.a"}, "/0/spec/typeRef"),
        ({"controlPlane": True}, "/0/spec/controlPlane"),
        ({"desiredCapacity": {"cpu": "1"}}, "/0/spec/desiredCapacity"),
        ({"requirements": [{"key": "a", "operator": "Exists"}]}, "/0/spec/requirements"),
        ({"taints": [{"key": "a", "effect": "NoExecute"}]}, "/0/spec/taints"),
        ({"kubeletArgs": {"v": "1"}}, "/0/spec/kubeletArgs"),
        ({"properties": {"a": "b"}}, "/0/spec/properties"),
    ],
)
def test_apply_refuses_changes_of_fixed_claim_fields(nodes: Nodes, spec: dict[str, Any], pointer: str) -> None:
    apply(nodes, foreign())
    assert faults(nodes, foreign(**spec)) == {pointer: "cannot be changed after creation"}


def test_apply_refuses_other_form_or_cluster_of_claim(nodes: Nodes) -> None:
    apply(nodes, foreign())
    assert set(faults(nodes, claim())) == {"/0/apiVersion"}
    spec = {
        "requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}],
        "nodeClassRef": {"group": "g", "kind": "K", "name": "n"},
    }
    apply(nodes, manifest(KA, "NodeClaim", "k", spec, labels={CLUSTER: "demo", PROVIDER: "p"}))
    other = manifest(KA, "NodeClaim", "k", spec, labels={CLUSTER: "other", PROVIDER: "p"})
    assert set(faults(nodes, other)) == {"/0/metadata/labels"}
    assert set(faults(nodes, manifest(KA, "NodeClaim", "k", {**spec, "expireAfter": "1h"}))) == {
        "/0/spec/expireAfter",
        "/0/metadata/labels",
    }


def test_a_karpenter_claim_names_its_cluster_only_where_there_are_several(nodes: Nodes, world: World) -> None:
    spec = {"requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}
    sent = manifest(KA, "NodeClaim", "k", {**spec, "terminationGracePeriod": "30s", "expireAfter": "1h"})
    (applied,) = apply(nodes, sent)
    assert [warning["pointer"] for warning in applied["warnings"]] == ["/0/spec/expireAfter", "/0"]
    assert applied["warnings"][1]["detail"] == "Cluster demo is preparing."
    claim = find_claim(nodes.services, "k")
    assert (claim.cluster_ref, claim.termination_grace_period) == ("demo", "30s")
    world.create("second")
    assert actions(apply(nodes, sent)) == [("k", "unchanged")]
    assert set(faults(nodes, manifest(KA, "NodeClaim", "l", spec))) == {"/0/metadata/labels/stockyard.dev~1cluster"}


def test_apply_refuses_other_kind_of_provider(nodes: Nodes) -> None:
    apply(nodes, lab())
    terraform = manifest(VC, "NodeProvider", "lab", {"terraform": {"nodeTemplate": {"inline": "x"}}})
    assert set(faults(nodes, terraform)) == {"/0/spec/terraform"}


def test_references_must_exist_for_own_claims_and_may_be_missing_for_foreign_ones(nodes: Nodes) -> None:
    apply(nodes, lab())
    by_pointer = faults(
        nodes,
        claim("a", cluster="nowhere"),
        claim("b", provider="nobody"),
        claim("c", type="lab.huge"),
        claim("d", provider="new", type="huge"),
        claim("e", provider="new", cluster="nowhere"),
        lab() | {"metadata": {"name": "new"}},
    )
    assert set(by_pointer) == {"/0/spec/cluster", "/1/spec/provider", "/2/spec/type", "/3/spec/type", "/4/spec/cluster"}
    assert count(nodes) == (1, 0)
    assert actions(apply(nodes, foreign())) == [("one", "created")]
    waiting = find_claim(nodes.services, "one")
    assert (waiting.phase, waiting.cluster_id) == ("Pending", "")


def test_one_faulty_manifest_stores_none(nodes: Nodes) -> None:
    ec2 = manifest(OWN, "NodeProvider", "aws", {"ec2": {"cloudAccount": 9}})
    assert set(faults(nodes, lab(), ec2, claim())) == {"/1/spec/ec2/cloudAccount"}
    assert count(nodes) == (0, 0)


def test_apply_of_provider_requires_admin(nodes: Nodes) -> None:
    with pytest.raises(Forbidden, match="stockyard-admin"):
        apply(nodes, lab(), claim(), admin=False)
    assert count(nodes) == (0, 0)
    assert actions(apply(nodes, claim(), admin=False)) == [("one", "created")]


def test_quota_counts_all_manifests_together(nodes: Nodes) -> None:
    set_quota(nodes.services, "nodeclaims", 1, 0)
    with pytest.raises(QuotaExceeded, match="project nodeclaims limit of 1"):
        apply(nodes, claim("a"), claim("b"))
    set_quota(nodes.services, "node_providers", 0, 0)
    with pytest.raises(QuotaExceeded, match="node_providers"):
        apply(nodes, lab())
    assert count(nodes) == (0, 0)
    assert actions(apply(nodes, claim("a"))) == [("a", "created")]


def test_apply_refuses_removal_of_used_type_and_change_of_deleted_claim(nodes: Nodes) -> None:
    apply(nodes, lab(), foreign(providerRef="lab", vClusterRef=None))
    nodes.schedule()
    placed = find_claim(nodes.services, "one")
    assert placed.type_ref == "lab.small"
    with pytest.raises(InUse, match="one"):
        apply(nodes, lab({**SMALL, "name": "other"}))
    nodes.delete(placed)
    with pytest.raises(IllegalTransition, match="being deleted"):
        apply(nodes, foreign(providerRef="lab", vClusterRef=None))


def test_apply_refuses_record_changed_since_read(nodes: Nodes) -> None:
    apply(nodes, lab())
    desired = read_desired(nodes.services, [lab(displayName="mine")], "user:ann", admin=True)
    apply(nodes, lab(displayName="theirs"))
    with pytest.raises(IllegalTransition, match="Apply the manifests again"):
        apply_manifests(nodes.services, desired, "user:ann", "req-2")
    assert find_provider(nodes.services, "lab").display_name == "theirs"


def test_warnings_name_their_document(nodes: Nodes) -> None:
    bare = manifest(VC, "NodeProvider", "tf", {"terraform": {"nodeTemplate": {"inline": "x"}}})
    results = apply(nodes, lab(properties={"kubernetes.io/os": "windows"}), bare)
    assert [[warning["pointer"] for warning in result["warnings"]] for result in results] == [
        ["/0/spec/properties/kubernetes.io~1os"],
        ["/1/spec/terraform"],
    ]


def test_plan_lists_creations_and_changes_and_writes_nothing(nodes: Nodes) -> None:
    apply(nodes, lab(), foreign(providerRef="lab", vClusterRef=None))
    documents = [
        lab(displayName="new"),
        foreign(providerRef="lab", vClusterRef=None, displayName="two"),
        manifest(VC, "NodeClaim", "three", {"providerRef": "lab"}),
        manifest(VC, "NodeClaim", "four", {"providerRef": "later"}),
        manifest(OWN, "NodeProvider", "later", {"simulated": {}}),
    ]
    before = count(nodes)
    plan = plan_manifests(nodes.services, read_desired(nodes.services, documents, "user:ann", admin=True))
    assert count(nodes) == before
    assert [(creation["kind"], creation["name"]) for creation in plan["creates"]] == [
        ("node-claim", "three"),
        ("node-claim", "four"),
        ("node-provider", "later"),
    ]
    assert plan["changes"] == [
        {
            "kind": "node-provider",
            "name": "lab",
            "pointer": "/0/spec/displayName",
            "field": "displayName",
            "before": "",
            "after": "new",
        },
        {
            "kind": "node-claim",
            "name": "one",
            "pointer": "/1/spec/displayName",
            "field": "displayName",
            "before": "",
            "after": "two",
        },
    ]
    assert (plan["price"]["hour"], plan["price"]["month"], plan["price"]["complete"]) == (0.1, 73.0, True)
    assert [warning["pointer"] for warning in plan["warnings"]] == ["/4/spec/simulated"]


def test_manifest_switches_machine_only_if_it_names_power(nodes: Nodes) -> None:
    without_power = manifest(VC, "NodeClaim", "one", {"providerRef": "lab"})
    apply(nodes, lab(), without_power)
    nodes.schedule()
    nodes.relay()
    stored = find_claim(nodes.services, "one")
    assert stored.phase == "Available"
    power_claim(nodes.services, stored.id, "Off", "user:ann")
    busy = find_claim(nodes.services, "one")
    changed = lab({**SMALL, "maxCapacity": 9})
    on = {**without_power, "spec": {**without_power["spec"], "power": {"state": "On"}}}
    with pytest.raises(IllegalTransition, match="is being switched"):
        apply(nodes, changed, on)
    assert find_provider(nodes.services, "lab").version == 1, "nothing is stored when one of them cannot be"
    assert busy.power_wish == "Off"
    nodes.relay()
    assert actions(apply(nodes, lab(), without_power)) == [("lab", "unchanged"), ("one", "unchanged")]
    assert find_claim(nodes.services, "one").power == "Off"
    (_, result) = apply(nodes, lab(), on)
    assert (result["action"], result["operation_id"][:3]) == ("changed", "op_")
    nodes.relay()
    assert find_claim(nodes.services, "one").power == "On"
    assert actions(apply(nodes, on)) == [("one", "unchanged")]


def test_claim_of_karpenters_form_shows_karpenters_conditions(alone: Nodes) -> None:
    node_class = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    sent = manifest(
        KA,
        "NodeClaim",
        "one",
        {
            "requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}],
            "nodeClassRef": node_class,
        },
    )

    def status() -> dict[str, Any]:
        status_shown = claim_manifest(find_claim(alone.services, "one"))["status"]
        return {condition["type"]: condition["status"] for condition in status_shown.pop("conditions")} | status_shown

    apply(alone, lab(), sent)
    assert status() == {"Launched": "Unknown", "Registered": "Unknown", "Initialized": "Unknown"}
    alone.schedule()
    alone.relay()
    claim = find_claim(alone.services, "one")
    assert status() == {"Launched": "True", "Registered": "True", "Initialized": "True", "nodeName": claim.node_name}
    applied = apply(alone, claim_manifest(claim))
    assert actions(applied) == [("one", "unchanged")]


def test_karpenter_claim_is_placed_and_returned_unchanged(alone: Nodes) -> None:
    """Karpenter names each claim after its pool, and adds pool and node class to the requirements."""
    requirements = [
        {"key": "karpenter.sh/nodepool", "operator": "In", "values": ["pool.a"]},
        {"key": "karpenter.k8s.aws/ec2nodeclass", "operator": "In", "values": ["default"]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["small", *map(str, range(599))]},
    ]
    node_class = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    spec = {"requirements": requirements, "nodeClassRef": node_class}
    labels = {"karpenter.sh/nodepool": "pool.a"}
    sent = manifest(KA, "NodeClaim", "pool.a-x7b2k", spec, generateName="pool.a-", labels=labels)
    apply(alone, lab(), sent)
    alone.schedule()
    placed = find_claim(alone.services, "pool.a-x7b2k")
    assert placed.type_ref == "lab.small", placed.message
    assert claim_manifest(placed)["spec"]["requirements"] == requirements
    other_pool = {**spec, "requirements": [{"key": "example.com/pool", "operator": "In", "values": ["a"]}]}
    apply(alone, manifest(KA, "NodeClaim", "other", other_pool))
    alone.schedule()
    assert find_claim(alone.services, "other").placement is None


def test_every_field_of_a_claim_is_compared_when_it_is_applied_again() -> None:
    # only vCluster's form says control_plane; it stands in the rest of its document. No form says max_price.
    compared_apart = {"requirements", "form", "document", "control_plane", "max_price"}
    compared = {*desired._CHANGEABLE, *desired._FIXED["stockyard"], *desired._FIXED_EVERYWHERE, *compared_apart}
    assert {field.name for field in fields(NodeClaimSpec)} - compared == set()


def test_a_node_cannot_become_a_control_plane(nodes: Nodes) -> None:
    apply(nodes, foreign(controlPlane=False))
    assert faults(nodes, foreign(controlPlane=True)) == {"/0/spec/controlPlane": "cannot be changed after creation"}


def test_create_only_refuses_all_that_is_there(nodes: Nodes) -> None:
    apply(nodes, lab(), claim(type="lab.small"))
    before = count(nodes)
    documents = [lab(), manifest(OWN, "NodeProvider", "new", {"simulated": {}}), claim(type="lab.small")]
    with pytest.raises(InUse) as refused:
        read_desired(nodes.services, documents, "user:ann", admin=True, create_only=True)
    assert refused.value.detail == "There is a node provider called lab. There is a node claim called one."
    documents_told = [(fault.pointer, fault.index, fault.kind, fault.name) for fault in refused.value.errors]
    assert documents_told == [
        ("/0/metadata/name", 0, "NodeProvider", "lab"),
        ("/2/metadata/name", 2, "NodeClaim", "one"),
    ]
    assert count(nodes) == before
    fresh = read_desired(nodes.services, documents[1:2], "user:ann", admin=True, create_only=True)
    assert actions(apply_manifests(nodes.services, fresh, "user:ann", "req-1")) == [("new", "created")]


def test_each_fault_names_its_document(nodes: Nodes) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_desired(nodes.services, [lab(), claim(colour="red")], "user:ann", admin=True)
    (fault,) = refused.value.errors
    assert (fault.index, fault.kind, fault.name) == (1, "NodeClaim", "one")
    assert refused.value.detail == "NodeClaim one: /spec/colour: unknown field"


def test_a_claim_of_no_cluster_is_told_how_to_name_one(alone: Nodes) -> None:
    apply(alone, lab({**SMALL, "maxCapacity": 0}))
    spec = {"requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}
    sent = manifest(KA, "NodeClaim", "k", spec, labels={"stockyard.io/cluster": "demo"})
    plan = plan_manifests(alone.services, read_desired(alone.services, [sent], "user:ann", admin=True))
    text = "No cluster is named: set the label stockyard.dev/cluster or --cluster."
    assert plan["verdict"] == text
    assert [(group["rule"], group["types"]) for group in plan["groups"]] == [("Full", ["lab.small"])]
    (applied,) = apply(alone, sent)
    assert applied["warnings"] == plan["warnings"]
    assert [(warning["pointer"], warning["detail"]) for warning in applied["warnings"]] == [
        (
            "/0/metadata/labels/stockyard.io~1cluster",
            "Stockyard knows no such label; did you mean stockyard.dev/cluster?",
        ),
        ("/0", text),
    ]
    alone.schedule()
    assert find_claim(alone.services, "k").message.startswith(text)


def test_of_several_clusters_the_label_that_was_meant_is_named(nodes: Nodes, world: World) -> None:
    world.create("second")
    spec = {"requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}
    sent = manifest(KA, "NodeClaim", "k", spec, labels={"stockyard.io/cluster": "demo"})
    assert faults(nodes, sent) == {
        "/0/metadata/labels/stockyard.dev~1cluster": "no cluster is named: set this label or --cluster; the tenant has"
        " 2 clusters; stockyard.io/cluster means nothing; did you mean stockyard.dev/cluster?"
    }


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"name": "a", "cloud_account_id": 1, "cluster_type": "k8s"}, "cluster create"),
        ({"name": "a", "kind": "simulated", "spec": {}}, "provider create"),
        ({"name": "a", "kind": "static", "quantity": 1}, "pool create"),
        ({"cluster": "demo", "resources": {}}, "claim create"),
    ],
)
def test_the_body_of_another_request_is_sent_where_it_belongs(
    nodes: Nodes, document: dict[str, Any], words: str
) -> None:
    (detail,) = faults(nodes, document).values()
    assert f"stockyard {words} -f" in detail


def test_a_kind_that_was_misspelt_is_told(nodes: Nodes) -> None:
    (detail,) = faults(nodes, manifest(OWN, "NodeProvidr", "a", {})).values()
    assert detail.endswith("did you mean NodeProvider of stockyard/v1?")


@pytest.mark.parametrize(
    ("kind", "block"),
    [
        ("bcm", {"secretRef": {"namespace": "a", "name": "b"}, "endpoint": "https://bcm.example"}),
        ("terraform", {"nodeTemplate": {"inline": "x"}}),
        ("kubeVirt", {"clusterRef": {"cluster": "a", "namespace": "b"}}),
        ("metal3", {"clusterRef": {"cluster": "a", "namespace": "b"}}),
    ],
)
def test_a_kind_that_is_not_built_yet_says_so_before_and_after(nodes: Nodes, kind: str, block: dict[str, Any]) -> None:
    documents = [manifest(VC, "NodeProvider", "later", {kind: block})]
    planned = plan_manifests(nodes.services, read_desired(nodes.services, documents, "user:ann", admin=True))
    (applied,) = apply(nodes, *documents)
    assert applied["warnings"] == planned["warnings"]
    assert f"Providers of kind {kind} are not built yet" in applied["warnings"][0]["detail"]
    stored = find_provider(nodes.services, "later")
    assert (stored.phase, stored.reason) == ("Pending", "ProviderNotAvailable")
    assert stored.message.startswith(f"Providers of kind {kind} are not built yet")


def test_a_changed_price_is_one_change_with_its_name(nodes: Nodes) -> None:
    large = {"name": "large", "resources": {"cpu": "8", "memory": "32Gi"}, "usdPerHour": 1}
    apply(nodes, lab(SMALL, large))
    changed = read_desired(
        nodes.services, [lab({**large, "usdPerHour": 1.0}, {**SMALL, "usdPerHour": 0.2})], "user:ann", admin=True
    )
    assert plan_manifests(nodes.services, changed)["changes"] == [
        {
            "kind": "node-provider",
            "name": "lab",
            "pointer": "/0/spec/simulated/nodeTypes/1/usdPerHour",
            "field": "nodeTypes[small].usdPerHour",
            "before": 0.1,
            "after": 0.2,
        }
    ]
