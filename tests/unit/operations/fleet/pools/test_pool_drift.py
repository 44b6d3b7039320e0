"""Nodes that are no more what their pool would make say so, until the pool is changed back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.pools.pools import PoolPatch
from stockyard.domain.records import NodeClaim, NodeProvider
from stockyard.operations.fleet.pools import pools, reconcile
from stockyard.operations.node_claims.drift import compare_providers
from stockyard.operations.node_providers.providers import change_provider
from stockyard.ports import Replace
from tests.unit.operations.fleet.pools.conftest import LARGE, SMALL, USER, Yard


def patch(yard: Yard, name: str = "workers", **fields: Any) -> None:
    pool = yard.now(name)
    changed = read(PoolPatch, fields).apply_to(pool)
    pools.change_pool(yard.nodes.services, yard.current(), pool, pool.version, changed, USER, "r")


def drift_of(yard: Yard, name: str = "workers") -> set[tuple[str, str]]:
    return {
        (condition.status, condition.reason)
        for claim in yard.claims(name)
        for condition in claim.conditions
        if condition.type == "NotDrifted"
    }


def versions(yard: Yard) -> list[tuple[str, int]]:
    return sorted((claim.id, claim.version) for claim in yard.claims())


def test_a_changed_template_is_drift_until_it_is_changed_back(yard: Yard) -> None:
    yard.pool(quantity=2, labels={"team": "a"})
    yard.settle()
    assert drift_of(yard) == {("True", "AsLaunched")}
    patch(yard, labels={"team": "b"})
    yard.look()
    assert drift_of(yard) == {("False", "NodePoolDrifted")}
    before = versions(yard)
    yard.look()
    assert versions(yard) == before, "what was said is not written again"
    patch(yard, labels={"team": "a"})
    yard.look()
    assert drift_of(yard) == {("True", "AsLaunched")}
    events = [reason for claim in yard.claims() for reason in yard.reasons(claim.id)]
    assert (events.count("Drifted"), events.count("AsLaunched")) == (2, 2)


def test_a_requirement_that_nodes_do_not_fulfil_is_drift(yard: Yard) -> None:
    yard.pool(quantity=1)
    yard.settle()
    patch(yard, requirements=[{"key": "vcluster.com/node-type", "values": ["small", "large"]}])
    yard.look()
    assert drift_of(yard) == {("True", "AsLaunched")}
    patch(yard, requirements=[{"key": "vcluster.com/node-type", "values": ["sim.large"]}])
    yard.look()
    assert drift_of(yard) == {("False", "RequirementsDrifted")}
    patch(yard, requirements=[])
    yard.look()
    assert drift_of(yard) == {("True", "AsLaunched")}


@pytest.mark.parametrize(
    "fields",
    [
        {"limits": {"nodes": "9"}},
        {"weight": 7},
        {"floor": 1},
        {"headroom": {"cpu": "0"}},
        {"disruption": {"budgets": [{"nodes": "0", "schedule": "@daily", "duration": "1h", "time_zone": "UTC"}]}},
    ],
)
def test_what_makes_no_other_node_writes_no_claim(yard: Yard, fields: dict[str, Any]) -> None:
    yard.dynamic_pool("workers", floor=2)
    yard.settle()
    before = versions(yard)
    patch(yard, **fields)
    yard.look()
    assert [entry for entry in versions(yard) if entry in before] == before
    assert drift_of(yard) == {("True", "AsLaunched")}


def test_a_changed_quantity_writes_no_claim_that_stays(yard: Yard) -> None:
    yard.pool(quantity=2)
    yard.settle()
    before = versions(yard)
    patch(yard, quantity=3)
    yard.settle()
    assert set(before) < set(versions(yard))


def test_both_pool_and_provider_may_change(yard: Yard) -> None:
    yard.pool(quantity=1)
    yard.settle()
    patch(yard, annotations={"note": "new"})
    yard.look()
    (provider,) = [record for record in yard.nodes.services.store.list(NodeProvider).items if record.name == "sim"]
    larger = {**SMALL, "resources": {"cpu": "4", "memory": "4Gi"}}
    spec = {"simulated": {"nodeTypes": [larger, LARGE]}}
    change_provider(yard.nodes.services, provider.id, provider.version, {"spec": spec}, USER, "r")
    assert compare_providers(yard.nodes.services, [provider.id]) == 1
    assert drift_of(yard) == {("False", "TypeChanged")}
    patch(yard, annotations={"note": None})
    yard.look()
    assert drift_of(yard) == {("False", "TypeChanged")}
    (claim,) = yard.claims()
    assert claim.drift_reasons == ("TypeChanged",)


def test_a_claim_that_is_no_node_yet_is_not_compared(yard: Yard) -> None:
    yard.pool(quantity=1)
    yard.look()
    patch(yard, annotations={"note": "new"})
    yard.look()
    assert drift_of(yard) == set()
    yard.settle()
    assert drift_of(yard) == {("False", "NodePoolDrifted")}


def test_a_pass_says_it_of_some_and_comes_again_for_the_others(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconcile, "MOST_DRIFTED", 2)
    yard.pool(quantity=3)
    yard.settle()
    patch(yard, annotations={"note": "new"})
    yard.look()
    assert drift_of(yard) == {("False", "NodePoolDrifted"), ("True", "AsLaunched")}
    due_at = yard.now().due_at
    assert due_at is not None
    assert -yard.nodes.services.seconds_since(due_at) <= 60
    yard.look()
    assert drift_of(yard) == {("False", "NodePoolDrifted")}


def test_a_claim_that_changes_meanwhile_is_left_to_the_next_pass(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.pool(quantity=1)
    yard.settle()
    patch(yard, annotations={"note": "new"})
    (claim,) = yard.claims()

    def change() -> None:
        changed: NodeClaim = replace(claim, priority=1, version=claim.version + 1)
        yard.nodes.services.store.commit(Replace(changed))

    yard.before_commit(monkeypatch, 2, change)
    yard.look()
    assert drift_of(yard) == {("True", "AsLaunched")}
    yard.look()
    assert drift_of(yard) == {("False", "NodePoolDrifted")}
    assert yard.claims()[0].priority == 1
