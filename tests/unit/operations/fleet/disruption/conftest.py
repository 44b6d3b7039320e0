"""A ready cluster whose pods are played: told of as its agent does, and moved as its scheduler does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from stockyard.domain.pools.disruption_records import ClusterDisruption
from stockyard.domain.pools.workload_records import NodeFacts
from stockyard.domain.records import NodeClaim
from stockyard.operations.engine.watch import watch
from stockyard.operations.fleet.disruption import run
from stockyard.operations.fleet.disruption.disruptor import Disruptor
from stockyard.operations.fleet.pools import reconcile
from stockyard.operations.fleet.pools.pools import claims_of
from stockyard.operations.fleet.state import PendingGroup, Workload
from stockyard.operations.machines import attention
from stockyard.scheduling.packing.manifests import read_pod
from stockyard.scheduling.packing.model import Pod
from tests.unit.operations.fleet.pools.conftest import Yard, yard

__all__ = ["yard"]

POOL = "burst"
ROOM = {"sim.small": (2000, 4), "sim.large": (8000, 32)}
"""Thousandths of a core and GiB of a type."""


def pod(cpu: str = "1", memory: str = "1Gi", app: str = "web", **spec: Any) -> Pod:
    containers = [{"resources": {"requests": {"cpu": cpu, "memory": memory}}}]
    metadata = {"namespace": "default", "labels": {"app": app}}
    return read_pod({"metadata": metadata, "spec": {"containers": containers, **spec}})


@dataclass
class Pods:
    """The pods of a cluster. ``facts`` changes what is told of nodes, ``age`` how old the agent's picture is; ``gone``
    are nodes whose Node object somebody has deleted, ``refuses`` says which pods the scheduler keeps from
    which node."""

    yard: Yard
    on: dict[str, list[Pod]] = field(default_factory=dict)
    waiting: list[Pod] = field(default_factory=list)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    budgets: dict[str, int] = field(default_factory=dict)
    age: float | None = 0.0
    gone_names: set[str] = field(default_factory=set)
    ids: dict[Pod, str] = field(default_factory=dict)
    """The groups of equal pods that have waited."""
    says: str = ""
    """What the scheduler says of each pod that waits."""
    refuses: Callable[[Pod, str], bool] = lambda pod, node: False
    fewest: int = 10**6
    """The fewest nodes that were ready in any step."""
    last_picture: str = ""

    def claims(self) -> list[NodeClaim]:
        """The nodes that pods can be on."""
        claims = claims_of(self.yard.nodes.services, self.yard.cluster.id)
        present = [claim for claim in claims if claim.phase == "Available" and not claim.deleting]
        return [claim for claim in present if claim.node_name not in self.gone_names]

    def bind(self) -> None:
        """As the cluster's scheduler does: pods of nodes that have left wait, and go where there is room."""
        names = {claim.node_name: claim for claim in self.claims()}
        for name in list(self.on):
            if name not in names:
                self.waiting += self.on.pop(name)
        for name, claim in sorted(names.items()):
            here = self.on.setdefault(name, [])
            for each in list(self.waiting):
                if self._fits(claim, [*here, each]) and not self.refuses(each, name):
                    here.append(each)
                    self.waiting.remove(each)

    def _fits(self, claim: NodeClaim, pods: list[Pod]) -> bool:
        cores, gib = ROOM[claim.type_ref]
        total: Counter[str] = Counter()
        for each in pods:
            total.update(dict(each.requests))
        return total["cpu"] <= cores and total["memory"] <= gib * 2**30 * 1000

    def workload(self) -> Workload:
        """Workload that the agent tells."""
        running = {name: tuple(Counter(pods).items()) for name, pods in self.on.items()}
        pending = tuple(
            PendingGroup(
                each, count, self.ids.setdefault(each, f"g{len(self.ids)}"), (f"default/web-{number}",), self.says
            )
            for number, (each, count) in enumerate(Counter(self.waiting).items())
        )
        nodes = {
            claim.node_name: NodeFacts(
                **{
                    "ready": "True",
                    "ready_since": claim.created_at,
                    "created_at": claim.created_at,
                    "unschedulable": False,
                    "do_not_disrupt": False,
                    "pod_event_at": claim.created_at,
                    "protected": (),
                    "protected_count": 0,
                    "budgets": {},
                    "doubly_guarded": 0,
                    **self.facts.get(claim.node_name, {}),
                }
            )
            for claim in self.claims()
        }
        workload = Workload(pending, running, {}, {}, self.yard.nodes.services.now(), 1)
        return replace(workload, reschedulable=running, nodes=nodes, budgets=self.budgets)

    def tell(self) -> None:
        """As a report of pods does that says something new."""
        picture = repr((sorted(self.on.items()), self.waiting, self.facts, self.budgets))
        if picture != self.last_picture and not self.waiting:
            watch(self.yard.nodes.services, self.yard.cluster.id)
        self.last_picture = picture

    def look(self) -> Any:
        """One pass of the schedule over the cluster's disruption."""
        disruptor = Disruptor(self.yard.nodes.registry, lambda _: self.yard.nodes.services)
        return disruptor.due(self.yard.nodes.clock.now())

    def run(self, minutes: int = 10) -> None:
        """Passes over pools and disruption each minute, workflows, and the cluster's scheduler."""
        for _ in range(minutes):
            self.yard.nodes.clock.advance(60)
            self.tell()
            self.yard.look()
            self.look()
            self.yard.nodes.schedule()
            self.yard.nodes.relay()
            self.bind()
            self.fewest = min(self.fewest, len(self.claims()))

    def record(self) -> ClusterDisruption:
        record = self.yard.nodes.services.store.get(ClusterDisruption, self.yard.cluster.id)
        assert record is not None
        return record

    def types(self) -> list[str]:
        return sorted(claim.type_ref for claim in self.claims())


@pytest.fixture
def pods(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> Pods:
    played = Pods(yard)
    for module in (run, reconcile):
        monkeypatch.setattr(module, "workload_of", lambda *_: played.workload())
    monkeypatch.setattr(attention, "report_age", lambda *_: played.age)
    return played
