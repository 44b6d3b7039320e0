"""A ready cluster with a simulated provider, whose pools passes look at, and the agent that reports its pods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.pools.pending_pods import PendingPods
from stockyard.domain.models.pools.pools import PoolCreate
from stockyard.domain.pools.records import Pool
from stockyard.domain.records import Cluster, Event, NodeClaim
from stockyard.operations.fleet.pools import pools, reconcile
from stockyard.operations.fleet.pools.autoscaler import Autoscaler
from stockyard.operations.fleet.state import Workload, workload_of
from stockyard.operations.listing import every
from stockyard.operations.machines.pending_pods import DETAIL_TYPE, Received, receive
from stockyard.ports import Replace, Store, Write
from tests.harness.sent import waiting
from tests.unit.operations.conftest import World, make_world
from tests.unit.operations.nodes import Nodes

SMALL = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.1}
LARGE = {"name": "large", "resources": {"cpu": "8", "memory": "32Gi"}, "usdPerHour": 0.3}
USER = "user:ann"


@dataclass
class Yard:
    """``passes`` are the reports of the passes that ran."""

    world: World
    nodes: Nodes
    cluster: Cluster
    passes: list[Any] = field(default_factory=list)

    def pool(self, name: str = "workers", **fields: Any) -> Pool:
        return self.dynamic_pool(name, **{"quantity": 2, **fields})

    def dynamic_pool(self, name: str, **fields: Any) -> Pool:
        body = read(PoolCreate, {"name": name, **fields})
        return pools.create_pool(self.nodes.services, self.cluster, body.new_pool(), USER)

    def look(self) -> Any:
        """One pass over the pools of the cluster."""
        autoscaler = Autoscaler(self.nodes.registry, lambda _: self.nodes.services)
        report = autoscaler.woken("acme", self.cluster.id)
        self.passes.append(report)
        return report

    def settle(self) -> None:
        """Passes, scheduling and workflows until nothing changes any more."""
        for _ in range(6):
            self.look()
            self.nodes.schedule()
            self.nodes.relay()
        self.look()

    def now(self, name: str = "workers") -> Pool:
        return pools.find_pool(self.nodes.services, self.current(), name)

    def current(self) -> Cluster:
        cluster = self.nodes.services.store.get(Cluster, self.cluster.id)
        assert cluster is not None
        return cluster

    def claims(self, name: str = "workers") -> Sequence[NodeClaim]:
        return pools.claims_of(self.nodes.services, self.cluster.id, name)

    def condition(self, record: Pool | Cluster, kind: str = "Ready") -> tuple[str, str, str]:
        (condition,) = [condition for condition in record.conditions if condition.type == kind]
        return condition.status, condition.reason, condition.message

    def put(self, **fields: Any) -> Cluster:
        """Change the cluster's record."""
        current = self.current()
        changed: Cluster = replace(current, version=current.version + 1, **fields)
        self.nodes.services.store.commit(Replace(changed))
        return changed

    def reasons(self, subject: str) -> list[str]:
        events = [event for event in every(self.nodes.services.store, Event) if event.subject == subject]
        return [event.reason for event in sorted(events, key=lambda event: event.sequence)]

    def before_commit(self, monkeypatch: pytest.MonkeyPatch, number: int, action: Callable[[], object]) -> None:
        """Call ``action`` once, before the commit of that number."""
        commits = iter(range(1, 10_000))
        store_type = type(self.nodes.services.store)
        original = store_type.commit

        def commit(store: Store, *writes: Write) -> None:
            if next(commits) == number:
                monkeypatch.setattr(store_type, "commit", original)
                action()
            original(store, *writes)

        monkeypatch.setattr(store_type, "commit", commit)


@pytest.fixture
def yard() -> Yard:
    return make_yard()


def make_yard() -> Yard:
    """A ready cluster with a provider of small and large nodes."""
    world = make_world()
    cluster = world.create()
    nodes = Nodes.of(world.registry, world.services, world.clock)
    nodes.provider("sim", SMALL, LARGE)
    yard = Yard(world, nodes, cluster)
    yard.cluster = yard.put(status="ready")
    return yard


WEB, DB, PROXY = "0" * 15 + "1", "0" * 15 + "2", "0" * 15 + "3"


def template(cpu: str = "500m", **more: Any) -> dict[str, Any]:
    spec = {"containers": [{"resources": {"requests": {"cpu": cpu}}}], **more.pop("spec", {})}
    return {"namespace": "default", "labels": {"app": "web"}, "spec": spec, **more}


GROUPS = {WEB: template(), DB: template("2"), PROXY: template("100m", daemon_set="kube-system/proxy")}


class Agent:
    """Posts reports of one cluster; each is two seconds after the one before. ``base`` is what was answered last."""

    def __init__(self, yard: Yard) -> None:
        self.yard, self.services = yard, yard.nodes.services
        self.sequence, self.base = 0, 0

    def post(self, *, wait: float = 2, **fields: Any) -> Received:
        self.yard.nodes.clock.advance(wait)
        self.sequence += 1
        body = {
            "sequence": self.sequence,
            "observed_at": self.services.now(),
            "agent_version": "1",
            "groups": {},
            "pending": {},
            **fields,
        }
        reply = receive(self.services, self.yard.current(), read(PendingPods, body).model_dump())
        self.base = reply.sequence
        return reply

    def change(self, **fields: Any) -> Received:
        return self.post(base=self.base, **fields)

    def wakes(self) -> Sequence[Any]:
        items = waiting(self.services.store, "event")
        details = [item["detail"] for item in items if item["detail_type"] == DETAIL_TYPE]
        return sorted(details, key=lambda detail: detail["sequence"])

    def pending(self) -> dict[str, int]:
        return {group.id: group.count for group in picture(self).pending}


def picture(agent: Agent) -> Workload:
    """Workload that is known of the cluster's pods and nodes."""
    workload = workload_of(agent.services, agent.yard.cluster.id)
    assert workload is not None
    return workload


@pytest.fixture
def agent(yard: Yard) -> Agent:
    return Agent(yard)


@pytest.fixture
def report(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> Workload:
    """Workload that the agent has told; a test changes it."""
    workload = Workload((), {}, {}, {}, yard.nodes.services.now(), 1)
    monkeypatch.setattr(reconcile, "workload_of", lambda *_: workload)
    return workload
