"""Applying manifests creates, changes or leaves each resource, and a plan says before what it would do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stockyard.domain.nodes.manifests import NAMESPACE, claim_manifest, provider_manifest
from stockyard.errors import IllegalTransition
from stockyard.operations.engine.find import find_claim
from stockyard.operations.manifests.apply import plan_manifests
from stockyard.operations.manifests.desired import read_desired
from stockyard.operations.node_claims.power import power_claim
from stockyard.operations.node_providers.visible import find_provider
from stockyard.ports import Replace
from tests.unit.operations.manifests.documents import (
    OWN,
    SMALL,
    VC,
    actions,
    apply,
    claim,
    count,
    faults,
    foreign,
    lab,
    manifest,
)
from tests.unit.operations.nodes import Nodes


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
    # What a node of a provider costs that is not there yet, nobody knows.
    assert {item["name"]: item["hour"] is None for item in plan["price"]["items"]}["node of four"]
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
    price = plan["price"]
    assert (price["hour"], price["known_hour"], price["known_month"], price["complete"]) == (None, 0.1, 73.0, False)
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
    assert busy.desired_power == "Off"
    nodes.relay()
    assert actions(apply(nodes, lab(), without_power)) == [("lab", "unchanged"), ("one", "unchanged")]
    assert find_claim(nodes.services, "one").power == "Off"
    (_, result) = apply(nodes, lab(), on)
    assert (result["action"], result["operation_id"][:3]) == ("changed", "op_")
    nodes.relay()
    assert find_claim(nodes.services, "one").power == "On"
    assert actions(apply(nodes, on)) == [("one", "unchanged")]


def test_a_kind_that_is_not_built_yet_says_so_before_and_after(nodes: Nodes) -> None:
    kind, block = "clusterAPI", {"clusterRef": {"cluster": "a", "namespace": "b"}}
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
