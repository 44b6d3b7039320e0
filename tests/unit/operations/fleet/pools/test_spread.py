"""Pools with zones: nodes are made evenly, given back evenly, and go elsewhere when a zone has no room."""

from __future__ import annotations

from collections import Counter
from typing import Any

from stockyard.domain.models.base import read
from stockyard.domain.models.pools.pools import PoolPatch
from stockyard.lifecycle.pools.spread import zone_of
from stockyard.operations.fleet.pools import pools
from tests.unit.operations.fleet.pools.conftest import Yard

ZONES = ["a", "b", "c"]
IN_ZONES = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.1, "zones": ZONES}


def spread(yard: Yard, **fields: Any) -> None:
    yard.nodes.provider("zonal", IN_ZONES)
    yard.pool(provider="zonal", zones=ZONES, **fields)
    yard.settle()


def change(yard: Yard, **fields: Any) -> None:
    pool = yard.now()
    changed = read(PoolPatch, fields).apply_to(pool)
    pools.change_pool(yard.nodes.services, yard.current(), pool, pool.version, changed, "user:ann", "r")
    yard.nodes.clock.advance(60)
    yard.settle()


def zones(yard: Yard) -> Counter[str]:
    return Counter(zone_of(claim) for claim in yard.claims() if not claim.deleting)


def test_a_pool_grows_and_shrinks_evenly(yard: Yard) -> None:
    spread(yard, quantity=5)
    assert sorted(zones(yard).values()) == [1, 2, 2]
    assert {claim.node_labels["topology.kubernetes.io/zone"] for claim in yard.claims()} == set(ZONES)
    for quantity in (7, 3, 4, 1, 0):
        change(yard, quantity=quantity)
        amounts = [zones(yard)[zone] for zone in ZONES]
        assert sum(amounts) == quantity
        assert max(amounts) - min(amounts) <= 1


def test_other_zones_a_bid_and_a_strategy_are_a_patch_of_the_pool(yard: Yard) -> None:
    spread(yard, quantity=2, max_price={"percent": 80})
    assert yard.claims()[0].max_price == {"percent": 80}
    change(yard, max_price={"usd_hour": 0.2}, update_strategy={"type": "remove_first"}, zones=["b"])
    pool = yard.now()
    assert (pool.max_price, pool.update_strategy, pool.zones) == ({"usd_hour": 0.2}, {"type": "remove_first"}, ("b",))
    drifted = {zone_of(claim): claim.drift_reasons for claim in yard.claims()}
    assert drifted == {"a": ("RequirementsDrifted",), "b": ()}
    change(yard, max_price=None, update_strategy={"type": "add_first"})
    assert (yard.now().max_price, yard.now().update_strategy) == ({}, {})


def test_claims_of_a_zone_without_room_go_to_the_others_and_new_ones_come_back(yard: Yard) -> None:
    yard.nodes.refused = {("zonal", "small", "a")}
    spread(yard, quantity=6)
    assert zones(yard) == {"a": 2, "b": 2, "c": 2}
    assert sum(claim.phase == "Available" for claim in yard.claims()) == 4
    yard.nodes.clock.advance(301)
    yard.settle()
    assert zones(yard) == {"b": 3, "c": 3}
    assert all(claim.phase == "Available" for claim in yard.claims())
    assert any("ZoneChanged" in yard.reasons(claim.id) for claim in yard.claims())
    yard.nodes.refused = set()
    yard.nodes.clock.advance(3600)
    change(yard, quantity=9)
    assert zones(yard) == {"a": 3, "b": 3, "c": 3}


def test_where_no_zone_has_room_claims_stay(yard: Yard) -> None:
    yard.nodes.refused = {("zonal", "small", zone) for zone in ZONES}
    spread(yard, quantity=3)
    yard.nodes.clock.advance(301)
    yard.settle()
    assert zones(yard) == {"a": 1, "b": 1, "c": 1}
