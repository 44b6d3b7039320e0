"""The dry run of a pool plans for the pods that wait now, by what the nodes of the cluster are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.pools.pools import PoolCreate
from stockyard.domain.pools.records import NewPool
from stockyard.errors import InvalidInput
from stockyard.operations.fleet.explain import explain_claim
from stockyard.operations.fleet.pools.plan import plan_pool
from stockyard.operations.fleet.pools.pools import change_pool
from stockyard.ports import Replace
from tests.unit.operations.fleet.pools.conftest import SMALL, USER, WEB, Agent, Yard, template


def planned(yard: Yard, **fields: Any) -> dict[str, Any]:
    body = read(PoolCreate, {"name": "more", **fields})
    return plan_pool(yard.nodes.services, yard.current(), body.new_pool())


def nodes(plan: dict[str, Any]) -> list[str]:
    return [item["name"] for item in plan["creates"] if item["kind"] == "node"]


def node_facts(name: str, **fields: Any) -> dict[str, Any]:
    facts = {
        "uid": f"uid-{name}",
        "ready": "True",
        "created_at": "2026-01-01T00:00:00Z",
        "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
    }
    return {name: {**facts, "labels": {}, "taints": [], "unschedulable": False, **fields}}


def test_pods_that_wait_are_planned_beside_the_nodes_as_they_are_reported(yard: Yard, agent: Agent) -> None:
    yard.pool("fixed", quantity=1, requirements=[{"key": "vcluster.com/node-type", "values": ["sim.large"]}])
    yard.settle()
    (claim,) = yard.claims("fixed")
    waiting: dict[str, Any] = {
        "groups": {WEB: template("6")},
        "pending": {WEB: {"count": 2, "names": ["default/web-1"]}},
    }
    name = str(claim.node_name)
    agent.post(nodes=node_facts(name), budgets={}, **waiting)
    plan = planned(yard)
    # One of the two has room on the node that is there.
    assert (nodes(plan), plan["price"]["hour"]) == (["sim.large"], 0.3)
    assert plan["verdict"].endswith("1 pods that wait now get 1 nodes of it.")
    agent.post(nodes=node_facts(name, unschedulable=True), budgets={}, **waiting)
    assert nodes(planned(yard)) == ["sim.large", "sim.large"]
    assert nodes(planned(yard, limits={"nodes": 1})) == ["sim.large"]
    # Nothing is planned of a pool whose nodes such pods may not be on.
    assert nodes(planned(yard, taints=[{"key": "own", "effect": "NoSchedule"}])) == []
    agent.post(nodes=node_facts(name), budgets={})
    assert nodes(planned(yard)) == []


def test_an_explanation_tells_what_the_node_is(yard: Yard, agent: Agent) -> None:
    yard.pool("fixed", quantity=1)
    yard.settle()
    (claim,) = yard.claims("fixed")
    name = str(claim.node_name)

    def state() -> Any:
        return explain_claim(yard.nodes.services, claim.id)["node"]

    assert state() is None, "nobody has told of the cluster"
    taints = [{"key": "own", "value": "a", "effect": "NoSchedule"}]
    agent.post(nodes=node_facts(name, taints=taints, unschedulable=True), budgets={})
    tainted = ["own=a:NoSchedule", "node.kubernetes.io/unschedulable:NoSchedule"]
    assert (state()["name"], state()["reported"], state()["unschedulable_reason"], state()["taints"]) == (
        name,
        True,
        None,
        tainted,
    )
    assert state()["free"] == {"cpu": "8", "memory": "32Gi", "pods": "110"}
    agent.post(nodes=node_facts(name, ready="False"), budgets={})
    assert (state()["unschedulable_reason"], state()["free"]) == ("it is not ready", {})
    agent.post(wait=60, nodes=node_facts("another"), budgets={})
    assert state() is None, "its Node object is gone"


@pytest.mark.parametrize("status", ["preparing", "failed"])
def test_nothing_is_planned_for_pods_of_a_cluster_that_is_not_ready(yard: Yard, agent: Agent, status: str) -> None:
    agent.post(
        groups={WEB: template("6")}, pending={WEB: {"count": 2, "names": ["default/web-1"]}}, nodes={}, budgets={}
    )
    yard.put(status=status)
    assert nodes(planned(yard)) == []


def test_limits_that_limit_nothing_are_refused_and_those_of_no_type_yet_are_told(yard: Yard) -> None:
    for change in (planned, Yard.dynamic_pool):
        with pytest.raises(InvalidInput) as refused:
            change(yard, **({"name": "x"} if change is not planned else {}), limits={"usd": 5, "nodes": 2})
        (fault,) = refused.value.errors
        assert (fault.pointer, fault.detail) == ("/limits/usd", "no node type has usd; did you mean usd_hour?")
    warned = [each["detail"] for each in planned(yard, limits={"example.com/gpu": 1})["warnings"]]
    assert warned == ["No node type has example.com/gpu now: it limits nothing."]
    warned = [each["detail"] for each in planned(yard, limits={"usd_hour": 0.001})["warnings"]]
    assert warned == ["No node fits within it: sim.small alone is 0.1 USD an hour."]


def test_a_limit_of_an_older_pool_does_not_keep_it_from_changes(yard: Yard) -> None:
    pool = yard.dynamic_pool("old")
    yard.nodes.services.store.commit(Replace(replace(pool, limits={"usd": "5"}, version=pool.version + 1)))
    pool = yard.now("old")
    changed = NewPool(name="old", **{**pool.spec(), "weight": 3})
    assert change_pool(yard.nodes.services, yard.current(), pool, pool.version, changed, USER, "").weight == 3


def test_nodes_that_nothing_is_known_of_have_no_price(yard: Yard) -> None:
    plan = planned(yard, quantity=2, requirements=[{"key": "example.com/a", "values": ["b"]}])
    assert (plan["price"]["complete"], plan["price"]["hour"]) == (False, None)
    assert [item["name"] for item in plan["price"]["items"]] == ["2 nodes of pool more"]


def test_a_new_pool_of_a_provider_that_is_not_built_is_refused(yard: Yard) -> None:
    yard.nodes.provider("iron", SMALL, kind="clusterAPI")
    with pytest.raises(InvalidInput) as refused:
        planned(yard, provider="iron")
    assert [fault.pointer for fault in refused.value.errors] == ["/provider"]
    assert "of kind clusterAPI are not built yet" in refused.value.detail
