"""Pools that can have no node say so, and why, and are ready again when they can."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.pools.records import NewPool
from stockyard.lifecycle.pools.pool import POOLS_READY
from stockyard.operations.fleet.pools.plan import plan_pool
from stockyard.operations.fleet.pools.pools import create_pool
from stockyard.ports import Replace
from tests.unit.operations.fleet.pools.conftest import SMALL, USER, Yard

FOREIGN = {"form": "karpenter", "kind": "dynamic"}
GPU = {"name": "gpu", "resources": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}, "usdPerHour": 0.5}


def foreign(yard: Yard, name: str, **fields: Any) -> None:
    create_pool(yard.nodes.services, yard.current(), NewPool(name=name, **{**FOREIGN, **fields}), USER)


def asks(key: str, *values: str, **more: Any) -> dict[str, Any]:
    return {"requirements": ({"key": key, "operator": "In", "values": list(values), **more},)}


def test_a_pool_that_can_have_no_node_says_why(yard: Yard) -> None:
    yard.nodes.provider("tf", SMALL, kind="clusterAPI")
    why = {
        "unbuilt": ({"provider_ref": "tf"}, "Providers of kind clusterAPI are not built yet."),
        "absent": ({"provider_ref": "ghost"}, "There is no node provider ghost yet."),
        "property": (asks("example.com/disk", "fast"), "2 node types without a value of example.com/disk as asked"),
        "limit": ({"limits": {"cpu": "1"}}, "Limit of cpu: No node fits within it: sim.small alone is 2 of cpu."),
        "zone": (asks("topology.kubernetes.io/zone", "mars"), "not offered with this capacity type in this zone"),
        "few": (asks("node.kubernetes.io/instance-type", "sim.small", minValues=2), "than minValues"),
        "fixed": ({"kind": "static", "quantity": 1, **asks("example.com/a", "b")}, "example.com/a as asked"),
        "floor": ({"floor": 1, "provider_ref": "sim", **asks("example.com/a", "b")}, "example.com/a as asked"),
    }
    for name, (fields, _) in why.items():
        foreign(yard, name, **fields)
    yard.dynamic_pool("good")
    yard.look()
    for name, (_, text) in why.items():
        status, reason, message = yard.condition(yard.now(name))
        assert (status, reason, text in message) == ("False", "NoNodeTypes", True), (name, message)
    assert yard.condition(yard.now("good"))[0] == "True"
    status, _, message = yard.condition(yard.current(), POOLS_READY)
    assert (status, message.endswith("(and 5 more)")) == ("False", True)


def test_what_passes_by_itself_is_no_lack_of_types(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    services = yard.nodes.services
    yard.nodes.provider("few", {**SMALL, "name": "only", "maxCapacity": 1}, GPU)
    scarce = services.unavailable_offerings
    assert scarce is not None
    monkeypatch.setattr(type(scarce), "refused", lambda *_: frozenset({("small", "on-demand", "*")}))
    for name, fields in {
        "full": asks("node.kubernetes.io/instance-type", "few.only"),
        "refused": asks("node.kubernetes.io/instance-type", "sim.small"),
        "for-pods": asks("node.kubernetes.io/instance-type", "few.gpu", "few.other"),
        "off": {"limits": {"cpu": "0", "nodes": "0"}},
    }.items():
        foreign(yard, name, **fields)
    foreign(yard, "takes", kind="static", quantity=2, **asks("node.kubernetes.io/instance-type", "few.only"))
    yard.look()
    yard.nodes.schedule()
    yard.look()
    assert {
        name: yard.condition(yard.now(name))[0] for name in ("full", "refused", "for-pods", "off")
    } == dict.fromkeys(("full", "refused", "for-pods", "off"), "True")
    _, reason, message = yard.condition(yard.now("takes"))
    assert reason == "Scaling"
    assert message.endswith("waits: few.only does not fit: all its nodes are taken."), message
    assert message in yard.condition(yard.current(), POOLS_READY)[2]


def test_a_pool_that_nothing_serves_comes_back_with_its_types(yard: Yard) -> None:
    foreign(yard, "later", provider_ref="lab")
    yard.look()
    before = yard.now("later")
    assert yard.condition(before)[1] == "NoNodeTypes"
    assert yard.reasons(before.id) == ["Created", "NoNodeTypes"]
    yard.nodes.clock.advance(10)
    yard.look()
    assert yard.now("later") == before, "nothing is written where nothing is new"
    yard.nodes.provider("lab", SMALL)
    yard.nodes.clock.advance(300)
    assert before.due_at is not None
    assert before.due_at <= yard.nodes.services.now()
    yard.look()
    assert yard.condition(yard.now("later"))[0] == "True"
    assert yard.condition(yard.current(), POOLS_READY)[0] == "True"


def test_nodes_that_are_there_speak_for_themselves(yard: Yard) -> None:
    yard.pool("web", quantity=1)
    yard.settle()
    pool = yard.now("web")
    changed = replace(pool, **asks("example.com/a", "b"), generation=2, version=pool.version + 1)
    yard.nodes.services.store.commit(Replace(changed))
    yard.look()
    assert yard.condition(yard.now("web"))[0] == "True"


def test_a_cluster_whose_account_has_no_provider_hears_the_command(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "No provider of this account: stockyard provider create -f examples/nodes.yaml."
    driver = yard.nodes.services.cluster_drivers[yard.cluster.driver]
    monkeypatch.setattr(driver, "provider_example", "examples/nodes.yaml", raising=False)
    nothing = asks("example.com/disk", "fast")
    foreign(yard, "lost", **nothing)
    foreign(yard, "named", provider_ref="sim", **nothing)
    yard.look()
    assert yard.condition(yard.now("lost"))[2].startswith(f"{text} No node type fits: ")
    assert text not in yard.condition(yard.now("named"))[2], "who names a provider wants that one"
    new_pool = NewPool(name="next", **{**FOREIGN, **nothing})
    assert plan_pool(yard.nodes.services, yard.current(), new_pool)["verdict"].endswith(f". {text}")
    assert text not in plan_pool(yard.nodes.services, yard.current(), NewPool(name="next"))["verdict"], "some fit"
    account = yard.cluster.cloud_account_id
    yard.nodes.provider("own", SMALL, block={"cloudAccount": account + 1})
    assert plan_pool(yard.nodes.services, yard.current(), new_pool)["verdict"].endswith(text)
    yard.nodes.provider("mine", SMALL, block={"cloudAccount": account})
    assert text not in plan_pool(yard.nodes.services, yard.current(), new_pool)["verdict"]
