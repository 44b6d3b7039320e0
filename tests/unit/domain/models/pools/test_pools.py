"""Fields of a pool's document on our own routes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.pools.own_pools import OwnPool, read_own_pool
from stockyard.domain.models.pools.pools import PoolCreate, PoolPatch, own_document
from stockyard.domain.models.pools.simulations import TracePool
from stockyard.domain.models.pools.views import PoolView
from stockyard.domain.pools.manifests import own_manifest, pool_manifest
from stockyard.domain.pools.mirror import mirrored_pool
from stockyard.domain.pools.records import NewPool, Pool
from stockyard.domain.pools.views import pool_view
from stockyard.errors import InvalidInput

FULL: dict[str, Any] = {
    "name": "workers",
    "provider": "aws",
    "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"], "min_values": 1}],
    "properties": {"allocation_strategy": "lowest-price"},
    "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
    "startup_taints": [{"key": "s", "effect": "NoExecute"}],
    "labels": {"team": "a"},
    "annotations": {"note": "x"},
    "kubelet_args": {"max-pods": "50"},
    "floor": 2,
    "headroom": {"cpu": "1", "memory": "2Gi"},
    "limits": {"nodes": "10", "cpu": 100, "usd_hour": 3.5, "nvidia.com/gpu": "4"},
    "weight": 5,
    "expire_after": "24h",
    "termination_grace_period": "5m",
    "disruption": {
        "consolidate_after": "1m",
        "consolidation_policy": "WhenEmpty",
        "budgets": [
            {"nodes": "10%", "reasons": ["Empty"], "schedule": "0 9 * * 1-5", "duration": "8h"},
            {"nodes": "0", "schedule": "@daily", "duration": "1h", "time_zone": "Europe/Berlin"},
            {"nodes": "1", "schedule": "CRON_TZ=Asia/Kathmandu @daily", "duration": "1h"},
        ],
    },
}


def pool(**fields: Any) -> NewPool:
    return read(PoolCreate, {"name": "workers", **fields}).new_pool()


def zoned(**budget: Any) -> dict[str, Any]:
    """A pool with a budget that has a window."""
    return {"disruption": {"budgets": [{"nodes": "1", "schedule": "@daily", "duration": "1h", **budget}]}}


def record(new_pool: NewPool) -> Pool:
    return Pool(id="c/workers", cluster_id="c", name=new_pool.name, created_at="", updated_at="", **new_pool.spec())


def faults(**fields: Any) -> list[str]:
    with pytest.raises(InvalidInput) as refusal:
        pool(**fields)
    return sorted(problem.pointer for problem in refusal.value.errors)


def test_labels_that_their_vendor_does_not_know_are_refused_everywhere() -> None:
    key = "karpenter.k8s.aws/instance-categroy"
    requirements = [{"key": "a", "operator": "Exists"}, {"key": key, "operator": "Exists"}]
    assert faults(requirements=requirements) == ["/requirements/1/key"]
    own = {"apiVersion": "stockyard/v1", "kind": "Pool", "metadata": {"name": "a"}}
    for model, document, at in (
        (PoolPatch, {"requirements": requirements}, ""),
        (OwnPool, {**own, "spec": {"cluster": "c", "requirements": requirements}}, "/spec"),
        (TracePool, {"name": "a", "requirements": requirements}, ""),
    ):
        with pytest.raises(InvalidInput) as refusal:
            read(model, document)
        assert [problem.pointer for problem in refusal.value.errors] == [f"{at}/requirements/1/key"]


@pytest.mark.parametrize("document", [FULL, {"name": "w", "quantity": 3}, {"name": "w"}, {"name": "w", "floor": 1}])
def test_a_pool_reads_back_from_its_own_document(document: dict[str, Any]) -> None:
    new_pool = read(PoolCreate, document).new_pool()
    assert read(PoolCreate, own_document(new_pool)).new_pool() == new_pool
    assert read(PoolPatch, {}).apply_to(record(new_pool)).spec() == new_pool.spec()


@pytest.mark.parametrize("duration", ["0m", "0h", "0h0m", "0h0m0s"])
def test_a_window_that_closes_as_it_opens_is_refused(duration: str) -> None:
    """Such a window would hold nothing back, whatever its nodes say."""
    budget = {"nodes": "0", "schedule": "@daily", "duration": duration}
    assert faults(quantity=1, disruption={"budgets": [budget]}) == ["/disruption/budgets/0/duration"]


def test_a_static_pool_has_budgets_and_can_be_paused_and_nothing_else_of_disruption() -> None:
    """The pool's nodes are replaced when they drift or are too old, never removed to save money."""
    budgets = [{"nodes": "3"}, {"nodes": "0", "schedule": "@daily", "duration": "1h"}]
    static = pool(quantity=3, disruption={"budgets": budgets, "paused": True})
    assert static.disruption == {"budgets": budgets, "paused": True}
    assert pool(quantity=3).disruption == {}
    assert read(PoolCreate, own_document(static)).new_pool() == static
    with pytest.raises(InvalidInput) as refusal:
        pool(quantity=3, disruption={"consolidate_after": "1m", "minimum_saving": 0.1})
    assert [problem.pointer for problem in refusal.value.errors] == [
        "/disruption/consolidate_after",
        "/disruption/minimum_saving",
    ]


def test_a_static_pool_of_any_form_can_be_patched() -> None:
    """A NodePool with replicas may say what only dynamic pools need; it is left out of what it becomes."""
    block = {"consolidateAfter": "0s", "consolidationPolicy": "WhenEmpty", "budgets": [{"nodes": "2"}]}
    static = replace(pool(quantity=3), disruption=block)
    patched = read(PoolPatch, {"quantity": 4}).apply_to(static)
    assert (patched.quantity, patched.disruption) == (4, {"budgets": [{"nodes": "2"}]})
    paused = read(PoolPatch, {"disruption": {"paused": True}}).apply_to(static)
    assert paused.disruption == {"budgets": [{"nodes": "2"}], "paused": True}


def test_who_pauses_a_pool_keeps_what_else_it_says_of_disruption() -> None:
    before = record(pool(disruption=FULL["disruption"]))
    paused = read(PoolPatch, {"disruption": {"paused": True}}).apply_to(before)
    assert paused.disruption == {**before.disruption, "paused": True}
    assert read(PoolPatch, {"disruption": {"paused": False}}).apply_to(record(paused)).disruption == before.disruption
    unlimited = read(PoolPatch, {"disruption": {"budgets": []}}).apply_to(before)
    assert unlimited.disruption == {**before.disruption, "budgets": []}
    usual = read(PoolPatch, {"disruption": {"budgets": None}}).apply_to(before)
    assert usual.disruption["budgets"] == [{"nodes": "10%"}]
    assert read(PoolPatch, {"disruption": None}).apply_to(before).disruption == pool().disruption


def test_a_quantity_makes_a_pool_static() -> None:
    assert (pool(quantity=0).kind, pool().kind, pool(kind="static", quantity=1).kind) == ("static", "dynamic", "static")


def test_the_record_and_what_is_shown_of_it_have_the_time_zone_as_it_came() -> None:
    new_pool = pool(disruption=FULL["disruption"])
    assert new_pool.disruption["budgets"][1] == {
        "nodes": "0",
        "schedule": "@daily",
        "duration": "1h",
        "timeZone": "Europe/Berlin",
    }
    view = PoolView.model_validate(pool_view(record(new_pool), ())).disruption
    assert view is not None
    assert [(budget.schedule, budget.time_zone) for budget in view.budgets] == [
        ("0 9 * * 1-5", None),
        ("@daily", "Europe/Berlin"),
        ("CRON_TZ=Asia/Kathmandu @daily", None),
    ]
    assert read_own_pool(own_manifest(new_pool, "demo")).pools == (new_pool,)


def test_budgets_of_expiry_are_shown_where_they_can_be_said() -> None:
    """A NodePool, as which the pool is mirrored into its cluster, cannot say them."""
    budgets = [
        {"nodes": "0", "reasons": ["Expired"], "schedule": "@daily", "duration": "8h"},
        {"nodes": "2", "reasons": ["Empty", "Expired"]},
        {"nodes": "50%"},
    ]
    new_pool = replace(pool(disruption={"budgets": budgets}), form="karpenter")
    mirror = mirrored_pool(record(new_pool), ())["spec"]["disruption"]
    assert mirror["budgets"] == [{"nodes": "2", "reasons": ["Empty"]}, {"nodes": "50%"}]
    manifest = pool_manifest(new_pool, "demo")
    assert manifest["kind"] == "Pool"
    assert manifest["spec"]["disruption"]["budgets"] == budgets


def test_a_least_saving_is_ours_to_say() -> None:
    new_pool = pool(disruption={"minimum_saving": 0.02})
    view = PoolView.model_validate(pool_view(record(new_pool), ())).disruption
    assert view is not None
    assert view.minimum_saving == 0.02
    assert read_own_pool(own_manifest(new_pool, "demo")).pools == (new_pool,)
    manifest = pool_manifest(replace(new_pool, form="karpenter"), "demo")
    assert (manifest["kind"], manifest["spec"]["disruption"]["minimumSaving"]) == ("Pool", 0.02)
    assert "minimumSaving" not in mirrored_pool(record(new_pool), ())["spec"]["disruption"]
    for amount in (-0.01, 20_000, "inf"):
        with pytest.raises(InvalidInput) as refusal:
            pool(disruption={"minimum_saving": amount})
        assert [problem.pointer for problem in refusal.value.errors] == ["/disruption/minimum_saving"]


def test_the_zone_of_a_manifest_is_named_as_it_is_there() -> None:
    manifest = own_manifest(pool(**zoned(time_zone="Europe/Berlin")), "demo")
    manifest["spec"]["disruption"]["budgets"][0]["timeZone"] = "Nowhere"
    with pytest.raises(InvalidInput) as refusal:
        read_own_pool(manifest)
    assert [problem.pointer for problem in refusal.value.errors] == ["/spec/disruption/budgets/0/timeZone"]


def test_without_budgets_there_is_one_and_an_empty_list_stays() -> None:
    assert pool().disruption["budgets"] == [{"nodes": "10%"}]
    assert pool(disruption={"budgets": []}).disruption["budgets"] == []
    older = replace(record(pool()), disruption={"consolidateAfter": "0s", "consolidationPolicy": "WhenEmpty"})
    view = PoolView.model_validate(pool_view(older, ())).disruption
    assert view is not None
    assert [budget.nodes for budget in view.budgets] == ["10%"]


def test_only_nodes_of_dynamic_pools_expire_by_default() -> None:
    assert (pool().expire_after, pool(quantity=1).expire_after) == ("720h", "")
    assert pool(expire_after="Never").expire_after == "Never"


@pytest.mark.parametrize(
    ("fields", "pointers"),
    [
        ({"name": "-"}, ["/name"]),
        ({"name": ""}, ["/name"]),
        ({"name": "a" * 64}, ["/name"]),
        ({"name": "a/b"}, ["/name"]),
        ({"kind": "static"}, ["/quantity"]),
        ({"kind": "dynamic", "quantity": 1}, ["/quantity"]),
        ({"quantity": 1, "floor": 1, "weight": 1}, ["/floor", "/weight"]),
        ({"quantity": -1}, ["/quantity"]),
        ({"quantity": 10_001}, ["/quantity"]),
        ({"quantity": 3, "limits": {"nodes": 2}}, ["/quantity"]),
        ({"floor": 3, "limits": {"nodes": "2"}}, ["/floor"]),
        ({"limits": {"nodes": "1500m"}}, ["/limits/nodes"]),
        ({"limits": {"Cpu": "1"}}, ["/limits/Cpu"]),
        ({"limits": {"cpu": "-1"}}, ["/limits/cpu"]),
        ({"limits": {"cpu": "many"}}, ["/limits/cpu"]),
        ({"weight": 0}, ["/weight"]),
        ({"weight": 101}, ["/weight"]),
        ({"labels": {"stockyard.dev/pool": "x"}}, ["/labels/stockyard.dev~1pool"]),
        ({"expire_after": "soon"}, ["/expire_after"]),
        ({"termination_grace_period": "-5s"}, ["/termination_grace_period"]),
        ({"disruption": {"consolidation_policy": "Always"}}, ["/disruption/consolidation_policy"]),
        ({"disruption": {"budgets": [{"nodes": "101%"}]}}, ["/disruption/budgets/0/nodes"]),
        ({"disruption": {"budgets": [{"nodes": "1", "duration": "1h"}]}}, ["/disruption/budgets/0"]),
        (zoned(time_zone="Europe/Nowhere"), ["/disruption/budgets/0/time_zone"]),
        (zoned(time_zone=""), ["/disruption/budgets/0/time_zone"]),
        (zoned(time_zone=1), ["/disruption/budgets/0/time_zone"]),
        (zoned(schedule="TZ=Europe/Rome @daily", time_zone="Europe/Berlin"), ["/disruption/budgets/0/time_zone"]),
        (zoned(schedule="TZ=Europe/Nowhere @daily"), ["/disruption/budgets/0/schedule"]),
        (zoned(schedule="0 0 31 2 *", time_zone="Europe/Berlin"), ["/disruption/budgets/0/schedule"]),
        ({"disruption": {"budgets": [{"nodes": "1", "time_zone": "UTC"}]}}, ["/disruption/budgets/0/time_zone"]),
        ({"kubelet_args": {"anonymous-auth": "true"}}, ["/kubelet_args/anonymous-auth"]),
        ({"sizes": 3}, ["/sizes"]),
    ],
)
def test_bad_input_is_named(fields: dict[str, Any], pointers: list[str]) -> None:
    assert faults(**fields) == pointers


@pytest.mark.parametrize("field", ["name", "kind", "provider"])
def test_name_kind_and_provider_cannot_change(field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        read(PoolPatch, {field: "x"})
    assert [problem.pointer for problem in refusal.value.errors] == [f"/{field}"]


def test_a_patch_merges_maps_and_null_removes() -> None:
    before = record(read(PoolCreate, FULL).new_pool())
    patch = {
        "labels": {"team": None, "zone": "b"},
        "limits": {"nodes": None, "cpu": "7"},
        "weight": None,
        "disruption": None,
        "taints": [],
        "floor": 0,
    }
    after = read(PoolPatch, patch).apply_to(before)
    assert after.labels == {"zone": "b"}
    assert after.limits == {"cpu": "7", "usd_hour": "3.5", "nvidia.com/gpu": "4"}
    assert (after.weight, after.taints, after.floor) == (0, (), 0)
    assert after.disruption == {
        "consolidateAfter": "0s",
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "budgets": [{"nodes": "10%"}],
    }
    assert after.requirements == before.requirements


def test_a_patch_that_makes_a_bad_pool_is_refused() -> None:
    before = record(pool(quantity=1))
    with pytest.raises(InvalidInput) as refusal:
        read(PoolPatch, {"floor": 2}).apply_to(before)
    assert [problem.pointer for problem in refusal.value.errors] == ["/floor"]
