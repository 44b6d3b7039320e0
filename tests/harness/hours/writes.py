"""Writes of simulated hours: some fail on purpose, and each that is done is followed by the world."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from local.testing.memory_store import MemoryStore
from stockyard.domain.nodes.properties import node_labels
from stockyard.domain.pools.disruption_records import ClusterDisruption
from stockyard.domain.pools.records import POOL_LABEL, Pool
from stockyard.domain.records import Fact, NodeClaim, SimulatedMachine
from stockyard.domain.values import times
from stockyard.domain.values.requirements import CAPACITY_TYPE, NODE_POOL, ZONE
from stockyard.errors import Conflict, StoreUnavailable
from stockyard.lifecycle.nodes.node_commands import NODE, seen_of
from stockyard.ports import Add, Create, Put, Remove, Replace, Write
from tests.harness.crash.faults import Crash
from tests.harness.hours.agent import CLAIM

if TYPE_CHECKING:
    from tests.harness.hours.world import Hours


class HourStore(MemoryStore):
    """A tenant's store. ``spoil`` may fail a write; ``wrote`` sees what was written."""

    spoil: Callable[[tuple[Write, ...], Callable[[], None]], None]
    wrote: Callable[[tuple[Write, ...]], None]

    def commit(self, *writes: Write) -> None:
        """See ``MemoryStore.commit``."""
        commit = super().commit

        def work() -> None:
            commit(*writes)
            self.wrote(writes)

        self.spoil(writes, work)


class Writes:
    """Writes to a world's store, and what follows: its claims, pools and machines are what was written last."""

    def __init__(self, world: Hours) -> None:
        self._world = world

    def spoil(self, writes: tuple[Write, ...], work: Callable[[], None]) -> None:
        """Do the writes, or fail them by chance: by a conflict, before or after it, or without an answer."""
        share = self._world.trace.writes
        if not share or self._world.pass_name in ("", "scheduler") or self._world.trouble.random() >= share:
            work()
            return
        mode = self._world.trouble.choice(("conflict", "before", "after", "lost", "unavailable"))
        # Who counts is never second: a conflict of a counter says that its limit is reached.
        index = next((index for index, write in enumerate(writes) if not isinstance(write, Add)), None)
        if mode == "conflict" and self._world.pass_name != "workflow" and index is not None:
            raise Conflict("somebody else was first", index=index)
        if mode in ("after", "lost"):
            work()
        if mode in ("before", "after"):
            raise Crash(mode)
        raise StoreUnavailable("no answer")

    def follow(self, writes: tuple[Write, ...]) -> None:
        """Have the world know what was written."""
        for write in writes:
            if isinstance(write, Remove):
                self._removed(write)
            elif isinstance(write, Create | Replace):
                self._written(write.record)

    def _written(self, record: object) -> None:
        if isinstance(record, NodeClaim):
            before = self._world.claims.get(record.id)
            self._world.claims[record.id] = record
            self._world.waits.see(record)
            if before is None:
                self._world.judge.counts["claims made"] += 1
            if before is not None and record.deleting and not before.deleting:
                self._world.judge.leaves(before, record, self._world.pass_name)
                if self._world.pass_name == "disruption":
                    self._world.going.append(record.id)
        elif isinstance(record, Pool):
            self._world.pools[record.id] = record
        elif isinstance(record, ClusterDisruption):
            before_state = self._world.disruption.state if self._world.disruption is not None else ""
            self._world.disruption = record
            if record.state not in (before_state, "Idle"):
                self._world.judge.counts[f"decisions {record.state}"] += 1
        elif isinstance(record, SimulatedMachine):
            if record.id not in self._world.machines and record.joins_at is not None:
                self._world.time.at(times.from_text(record.joins_at), lambda: self._join(record.id))
            self._world.machines[record.id] = record

    def _removed(self, write: Remove) -> None:
        if write.kind is NodeClaim:
            self._world.claims.pop(write.id, None)
        elif write.kind is Pool:
            self._world.pools.pop(write.id, None)
        elif write.kind is ClusterDisruption:
            self._world.disruption = None
        elif write.kind is SimulatedMachine:
            machine = self._world.machines.pop(write.id, None)
            claim = self._world.claims.get(machine.claim_id) if machine is not None else None
            if claim is not None:
                name = f"{claim.name}.simulated"
                self._world.judge.machine_ends(claim, name)
                self._world.kube.silence(name)

    def _join(self, machine_id: str) -> None:
        machine = self._world.machines.get(machine_id)
        claim = self._world.claims.get(machine.claim_id) if machine is not None else None
        if machine is None or claim is None or claim.placement is None:
            return
        size = self._world.sizes[machine.type]
        labels = {
            **node_labels(None, claim, claim.placement),
            **claim.labels,
            CLAIM: claim.id,
            CAPACITY_TYPE: machine.capacity_type,
            ZONE: machine.zone,
            NODE_POOL: claim.pool,
            POOL_LABEL: claim.pool,
        }
        name = f"{claim.name}.simulated"
        self._world.kube.join(name, labels, size.cpu, size.mib, claim.taints)
        # While a claim is being made its agent comes often, and tells that its node has joined.
        self._world.time.later(self._world.chance.uniform(0.5, 10), lambda: self._tell(claim.id, name))

    def _tell(self, claim_id: str, name: str) -> None:
        """The agent tells of a node that has joined. Its word is kept of each claim of a real cloud; only a simulated
        provider knows by itself that a node has joined, and nobody waits for the word."""
        self._world.agent.post()
        claim, node = self._world.claims.get(claim_id), self._world.kube.nodes.get(name)
        if claim is None or node is None or self._world.agent.silent_until is not None:
            return
        metadata = node["metadata"]
        report = {"name": name, "uid": metadata["uid"], "ready": "True", "taints": [], "labels": metadata["labels"]}
        fact = Fact(f"{claim.id}/{NODE}", json.dumps(seen_of(claim, report)), self._world.services.now())
        MemoryStore.commit(self._world.store, Put(fact))
