"""Stockyard in memory beside a real cluster: its operations are the real ones, behind the wire that its agent uses.

Machines are records. When a claim has one, a node registers as it would have, and kwok plays its kubelet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from agent.stockyard_agent.loop import Agent
from agent.stockyard_agent.pod_reports import PodReports
from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.observations import Observation
from stockyard.domain.models.pools.pending_pods import PendingPods
from stockyard.domain.nodes.properties import node_labels
from stockyard.domain.pools.disruption_records import ClusterDisruption
from stockyard.domain.pools.records import Pool
from stockyard.domain.records import Event, NodeClaim
from stockyard.operations.fleet.disruption import run
from stockyard.operations.fleet.disruption.carry_out import start
from stockyard.operations.fleet.disruption.disruptor import Disruptor
from stockyard.operations.fleet.pools.pools import claims_of
from stockyard.operations.fleet.templates import supply
from stockyard.operations.listing import every
from stockyard.operations.machines.observe import observe
from stockyard.operations.machines.pending_pods import receive
from stockyard.operations.services import Services
from stockyard.scheduling.consolidation.model import Decision
from tests.harness.worlds.memory import FixedClock
from tests.kubernetes.rigs import ContractRig, RealRig
from tests.kubernetes.workloads import Workloads
from tests.unit.agent.rig import Clock, Platform, PodsOfCluster
from tests.unit.operations.conftest import World, make_world
from tests.unit.operations.fleet.pools.conftest import LARGE, SMALL, Yard
from tests.unit.operations.nodes import Nodes

MINUTE = 60
SOON = 600
"""Seconds."""
REPORTS = 1
"""Steps of the reports of pods before a look; each listens for a second."""


class SharedClock(Clock):
    """Stockyard's clock, told to the agent."""

    def __init__(self, clock: FixedClock) -> None:
        self._clock = clock

    @property
    def now(self) -> datetime:  # type: ignore[override]
        return self._clock.now()

    def later(self, seconds: float) -> None:
        self._clock.advance(seconds)


def now_world() -> World:
    """A new world in which it is as late as in a real cluster."""
    world = make_world()
    world.clock.moment = datetime.now(UTC)
    return world


@dataclass
class ReportedPods(PodsOfCluster):
    """Keeps reports of pods as Stockyard does."""

    yard: Yard | None = None

    def take(self, post: dict[str, Any]) -> dict[str, Any]:
        assert self.yard is not None
        answer = receive(self.yard.nodes.services, self.yard.current(), read(PendingPods, post).model_dump())
        return {"sequence": answer.sequence, "resync": answer.resync, "interval_seconds": answer.interval_seconds}


@dataclass
class Stockyard(Platform):
    """Answers posts as Stockyard does."""

    yard: Yard | None = None

    def _take(self, post: dict[str, Any]) -> None:
        assert self.yard is not None
        nodes = self.yard.nodes
        super()._take(post)
        body = read(Observation, post).model_dump()
        reply = observe(nodes.services, nodes.registry.in_hand, b"a key", self.yard.current(), body)
        self.commands = {command.id: command.document() for command in reply.commands}
        self.interval, self.pods_interval = reply.interval_seconds, reply.pods_interval_seconds


@dataclass
class Town:
    """A cluster that Stockyard makes nodes for, with all that runs in it."""

    rig: ContractRig
    yard: Yard
    workloads: Workloads
    decisions: list[Decision] = field(default_factory=list)
    """Those that were carried out."""
    planned: list[frozenset[str]] = field(default_factory=list)
    """Of each decision the claims that stay and those that come."""
    watching: Callable[[], None] = lambda: None
    """Called when the agent has worked."""
    agent: Agent = field(init=False)
    reports: PodReports = field(init=False)
    _registered: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, rig: ContractRig, world: World, monkeypatch: pytest.MonkeyPatch) -> Town:
        """With a provider of small and large nodes. The rig has the world's clock from now on."""
        cluster = world.create()
        nodes = Nodes.of(world.registry, world.services, world.clock)
        nodes.provider("sim", SMALL, LARGE)
        yard = Yard(world, nodes, cluster)
        yard.cluster = yard.put(status="ready")
        rig.clock = SharedClock(world.clock)
        rig.platform = Stockyard(yard=yard, pods=ReportedPods(yard=yard))
        town = cls(rig, yard, Workloads(rig))
        town.reports = rig.reports()
        town.agent = rig.agent(reports=town.reports)
        nodes.meanwhile = town.agent_works
        monkeypatch.setattr(run, "start", town._recording(start))
        return town

    def minute(self) -> None:
        """Do the work of the schedules for a minute, what comes of it, and the agent's work meanwhile."""
        self.yard.nodes.clock.advance(MINUTE)
        self.agent_works()
        self.rig.steps(self.reports, REPORTS)
        self.agent.round()  # says how far the reports are
        self.yard.look()
        Disruptor(self.yard.nodes.registry, lambda _: self.yard.nodes.services).due(self.yard.nodes.clock.now())
        self.yard.nodes.schedule()
        self.yard.nodes.relay()
        self._boot()

    def agent_works(self) -> None:
        """Machines boot, the agent does what it is asked, and the cluster does what follows."""
        self._boot()
        self.agent.round()
        # The simulated API has no controllers.
        self.workloads.settle() if isinstance(self.rig, RealRig) else self.rig.end_pods()
        self.watching()

    def until(self, condition: Callable[[], bool], minutes: int = 30) -> None:
        """Minutes until that is true."""
        for _ in range(minutes):
            if condition():
                return
            self.minute()
        raise AssertionError((self.waiting(), self.record(), self.rig.logs[-5:]))

    def claims(self) -> list[NodeClaim]:
        """The claims that are not on their way out."""
        claims = claims_of(self.yard.nodes.services, self.yard.cluster.id)
        return [claim for claim in claims if not claim.deleting]

    def calm(self) -> bool:
        """Whether no claim is on its way, in or out, and nothing is being decided."""
        claims = claims_of(self.yard.nodes.services, self.yard.cluster.id)
        moving = [claim for claim in claims if claim.deleting or claim.phase != "Available"]
        record = self.record()
        if record is not None and (record.state != "Idle" or record.no_savings_until(self.yard.nodes.services.now())):
            return False
        return not moving

    def quiet(self) -> bool:
        """Whether nothing is looked at soon: whatever could be decided is."""
        record, services = self.record(), self.yard.nodes.services
        return self.calm() and record is not None and services.seconds_since(record.due_at) < -SOON

    def record(self) -> ClusterDisruption | None:
        """Decision that is under way."""
        record: ClusterDisruption | None = self.yard.nodes.services.store.get(ClusterDisruption, self.yard.cluster.id)
        return record

    def tale(self) -> list[tuple[str, str]]:
        """Reasons and messages of the events of decisions."""
        events = every(self.yard.nodes.services.store, Event)
        about = [event for event in events if event.subject == f"disruption/{self.yard.cluster.id}"]
        return [(event.reason, event.message) for event in sorted(about, key=lambda event: event.sequence)]

    def nodes(self) -> dict[str, Mapping[str, Any]]:
        """The Nodes of the cluster by the ids of their claims."""
        items = self.rig.administer("GET", "/api/v1/nodes")["items"]
        claims = {item["metadata"]["labels"].get("stockyard.dev/claim", ""): item for item in items}
        return {claim: item for claim, item in claims.items() if claim}

    def waiting(self) -> list[str]:
        """The names of pods that have no node."""
        return [pod["metadata"]["name"] for pod in self.workloads.pods() if not pod["spec"].get("nodeName")]

    def _boot(self) -> None:
        """A machine that has come registers its node."""
        stock = supply(self.yard.nodes.services, self.yard.current())
        for claim in self.claims():
            placed = claim.placement
            if claim.id in self._registered or not claim.node_name or placed is None:
                continue
            node_type = stock.catalog.node_types[placed.type]
            labels = {**node_labels(node_type, claim, placed), **claim.node_labels, **claim.labels}
            labels |= {"stockyard.dev/claim": claim.id}
            size = LARGE if placed.type.endswith("large") else SMALL
            room: Any = size["resources"]
            taints = [dict(taint) for taint in claim.taints]
            self.workloads.add_node(claim.node_name, room["cpu"], room["memory"], taints, **labels)
            self._registered.add(claim.id)

    def _recording(self, original: Callable[..., ClusterDisruption]) -> Callable[..., ClusterDisruption]:
        def start(services: Services, cluster: Any, pools: Any, record: ClusterDisruption, decision: Decision) -> Any:
            before = {claim.id for claim in self.claims()}
            started = original(services, cluster, pools, record, decision)
            if started.state == "Replacing":
                self.decisions.append(decision)
                self.planned.append(frozenset(before - set(record.nodes) | set(started.replacements)))
            return started

        return start


def open_pool(town: Town, name: str, budgets: list[dict[str, str]], **fields: Any) -> Pool:
    """A pool that makes any node, whose nodes may go as soon as they are in excess."""
    return town.yard.dynamic_pool(name, disruption={"consolidate_after": "0s", "budgets": budgets}, **fields)
