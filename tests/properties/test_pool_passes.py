"""Passes over pools, schedulers, workflows and reports of pods at once, on what each read before the others wrote.

A pass, a scheduler, or a report of the agent comes between any two writes of another pass; nodes are lost, claims fail,
quantities and limits change. No limit is exceeded while it stands, no claim is made twice, none is lost, and in the end
each pool has what it is to have.
"""

from __future__ import annotations

import random
from collections import Counter as Tally
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from local.testing.memory_store import MemoryStore
from stockyard.domain.models.base import read
from stockyard.domain.models.pools.pools import PoolCreate
from stockyard.domain.pools.records import STATIC, ClusterClaim, NewPool, Pool
from stockyard.domain.records import Cluster, Name, NodeClaim, Operation
from stockyard.domain.values.requirements import NODE_TYPE
from stockyard.errors import PreconditionFailed
from stockyard.lifecycle.pools.pool import living
from stockyard.operations.fleet.pools import pools, reconcile
from stockyard.operations.fleet.pools.autoscaler import Autoscaler
from stockyard.operations.fleet.state import PendingGroup, Workload
from stockyard.operations.listing import every
from stockyard.ports import Replace, Write
from stockyard.scheduling.packing.manifests import read_pod
from tests.unit.operations.conftest import make_world
from tests.unit.operations.nodes import Nodes

TYPES = (("small", "2", "4Gi", 0.1), ("large", "8", "32Gi", 0.3))
CPU = ("500m", "1", "3")
MOST = 9
"""Passes, schedulers and reports that go on within one other."""
USER = "user:ann"
_counts: Tally[str] = Tally()


@dataclass
class Between:
    """A tenant's store that lets somebody else go on before each write."""

    store: MemoryStore
    first: Callable[[], None]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def commit(self, *writes: Write) -> None:
        self.first()
        self.store.commit(*writes)


class PoolPasses(RuleBasedStateMachine):
    """A static pool, one limited by nodes, one by money, and pods that wait for the dynamic ones."""

    def __init__(self) -> None:
        super().__init__()
        world = make_world()
        self.nodes = Nodes.of(world.registry, world.services, world.clock)
        kinds = [{"name": n, "resources": {"cpu": c, "memory": m}, "usdPerHour": p} for n, c, m, p in TYPES]
        self.nodes.provider("lab", *kinds)
        cluster = world.create()
        self.cluster: Cluster = replace(cluster, status="ready", version=cluster.version + 1)
        self.nodes.services.store.commit(Replace(self.cluster))
        self.workload = Workload((), {}, {}, {}, self.nodes.services.now(), 1)
        self.budget = 0
        self.waiting = 0
        self.patched = patch.object(reconcile, "workload_of", lambda *_: self.workload)
        self.patched.start()

    def teardown(self) -> None:
        try:
            self._settle()
        finally:
            self.patched.stop()

    # --- what happens -----------------------------------------------------------------------------------------------

    @initialize(quantity=strategies.integers(0, 4), nodes=strategies.integers(1, 5), floor=strategies.integers(0, 1))
    def make(self, quantity: int, nodes: int, floor: int) -> None:
        self._create({"name": "base", "quantity": quantity})
        self._create({"name": "counted", "limits": {"nodes": nodes}, "floor": floor, "weight": 2})
        self._create({"name": "paid", "limits": {"usd_hour": 0.75}, "weight": 1})

    def _create(self, document: dict[str, Any]) -> None:
        pools.create_pool(self.nodes.services, self.cluster, read(PoolCreate, document).new_pool(), USER)

    @rule(cpu=strategies.sampled_from(CPU), count=strategies.integers(0, 12))
    def report(self, cpu: str, count: int) -> None:
        """The agent tells of other pods that wait."""
        container = {"resources": {"requests": {"cpu": cpu, "memory": "512Mi"}}}
        pod = read_pod({"metadata": {"namespace": "default"}, "spec": {"containers": [container]}})
        pending = (PendingGroup(pod, count, "g", ("default/p",)),) if count else ()
        self.workload = replace(self.workload, pending=pending, sequence=self.workload.sequence + 1)

    @rule(seed=strategies.integers(0, 2**32), depth=strategies.integers(0, 3))
    def look(self, seed: int, depth: int) -> None:
        """A pass, and between its writes others, schedulers and reports of pods."""
        self._look(random.Random(seed), depth)

    @rule(seed=strategies.integers(0, 2**32), count=strategies.integers(1, 12), quantity=strategies.integers(0, 5))
    def rush(self, seed: int, count: int, quantity: int) -> None:
        """New pods and another quantity, and at once several passes that were woken by them."""
        self.report("3", count)
        self.scale(quantity)
        self._look(random.Random(seed), 3)

    def _look(self, chance: random.Random, depth: int) -> None:
        self.budget = MOST
        before = len(living(self._of("base")))
        self._pass(chance, depth)
        quantity = pools.find_pool(self.nodes.services, self.cluster, "base").quantity
        assert len(living(self._of("base"))) <= max(before, quantity), "the static pool has bought too much"

    def _pass(self, chance: random.Random, depth: int) -> None:
        def first() -> None:
            if depth > 0 and self.budget > 0 and chance.random() < 0.85:
                self.budget -= 1
                _counts["interleavings"] += 1
                [between] = chance.choices((self._pass, self._schedule, self._report), (6, 2, 2))
                between(chance, depth - 1)

        _counts["passes"] += 1
        store: Any = Between(self.nodes.registry.store("acme"), first)
        services = replace(self.nodes.services, store=store)
        Autoscaler(self.nodes.registry, lambda _: services).woken("acme", self.cluster.id)

    def _schedule(self, *_: Any) -> None:
        self.nodes.schedule()

    def _report(self, chance: random.Random, _: int) -> None:
        _counts["reports"] += 1
        self.report(chance.choice(CPU), chance.randint(0, 12))

    @rule()
    def schedule(self) -> None:
        self.nodes.schedule()

    @rule()
    def work(self) -> None:
        """The workflows that were started run to their end."""
        self.nodes.relay()

    @rule(index=strategies.integers(0, 20), joined=strategies.booleans())
    def lose(self, index: int, joined: bool) -> None:
        """A node is lost, or a claim never becomes one: then what was at work on it has failed as well."""
        present = [claim for claim in self._claims() if not claim.deleting and claim.phase != "Failed"]
        if not present:
            return
        claim = present[index % len(present)]
        name = claim.name if joined else ""
        failed = replace(claim, phase="Failed", due_at=None, node_name=name, version=claim.version + 1)
        store = self.nodes.services.store
        operation = store.get(Operation, claim.operation_id) if claim.operation_id else None
        writes: list[Write] = [Replace(failed)]
        if operation is not None and operation.status == "running":
            writes.append(Replace(replace(operation, status="failed", version=operation.version + 1)))
        store.commit(*writes)
        self.nodes.clock.advance(7200)

    @rule(quantity=strategies.integers(0, 5))
    def scale(self, quantity: int) -> None:
        self._change("base", quantity=quantity)

    @rule(nodes=strategies.integers(1, 5))
    def limit(self, nodes: int) -> None:
        self._change("counted", limits={"nodes": str(nodes)})

    def _change(self, name: str, **fields: Any) -> None:
        pool = pools.find_pool(self.nodes.services, self.cluster, name)
        changed = NewPool(name=pool.name, form=pool.form, document=pool.document, **{**pool.spec(), **fields})
        try:
            pools.change_pool(self.nodes.services, self.cluster, pool, pool.version, changed, USER, "r")
        except PreconditionFailed:
            _counts["changes refused"] += 1
        if name == "counted":
            # A lowered limit removes nothing: what is there may stay above it.
            self.waiting = max(self.waiting, len(living(self._of("counted"))))

    # --- what always holds ------------------------------------------------------------------------------------------

    def _claims(self) -> list[NodeClaim]:
        return list(every(self.nodes.services.store, NodeClaim))

    def _of(self, name: str) -> list[NodeClaim]:
        return [claim for claim in self._claims() if claim.pool == name]

    @invariant()
    def every_claim_has_one_entry_and_one_name(self) -> None:
        store, claims = self.nodes.services.store, self._claims()
        entries = sorted(entry.claim_id for entry in every(store, ClusterClaim))
        assert entries == sorted(claim.id for claim in claims)
        names = [name.owner for name in every(store, Name) if name.id.startswith("node-claim/")]
        assert sorted(names) == entries

    @invariant()
    def no_limit_is_exceeded(self) -> None:
        pool = self.nodes.services.store.get(Pool, f"{self.cluster.id}/counted")
        if pool is None:
            return
        most = max(int(pool.limits["nodes"]), pool.floor, self.waiting)
        assert len(living(self._of("counted"))) <= most
        assert sum(_price(claim) for claim in living(self._of("paid"))) <= 0.75 + 1e-9

    def _settle(self) -> None:
        """Check that without disturbances the static pool has its quantity, and pods have nodes as limits allow."""
        if self.nodes.services.store.get(Pool, f"{self.cluster.id}/base") is None:
            return
        for _ in range(8):
            self.nodes.clock.advance(7200)
            self._pass(random.Random(0), 0)
            self.nodes.schedule()
            self.nodes.relay()
        for pool in pools.pools_of(self.nodes.services, self.cluster.id):
            present = living(self._of(pool.name))
            assert all(claim.phase == "Available" for claim in present)
            if pool.kind == STATIC:
                assert len(present) == pool.quantity
            assert len(present) >= pool.floor
        plan_made = [pool.claims_made for pool in pools.pools_of(self.nodes.services, self.cluster.id)]
        self._pass(random.Random(0), 0)
        again = [pool.claims_made for pool in pools.pools_of(self.nodes.services, self.cluster.id)]
        assert plan_made == again, "nothing is made twice for the same pods"


def _price(claim: NodeClaim) -> float:
    """Price of the claim, or the least that it can be: it names the types that it may become."""
    if claim.placement is not None:
        return claim.placement.usd_hour or 0.0
    (types,) = [wish["values"] for wish in claim.requirements if wish["key"] == NODE_TYPE]
    return min(price for name, _, _, price in TYPES if f"lab.{name}" in types)


@pytest.mark.timeout(14_400)
def test_passes_over_pools_that_overlap(
    soaking: bool, seed: int, record_property: Callable[[str, object], None]
) -> None:
    _counts.clear()
    examples, steps = (320, 50) if soaking else (10, 20)
    hypothesis.seed(seed)(PoolPasses)
    run_state_machine_as_test(
        PoolPasses,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    record_property("figure:pool_passes", {**_counts, "examples": examples, "seed": seed})
    assert _counts["interleavings"] >= (10_000 if soaking else 10)
