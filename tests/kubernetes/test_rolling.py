"""A static pool whose nodes are to be of another type is rolled, and has its nodes all the while.

Stockyard's operations, the agent and the API server take part; the clock is the test's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.pools.pools import PoolPatch
from stockyard.operations.fleet.pools import pools
from stockyard.ports import Store, Write
from tests.kubernetes.product import SharedClock, Town, now_world
from tests.kubernetes.rigs import SimulatedRig
from tests.unit.operations.fleet.pools.conftest import USER

pytestmark = pytest.mark.timeout(600)

POOL, QUANTITY = "fixed", 10
SMALL, LARGE = "sim.small", "sim.large"


def of_type(name: str) -> list[dict[str, Any]]:
    """The requirement of one node type."""
    return [{"key": "vcluster.com/node-type", "operator": "In", "values": [name]}]


@pytest.fixture
def town(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Town]:
    world = now_world()
    if request.param == "real":
        yield Town.of(request.getfixturevalue("real_rig"), world, monkeypatch)
        return
    rig = SimulatedRig(clock=SharedClock(world.clock))
    yield Town.of(rig, world, monkeypatch)
    rig.close()


@dataclass
class Counts:
    """Counts at each moment: after every write to the table, and whenever the agent had worked."""

    town: Town
    fewest_claims: int = QUANTITY
    fewest_nodes: int = QUANTITY
    most_claims: int = QUANTITY
    moments: int = 0

    def look_at_claims(self) -> None:
        """Claims that are nodes, and all that there are."""
        claims = self.town.yard.claims(POOL)
        self.moments += 1
        self.fewest_claims = min(self.fewest_claims, sum(_is_node(claim) for claim in claims))
        self.most_claims = max(self.most_claims, sum(claim.phase != "Failed" for claim in claims))

    def look_at_nodes(self) -> None:
        """Nodes of the cluster that are ready and take pods."""
        going = {claim.id for claim in self.town.yard.claims(POOL) if claim.deleting}
        nodes = self.town.nodes()
        ready = [
            claim
            for claim, node in nodes.items()
            if claim not in going and not node["spec"].get("unschedulable") and _is_ready(node)
        ]
        self.fewest_nodes = min(self.fewest_nodes, len(ready))


def _is_node(claim: Any) -> bool:
    return claim.phase == "Available" and not claim.deleting


def _is_ready(node: Any) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"]["conditions"])


def watch_all(town: Town, monkeypatch: pytest.MonkeyPatch) -> Counts:
    """Count at every write, and in the cluster whenever the agent has worked."""
    counts = Counts(town)
    store_type = type(town.yard.nodes.services.store)
    original = store_type.commit

    def commit(store: Store, *writes: Write) -> None:
        original(store, *writes)
        counts.look_at_claims()

    monkeypatch.setattr(store_type, "commit", commit)
    town.watching = counts.look_at_nodes
    return counts


@pytest.mark.parametrize(
    ("town", "budgets", "allowed"),
    [("simulated", ["10%"], 1), ("simulated", ["50%", "3"], 3), ("real", ["50%", "3"], 3)],
    ids=["a tenth", "three", "three on a real cluster"],
    indirect=["town"],
)
def test_a_static_pool_is_rolled_to_another_type_within_its_budget(
    town: Town,
    budgets: list[str],
    allowed: int,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    disruption = {"budgets": [{"nodes": nodes} for nodes in budgets]}
    town.yard.pool(POOL, quantity=QUANTITY, requirements=of_type(SMALL), disruption=disruption)
    town.until(lambda: len(town.nodes()) == QUANTITY and town.calm())
    town.minute()
    old = {claim.id: claim for claim in town.claims()}
    assert {claim.type_ref for claim in old.values()} == {SMALL}
    for number, claim in enumerate(old.values()):
        town.rig.put(f"db-{number}", str(claim.node_name))
    counts, began = watch_all(town, monkeypatch), town.yard.nodes.clock.now()
    pool = town.yard.now(POOL)
    changed = read(PoolPatch, {"requirements": of_type(LARGE)}).apply_to(pool)
    pools.change_pool(town.yard.nodes.services, town.yard.current(), pool, pool.version, changed, USER, "request")

    def is_rolled() -> bool:
        return town.calm() and {claim.type_ref for claim in town.claims()} == {LARGE}

    town.until(is_rolled, 120)
    current = town.claims()
    assert len(current) == QUANTITY
    assert town.nodes().keys() == {claim.id for claim in current}
    assert not old.keys() & town.nodes().keys()
    assert len(town.yard.nodes.machines()) == QUANTITY, "nothing is left of the old ones"
    assert counts.moments > QUANTITY
    assert counts.fewest_claims >= QUANTITY - allowed
    assert counts.fewest_nodes >= QUANTITY - allowed
    assert counts.most_claims <= QUANTITY + allowed, "no more are replaced at a time"
    assert all(len(decision.nodes) <= allowed for decision in town.decisions)
    minutes = (town.yard.nodes.clock.now() - began).total_seconds() / 60
    figure = {"fewest_claims": counts.fewest_claims, "fewest_nodes": counts.fewest_nodes}
    figure |= {"most": counts.most_claims, "allowed": allowed, "moments": counts.moments, "minutes": round(minutes)}
    record_property(f"figure:rolling_{allowed}_{type(town.rig).__name__}", figure)
