"""A ready cluster with a simulated provider, whose pools passes look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.pools import PoolCreate
from stockyard.domain.pool_records import Pool
from stockyard.domain.records import Cluster, Event, NodeClaim
from stockyard.operations.listing import every
from stockyard.operations.pools import pools
from stockyard.operations.pools.autoscaler import Autoscaler
from stockyard.ports import Replace, Store, Write
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
