"""Pools as the documents that they came as."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stockyard.domain.models.pools.node_pools import read_node_pool
from stockyard.domain.models.pools.own_pools import read_own_pool
from stockyard.domain.models.pools.read_vcluster import read_vcluster
from stockyard.domain.pools.manifests import node_pool, pool_manifest, vcluster_document
from stockyard.domain.pools.records import NewPool, Pool

STATIC = NewPool(
    name="s", kind="static", provider_ref="p", quantity=2, termination_grace_period="30s", form="autoNodes"
)
DYNAMIC = NewPool(
    name="d",
    kind="dynamic",
    provider_ref="q",
    requirements=({"key": "k", "operator": "In", "values": ["a", "b"]}, {"key": "m", "operator": "Exists"}),
    properties={"region": "eu"},
    limits={"nodes": "3"},
    weight=4,
    expire_after="720h",
    termination_grace_period="Never",
    disruption={"consolidateAfter": "30s", "consolidationPolicy": "WhenEmpty", "budgets": []},
    form="autoNodes",
    document={"profile": "gpu"},
)


def test_a_vcluster_yaml_lists_pools_by_provider() -> None:
    document = vcluster_document([STATIC, DYNAMIC, replace(STATIC, name="t")], vpn=True, node_to_node=True)
    assert document == {
        "privateNodes": {
            "enabled": True,
            "vpn": {"enabled": True, "nodeToNode": {"enabled": True}},
            "autoNodes": [
                {
                    "provider": "p",
                    "static": [
                        {"name": "s", "quantity": 2, "terminationGracePeriod": "30s"},
                        {"name": "t", "quantity": 2, "terminationGracePeriod": "30s"},
                    ],
                },
                {
                    "provider": "q",
                    "dynamic": [
                        {
                            "name": "d",
                            "properties": {"region": "eu"},
                            "nodeTypeSelector": [
                                {"property": "k", "operator": "In", "values": ["a", "b"]},
                                {"property": "m", "operator": "Exists"},
                            ],
                            "limits": {"nodes": "3"},
                            "disruption": DYNAMIC.disruption,
                            "terminationGracePeriod": "Never",
                            "expireAfter": "720h",
                            "weight": 4,
                            "profile": "gpu",
                        }
                    ],
                },
            ],
        }
    }
    read = read_vcluster(document)
    assert {pool.name: pool for pool in read.pools} == {"s": STATIC, "t": replace(STATIC, name="t"), "d": DYNAMIC}
    assert (read.vpn, read.node_to_node) == (True, True)


def test_what_a_record_leaves_open_is_written_as_never() -> None:
    open_ended = replace(DYNAMIC, expire_after="", termination_grace_period="")
    (read,) = read_vcluster(vcluster_document([open_ended])).pools
    assert (read.expire_after, read.termination_grace_period) == ("Never", "Never")


@pytest.mark.parametrize(
    "change",
    [
        {"floor": 1},
        {"headroom": {"cpu": "1"}},
        {"startup_taints": ({"key": "a", "effect": "NoSchedule"},)},
        {"annotations": {"a": "b"}},
        {"kubelet_args": {"v": "2"}},
        {"provider_ref": ""},
        {"requirements": ({"key": "k", "operator": "Exists", "minValues": 2},)},
    ],
)
def test_what_a_vcluster_yaml_cannot_say_is_shown_as_ours(change: dict[str, object]) -> None:
    assert "privateNodes" in pool_manifest(DYNAMIC)
    document = pool_manifest(replace(DYNAMIC, **change))
    assert (document["apiVersion"], document["kind"], document["metadata"]) == ("stockyard/v1", "Pool", {"name": "d"})


def test_any_pool_can_be_seen_as_a_node_pool() -> None:
    document = node_pool(replace(DYNAMIC, floor=2))
    assert document["apiVersion"] == "karpenter.sh/v1"
    assert document["metadata"] == {"name": "d"}
    assert document["spec"]["template"]["metadata"] == {"labels": {"vcluster.loft.sh/provider-platform": "q"}}
    assert "terminationGracePeriod" not in document["spec"]["template"]["spec"], "no NodePool says Never there"
    read = read_node_pool(document).pools[0]
    assert read.requirements == DYNAMIC.requirements
    assert (read.limits, read.weight, read.disruption) == (DYNAMIC.limits, 4, DYNAMIC.disruption)


def test_a_node_pool_has_the_time_zone_before_the_schedule() -> None:
    window = {"nodes": "0", "schedule": "@daily", "duration": "1h"}
    budgets = [{**window, "timeZone": "Europe/Berlin"}, {**window, "schedule": "TZ=UTC @daily", "timeZone": "UTC"}]
    pool = replace(DYNAMIC, form="karpenter", properties={}, disruption={**DYNAMIC.disruption, "budgets": budgets})
    budgets_shown = node_pool(pool)["spec"]["disruption"]["budgets"]
    assert budgets_shown == [{**window, "schedule": f"{zone} @daily"} for zone in ("CRON_TZ=Europe/Berlin", "TZ=UTC")]
    assert pool.disruption["budgets"] == budgets
    assert read_node_pool(node_pool(pool)).pools[0].disruption["budgets"] == budgets_shown
    assert pool_manifest(pool)["kind"] == "Pool", "the field is shown as it came"


def test_a_static_pool_as_a_node_pool_has_replicas() -> None:
    document = node_pool(STATIC)
    assert document["spec"]["replicas"] == 2
    assert read_node_pool(document).pools[0].quantity == 2


def test_a_changed_node_pool_is_shown_as_ours_where_it_must() -> None:
    pool = replace(DYNAMIC, form="karpenter", properties={}, termination_grace_period="", document={})
    assert pool_manifest(pool)["kind"] == "NodePool"
    assert pool_manifest(replace(pool, floor=1))["kind"] == "Pool"
    assert pool_manifest(replace(pool, floor=1))["spec"]["floor"] == 1


def test_a_record_is_shown_like_what_it_was_made_of() -> None:
    spec = {**STATIC.spec(), "form": STATIC.form, "document": dict(STATIC.document)}
    record = Pool(id="c/s", cluster_id="c", name="s", created_at="t", updated_at="t", **spec)
    assert pool_manifest(record) == pool_manifest(STATIC)


def test_ours_says_every_field() -> None:
    document = pool_manifest(replace(STATIC, form="stockyard", kubelet_args={"v": "2"}, labels={"a": "b"}))
    assert document["spec"] == {
        "kind": "static",
        "quantity": 2,
        "provider": "p",
        "labels": {"a": "b"},
        "kubeletArgs": {"v": "2"},
        "terminationGracePeriod": "30s",
    }


def test_a_pool_that_its_form_cannot_say_is_a_manifest_of_ours_that_says_all_of_it() -> None:
    more = (
        {"zones": ("us-east-1a", "us-east-1b")},
        {"max_price": {"usd_hour": 0.5}},
        {"update_strategy": {"type": "custom", "max_surge": 2, "max_unavailable": "25%"}},
        {"headroom": {"cpu": "4"}},
    )
    for form in ("autoNodes", "karpenter"):
        for fields in more:
            pool = replace(DYNAMIC, form=form, properties={}, document={}, **fields)
            manifest = pool_manifest(pool, "demo")
            assert manifest["kind"] == "Pool", (form, fields)
            assert read_own_pool(manifest).pools[0].spec() == pool.spec(), (form, fields)
