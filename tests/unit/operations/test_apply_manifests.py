"""Applying manifests: created, changed or unchanged; everything is checked before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.manifests import CLUSTER, NAMESPACE, PROVIDER, claim_manifest, provider_manifest
from stockyard.domain.records import NodeClaim, NodeProvider
from stockyard.errors import Forbidden, IllegalTransition, InUse, InvalidInput, QuotaExceeded
from stockyard.operations.apply_manifests import apply_manifests, plan_manifests
from stockyard.operations.claims import find_claim
from stockyard.operations.manifest_wishes import read_wishes
from stockyard.operations.power_claim import power_claim
from stockyard.operations.quotas import set_quota
from stockyard.operations.visible_providers import find_provider
from stockyard.ports import Replace
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

VC, KA, OWN = "management.loft.sh/v1", "karpenter.sh/v1", "stockyard/v1"
SMALL: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.1}


@pytest.fixture
def nodes(world: World) -> Nodes:
    world.create("demo")
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
    wishes = read_wishes(nodes.services, documents, "user:ann", admin=admin)
    return apply_manifests(nodes.services, wishes, "user:ann", "req-1")


def actions(results: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(one["name"], one["action"]) for one in results]


def faults(nodes: Nodes, *documents: Mapping[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidInput) as refused:
        read_wishes(nodes.services, documents, "user:ann", admin=True)
    return {one.pointer: one.detail for one in refused.value.errors}


def count(nodes: Nodes) -> tuple[int, int]:
    store = nodes.services.store
    return len(store.list(NodeProvider).items), len(store.list(NodeClaim).items)


def test_providers_are_made_before_the_claims_that_name_them(nodes: Nodes) -> None:
    results = apply(nodes, claim(provider="lab", type="small"), lab())
    assert actions(results) == [("one", "created"), ("lab", "created")]
    made = find_claim(nodes.services, "one")
    assert (results[0]["id"], results[0]["operation_id"]) == (made.id, made.operation_id)
    assert results[1]["operation_id"] is None
    assert made.provider_ref == "lab"


def test_the_same_again_changes_nothing(nodes: Nodes) -> None:
    given = [lab(displayName="L"), claim(type="lab.small"), foreign(typeRef="x", power={"state": "Off"}) | {}]
    given[2]["metadata"]["name"] = "two"
    apply(nodes, *given)
    before = find_provider(nodes.services, "lab"), find_claim(nodes.services, "one"), find_claim(nodes.services, "two")
    assert [one["action"] for one in apply(nodes, *given)] == ["unchanged"] * 3
    assert before == (
        find_provider(nodes.services, "lab"),
        find_claim(nodes.services, "one"),
        find_claim(nodes.services, "two"),
    )
    assert claim_manifest(before[1])["spec"] == given[1]["spec"]
    assert claim_manifest(before[2]) == {
        **given[2],
        "spec": {**given[2]["spec"], "controlPlane": False},
    }


def test_a_placed_claim_is_unchanged_too(nodes: Nodes) -> None:
    apply(nodes, lab(), claim(name="free") | {"spec": {"cluster": "demo", "priority": 3}})
    made = find_claim(nodes.services, "free")
    nodes.services.store.commit(Replace(replace(made, type_ref="lab.small", version=made.version + 1)))
    results = apply(nodes, claim(name="free", priority=3))
    assert [one["action"] for one in results] == ["unchanged"]
    shown = claim_manifest(find_claim(nodes.services, "free"))
    assert shown["spec"]["type"] == "lab.small"
    assert [one["action"] for one in apply(nodes, shown)] == ["unchanged"]
    assert set(faults(nodes, claim(name="free", priority=3, type="lab.other"))) == {"/0/spec/type"}


def test_a_changed_provider_is_a_new_generation(nodes: Nodes) -> None:
    apply(nodes, lab())
    results = apply(nodes, lab({**SMALL, "cost": 5}, properties={"a": "b"}))
    assert actions(results) == [("lab", "changed")]
    stored = find_provider(nodes.services, "lab")
    assert (stored.version, stored.generation, stored.properties) == (2, 2, {"a": "b"})
    assert provider_manifest(stored)["spec"]["simulated"]["nodeTypes"] == [{**SMALL, "cost": 5}]


def test_of_a_claim_labels_power_and_the_like_may_change(nodes: Nodes) -> None:
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
def test_the_rest_of_a_claim_cannot_change(nodes: Nodes, spec: dict[str, Any], pointer: str) -> None:
    apply(nodes, foreign())
    assert faults(nodes, foreign(**spec)) == {pointer: "cannot be changed after creation"}


def test_a_claim_cannot_change_its_form_nor_karpenters_its_cluster(nodes: Nodes) -> None:
    apply(nodes, foreign())
    assert set(faults(nodes, claim())) == {"/0/apiVersion"}
    spec = {"requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "n"}}
    apply(nodes, manifest(KA, "NodeClaim", "k", spec, labels={CLUSTER: "demo", PROVIDER: "p"}))
    assert set(faults(nodes, manifest(KA, "NodeClaim", "k", spec, labels={PROVIDER: "p"}))) == {"/0/metadata/labels"}
    assert set(faults(nodes, manifest(KA, "NodeClaim", "k", {**spec, "expireAfter": "1h"}))) == {
        "/0/spec/expireAfter",
        "/0/metadata/labels",
    }


def test_a_provider_cannot_change_its_kind(nodes: Nodes) -> None:
    apply(nodes, lab())
    other = manifest(VC, "NodeProvider", "lab", {"terraform": {"nodeTemplate": {"inline": "x"}}})
    assert set(faults(nodes, other)) == {"/0/spec/terraform"}


def test_references_of_our_own_claims_must_exist_those_of_foreign_ones_may_come_later(nodes: Nodes) -> None:
    apply(nodes, lab())
    found = faults(
        nodes,
        claim("a", cluster="nowhere"),
        claim("b", provider="nobody"),
        claim("c", type="lab.huge"),
        claim("d", provider="new", type="huge"),
        claim("e", provider="new", cluster="nowhere"),
        lab() | {"metadata": {"name": "new"}},
    )
    assert set(found) == {"/0/spec/cluster", "/1/spec/provider", "/2/spec/type", "/3/spec/type", "/4/spec/cluster"}
    assert count(nodes) == (1, 0)
    assert actions(apply(nodes, foreign())) == [("one", "created")]
    waiting = find_claim(nodes.services, "one")
    assert (waiting.phase, waiting.cluster_id) == ("Pending", "")


def test_one_fault_keeps_all_from_being_stored(nodes: Nodes) -> None:
    ec2 = manifest(OWN, "NodeProvider", "aws", {"ec2": {"cloudAccount": 9}})
    assert set(faults(nodes, lab(), ec2, claim())) == {"/1/spec/ec2/cloudAccount"}
    assert count(nodes) == (0, 0)


def test_providers_are_for_admins(nodes: Nodes) -> None:
    with pytest.raises(Forbidden, match="stockyard-admin"):
        apply(nodes, lab(), claim(), admin=False)
    assert count(nodes) == (0, 0)
    assert actions(apply(nodes, claim(), admin=False)) == [("one", "created")]


def test_quotas_are_looked_at_for_all_together(nodes: Nodes) -> None:
    set_quota(nodes.services, "nodeclaims", 1, 0)
    with pytest.raises(QuotaExceeded, match="project nodeclaims limit of 1"):
        apply(nodes, claim("a"), claim("b"))
    set_quota(nodes.services, "node_providers", 0, 0)
    with pytest.raises(QuotaExceeded, match="node_providers"):
        apply(nodes, lab())
    assert count(nodes) == (0, 0)
    assert actions(apply(nodes, claim("a"))) == [("a", "created")]


def test_a_type_with_nodes_and_a_claim_that_goes(nodes: Nodes) -> None:
    apply(nodes, lab(), foreign(providerRef="lab", vClusterRef=None))
    nodes.schedule()
    placed = find_claim(nodes.services, "one")
    assert placed.type_ref == "lab.small"
    with pytest.raises(InUse, match="one"):
        apply(nodes, lab({**SMALL, "name": "other"}))
    nodes.delete(placed)
    with pytest.raises(IllegalTransition, match="being deleted"):
        apply(nodes, foreign(providerRef="lab", vClusterRef=None))


def test_what_changed_since_it_was_read_is_left_alone(nodes: Nodes) -> None:
    apply(nodes, lab())
    wishes = read_wishes(nodes.services, [lab(displayName="mine")], "user:ann", admin=True)
    apply(nodes, lab(displayName="theirs"))
    with pytest.raises(IllegalTransition, match="Apply the manifests again"):
        apply_manifests(nodes.services, wishes, "user:ann", "req-2")
    assert find_provider(nodes.services, "lab").display_name == "theirs"


def test_warnings_come_with_their_document(nodes: Nodes) -> None:
    bare = manifest(VC, "NodeProvider", "tf", {"terraform": {"nodeTemplate": {"inline": "x"}}})
    results = apply(nodes, lab(properties={"kubernetes.io/os": "windows"}), bare)
    assert [[one["pointer"] for one in result["warnings"]] for result in results] == [
        ["/0/spec/properties/kubernetes.io~1os"],
        ["/1/spec/terraform"],
    ]


def test_a_plan_writes_nothing_and_says_what_would_be(nodes: Nodes) -> None:
    apply(nodes, lab(), foreign(providerRef="lab", vClusterRef=None))
    documents = [
        lab(displayName="new"),
        foreign(providerRef="lab", vClusterRef=None, displayName="two"),
        manifest(VC, "NodeClaim", "three", {"providerRef": "lab"}),
        manifest(VC, "NodeClaim", "four", {"providerRef": "later"}),
        manifest(OWN, "NodeProvider", "later", {"simulated": {}}),
    ]
    before = count(nodes)
    plan = plan_manifests(nodes.services, read_wishes(nodes.services, documents, "user:ann", admin=True))
    assert count(nodes) == before
    assert [(one["kind"], one["name"]) for one in plan["creates"]] == [
        ("node-claim", "three"),
        ("node-claim", "four"),
        ("node-provider", "later"),
    ]
    assert plan["changes"] == [
        {"pointer": "/0/display_name", "before": "", "after": "new"},
        {"pointer": "/1/display_name", "before": "", "after": "two"},
    ]
    assert (plan["price"]["hour"], plan["price"]["month"], plan["price"]["complete"]) == (0.1, 73.0, True)
    assert [one["pointer"] for one in plan["warnings"]] == ["/4/spec/simulated"]


def test_a_manifest_that_says_no_power_leaves_it_and_one_that_does_switches_the_machine(nodes: Nodes) -> None:
    one = manifest(VC, "NodeClaim", "one", {"providerRef": "lab"})
    apply(nodes, lab(), one)
    nodes.schedule()
    nodes.relay()
    found = find_claim(nodes.services, "one")
    assert found.phase == "Available"
    power_claim(nodes.services, found.id, "Off", "user:ann")
    busy = find_claim(nodes.services, "one")
    changed = lab({**SMALL, "maxCapacity": 9})
    on = {**one, "spec": {**one["spec"], "power": {"state": "On"}}}
    with pytest.raises(IllegalTransition, match="is being switched"):
        apply(nodes, changed, on)
    assert find_provider(nodes.services, "lab").version == 1, "nothing is stored when one of them cannot be"
    assert busy.power_wish == "Off"
    nodes.relay()
    assert actions(apply(nodes, lab(), one)) == [("lab", "unchanged"), ("one", "unchanged")]
    assert find_claim(nodes.services, "one").power == "Off"
    (_, result) = apply(nodes, lab(), on)
    assert (result["action"], result["operation_id"][:3]) == ("changed", "op_")
    nodes.relay()
    assert find_claim(nodes.services, "one").power == "On"
    assert actions(apply(nodes, on)) == [("one", "unchanged")]


def test_a_claim_as_karpenter_sends_it_is_placed_and_given_back_as_it_came(nodes: Nodes) -> None:
    """Karpenter names each after its pool, and adds its pool and node class to the requirements."""
    requirements = [
        {"key": "karpenter.sh/nodepool", "operator": "In", "values": ["pool.a"]},
        {"key": "karpenter.k8s.aws/ec2nodeclass", "operator": "In", "values": ["default"]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["small", *map(str, range(599))]},
    ]
    node_class = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    spec = {"requirements": requirements, "nodeClassRef": node_class}
    labels = {"karpenter.sh/nodepool": "pool.a"}
    sent = manifest(KA, "NodeClaim", "pool.a-x7b2k", spec, generateName="pool.a-", labels=labels)
    apply(nodes, lab(), sent)
    nodes.schedule()
    placed = find_claim(nodes.services, "pool.a-x7b2k")
    assert placed.type_ref == "lab.small", placed.message
    assert claim_manifest(placed)["spec"]["requirements"] == requirements
    other = {**spec, "requirements": [{"key": "example.com/pool", "operator": "In", "values": ["a"]}]}
    apply(nodes, manifest(KA, "NodeClaim", "other", other))
    nodes.schedule()
    assert find_claim(nodes.services, "other").placement is None
