"""Two or more schedulers at once, on what each read before the others wrote: a state machine over a table in memory.

A second scheduler runs between any two writes of the first; stream records come late, twice and in any order; the relay
may be out for a day. No claim is bound twice, no capacity is exceeded, none is lost.
"""

from __future__ import annotations

import random
from collections import Counter as Tally
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from local.testing.memory_store import MemoryStore
from stockyard.domain.records import Counter, Event, NodeClaim, NodeProvider, Operation
from stockyard.operations.listing import every
from stockyard.operations.scheduler.wake import Scheduler
from stockyard.ports import Replace, Write
from tests.harness.sent import waiting
from tests.unit.operations.conftest import World, make_world
from tests.unit.operations.nodes import Nodes

TYPES = (("small", "2", "4Gi", 0.1), ("medium", "4", "16Gi", 0.2), ("large", "16", "64Gi", 0.8))
MOST = 8
"""Passes that go on within one other: each may stop for more at each of its writes."""
_counts: Tally[str] = Tally()


@dataclass
class Between:
    """A tenant's store that lets somebody else go on between what one reads and what one writes."""

    store: MemoryStore
    first: Callable[[], None]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def list(self, kind: Any, **options: Any) -> Any:
        page = self.store.list(kind, **options)
        if kind is Counter:
            # What is free was read; until it is used, others may take it.
            self.first()
        return page

    def commit(self, *writes: Write) -> None:
        self.first()
        self.store.commit(*writes)


class Schedulers(RuleBasedStateMachine):
    """``known`` are the claims as the stream showed them once: what a late or repeated record says."""

    def __init__(self) -> None:
        super().__init__()
        world: World = make_world()
        self.nodes = Nodes.of(world.registry, world.services, world.clock)
        self.known: list[NodeClaim] = []
        self.made: set[str] = set()
        self.deleted: set[str] = set()
        self.totals: dict[str, int] = {}
        self.left = 0

    @initialize(limits=strategies.lists(strategies.integers(0, 3), min_size=3, max_size=3), free=strategies.booleans())
    def providers(self, limits: list[int], free: bool) -> None:
        types = [
            {"name": name, "resources": {"cpu": cpu, "memory": memory}, "usdPerHour": price, "maxCapacity": limit}
            for (name, cpu, memory, price), limit in zip(TYPES, limits, strict=True)
        ]
        self.provider = self.nodes.provider("lab", *types)
        self.totals = {type_["name"]: type_["maxCapacity"] for type_ in types}
        if free:
            self.nodes.provider("open", {"name": "any", "resources": {"cpu": "64", "memory": "1Ti"}, "usdPerHour": 9})

    @rule(cpu=strategies.integers(1, 20), count=strategies.integers(1, 4), priority=strategies.integers(0, 2))
    def claims(self, cpu: int, count: int, priority: int) -> None:
        self._claims(cpu, count, priority)

    def _claims(self, cpu: int, count: int, priority: int) -> None:
        for _ in range(count):
            claim = self.nodes.claim(resources={"cpu": str(cpu)}, priority=priority)
            self.made.add(claim.id)
            self.known.append(claim)

    @rule(seed=strategies.integers(0, 2**32), depth=strategies.integers(1, 3), every_claim=strategies.booleans())
    def schedule(self, seed: int, depth: int, every_claim: bool) -> None:
        """One pass on any records of the stream, others passing between its writes."""
        self.left = MOST
        self._pass(random.Random(seed), depth, every_claim)

    def _pass(self, chance: random.Random, depth: int, every_claim: bool) -> None:
        def first() -> None:
            if depth > 0 and self.left > 0 and chance.random() < 0.5:
                self.left -= 1
                _counts["interleavings"] += 1
                self._pass(chance, depth - 1, chance.random() < 0.5)

        _counts["passes"] += 1
        store = Between(self.nodes.registry.store("acme"), first)
        factories = replace(self.nodes.services.factories, catalogs={})
        services = replace(self.nodes.services, store=store, factories=factories)
        scheduler = Scheduler(self.nodes.registry, lambda _: services)
        now = self.nodes.clock.advance(0.001)
        if every_claim:
            scheduler.overdue(now)
        elif self.known:
            records = [chance.choice(self.known) for _ in range(chance.randint(1, 2 * len(self.known)))]
            scheduler.woken([("acme", claim) for claim in records], now)
        for claim in every(self.nodes.services.store, NodeClaim):
            if claim.due_at is not None and claim not in self.known:
                self.known.append(claim)

    @rule(seed=strategies.integers(0, 2**32), cpu=strategies.integers(1, 20))
    def rush(self, seed: int, cpu: int) -> None:
        """New claims, and at once several schedulers that were woken by them."""
        self._claims(cpu, 3, 0)
        self.left = MOST
        self._pass(random.Random(seed), 3, False)

    @rule(twice=strategies.booleans())
    def relay(self, twice: bool) -> None:
        """The outbox is sent, some of it twice: the second start of a name is the first one."""
        for message in waiting(self.nodes.services.store, "workflow") if twice else ():
            self.nodes.run(str(message["workflow"]), message["input"])
        self.nodes.relay()

    @rule()
    def outage(self) -> None:
        """Nothing is sent for a day; the schedule goes on."""
        for _ in range(3):
            self.nodes.hours(8)
            self.nodes.schedule()

    @rule(index=strategies.integers(0, 50))
    def delete(self, index: int) -> None:
        claims = list(every(self.nodes.services.store, NodeClaim))
        if claims:
            claim = claims[index % len(claims)]
            self.nodes.delete(claim)
            self.deleted.add(claim.id)

    @rule(name=strategies.sampled_from([type_[0] for type_ in TYPES]))
    def run_out(self, name: str) -> None:
        self.nodes.refused ^= {("lab", name, "global")}

    @rule(name=strategies.sampled_from([type_[0] for type_ in TYPES]))
    def grow(self, name: str) -> None:
        """A type gets another place: the catalogue has a new version."""
        provider = self.nodes.services.store.get(NodeProvider, self.provider.id)
        assert provider is not None
        types = provider.spec["simulated"]["nodeTypes"]
        grown = [{**type_, "maxCapacity": type_["maxCapacity"] + (type_["name"] == name)} for type_ in types]
        changed = replace(provider, spec={"simulated": {"nodeTypes": grown}}, version=provider.version + 1)
        self.nodes.services.store.commit(Replace(changed))
        self.totals[name] += 1

    @invariant()
    def no_capacity_is_exceeded(self) -> None:
        counted = Tally(
            claim.placement.type.removeprefix("lab.")
            for claim in every(self.nodes.services.store, NodeClaim)
            if claim.placement is not None and claim.placement.counted
        )
        for name, total in self.totals.items():
            counter = self.nodes.services.store.get(Counter, f"capacity/{self.provider.id}/{name}")
            assert (counter.value if counter else 0) == counted[name], f"{name}: places are miscounted"
            assert counted[name] <= total, f"{name}: {counted[name]} of {total} places are taken"

    @invariant()
    def no_claim_is_bound_twice(self) -> None:
        starts = Tally(
            str(message["name"])
            for message in waiting(self.nodes.services.store, "workflow")
            if message["workflow"] == "provision-node"
        )
        assert set(starts.values()) <= {1}
        bound = Tally((event.subject, event.sequence) for event in every(self.nodes.services.store, Event))
        assert set(bound.values()) <= {1}, "two writers told the same step of a claim"

    @invariant()
    def no_claim_is_lost(self) -> None:
        there = {claim.id: claim for claim in every(self.nodes.services.store, NodeClaim)}
        assert self.made - set(there) <= self.deleted
        for claim in there.values():
            waits = claim.due_at is not None
            in_hand = claim.placement is not None or claim.deleting or claim.phase == "Failed"
            assert waits != in_hand, f"{claim.id} is neither waiting nor in hand"
            operation = self.nodes.services.store.get(Operation, str(claim.operation_id))
            assert operation is not None
            starts = waiting(self.nodes.services.store, "workflow")
            sent = any(message["name"] == claim.execution for message in starts)
            if not waits and not claim.deleting and claim.phase == "Pending":
                assert sent, f"{claim.id} is bound, but nothing starts its work"

    def teardown(self) -> None:
        """Everything that still stands can be given back, and then nothing is left."""
        for claim in list(every(self.nodes.services.store, NodeClaim)):
            self.nodes.delete(claim)
        self.nodes.relay()
        assert self.nodes.nothing_left()


@pytest.mark.timeout(14400)
def test_concurrent_schedulers_never_overcommit(
    soaking: bool, seed: int, record_property: Callable[[str, object], None]
) -> None:
    _counts.clear()
    examples, claims_needed = (400, 10_000) if soaking else (30, 20)
    options = settings(
        max_examples=examples,
        stateful_step_count=12,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
        phases=[Phase.generate, Phase.shrink] if soaking else [Phase.generate],
    )
    runs = 0
    while _counts["interleavings"] < claims_needed:
        # how many passes meet is left to chance, so that no number of examples promises a number of meetings
        runs += 1
        hypothesis.seed(1000 * seed + runs)(Schedulers)
        run_state_machine_as_test(Schedulers, settings=options)
        assert _counts["interleavings"] > claims_needed / 20 * runs, "passes hardly ever meet"
    record_property("figure:schedulers", {**_counts, "examples": examples * runs, "seed": seed})
