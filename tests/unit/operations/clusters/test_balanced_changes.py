"""Changes of a ready cluster on machines behind a load balancer: CIDRs, pools, the minor, node by node."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from stockyard.domain.clusters.kubernetes_minors import following
from stockyard.domain.clusters.kubernetes_removals import LOOKED_AT
from stockyard.domain.models.base import read
from stockyard.domain.models.pools.pools import PoolPatch
from stockyard.domain.nodes.records import NewClaim
from stockyard.domain.records import Cluster, Fact
from stockyard.errors import IllegalTransition, InvalidInput, VendorRefused, VendorUnavailable
from stockyard.kubernetes_versions import TESTED
from stockyard.lifecycle.nodes.drift import is_drifted
from stockyard.lifecycle.nodes.node_claim import MOVES
from stockyard.lifecycle.nodes.node_phases import NOT_DRIFTED
from stockyard.lifecycle.phases import DEGRADED
from stockyard.operations.clusters.changes.cancel import cancel_change
from stockyard.operations.clusters.changes.resume import resume_cluster
from stockyard.operations.clusters.groups import altered_groups, change_groups, check_confirmed, remaining_groups
from stockyard.operations.clusters.phases import RUNNER
from stockyard.operations.engine.advance import Fence
from stockyard.operations.engine.run_phase import run_phase
from stockyard.operations.fleet.pools.pools import change_pool, group_changes
from stockyard.operations.machines.observe import ATTENDED
from stockyard.operations.node_claims.create import create_claim
from stockyard.ports import Replace
from tests.unit.operations.clusters.balanced_world import (
    UPGRADE,
    USER,
    WEB,
    BalancedWorld,
    balanced_world,
)

CIDRS: dict[str, Any] = {"settings": {"api_cidrs": ["198.51.100.0/24"]}}
PHASES = ("network", "security", "endpoint")


@pytest.fixture
def balanced() -> BalancedWorld:
    return balanced_world()


def faults(error: InvalidInput) -> dict[str, str]:
    return {problem.pointer: problem.detail for problem in error.errors}


def scaled(balanced: BalancedWorld, **patch: Any) -> dict[str, Any]:
    """The patch of the cluster that a PATCH of the pool becomes."""
    pool = balanced.pools()["web"]
    body = read(PoolPatch, patch)
    return altered_groups(balanced.world.services, balanced.cluster, pool, body.apply_to(pool), body.model_fields_set)


def test_cidrs_are_changed_by_an_operation(balanced: BalancedWorld) -> None:
    plan = balanced.plan(CIDRS)
    assert plan["steps"] == ["Let in what the CIDRs say, then no more what they said before."]
    assert plan["price"]["hour"] == plan["price_before"]["hour"]
    changed = balanced.patch(CIDRS)
    assert (changed.status, changed.phase, balanced.operation.kind) == ("ready", "checks", "change_cluster")
    assert balanced.drive() == "changed"
    assert balanced.provider.stands["security"]["api_cidrs"] == ["198.51.100.0/24"]
    assert balanced.operation.status == "succeeded"


@pytest.mark.parametrize("phase", PHASES)
def test_a_change_that_fails_is_resumed(balanced: BalancedWorld, phase: str) -> None:
    balanced.provider.faults[phase] = [VendorRefused("no")]
    balanced.patch(CIDRS)
    assert balanced.drive() == "not_changed"
    assert (balanced.cluster.status, balanced.condition(DEGRADED)) == ("ready", "True")
    assert resume_cluster(balanced.world.services, balanced.id, USER).phase == phase
    assert balanced.drive() == "changed"
    assert balanced.condition(DEGRADED) == "False"


@pytest.mark.parametrize("when", ["faults", "late"])
@pytest.mark.parametrize("phase", PHASES)
def test_a_change_goes_on_after_a_crash(balanced: BalancedWorld, phase: str, when: str) -> None:
    getattr(balanced.provider, when)[phase] = [VendorUnavailable("lost")]
    balanced.patch(CIDRS)
    assert balanced.drive() == "changed"
    assert list(balanced.provider.things.values()).count(phase) == 1


@pytest.mark.parametrize("name", ["vpc_cidr", "etcd_volume_gib"])
def test_what_does_not_change_is_refused_by_name(balanced: BalancedWorld, name: str) -> None:
    value = {"vpc_cidr": "10.9.0.0/16", "etcd_volume_gib": 40}[name]
    with pytest.raises(InvalidInput) as refused:
        balanced.patch({"settings": {name: value}})
    assert faults(refused.value) == {f"/settings/{name}": "cannot be changed after creation"}


# --- pools ------------------------------------------------------------------------------------------------------------


def test_a_pool_is_scaled_up_by_count(balanced: BalancedWorld) -> None:
    patch = scaled(balanced, count=5)
    plan = balanced.plan(patch)
    assert {change["pointer"]: change["after"] for change in plan["changes"]} == {
        "/settings/autoscaler_node_groups/0/min_size": 5,
        "/settings/autoscaler_node_groups/0/max_size": 5,
    }
    assert plan["price"]["hour"] > plan["price_before"]["hour"]
    balanced.patch(patch)
    assert balanced.drive() == "changed"
    assert len(balanced.claims("web")) == 5
    assert balanced.pools()["web"].limits == {"nodes": "5"}
    assert any("web: 2 of 5 nodes are as wanted" in message for message in balanced.messages("Progress"))


def test_a_pool_of_a_fixed_size_is_scaled_down_before_its_groups_change(balanced: BalancedWorld) -> None:
    balanced.patch(balanced.groups({**WEB, "max_size": 2}))
    assert balanced.drive() == "changed"
    balanced.patch(scaled(balanced, count=1))
    assert balanced.drive() == "changed"
    assert (len(balanced.claims("web")), balanced.pools()["web"].limits) == (1, {"nodes": "1"})


def test_a_count_leaves_how_far_a_pool_may_grow(balanced: BalancedWorld) -> None:
    for count in (3, 1):
        plan = balanced.plan(scaled(balanced, count=count))
        changed = {change["pointer"]: change["after"] for change in plan["changes"]}
        assert changed == {"/settings/autoscaler_node_groups/0/min_size": count}
    balanced.patch(scaled(balanced, count=1))
    assert balanced.drive() == "changed"
    # What is there stays until nothing needs it.
    assert (len(balanced.claims("web")), balanced.pools()["web"].limits) == (2, {"nodes": "4"})


def test_a_pool_is_added_and_one_removed(balanced: BalancedWorld) -> None:
    more = {**WEB, "name": "batch", "min_size": 1}
    balanced.patch(balanced.groups(WEB, more))
    assert balanced.drive() == "changed"
    assert len(balanced.claims("batch")) == 1
    pool = balanced.pools()["web"]
    with pytest.raises(InvalidInput, match=r"\?confirm=web"):
        check_confirmed(pool, "batch")
    check_confirmed(pool, "web")
    patch = remaining_groups(balanced.world.services, balanced.cluster, pool)
    plan = balanced.plan(patch)
    assert plan["steps"][0] == "Drain the nodes of web and give them back."
    assert {"kind": "pool", "name": "web"} in plan["deletes"]
    balanced.patch(patch)
    assert balanced.drive() == "changed"
    assert set(balanced.pools()) == {"batch"}


def test_the_last_pool_may_go_and_the_plan_says_so(balanced: BalancedWorld) -> None:
    patch = remaining_groups(balanced.world.services, balanced.cluster, balanced.pools()["web"])
    assert any("No group of workers is left" in remark["detail"] for remark in balanced.plan(patch)["warnings"])
    balanced.patch(patch)
    assert balanced.drive() == "changed"
    assert balanced.pools() == {}


@pytest.mark.parametrize(
    "fields",
    [
        {"labels": {"tier": "a"}},
        {"taints": [{"key": "dedicated", "value": "web", "effect": "NoSchedule"}]},
    ],
    ids=["labels", "taints"],
)
def test_nodes_of_a_reconfigured_pool_are_replaced_one_by_one(balanced: BalancedWorld, fields: Any) -> None:
    before = {claim.name for claim in balanced.claims("web")}
    patch = scaled(balanced, **fields)
    assert balanced.plan(patch)["steps"] == ["Replace the nodes of web one by one, within the budgets of each."]
    balanced.patch(patch)
    assert balanced.drive() == "changed"
    assert set(balanced.replaced) == before
    assert not before & {claim.name for claim in balanced.claims("web")}
    assert len(balanced.claims("web")) == 2


def test_other_types_replace_nodes_too(balanced: BalancedWorld) -> None:
    before = {claim.name for claim in balanced.claims("web")}
    balanced.patch(balanced.groups({**WEB, "instance_types": ["m6i.large"], "labels": {"size": "new"}}))
    assert balanced.drive() == "changed"
    assert not before & {claim.name for claim in balanced.claims("web")}


def test_a_group_cannot_say_what_only_a_pool_has(balanced: BalancedWorld) -> None:
    with pytest.raises(InvalidInput) as refused:
        scaled(balanced, count=3, annotations={"a": "b"})
    assert faults(refused.value) == {"/annotations": "cannot be said by a node group of the cluster's settings"}
    with pytest.raises(InvalidInput) as refused:
        scaled(balanced, count=3, weight=5)
    assert list(faults(refused.value)) == ["/weight"]
    with pytest.raises(InvalidInput) as refused:
        scaled(balanced, quantity=3)
    assert "count" in faults(refused.value)["/quantity"]


def test_a_change_is_stopped_between_nodes(balanced: BalancedWorld) -> None:
    balanced.replaces = False
    first = balanced.patch(scaled(balanced, labels={"tier": "a"})).operation_id
    fence = Fence.of(balanced.cluster)
    for phase in (
        "checks",
        "approval",
        "network",
        "security",
        "identity",
        "endpoint",
        "bastion",
        "snapshots",
        "restore",
        "members",
        "version_skew",
        "surplus",
    ):
        assert run_phase(RUNNER, balanced.world.services, fence, phase).done
    step = run_phase(RUNNER, balanced.world.services, fence, "pools")
    assert not step.done
    assert "web: 0 of 2 nodes are as wanted" in step.message
    cancel_change(balanced.world.services, balanced.id, USER)
    assert balanced.condition(DEGRADED) == "True", "nothing is disrupted in a degraded cluster"
    assert resume_cluster(balanced.world.services, balanced.id, USER).phase == "pools"
    balanced.replaces = True
    assert balanced.drive() == "changed"
    assert balanced.operation.id == first


def test_claims_that_wait_for_the_market_hold_no_operation(balanced: BalancedWorld) -> None:
    patch, meanwhile = scaled(balanced, count=3), balanced.meanwhile

    def expensive() -> None:
        meanwhile()
        store = balanced.world.services.store
        waiting = [claim for claim in balanced.claims("web") if claim.phase == "Pending"]
        for claim in waiting:
            store.commit(Replace(replace(claim, reason="SpotPriceAboveBid", version=claim.version + 1)))

    balanced.patch(patch)
    balanced.meanwhile = expensive
    assert balanced.drive() == "changed"


# --- upgrade ----------------------------------------------------------------------------------------------------------


def test_workers_get_the_new_minor_when_the_api_server_serves_it(balanced: BalancedWorld) -> None:
    before = {claim.name for claim in balanced.claims("web")}
    plan = balanced.plan({"kubernetes_version": "1.35"})
    assert [step.split(";")[0] for step in plan["steps"]] == [
        "Replace or add members of the control plane one after the other",
        "Wait until the API server has 1.35",
        "Replace the nodes of every pool one by one, within its budgets.",
    ]
    notes = [remark["detail"] for remark in plan["warnings"] if remark.get("note")]
    assert [text.split(",")[0] for text in notes] == [
        "The control plane is upgraded first",
        f"Kubernetes 1.35 removes no interface that is served by default (as of {LOOKED_AT}).",
    ]
    changed = balanced.patch({"kubernetes_version": "1.35"})
    assert (changed.kubernetes_version, changed.node_minor) == ("1.35", "1.34")
    fence = Fence.of(balanced.cluster)
    for phase in ("checks", "approval"):
        assert run_phase(RUNNER, balanced.world.services, fence, phase).done
    assert not run_phase(RUNNER, balanced.world.services, fence, "version_skew").done
    balanced.serves("v1.34.4")
    step = run_phase(RUNNER, balanced.world.services, fence, "version_skew")
    assert step.message == "Waiting for the API server to have 1.35; it has v1.34.4."
    assert balanced.cluster.node_minor == "1.34"
    balanced.serves("v1.35.4")
    assert balanced.drive(UPGRADE) == "upgraded"
    assert balanced.cluster.node_minor == "1.35"
    assert set(balanced.replaced) >= before
    assert all(claim.created_at >= balanced.cluster.nodes_since for claim in balanced.claims("web"))


def test_an_upgrade_says_of_old_nodes_that_they_have_drifted(balanced: BalancedWorld) -> None:
    """Nothing of their pools has changed, so that no pass over these would come before the sweep."""
    services = balanced.world.services
    for claim in balanced.claims("web"):
        as_launched = MOVES.condition(claim, NOT_DRIFTED, "True", "AsLaunched", "", services.now())
        services.store.commit(Replace(replace(as_launched, version=claim.version + 1)))
    balanced.patch({"kubernetes_version": "1.35"})
    balanced.serves("v1.35.4")
    fence = Fence.of(balanced.cluster)
    assert not any(is_drifted(claim) for claim in balanced.claims("web"))
    for phase in ("checks", "approval", "version_skew"):
        assert run_phase(RUNNER, balanced.world.services, fence, phase).done
    assert not run_phase(RUNNER, balanced.world.services, fence, "pools").done
    assert all(is_drifted(claim) for claim in balanced.claims("web"))
    attended_until = services.store.get(Fact, f"{balanced.id}/{ATTENDED}").value
    assert attended_until > services.now(), "nothing leaves a cluster that is not known well"


def test_an_upgrade_goes_one_tested_minor_up() -> None:
    for before, after in pairwise(TESTED):
        balanced = balanced_world(version=before)
        balanced.patch({"kubernetes_version": after})
        balanced.serves(f"v{TESTED[after].release}")
        assert balanced.drive(UPGRADE) == "upgraded"
        assert (balanced.cluster.kubernetes_version, balanced.cluster.node_minor) == (after, after)
    with pytest.raises(InvalidInput) as refused:
        balanced.patch({"kubernetes_version": following(after)})
    assert faults(refused.value) == {"/kubernetes_version": f"must be {' or '.join(TESTED)}"}


def test_a_failed_upgrade_that_touched_nothing_is_taken_back(balanced: BalancedWorld) -> None:
    balanced.patch({"kubernetes_version": "1.35"})
    cancel_change(balanced.world.services, balanced.id, USER)
    back = balanced.patch({"kubernetes_version": "1.34"})
    assert (back.kubernetes_version, back.node_minor) == ("1.34", "1.34")
    assert balanced.drive() == "changed"
    assert (balanced.cluster.nodes_version, balanced.cluster.nodes_since) == ("", "")


def test_an_upgrade_that_has_begun_cannot_be_taken_back(balanced: BalancedWorld) -> None:
    balanced.patch({"kubernetes_version": "1.35"})
    fence = Fence.of(balanced.cluster)
    for phase in ("checks", "approval", "version_skew"):
        run_phase(RUNNER, balanced.world.services, fence, phase)
    cancel_change(balanced.world.services, balanced.id, USER)
    with pytest.raises(IllegalTransition, match="Resume it"):
        balanced.patch({"kubernetes_version": "1.34"})


def test_nodes_that_would_be_too_old_refuse_an_upgrade(balanced: BalancedWorld) -> None:
    services = balanced.world.services
    alone = create_claim(services, NewClaim(name="alone", cluster_ref=balanced.id), USER)
    remarks = [remark["detail"] for remark in balanced.plan({"kubernetes_version": "1.35"})["warnings"]]
    assert "alone stay as they are: nodes of no pool are replaced by those who made them." in remarks
    services.store.commit(Replace(replace(alone, kubernetes_version="1.31", version=alone.version + 1)))
    with pytest.raises(InvalidInput) as refused:
        balanced.patch({"kubernetes_version": "1.35"})
    text = "node alone has 1.31, more than 3 minors older than 1.35; replace it first"
    assert faults(refused.value) == {"/kubernetes_version": text}


def test_what_nodes_may_cost_is_the_pools_own(balanced: BalancedWorld) -> None:
    services, pool = balanced.world.services, balanced.pools()["web"]
    dearer = read(PoolPatch, {"limits": {"usd_hour": 2}}).apply_to(pool)
    assert group_changes(pool, dearer) == []
    changed = change_pool(services, balanced.cluster, pool, pool.version, dearer, USER, "r")
    assert changed.limits == {"nodes": "4", "usd_hour": "2"}
    balanced.patch(scaled(balanced, count=3))
    assert balanced.drive() == "changed"
    assert balanced.pools()["web"].limits == {"nodes": "4", "usd_hour": "2"}


def test_a_cluster_of_an_earlier_release_takes_in_what_its_pools_have_become(balanced: BalancedWorld) -> None:
    services, pool = balanced.world.services, balanced.pools()["web"]
    earlier: Cluster = replace(balanced.cluster, pools_follow=False, version=balanced.cluster.version + 1)
    larger = replace(pool, floor=3, limits={"nodes": "9"}, version=pool.version + 1)
    services.store.commit(Replace(earlier), Replace(larger))
    balanced.patch(CIDRS)
    (group,) = balanced.cluster.settings["autoscaler_node_groups"]
    assert (group["min_size"], group["max_size"]) == (3, 9)
    assert balanced.cluster.pools_follow
    assert balanced.drive() == "changed"
    assert balanced.pools()["web"].limits == {"nodes": "9"}


def test_a_pool_is_removed_whatever_else_is_written_to_the_cluster(balanced: BalancedWorld) -> None:
    services, store = balanced.world.services, balanced.world.services.store
    commit, races = store.commit, [1]

    def raced(*writes: Any) -> None:
        if races:
            races.pop()
            commit(Replace(replace(balanced.cluster, version=balanced.cluster.version + 1)))
        commit(*writes)

    patch = remaining_groups(services, balanced.cluster, balanced.pools()["web"])
    store.commit = raced
    operation_id, _ = change_groups(services, balanced.cluster, patch, USER, "r", queue=False)
    assert balanced.operation.id == operation_id
    assert balanced.cluster.settings["autoscaler_node_groups"] == []
