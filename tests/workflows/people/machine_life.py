"""The life of a pool's one machine of EC2 in which somebody acts on its node at one step, with at most one fault.

The agent is played: it observes, and reports of pods. Passes over pools and disruption come each minute, also while a
workflow waits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from stockyard.domain.models.base import read
from stockyard.domain.models.pools.pools import PoolCreate
from stockyard.domain.pools.records import Pool
from stockyard.domain.records import Cluster, NodeClaim, Operation
from stockyard.errors import StockyardError
from stockyard.lifecycle.pools.pool import POOLS_READY, is_ready
from stockyard.operations.fleet.disruption.disruptor import Disruptor
from stockyard.operations.fleet.pools import conditions, pools
from stockyard.operations.fleet.pools.autoscaler import Autoscaler
from stockyard.operations.listing import every
from tests.workflows.faulty_cloud import Cloud, FaultInjection
from tests.workflows.machine_life import MachineLife
from tests.workflows.people.on_nodes import ActOnNode

POOL = "base"
MINUTES, HOURS = 28, 6
"""How many minutes may pass until all is as it has to be: an act lasts for twenty. What was refused for good is tried
again by the sweep of the hours after that."""
REST_MINUTES = 3
"""Minutes in which nothing is asked for."""
MINUTE = timedelta(minutes=1)
MOST_MACHINES = 2
"""The one of the pool, and the one in its place."""


class PeopleMachineLife(MachineLife):
    """``wrong`` says what is wrong with it. ``act`` is on the node at the step ``at_step``."""

    def __init__(
        self, cloud: Cloud, injection: FaultInjection | None = None, *, act: str = "", at_step: int = 0, seed: int = 1
    ) -> None:
        super().__init__(cloud, injection, seed=seed)
        self.people = ActOnNode(act, at_step, self.nodes.clock)
        self.agent.facts_of = self.people.observed
        self.faults: list[str] = []
        self.giving_back = False
        self.looked_at: datetime | None = None
        """When the last passes were."""
        self.machines_of: dict[str, str] = {}
        """The machine of each node that pods may be on: its claim has been Available."""
        self.sites_at: list[int] = []
        """How many writes and calls there were before each step."""

    # --- the life -----------------------------------------------------------------------------------------------------

    def run(self) -> str:
        """From the pool to the end of its deletion. The phase of its claim when all had settled."""
        level = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        try:
            self._again("create", self._make)
            self._until(self._settled)
            for _ in range(REST_MINUTES):
                self.nodes.clock.advance(60)
                self._round()
            if self.people.node:
                self._until(lambda: not self.people.lasts and self._settled())
            self.reached_phase = ",".join(claim.phase for claim in self._claims())
            self.giving_back = True
            self._again("delete", self._give_back)
            self._until(lambda: not self._claims() and self._pool() is None)
            self._clear()
        finally:
            logging.disable(level)
        return self.reached_phase

    def _make(self) -> None:
        body = read(PoolCreate, {"name": POOL, "quantity": 1, "provider": "aws"})
        pools.create_pool(self.nodes.services, self.cloud.cluster, body.new_pool(), "user:ann", "request")

    def _give_back(self) -> None:
        pool = self._pool()
        if pool is not None and not pool.deleting:
            pools.give_back_pool(self.nodes.services, pool, "user:ann")

    def _until(self, reached: Callable[[], bool]) -> None:
        for number in range(MINUTES + HOURS):
            self._round()
            if reached():
                return
            self.nodes.clock.advance(60)
            if number >= MINUTES:
                self.nodes.hours(1)
                self._again("sweep", self._sweep)
        pool = self._pool()
        claims = [(claim.phase, claim.reason, claim.message) for claim in self._claims()]
        self.faults.append(f"hangs: {pool and pool.conditions} {claims}")

    def _round(self) -> None:
        self._step()
        self._agent()
        self._passes()
        self._again("schedule", self.nodes.schedule)
        self._relay("workflow")
        self._agent()
        self._watch()

    def _agent(self) -> None:
        """The agent posts and reports; who is asked again says the same again."""
        self.injection.point = "agent"
        self.agent.round()
        try:
            self._report()
        except StockyardError:
            return

    def _report(self) -> None:
        present = {node["name"]: node for node in self.agent.kubernetes_nodes.values()}
        facts = {name: {key: node[key] for key in ("uid", "created_at", "labels")} for name, node in present.items()}
        progress = self.people.report(self.nodes.services, self._cluster(), facts)
        self.agent.reports = lambda: progress

    def _passes(self) -> None:
        """Run the passes of the minute's schedule."""
        now = self.nodes.clock.now()
        if self.looked_at is not None and now < self.looked_at + MINUTE:
            return
        self.looked_at = now
        registry, services = self.nodes.registry, self.nodes.services
        self._again("disruption", lambda: Disruptor(registry, lambda _: services).due(now))
        self._again("pool", lambda: Autoscaler(registry, lambda _: services).woken("acme", self.cloud.cluster.id))

    def _in(self, point: str) -> None:
        super()._in(point)
        self._step()
        self._watch()

    def _meanwhile(self) -> None:
        self._step()
        self._agent()
        self._passes()
        self._watch()

    def _step(self) -> None:
        self.people.step(self.agent.kubernetes_nodes)
        self.sites_at += [len(self.injection.sites)] * (self.people.steps - len(self.sites_at))
        for name in self.people.gone_names - self.agent.away:
            self.agent.away.add(name)
            self.agent.kubernetes_nodes.pop(name, None)

    # --- looking ------------------------------------------------------------------------------------------------------

    def _cluster(self) -> Cluster:
        cluster = self.nodes.registry.store("acme").get(Cluster, self.cloud.cluster.id)
        assert cluster is not None
        return cluster

    def _pool(self) -> Pool | None:
        return next(iter(every(self.nodes.registry.store("acme"), Pool)), None)

    def _claims(self) -> list[NodeClaim]:
        return list(every(self.nodes.registry.store("acme"), NodeClaim))

    def _settled(self) -> bool:
        """The pool has its node, which its cluster has too, and says so, as the cluster does."""
        pool, claims = self._pool(), self._claims()
        pools_ready = conditions.of(self._cluster(), POOLS_READY)
        return (
            pool is not None
            and is_ready(pool)
            and [claim.phase for claim in claims] == ["Available"]
            and claims[0].name in self.agent.kubernetes_nodes
            and pools_ready is not None
            and pools_ready.status == "True"
        )

    def _watch(self) -> None:
        """No machine is made twice, none ends before its node is drained, and no node leaves for nothing."""
        running = {machine.id for machine in self.cloud.machines()}
        if len(running) > MOST_MACHINES:
            self._wrong(f"{len(running)} machines run for one node")
        for claim in self._claims():
            if claim.phase == "Available" and claim.machine_id:
                self.machines_of[claim.name] = claim.machine_id
            may_leave = self.giving_back or self.people.gone_names or claim.name not in self.machines_of
            if claim.deleting and not may_leave:
                self._wrong(f"{claim.name} leaves: {claim.reason}")
        for name, machine in self.machines_of.items():
            if machine not in running and name not in self.agent.drained | self.people.gone_names:
                self._wrong(f"the machine of {name} ended with pods on it")

    def _wrong(self, text: str) -> None:
        if text not in self.faults:
            self.faults.append(text)

    def wrong(self) -> list[str]:
        """The faults of this life at its end."""
        faults = [*self.faults, *(f"left in the account: {thing}" for thing in self.cloud.leftovers())]
        if not self.nodes.nothing_left():
            faults.append("a claim, a capacity slot or a machine is left")
        operations = every(self.nodes.registry.store("acme"), Operation)
        running = [operation.kind for operation in operations if operation.status == "running"]
        return [*faults, *(f"still running: {kind}" for kind in running)]
