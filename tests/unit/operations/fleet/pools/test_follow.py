"""Pools of node groups follow the settings of their cluster, and are changed there alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.pools.pools import PoolPatch
from stockyard.domain.pools.manifests import pool_manifest
from stockyard.domain.pools.records import ClusterClaim, NewPool, entry_id
from stockyard.domain.records import NodeClaim
from stockyard.domain.values.requirements import Requirements
from stockyard.errors import (
    IllegalTransition,
    InvalidInput,
    QuotaExceeded,
    VendorRefused,
)
from stockyard.lifecycle.nodes.pool_drift import pool_drift, template_hash
from stockyard.operations.clusters.changes.resume import resume_cluster
from stockyard.operations.fleet.pools.plan import plan_deletion
from stockyard.operations.fleet.pools.pools import change_pool, create_pool, delete_pool
from stockyard.operations.fleet.pools.reconcile import reconcile
from stockyard.operations.manifests.apply import apply_manifests
from stockyard.operations.manifests.desired import read_desired
from stockyard.operations.quotas.limits import set_quota
from stockyard.ports import Remove
from tests.unit.operations.clusters.managed_world import GPU, USER, ManagedWorld, managed_world

EXTENDED: dict[str, Any] = {"settings": {"support": "extended"}}


@pytest.fixture
def managed() -> ManagedWorld:
    return managed_world()


def faults(error: InvalidInput) -> dict[str, str]:
    return {problem.pointer: problem.detail for problem in error.errors}


def test_pools_follow_added_and_resized_groups(managed: ManagedWorld) -> None:
    assert set(managed.pools()) == {"system", "l4"}
    more = {"name": "batch", "role": "system", "instance_type": "m6i.2xlarge", "min_size": 1, "max_size": 4}
    managed.patch(managed.groups({"name": "system", "min_size": 1, "max_size": 5}, GPU, more))
    assert set(managed.pools()) == {"system", "l4"}, "a pool is made when its group is there"
    assert managed.drive() == "changed"
    pools = managed.pools()
    assert set(pools) == {"system", "l4", "batch"}
    assert (pools["system"].floor, pools["system"].limits) == (1, {"nodes": "5"})
    assert (pools["batch"].floor, pools["batch"].limits, pools["batch"].form) == (1, {"nodes": "4"}, "group")


def test_a_pool_gets_room_after_its_group_has_it(managed: ManagedWorld) -> None:
    managed.provider.faults["node_groups"] = [VendorRefused("no")]
    managed.patch(managed.groups({"name": "system", "labels": {"tier": "a"}, "max_size": 5}, GPU))
    assert managed.drive() == "not_changed"
    pool = managed.pools()["system"]
    assert (pool.limits, pool.labels["tier"]) == ({"nodes": "2"}, "a")


def test_nodes_of_a_removed_group_leave_before_it(managed: ManagedWorld) -> None:
    managed.make_claims("l4", 2)
    managed.patch(managed.groups({"name": "system"}))
    calls: list[tuple[str, int]] = []
    ensure = managed.provider.ensure

    def watched(phase: str, work: Any) -> Any:
        calls.append((phase, len(managed.claims("l4"))))
        return ensure(phase, work)

    managed.provider.ensure = watched
    assert managed.drive() == "not_changed", "no pass gives the claims back here"
    assert managed.operation.error is not None
    assert managed.operation.error.phase == "surplus"
    assert "node_groups" not in dict(calls)
    assert managed.pools()["l4"].deleting
    reconcile(managed.world.services, managed.id)
    reconcile(managed.world.services, managed.id)
    assert "l4" not in managed.pools()
    resume_cluster(managed.world.services, managed.id, USER)
    assert managed.drive() == "changed"
    assert ("node_groups", 0) in calls


def test_nodes_beyond_the_new_most_are_given_back(managed: ManagedWorld) -> None:
    managed.make_claims("l4", 2)
    plan = managed.plan(managed.groups({"name": "system"}, {**GPU, "max_size": 1}))
    assert plan["warnings"] == [
        {
            "pointer": "/settings/node_groups/1/max_size",
            "detail": "1 node of l4 are drained and given back: more than its new most.",
        }
    ]
    managed.patch(managed.groups({"name": "system"}, {**GPU, "max_size": 1}))
    assert managed.drive() == "changed"
    assert len(managed.claims("l4")) == 1
    assert managed.pools()["l4"].limits == {"nodes": "1"}


@pytest.mark.parametrize(
    "fields",
    [{"instance_type": "g6.2xlarge"}, {"disk_gib": 200}, {"labels": {"a": "b"}}, {"zones": ["us-east-1b"]}],
    ids=lambda fields: next(iter(fields)),
)
def test_nodes_of_a_changed_group_have_drifted(managed: ManagedWorld, fields: dict[str, Any]) -> None:
    managed.make_claims("l4", 1)
    labels = {"node.kubernetes.io/instance-type": "g6.xlarge", "topology.kubernetes.io/zone": "us-east-1a"}
    claim = replace(managed.claims("l4")[0], node_labels={**labels, "karpenter.sh/capacity-type": "on-demand"})

    def drifts() -> tuple[str, ...]:
        pool = managed.pools()["l4"]
        return pool_drift(pool, Requirements.of(pool.requirements), template_hash(pool), claim)

    assert drifts() == ()
    change = managed.groups({"name": "system"}, {**GPU, **fields})
    assert [w["detail"] for w in managed.plan(change)["warnings"]] == ["The 1 node of l4 are replaced one by one."]
    managed.patch(change)
    assert managed.drive() == "changed"
    assert drifts()


def test_a_group_cannot_take_the_name_of_a_pool(managed: ManagedWorld) -> None:
    create_pool(managed.world.services, managed.cluster, NewPool(name="burst", kind="dynamic"), USER)
    with pytest.raises(InvalidInput) as refused:
        managed.patch(managed.groups({"name": "system"}, GPU, {**GPU, "name": "burst"}))
    assert list(faults(refused.value)) == ["/settings/node_groups/2/name"]


@pytest.mark.parametrize(
    ("patch", "pointers"),
    [
        ({"floor": 1, "limits": {"nodes": 5}}, {"/floor", "/limits"}),
        ({"labels": {"a": "b"}, "taints": []}, {"/labels", "/taints"}),
        ({"annotations": {"a": "b"}}, {"/annotations"}),
    ],
)
def test_what_a_group_says_is_changed_in_the_settings(
    managed: ManagedWorld, patch: dict[str, Any], pointers: set[str]
) -> None:
    pool = managed.pools()["l4"]
    changed = read(PoolPatch, patch).apply_to(pool)
    with pytest.raises(InvalidInput) as refused:
        change_pool(managed.world.services, managed.cluster, pool, pool.version, changed, USER, "r")
    assert faults(refused.value).keys() == pointers
    assert set(faults(refused.value).values()) == {
        "Pool l4 is a node group of the cluster's settings: change settings.node_groups by PATCH /v1/clusters/{id}."
    }
    assert managed.pools()["l4"] == pool


def test_the_manifest_of_a_groups_pool_applies_and_what_the_group_says_stays_its_settings(
    managed: ManagedWorld,
) -> None:
    services, pool = managed.world.services, managed.pools()["l4"]
    manifest = pool_manifest(pool, managed.cluster.name)

    def applied(**fields: Any) -> str:
        document = {**manifest, "spec": {**manifest["spec"], **fields}}
        (result,) = apply_manifests(services, read_desired(services, [document], USER, admin=True), USER, "r")
        return str(result["action"])

    assert applied() == "unchanged"
    assert managed.pools()["l4"] == pool
    with pytest.raises(InvalidInput) as refused:
        applied(floor=1, limits={"nodes": "5"})
    assert faults(refused.value).keys() == {"/0/spec/floor", "/0/spec/limits"}
    assert applied(expireAfter="48h") == "changed"
    assert (managed.pools()["l4"].form, managed.pools()["l4"].expire_after) == (pool.form, "48h")


def test_when_nodes_of_a_group_leave_its_pool_says_and_settings_leave_it(managed: ManagedWorld) -> None:
    pool = managed.pools()["l4"]
    patch = read(PoolPatch, {"disruption": {"paused": True}, "weight": 7}).apply_to(pool)
    change_pool(managed.world.services, managed.cluster, pool, pool.version, patch, USER, "r")
    managed.patch(managed.groups({"name": "system"}, {**GPU, "max_size": 4}))
    assert managed.drive() == "changed"
    pool = managed.pools()["l4"]
    assert (pool.limits, pool.weight, pool.disruption["paused"]) == ({"nodes": "4"}, 7, True)


def test_pools_of_groups_are_not_deleted_nor_turned_into_others(managed: ManagedWorld) -> None:
    services, pool = managed.world.services, managed.pools()["l4"]
    with pytest.raises(IllegalTransition, match=r"settings\.node_groups"):
        delete_pool(services, managed.cluster, "l4", USER)
    with pytest.raises(IllegalTransition, match=r"settings\.node_groups"):
        plan_deletion(services, managed.cluster, "l4")
    own = NewPool(name="l4", **{**pool.spec(), "weight": 2})
    with pytest.raises(InvalidInput, match=r"settings\.node_groups"):
        change_pool(services, managed.cluster, pool, pool.version, own, USER, "r")
    assert managed.pools()["l4"] == pool


def test_other_pools_of_such_a_cluster_are_its_owners(managed: ManagedWorld) -> None:
    services = managed.world.services
    pool = create_pool(services, managed.cluster, NewPool(name="burst", kind="dynamic"), USER)
    changed = NewPool(name="burst", kind="dynamic", floor=1)
    assert change_pool(services, managed.cluster, pool, pool.version, changed, USER, "r").floor == 1
    managed.patch(EXTENDED)
    assert managed.drive() == "changed"
    assert managed.pools()["burst"].floor == 1
    assert delete_pool(services, managed.cluster, "burst", USER).deleting


def test_quotas_hold_for_groups_that_grow(managed: ManagedWorld) -> None:
    set_quota(managed.world.services, "nodes_per_eks_group", 900, 0)
    with pytest.raises(QuotaExceeded, match="nodes_per_eks_group"):
        managed.patch(managed.groups({"name": "system"}, {**GPU, "max_size": 1000}))


def test_nodes_of_a_group_that_is_remade_drift_and_those_of_no_other(managed: ManagedWorld) -> None:
    """The former group goes when its nodes have gone, so something has to tell these to go."""
    managed.patch(managed.groups({"name": "system", "zones": ["us-east-1a"], "max_size": 4}, GPU))
    assert managed.drive() == "changed"
    since = managed.pools()["system"].nodes_since
    assert since > managed.pools()["l4"].nodes_since == ""
    managed.make_claims("system", 2)
    managed.world.clock.advance(60)
    managed.patch(managed.groups({"name": "system", "zones": ["us-east-1b", "us-east-1a"]}, GPU))
    assert "The 2 nodes of system are replaced one by one." in [warning["detail"] for warning in managed.warnings]
    assert managed.drive() == "changed"
    assert managed.pools()["system"].nodes_since > since
    again = managed.pools()["system"].nodes_since
    managed.world.clock.advance(60)
    for claim in managed.claims("system"):
        entry = entry_id(managed.id, claim.pool, claim.id)
        managed.world.services.store.commit(Remove(NodeClaim, claim.id), Remove(ClusterClaim, entry))
    managed.make_claims("system", 2)
    managed.patch(managed.groups({"name": "system", "zones": ["us-east-1a", "us-east-1b"], "max_size": 5}, GPU))
    assert managed.warnings == []
    assert managed.drive() == "changed"
    assert managed.pools()["system"].nodes_since == again, "another order remakes nothing"
