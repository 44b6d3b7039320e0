"""Applying documents of pools: each form makes, changes or leaves pools of the cluster that it names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from stockyard.domain.platform import PLATFORM
from stockyard.domain.pools.manifests import pool_manifest
from stockyard.domain.pools.records import Pool
from stockyard.errors import Forbidden, IllegalTransition, InvalidInput, QuotaExceeded
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.fleet.pools.pools import change_pool, delete_pool, find_pool
from stockyard.operations.listing import every
from stockyard.operations.manifests.apply import apply_manifests, document_warnings, plan_manifests
from stockyard.operations.manifests.desired import read_desired
from stockyard.operations.quotas.limits import set_quota
from tests.unit.operations.conftest import World
from tests.unit.operations.installation import Installation
from tests.unit.operations.nodes import Nodes

SMALL = {
    "name": "small",
    "resources": {"cpu": "2", "memory": "4Gi"},
    "usdPerHour": 0.1,
    "properties": {"acme.com/fast": "yes"},
}
LAB = {
    "apiVersion": "stockyard/v1",
    "kind": "NodeProvider",
    "metadata": {"name": "later"},
    "spec": {"simulated": {"nodeTypes": [{"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}}]}},
}
USER = "user:ann"


@pytest.fixture
def nodes(world: World) -> Nodes:
    world.create("demo")
    nodes = Nodes.of(world.registry, world.services, world.clock)
    nodes.provider("lab", SMALL)
    return nodes


def vcluster(*pools: dict[str, Any], provider: str = "lab", cluster: str = "", **entry: Any) -> dict[str, Any]:
    named = {"metadata": {"labels": {"stockyard.dev/cluster": cluster}}} if cluster else {}
    static = [{"quantity": 2, "terminationGracePeriod": "1m", **pool} for pool in pools]
    return {
        **named,
        "privateNodes": {"enabled": True, "autoNodes": [{"provider": provider, **entry, "static": static}]},
    }


def node_pool(name: str = "general", cluster: str = "", **spec: Any) -> dict[str, Any]:
    named = {"labels": {"stockyard.dev/cluster": cluster}} if cluster else {}
    template = {"metadata": {"labels": {"vcluster.loft.sh/provider-platform": "lab"}}, "spec": {"requirements": []}}
    spec = {"template": template, **spec}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name, **named}, "spec": spec}


def own(name: str = "own", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name}
    return {"apiVersion": "stockyard/v1", "kind": "Pool", "metadata": metadata, "spec": {"cluster": "demo", **spec}}


def desired(nodes: Nodes, *documents: Mapping[str, Any]) -> Any:
    return read_desired(nodes.services, documents, USER, admin=True)


def apply(nodes: Nodes, *documents: Mapping[str, Any]) -> list[tuple[str, str]]:
    results = apply_manifests(nodes.services, desired(nodes, *documents), USER, "req-1")
    return [(result["name"], result["action"]) for result in results]


def faults(nodes: Nodes, *documents: Mapping[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidInput) as refused:
        desired(nodes, *documents)
    return {error.pointer: error.detail for error in refused.value.errors}


def pool(nodes: Nodes, name: str) -> Pool:
    return find_pool(nodes.services, find_cluster(nodes.services, "demo"), name)


def stored(nodes: Nodes) -> list[Pool]:
    return list(every(nodes.services.store, Pool))


def test_documents_of_all_forms_make_pools(nodes: Nodes) -> None:
    documents = [vcluster({"name": "a"}, {"name": "b"}), node_pool(), own(quantity=1)]
    assert apply(nodes, *documents) == [
        ("a", "created"),
        ("b", "created"),
        ("general", "created"),
        ("own", "created"),
    ]
    assert {pool.name: (pool.kind, pool.form, pool.provider_ref) for pool in stored(nodes)} == {
        "a": ("static", "autoNodes", "lab"),
        "b": ("static", "autoNodes", "lab"),
        "general": ("dynamic", "karpenter", "lab"),
        "own": ("static", "stockyard", ""),
    }
    assert {action for _, action in apply(nodes, *documents)} == {"unchanged"}


def test_a_result_names_the_pool(nodes: Nodes) -> None:
    (result,) = apply_manifests(nodes.services, desired(nodes, node_pool()), USER, "req-1")
    assert result == {
        "index": 0,
        "kind": "Pool",
        "name": "general",
        "id": pool(nodes, "general").id,
        "action": "created",
        "warnings": [{"pointer": "/0", "detail": "Cluster demo is preparing: its pools wait for it."}],
        "operation_id": None,
    }


def test_what_differs_is_changed_once(nodes: Nodes) -> None:
    apply(nodes, vcluster({"name": "a"}))
    before = pool(nodes, "a")
    document = vcluster({"name": "a", "quantity": 3})
    assert apply(nodes, document) == [("a", "changed")]
    assert apply(nodes, document) == [("a", "unchanged")]
    after = pool(nodes, "a")
    assert (after.quantity, after.generation, after.version) == (3, before.generation + 1, before.version + 1)


def test_what_is_shown_can_be_applied_and_changes_nothing(nodes: Nodes) -> None:
    apply(nodes, vcluster({"name": "a"}, properties={"size": "big"}), node_pool(limits={"cpu": 4}), own(floor=1))
    shown_documents = [pool_manifest(record, "demo") for record in stored(nodes)]
    assert [action for _, action in apply(nodes, *shown_documents)] == ["unchanged"] * 3


def test_a_dry_run_says_what_would_be_made_and_changed(nodes: Nodes) -> None:
    apply(nodes, vcluster({"name": "a"}))
    documents = [vcluster({"name": "a", "quantity": 5}, {"name": "b"}), own(quantity=1, provider="lab")]
    plan = plan_manifests(nodes.services, desired(nodes, *documents))
    assert plan["changes"] == [
        {
            "kind": "pool",
            "name": "a",
            "pointer": "/0/privateNodes/autoNodes/0/static/0/quantity",
            "field": "quantity",
            "before": 2,
            "after": 5,
        }
    ]
    assert {entry["name"] for entry in plan["creates"] if entry["kind"] == "pool"} == {"b", "own"}
    assert [entry["name"] for entry in plan["creates"] if entry["kind"] == "node"] == ["lab.small"] * 3
    assert plan["price"]["hour"] == pytest.approx(0.3)
    assert {entry.name for entry in stored(nodes)} == {"a"}


def test_provider_and_pool_may_come_together(nodes: Nodes) -> None:
    documents = [own(provider="later", quantity=1), LAB]
    plan = plan_manifests(nodes.services, desired(nodes, *documents))
    assert {entry["name"] for entry in plan["creates"]} == {"own", "later"}
    assert [(item["name"], item["hour"]) for item in plan["price"]["items"]] == [("1 node of pool own", None)]
    assert plan["price"]["hour"] is None
    assert apply(nodes, *documents) == [("own", "created"), ("later", "created")]


def test_a_foreign_pool_may_come_before_its_provider_and_ours_may_not(nodes: Nodes) -> None:
    assert apply(nodes, vcluster({"name": "a"}, provider="later")) == [("a", "created")]
    plan_manifests(nodes.services, desired(nodes, vcluster({"name": "b"}, provider="later")))
    assert faults(nodes, own(provider="nowhere")) == {"/0/spec/provider": "There is no node provider nowhere."}


def test_the_cluster_is_the_label_s_or_the_only_one(nodes: Nodes, world: World) -> None:
    world.create("second")
    missing = "no cluster is named: set this label or --cluster; the tenant has 2 clusters"
    at = "/0/metadata/labels/stockyard.dev~1cluster"
    assert faults(nodes, vcluster({"name": "a"})) == {at: missing}
    assert faults(nodes, node_pool()) == {at: missing}
    assert faults(nodes, node_pool(cluster="third")) == {at: "There is no cluster third."}
    assert faults(nodes, own() | {"spec": {"cluster": "third"}}) == {"/0/spec/cluster": "There is no cluster third."}
    apply(nodes, vcluster({"name": "a"}, cluster="demo"), node_pool("a", cluster="second"))
    assert [record.name for record in stored(nodes)] == ["a", "a"]


def test_without_a_cluster_there_is_no_pool(world: World) -> None:
    alone = Nodes.of(world.registry, world.services, world.clock)
    at = "/0/metadata/labels/stockyard.dev~1cluster"
    assert faults(alone, node_pool()) == {at: "There is no cluster that could have the pools."}
    assert apply(alone, {"privateNodes": {"enabled": True}}) == []


def test_a_name_that_comes_twice_is_refused(nodes: Nodes) -> None:
    words = "another pool of this name and cluster is given before"
    assert faults(nodes, vcluster({"name": "a"}), node_pool("a", cluster="demo")) == {"/1/metadata/name": words}
    assert faults(nodes, node_pool("a"), vcluster({"name": "a"})) == {
        "/1/privateNodes/autoNodes/0/static/0/name": words
    }
    assert stored(nodes) == []


def test_kind_and_provider_cannot_change(nodes: Nodes) -> None:
    apply(nodes, vcluster({"name": "a"}))
    at = "/0/privateNodes/autoNodes/0/static/0"
    assert faults(nodes, vcluster({"name": "a"}, provider="later")) == {at: "the provider of pool a cannot change"}
    assert faults(nodes, node_pool("a")) == {"/0": "pool a is static, which cannot change"}


def test_faults_of_all_documents_come_before_anything_is_written(nodes: Nodes) -> None:
    documents = [vcluster({"name": "a"}), node_pool(weight=0), own(provider="nowhere")]
    assert set(faults(nodes, *documents)) == {"/1/spec/weight"}
    assert stored(nodes) == []


def test_quotas_count_all_documents_together(nodes: Nodes) -> None:
    set_quota(nodes.services, "node_groups", 2, 0)
    documents = [vcluster({"name": "a"}, {"name": "b"}), node_pool()]
    with pytest.raises(QuotaExceeded):
        desired(nodes, *documents)
    assert len(apply(nodes, documents[0])) == 2
    with pytest.raises(QuotaExceeded):
        desired(nodes, documents[1])


def test_a_pool_that_goes_cannot_be_changed(nodes: Nodes) -> None:
    apply(nodes, vcluster({"name": "a"}))
    delete_pool(nodes.services, find_cluster(nodes.services, "demo"), "a", USER)
    with pytest.raises(IllegalTransition, match="being deleted"):
        desired(nodes, vcluster({"name": "a"}))


def test_a_pool_that_somebody_changes_meanwhile_is_left(nodes: Nodes) -> None:
    apply(nodes, vcluster({"name": "a"}))
    read = desired(nodes, vcluster({"name": "a", "quantity": 7}))
    (document,) = desired(nodes, vcluster({"name": "a", "quantity": 3}))
    cluster = find_cluster(nodes.services, "demo")
    change_pool(nodes.services, cluster, pool(nodes, "a"), 1, document.pools[0].pool, USER, "req-2")
    with pytest.raises(IllegalTransition, match="Apply the manifests again"):
        apply_manifests(nodes.services, read, USER, "req-1")
    assert pool(nodes, "a").quantity == 3


def test_the_platform_has_no_pools(installation: Installation) -> None:
    with pytest.raises(Forbidden, match="X-Stockyard-Tenant"):
        read_desired(installation.services(PLATFORM), [node_pool()], USER, admin=True)


def test_warnings_stand_with_their_pool_or_with_the_document(nodes: Nodes) -> None:
    apply(nodes, vcluster({"name": "old"}))
    document = {**vcluster({"name": "a", "profile": "gpu"}, properties={"acme.com/fast": True}), "sync": {}}
    read = desired(nodes, document)
    (result,) = apply_manifests(nodes.services, read, USER, "req-1")
    assert "/0/privateNodes/autoNodes/0/static/0/profile" in {remark["pointer"] for remark in result["warnings"]}
    words = {remark["pointer"]: remark["detail"] for remark in document_warnings(read)}
    assert words == {
        "/0/sync": "This part is not looked at.",
        "/0/privateNodes/autoNodes/0/properties/acme.com~1fast": "Read as the requirement acme.com/fast Exists.",
        "/0/privateNodes": "Pool old is not in it and stays: remove it by its name, or apply with prune.",
    }
    assert pool(nodes, "a").requirements == ({"key": "acme.com/fast", "operator": "Exists"},)
    plan_pointers = {remark["pointer"] for remark in plan_manifests(nodes.services, read)["warnings"]}
    assert set(words) < plan_pointers


def test_limits_that_no_node_fits_within_are_said(nodes: Nodes) -> None:
    documents = [node_pool(limits={"cpu": 1}), own(provider="lab", limits={"usd_hour": "0.05"})]
    at = {
        "/0/spec/limits/cpu": "No node fits within it: lab.small alone is 2 of cpu.",
        "/1/spec/limits/usd_hour": "No node fits within it: lab.small alone is 0.1 USD an hour.",
    }
    read = desired(nodes, *documents)
    planned = {remark["pointer"]: remark["detail"] for remark in plan_manifests(nodes.services, read)["warnings"]}
    assert at.items() <= planned.items()
    results = apply_manifests(nodes.services, read, USER, "req-1")
    remarks = [{remark["pointer"]: remark["detail"] for remark in result["warnings"]} for result in results]
    assert remarks[0] | remarks[1] == planned
    document = vcluster({"name": "a"})
    document["privateNodes"]["autoNodes"][0]["dynamic"] = [{"name": "d", "limits": {"cpu": "1"}}]
    _, result = apply_manifests(nodes.services, desired(nodes, document), USER, "req-1")
    assert "/0/privateNodes/autoNodes/0/dynamic/0/limits/cpu" in {remark["pointer"] for remark in result["warnings"]}
    lowered = desired(nodes, node_pool(limits={"cpu": "500m"}))
    planned = {remark["pointer"] for remark in plan_manifests(nodes.services, lowered)["warnings"]}
    assert planned == {"/0/spec/limits/cpu"}
