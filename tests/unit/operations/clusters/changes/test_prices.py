"""A plan says of now what the costs say, with every node; nodes that stay cost the same afterwards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.pools.pools import PoolCreate
from stockyard.domain.nodes.records import Placement
from stockyard.operations.clusters.changes.prices import items_after
from stockyard.operations.clusters.changes.repaves import plan_repave
from stockyard.operations.costs.report import report
from stockyard.operations.fleet.pools import pools
from stockyard.operations.fleet.pools.claims import commit_claims, draft_claim
from stockyard.operations.pricing import price
from stockyard.ports import Replace
from tests.unit.operations.clusters.balanced_world import NODE_USD_HOUR, USER, WEB, BalancedWorld, balanced_world

SPOT_USD_HOUR = 0.0157
BASE = 0.257941
"""What is billed beside the nodes."""


@pytest.fixture
def balanced() -> BalancedWorld:
    """Two nodes of the group ``web``, as many as its floor, and one of a pool that is no group."""
    balanced = balanced_world()
    body = read(PoolCreate, {"name": "burst", "requirements": []})
    pools.create_pool(balanced.world.services, balanced.cluster, body.new_pool(), USER)
    add(balanced, "burst", SPOT_USD_HOUR, "spot")
    return balanced


def add(balanced: BalancedWorld, name: str, usd_hour: float | None, capacity_type: str = "on-demand") -> None:
    """One more node of the pool, at that price."""
    services, pool = balanced.world.services, balanced.pools()[name]
    placed = Placement("p", "yard.m5", capacity_type, ("a",), 1.0, services.now(), usd_hour=usd_hour)
    drafted = draft_claim(services, balanced.id, pool)
    commit_claims(services, balanced.cluster, pool, [drafted])
    (claim,) = (claim for claim in balanced.claims(name) if claim.id == drafted.id)
    services.store.commit(Replace(replace(claim, phase="Available", placement=placed, version=claim.version + 1)))


def after(balanced: BalancedWorld, **group: Any) -> float:
    plan = balanced.plan(balanced.groups({**WEB, **group}))
    assert plan["price_before"]["hour"] == report(balanced.world.services, balanced.cluster)["hour"]
    return float(plan["price"]["hour"])


def test_now_is_what_the_costs_say(balanced: BalancedWorld) -> None:
    now = BASE + 2 * NODE_USD_HOUR + SPOT_USD_HOUR
    assert report(balanced.world.services, balanced.cluster)["hour"] == pytest.approx(now, abs=1e-6)
    assert after(balanced, labels={"tier": "a"}) == pytest.approx(now, abs=1e-6)
    repave = plan_repave(balanced.world.services, balanced.id)
    assert repave["price"] == repave["price_before"]
    assert repave["price"]["hour"] == pytest.approx(now, abs=1e-6)
    lines = [item["name"] for item in repave["price"]["items"] if "of pool" in item["name"]]
    assert lines == ["1 node of pool burst (yard.m5, spot)", "2 nodes of pool web (yard.m5, on-demand)"]
    resumed = price(items_after(balanced.world.services, balanced.cluster, balanced.cluster))
    assert resumed["hour"] == repave["price"]["hour"]


def test_nodes_beyond_the_floor_are_counted_and_stay_within_the_new_sizes(balanced: BalancedWorld) -> None:
    add(balanced, "web", NODE_USD_HOUR)
    three = BASE + 3 * NODE_USD_HOUR + SPOT_USD_HOUR
    assert after(balanced, labels={"tier": "a"}) == pytest.approx(three, abs=1e-6)
    assert after(balanced, min_size=4) == pytest.approx(three + NODE_USD_HOUR, abs=1e-5)
    assert after(balanced, min_size=1, max_size=2) == pytest.approx(three - NODE_USD_HOUR, abs=1e-5)
    other = balanced.plan(balanced.groups({**WEB, "name": "other"}))
    assert other["price"]["hour"] == pytest.approx(three - NODE_USD_HOUR, abs=1e-5)


def test_nodes_that_are_replaced_by_others_cost_what_these_cost(balanced: BalancedWorld) -> None:
    add(balanced, "web", 9.0)
    now = BASE + 2 * NODE_USD_HOUR + 9 + SPOT_USD_HOUR
    wider = {**WEB, "root_disk_gib": 1050}
    plan = balanced.plan(balanced.groups(wider))
    assert plan["price_before"]["hour"] == pytest.approx(now, abs=1e-5)
    disks = 3 * 0.08 * 1000 / 730
    assert plan["price"]["hour"] == pytest.approx(BASE + 3 * NODE_USD_HOUR + disks + SPOT_USD_HOUR, abs=1e-5)


def test_a_node_without_a_price_leaves_no_sum(balanced: BalancedWorld) -> None:
    add(balanced, "burst", None)
    plan = balanced.plan(balanced.groups({**WEB, "labels": {"tier": "a"}}))
    assert (plan["price_before"]["hour"], plan["price"]["hour"]) == (None, None)
    assert plan["price_before"]["known_hour"] == report(balanced.world.services, balanced.cluster)["known_hour"]
