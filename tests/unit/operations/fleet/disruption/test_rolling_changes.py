"""A pool of 10 nodes over three zones is replaced: there are always as many ready nodes as its strategy says, and its
zones stay even, as the records have it and as somebody reads it who only follows the events."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from stockyard.domain.pools.records import Pool
from stockyard.domain.records import Event, NodeClaim
from stockyard.domain.views import event_view
from stockyard.lifecycle.nodes.node_phases import NOT_DRIFTED
from stockyard.lifecycle.pools.spread import zone_of
from stockyard.operations.fleet.pools import pools as pool_operations
from stockyard.operations.listing import every
from stockyard.ports import Replace, Store, Write
from tests.unit.operations.fleet.disruption.conftest import POOL, Pods

ZONES = ["a", "b", "c"]
NODES = 10
IN_ZONES = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.1, "zones": ZONES}
ADD_FIRST: dict[str, Any] = {"type": "add_first"}
REMOVE_FIRST: dict[str, Any] = {"type": "remove_first"}


def custom(surge: int | str, unavailable: int | str) -> dict[str, Any]:
    return {"type": "custom", "max_surge": surge, "max_unavailable": unavailable}


@dataclass
class Follower:
    """Reads a pool by nothing but the events of its nodes."""

    phases: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Phase and zone by node."""
    event_ids: set[str] = field(default_factory=set)

    def read(self, services: Any) -> None:
        news = [event_view(event, "acme") for event in every(services.store, Event) if event.id not in self.event_ids]
        for event in news:
            self.event_ids.add(event["id"])
            if event["detail_type"] == "NodeClaim" and event["pool"] == POOL:
                self.phases[event["subject"]] = (event["phase"]["after"], event["zone"])

    @property
    def ready(self) -> int:
        return sum(phase == "Available" for phase, _ in self.phases.values())

    @property
    def zones(self) -> Counter[str]:
        return Counter(zone for phase, zone in self.phases.values() if phase in ("Pending", "Available"))


@dataclass
class Watch:
    """Looks at the pool at every commit, while it is on."""

    pods: Pods
    follower: Follower = field(default_factory=Follower)
    fewest: int = NODES
    most: int = 0
    looks: int = 0

    def look(self) -> None:
        claims = list(pool_operations.claims_of(self.services, self.pods.yard.cluster.id, POOL))
        staying = [claim for claim in claims if not claim.deleting and claim.phase != "Failed"]
        zones = Counter(map(zone_of, staying))
        self.follower.read(self.services)
        ready = sum(claim.phase == "Available" for claim in staying)
        assert (self.follower.ready, self.follower.zones) == (ready, zones)
        assert max(zones[zone] for zone in ZONES) - min(zones[zone] for zone in ZONES) <= 1, zones
        self.fewest, self.most = min(self.fewest, ready), max(self.most, len(claims))
        self.looks += 1

    @property
    def services(self) -> Any:
        return self.pods.yard.nodes.services


def rolled(pods: Pods, monkeypatch: pytest.MonkeyPatch, strategy: dict[str, Any], **fields: Any) -> Watch:
    """A pool with these nodes whose labels have changed, when all of them are new."""
    pods.yard.nodes.provider("zonal", IN_ZONES)
    shape = fields or {"quantity": NODES}
    pods.yard.dynamic_pool(POOL, provider="zonal", zones=ZONES, update_strategy=strategy, **shape)
    pods.run(4)
    before = {claim.id for claim in pods.claims()}
    assert len(before) == NODES
    watch = Watch(pods)
    watch.look()
    original = type(pods.yard.nodes.services.store).commit

    def commit(store: Store, *writes: Write) -> None:
        original(store, *writes)
        if any(isinstance(getattr(write, "record", None), NodeClaim | Event) for write in writes):
            watch.look()

    monkeypatch.setattr(type(pods.yard.nodes.services.store), "commit", commit)
    pool = pods.yard.now(POOL)
    changed = relabelled(pool)
    pods.yard.nodes.services.store.commit(Replace(changed))
    for _ in range(90):
        pods.run(1)
        if not before & {claim.id for claim in all_claims(pods)} and len(pods.claims()) == NODES:
            break
    pods.run(2)
    now = pods.claims()
    assert len(now) == NODES
    assert not before & {claim.id for claim in now}
    assert all(claim.labels["tier"] == "new" for claim in now)
    assert not any(part.type == NOT_DRIFTED and part.status == "False" for each in now for part in each.conditions)
    return watch


def all_claims(pods: Pods) -> list[NodeClaim]:
    return list(pool_operations.claims_of(pods.yard.nodes.services, pods.yard.cluster.id, POOL))


def relabelled(pool: Pool) -> Pool:
    return replace(pool, labels={"tier": "new"}, generation=pool.generation + 1, version=pool.version + 1)


@pytest.mark.parametrize(
    ("strategy", "unavailable", "surge"),
    [
        (ADD_FIRST, 0, 1),
        (REMOVE_FIRST, 1, 0),
        (custom(2, 0), 0, 2),
        (custom(0, 3), 3, 0),
        (custom(1, 1), 1, 1),
        (custom(2, 1), 1, 2),
        (custom(1, 3), 3, 1),
        (custom("30%", "20%"), 2, 3),
    ],
    ids=str,
)
def test_zones_stay_even_and_enough_nodes_are_ready(
    pods: Pods, monkeypatch: pytest.MonkeyPatch, strategy: dict[str, Any], unavailable: int, surge: int
) -> None:
    watch = rolled(pods, monkeypatch, strategy)
    assert watch.fewest >= NODES - unavailable
    assert watch.most <= NODES + surge
    assert watch.looks > 2 * NODES
    if strategy == REMOVE_FIRST:
        assert (watch.fewest, watch.most) == (NODES - 1, NODES)


@pytest.mark.parametrize("strategy", [ADD_FIRST, REMOVE_FIRST, custom(1, 1)], ids=str)
def test_a_node_group_with_a_floor_is_replaced_in_the_same_way(
    pods: Pods, monkeypatch: pytest.MonkeyPatch, strategy: dict[str, Any]
) -> None:
    watch = rolled(pods, monkeypatch, strategy, floor=NODES, limits={"nodes": "14"})
    assert watch.fewest >= NODES - strategy.get("max_unavailable", int(strategy == REMOVE_FIRST))
