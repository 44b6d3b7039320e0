"""A store that a release before the defaults has written: what is there keeps what it has, and nothing leaves.

``store_of_schema_1.json`` has the items of a cluster with a static pool ``always`` (two nodes of arm64, which nobody
asked for), a dynamic pool ``burst`` (a spot node), claims of a person on spot and on arm64, and one that waits. None of
them but ``arm`` named an architecture or a capacity type.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from stockyard.domain.nodes.defaults import AMD64, DEFAULTS
from stockyard.domain.records import Cluster, NodeClaim, NodeProvider
from stockyard.domain.values.requirements import ARCH, CAPACITY_TYPE
from stockyard.operations.fleet.pools.pools import claims_of, pools_of
from stockyard.operations.listing import every
from stockyard.operations.node_claims.drift import compare_pool, compare_providers
from stockyard.ports import Replace
from tests.unit.operations.fleet.disruption import conftest
from tests.unit.operations.fleet.disruption.conftest import Pods, pod

STORE = Path(__file__).with_name("store_of_schema_1.json")
OPEN = {CAPACITY_TYPE: "Exists", ARCH: "NotIn"}
"""How a record says that it takes each capacity type, and each architecture."""


@pytest.fixture
def earlier(pods: Pods, monkeypatch: pytest.MonkeyPatch) -> Pods:
    """The earlier store, with its pods where they were."""
    document = json.loads(STORE.read_text(encoding="utf-8"))
    table, yard = pods.yard.nodes.registry.table, pods.yard
    table.partitions.clear()
    for item in document["items"]:
        assert item["schema"] == {"N": "1"}
        table.partitions[item["pk"]["S"]][item["sk"]["S"]] = item
    now = datetime.fromisoformat(document["now"])
    yard.nodes.clock.advance((now - yard.nodes.clock.now()).total_seconds())
    (yard.cluster,) = every(yard.nodes.services.store, Cluster)
    sizes = {"lab.arm": (2000, 4), "lab.amd": (8000, 32), "lab.mid": (2000, 4)}
    monkeypatch.setattr(conftest, "ROOM", {**conftest.ROOM, **sizes})
    for claim in pods.claims():
        count = {"always": "1500m", "burst": "6"}.get(claim.pool, "6" if claim.name == "big" else "")
        pods.on[claim.node_name] = [pod(count)] if count else []
    return pods


def nodes_of(pods: Pods) -> dict[str, tuple[str, str]]:
    return {
        claim.name: (claim.type_ref, claim.placement.capacity_type)
        for claim in pods.claims()
        if claim.placement is not None
    }


def operators(requirements: tuple[dict[str, object], ...]) -> dict[object, object]:
    return {entry["key"]: entry["operator"] for entry in requirements if entry["key"] in DEFAULTS}


def test_no_node_leaves_and_no_pool_drifts(earlier: Pods) -> None:
    services, cluster = earlier.yard.nodes.services, earlier.yard.cluster
    before = nodes_of(earlier)
    assert sorted(before.values()) == [*[("lab.amd", "spot")] * 2, *[("lab.arm", "on-demand")] * 4]
    versions = {pool.name: pool.generation for pool in pools_of(services, cluster.id)}
    earlier.run(90)
    assert nodes_of(earlier) == before
    assert earlier.fewest == len(before)
    assert not earlier.waiting
    for pool in pools_of(services, cluster.id):
        assert compare_pool(services, pool, claims_of(services, cluster.id, pool.name), most=100) == 0
        assert pool.generation == versions[pool.name]
    compare_providers(services, [provider.id for provider in every(services.store, NodeProvider)])
    assert not [claim.name for claim in claims_of(services, cluster.id) if claim.drift_reasons]


def test_a_later_change_of_a_pool_makes_no_drift_by_what_it_had(earlier: Pods) -> None:
    """Nodes are compared with the pool's requirements then."""
    services, before = earlier.yard.nodes.services, nodes_of(earlier)
    for pool in pools_of(services, earlier.yard.cluster.id):
        services.store.commit(Replace(replace(pool, generation=pool.generation + 1, version=pool.version + 1)))
    earlier.run(30)
    assert nodes_of(earlier) == before


def test_pools_and_claims_say_what_they_take_and_keep_it_when_they_are_written(earlier: Pods) -> None:
    services, cluster = earlier.yard.nodes.services, earlier.yard.cluster
    for pool in pools_of(services, cluster.id):
        assert operators(pool.requirements) == OPEN
        services.store.commit(Replace(replace(pool, version=pool.version + 1)))
    assert [operators(pool.requirements) for pool in pools_of(services, cluster.id)] == [OPEN, OPEN]
    named = {claim.name: operators(claim.requirements) for claim in claims_of(services, cluster.id)}
    assert named["one"] == named["big"] == named["waits"] == OPEN
    assert named["arm"] == {ARCH: "In", CAPACITY_TYPE: "Exists"}
    assert {operator for name, keys in named.items() if name.startswith("burst") for operator in keys.values()} == {
        "In"
    }, "a planned node lists its types, and so their architectures"


def test_what_they_make_next_is_as_before_and_what_is_new_is_not(earlier: Pods) -> None:
    yard = earlier.yard
    services, nodes = yard.nodes.services, yard.nodes
    arm = {"kubernetes.io/arch": "arm64"}
    nodes.provider(
        "huge",
        {"name": "arm", "resources": {"cpu": "999", "memory": "1Ti"}, "properties": arm, "usdPerHour": 9},
        {"name": "any", "resources": {"cpu": "999", "memory": "1Ti"}, "usdPerHour": 20, "spotUsdPerHour": 10},
    )
    new = nodes.claim("new", cluster_ref=yard.cluster.id, resources={"cpu": "900"})
    nodes.clock.advance(60)
    nodes.schedule()
    (waited,) = [claim for claim in every(services.store, NodeClaim) if claim.name == "waits"]
    placed = [nodes.now(claim).placement for claim in (waited, new)]
    ways = [(way.type, way.capacity_type) for way in placed if way is not None]
    assert ways == [("huge.arm", "on-demand"), ("huge.any", "on-demand")]
    for name in ("always", "burst"):
        pool = yard.now(name)
        services.store.commit(
            Replace(replace(pool, quantity=3, version=pool.version + 1, due_at=services.now()))
            if name == "always"
            else Replace(replace(pool, floor=2, version=pool.version + 1, due_at=services.now()))
        )
    earlier.run(4)
    fresh = {claim.pool: claim.type_ref for claim in earlier.claims() if claim.created_at > new.created_at}
    assert fresh == {"always": "lab.arm", "burst": "lab.arm"}
    earlier.yard.dynamic_pool("new", floor=1)
    earlier.run(4)
    (of_new_pool,) = claims_of(services, yard.cluster.id, "new")
    assert of_new_pool.placement is not None
    assert (of_new_pool.type_ref, of_new_pool.placement.capacity_type) == ("lab.mid", "on-demand"), AMD64
