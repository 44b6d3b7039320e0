"""Hours of a cluster that pass in milliseconds: the product's own passes, workflows and agent over a played cluster.

Time jumps to the next thing that happens: pods come or go, a workflow's wait ends, a pass of the minute's schedule has
something due, the agent tells. Requests, records and decisions are the product's; machines are those of its simulated
provider, and join the played cluster when their time has come.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any

from local.functions.invocation import Invocation, failure
from local.testing.memory_store import MemoryRegistry, MemoryStore, MemoryTable
from stockyard.adapters.unavailable_offerings import StoredUnavailableOfferings
from stockyard.domain.models.base import read
from stockyard.domain.models.pools.pools import PoolCreate
from stockyard.domain.pools.disruption_records import ClusterDisruption
from stockyard.domain.pools.records import Pool
from stockyard.domain.records import Cluster, NodeClaim, NodeProvider, Outbox, SimulatedMachine
from stockyard.domain.values import ids, times
from stockyard.errors import StockyardError
from stockyard.operations.engine.act import act
from stockyard.operations.fleet.pools import pools as pool_operations
from stockyard.operations.listing import every
from stockyard.operations.machines.pending_pods import DETAIL_TYPE
from stockyard.operations.services import Services
from stockyard.ports import Create, Remove
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.harness import walk
from tests.harness.crash.faults import Crash
from tests.harness.hours.agent import PlayedAgent
from tests.harness.hours.cluster import PlayedCluster
from tests.harness.hours.faults import move_prices, strike
from tests.harness.hours.judge import Judge, Sights
from tests.harness.hours.passes import TIMERS
from tests.harness.hours.policies import NEVER, PRODUCT, deciding
from tests.harness.hours.timeline import Timeline, tick
from tests.harness.hours.traces import SIZES, Trace
from tests.harness.hours.writes import HourStore, Writes
from tests.harness.people import vendor
from tests.harness.people.acts import act_of_people
from tests.harness.people.waits import Waits
from tests.harness.worlds.memory import FixedClock
from tests.harness.worlds.ports import memory_services, with_ports

TENANT, CLUSTER = "acme", "clu_01ARZ3NDEKTSV4RRFFQ69G5FAV"
USER = "user:ann"
HOUR = timedelta(hours=1)
WAKE_SECONDS, PLACE_SECONDS = 1.5, 1.0
"""How soon a pass follows the event that wakes it, and a claim is placed."""
_QUIET = ("Accepted", "Scheduled", "Provisioned", "Joined")
_WAKE: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "Pool": lambda detail: detail["reason"] in ("Created", "Changed", "DeletionRequested"),
    "NodeClaim": lambda detail: "pool" in detail and detail["reason"] not in _QUIET,
    DETAIL_TYPE: lambda detail: "pods" in detail,
}
_FORGOTTEN = ("Event", "AuditRecord", "Operation", "LedgerLine")


class Hours:
    """One cluster through the hours of a trace, under a policy."""

    def __init__(self, trace: Trace, policy: str = PRODUCT) -> None:
        self.trace, self.policy = trace, policy
        self.clock = FixedClock(trace.start, seed=trace.number)
        self.end = trace.start + timedelta(hours=trace.hours)
        self.chance = Random(f"world {trace.number}")
        self.trouble = Random(f"trouble {trace.number}")
        self.claims: dict[str, NodeClaim] = {}
        self.pools: dict[str, Pool] = {}
        self.disruption: ClusterDisruption | None = None
        self.machines: dict[str, SimulatedMachine] = {}
        self.refused: set[tuple[str, str, str]] = set()
        self.pass_name = ""
        self.usd = 0.0
        self.node_hours = 0.0
        self.passes: Counter[str] = Counter()
        self.going: list[str] = []
        self.time = Timeline(self.clock, self._invoke, trace.number)
        self.factor: Mapping[str, float] = {}
        sizes = (*SIZES, *(vendor.IMAGELESS if trace.people else ()))
        self.sizes = {f"sim.{size.name}": size for size in sizes}
        self._make()

    def _make(self) -> None:
        registry = self.registry = MemoryRegistry(MemoryTable())
        self.store = HourStore(registry.table, TENANT)
        writes = Writes(self)
        self.store.spoil, self.store.wrote = writes.spoil, writes.follow
        services = memory_services(registry, self.clock)
        kind = vendor.ImagedNodes if self.trace.people else SimulatedNodes
        self.source = source = kind(lambda _: self.store, lambda *way: way in self.refused)
        self.services: Services = replace(
            with_ports(
                services,
                node_sources={"simulated": source},
                unavailable_offerings=StoredUnavailableOfferings(registry.platform()),
            ),
            store=self.store,
        )
        now = self.services.now()
        self.cluster = Cluster(CLUSTER, "demo", "", "k8s", "aws", 1, "c1", "ready", {}, now, now)
        spec = {"simulated": self.block()}
        self.provider = NodeProvider(self.services.new_id(ids.NODE_PROVIDER), "sim", "simulated", spec, now, now)
        self.store.commit(Create(self.cluster), Create(self.provider))
        self.kube = PlayedCluster(
            self.clock.now, self.time.later, Random(f"kube {self.trace.number}"), self.trace.style
        )
        self.kube.storage.slots = self.trace.slots
        self.agent = PlayedAgent(
            lambda: self.services, registry, self.cluster, self.kube, self.clock.now, Random(f"a {self.trace.number}")
        )
        news = lambda: (self.agent.pod_state.nodes or {}, self.agent.pod_state.budgets or {},  # noqa: E731
                        self.agent.told_at, self.agent.vouched_until)  # fmt: skip
        self.judge = Judge(Sights(self.clock.now, self.kube, self.claims, self.pools, lambda: self.disruption, news))
        self.waits = Waits(self)
        self.kube.watched.evicted, self.kube.watched.waits = self.judge.evicted, self.judge.waits
        self.kube.watched.assumed = lambda _: self.judge.counts.update(["act late binding"])
        self.kube.watched.preempts = lambda _: self.judge.counts.update(["act preemption"])

    def block(self) -> dict[str, Any]:
        types = [size.entry(self.factor, self.trace.zones) for size in SIZES]
        types += vendor.entries(self.factor, self.trace.zones) if self.trace.people else []
        return {"nodeTypes": types, "launchSeconds": 5, "joinSeconds": self.trace.launch_seconds}

    # --- time ---------------------------------------------------------------------------------------------------------

    def run(self) -> Hours:
        """All of the hours."""
        with deciding(self.policy):
            self._begin()
            self.waits.begin()
            while (following := self.time.pop()) is not None and following[0] < self.end:
                moment, name, action = following
                self._pass_time(moment)
                if name:
                    TIMERS[name](self)
                action()
                self._follow()
            self._pass_time(self.end)
        return self

    def _pass_time(self, moment: datetime) -> None:
        hours = (moment - self.clock.now()) / HOUR
        if hours > 0:
            self.usd += hours * sum(self._price(machine) for machine in self.machines.values())
            self.node_hours += hours * len(self.machines)
            self.clock.moment = moment

    def _price(self, machine: SimulatedMachine) -> float:
        size = self.sizes[machine.type]
        spot = size.spot * self.factor.get(size.name, 1.0)
        return spot if machine.capacity_type == "spot" else size.usd

    def _begin(self) -> None:
        if self.trace.people:
            vendor.plan_early(self)
        for fields in self.trace.pools:
            self.make_pool(fields)
        for app in self.trace.apps:
            self.kube.apps[app.name] = replace(app, replicas=0)
        start = self.trace.start
        for seconds, name, replicas in self.trace.steps:
            self.time.at(start + timedelta(seconds=seconds), partial(self.scale, name, replicas))
        for seconds, kind, number in self.trace.faults:
            self.time.at(start + timedelta(seconds=seconds), partial(strike, self, kind, number))
        for seconds, kind, number in self.trace.acts:
            self.time.at(start + timedelta(seconds=seconds), partial(act_of_people, self, kind, number))
        for seconds, factor in self.trace.prices:
            self.time.at(start + timedelta(seconds=seconds), partial(move_prices, self, factor))
        for hour in range(6, int(self.trace.hours), 6):
            self.time.at(start + timedelta(hours=hour), self._forget)

    def make_pool(self, fields: Mapping[str, Any]) -> None:
        """Make a pool as a user does; where nothing is to be consolidated, it says so."""
        body = dict(fields)
        if self.policy == NEVER and "disruption" in body:
            body["disruption"] = {**body["disruption"], "consolidate_after": "Never"}
        pool_operations.create_pool(self.services, self.cluster, read(PoolCreate, body).new_pool(), USER)

    def scale(self, name: str, replicas: int) -> None:
        """Have so many pods of a deployment."""
        self.judge.demand(name, replicas)
        self.kube.scale(name, replicas)

    # --- what follows from what happened ------------------------------------------------------------------------------

    def _follow(self) -> None:
        self.agent.come_back()
        self.agent.follow()
        self._relay()
        self.time.timer("report", self.agent.report_due)
        post = None
        if any(claim.deleting for claim in self.claims.values()):
            post = self.agent.next_post()
        self.time.timer("post", self.agent.silent_until or post)
        due = self.disruption.due_at if self.disruption is not None else None
        self.time.timer("look", tick(times.from_text(due), self.trace.number) if due else None)
        dues = [pool.due_at for pool in self.pools.values() if pool.due_at is not None]
        self.time.timer("pools", tick(times.from_text(min(dues)), self.trace.number) if dues else None)

    def _relay(self) -> None:
        for item in list(every(self.store, Outbox)):
            MemoryStore.commit(self.store, Remove(Outbox, item.id))
            for kind, message in item.messages:
                if kind == "workflow":
                    self.time.start(str(message["workflow"]), item.id, message["input"])
                    continue
                wakes = _WAKE.get(message["detail_type"])
                if wakes is not None and wakes(message["detail"]):
                    self.time.soon("woken", WAKE_SECONDS)
        if self.time.moment_of("place") is None and any(claim.due_at is not None for claim in self.claims.values()):
            self.time.soon("place", PLACE_SECONDS)

    def _invoke(self, function: str, payload: Any) -> Invocation:
        with self.within("workflow"):
            try:
                step = act(walk.RUNNERS[function], self.services, payload)
            except Crash:
                return failure("Lambda.Unknown", "the process died")
            except StockyardError as error:
                return failure(getattr(error, "workflow_name", type(error).__name__), str(error))
        return Invocation(json.dumps(step.answer).encode())

    @contextmanager
    def within(self, name: str) -> Iterator[None]:
        """Name the writer within the block: a pass, a workflow, a cloud."""
        before, self.pass_name = self.pass_name, name
        self.passes[name] += 1
        try:
            yield
        finally:
            self.pass_name = before

    def runs(self, name: str) -> bool:
        """Whether the machine of the node is there."""
        return any(claim.node_name == name and claim.machine_id in self.machines for claim in self.claims.values())

    def end_machine(self, machine: SimulatedMachine) -> None:
        """The machine ends by itself."""
        self.machines.pop(machine.id, None)
        MemoryStore.commit(self.store, Remove(SimulatedMachine, machine.id))

    def _forget(self) -> None:
        """Drop what only people read, as the table does after some time."""
        used = {claim.operation_id for claim in self.claims.values()}
        for name, partition in self.registry.table.partitions.items():
            kind = name.rpartition("#")[2]
            if kind in _FORGOTTEN[:2]:
                partition.clear()
            elif kind == _FORGOTTEN[2]:
                for key in [key for key in partition if key not in used]:
                    del partition[key]
