"""An act of a person on a node at one step of a life, and how the cluster's agent tells of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from stockyard.domain.models.base import read
from stockyard.domain.models.pools.pending_pods import PendingPods
from stockyard.domain.records import Cluster
from stockyard.domain.values import times
from stockyard.operations.machines.pending_pods import receive
from stockyard.operations.services import Services
from tests.harness.worlds.memory import FixedClock
from tests.workflows.people.acts import (
    ACTS,
    CORDON,
    DAEMON,
    DAEMON_GROWS,
    DELETED,
    DRAIN,
    NOT_READY,
    READY_AGAIN,
    TAINT,
    Facts,
)

WEB, PROXY = "0" * 15 + "1", "0" * 15 + "2"
"""Groups of pods: one pod of the first is on each node, and one of the DaemonSet."""
WEB_CPU = "1500m"
DAEMON_CPU, GROWN = "100m", "1500m"
"""Cores of a pod, and of a DaemonSet's pod before and after it grows."""
OTHER_MACHINE = "the machine of the act is gone"
PUSHING = frozenset({DRAIN, DELETED, NOT_READY})
"""Acts after which the pod of the node waits."""
CLOSING = frozenset({CORDON, TAINT, DRAIN, NOT_READY, READY_AGAIN})
"""Acts while which the node takes no pods."""


@dataclass
class ActOnNode:
    """``at_step`` is the number of the step with which the act begins, among those at which there is a node."""

    act: str
    at_step: int
    clock: FixedClock
    steps: int = 0
    node: str = ""
    """The node of the act; empty before it."""
    began_at: str = ""
    gone_names: set[str] = field(default_factory=set)
    """Nodes whose Node object was deleted."""
    sequence: int = 0

    def step(self, names: Collection[str]) -> None:
        """One step of the life in which there are these nodes."""
        present = sorted(names)
        if self.act and present and not self.node and self.steps == self.at_step:
            self.node, self.began_at = present[0], times.to_text(self.clock.now())
            self.gone_names |= {self.node} if self.act == DELETED else set()
        self.steps += bool(present)

    def forget(self, name: str) -> None:
        """Another machine is the node of that name now."""
        self.gone_names.discard(name)
        self.node = OTHER_MACHINE if self.node == name else self.node

    @property
    def lasts(self) -> bool:
        """Whether the act has begun, and nobody has taken it back yet. A Node object stays deleted."""
        if not self.node:
            return False
        end = times.from_text(self.began_at) + timedelta(minutes=ACTS[self.act].minutes)
        return self.clock.now() < end

    def facts_of(self, name: str) -> Facts:
        """Changes of the node by the act, as ``NodeFacts`` of a report has them."""
        if not self.lasts or name != self.node:
            return {}
        facts = dict(ACTS[self.act].facts(self.began_at))
        if "taints" in facts:
            facts["taints"] = [dict(zip(("key", "value", "effect"), taint, strict=True)) for taint in facts["taints"]]
        return facts

    def observed(self, name: str) -> Facts:
        """Changes of the node by the act, as ``ObservedNode`` has them."""
        return {key: value for key, value in self.facts_of(name).items() if key != "ready_since"}

    def is_open(self, name: str) -> bool:
        """Whether the node takes pods."""
        return name not in self.gone_names and not (self.lasts and name == self.node and self.act in CLOSING)

    def report(
        self,
        services: Services,
        cluster: Cluster,
        nodes: Mapping[str, Mapping[str, Any]],
        empty: Collection[str] = (),
        waiting: int = 0,
    ) -> dict[str, Any]:
        """The agent reports of these nodes, given by their own facts; how far its reports are, for its next post. Each
        has a pod of ``WEB`` that is not ``empty``, and so many such pods wait."""
        self.sequence += 1
        now = services.now()
        grown = self.act == DAEMON_GROWS and self.lasts
        facts = {name: {"ready": "True", **own, **self.facts_of(name)} for name, own in nodes.items()}
        body = {
            "sequence": self.sequence,
            "observed_at": now,
            "agent_version": "1",
            "groups": {WEB: _template(WEB_CPU), PROXY: _template(GROWN if grown else DAEMON_CPU, daemon_set=DAEMON)},
            "pending": {WEB: {"count": waiting, "names": ["default/web-0"]}} if waiting else {},
            "running": {name: {PROXY: 1} if name in empty else {WEB: 1, PROXY: 1} for name in facts},
            "daemon_sets": {DAEMON: PROXY},
            "nodes": facts,
            "budgets": {},
        }
        receive(services, cluster, read(PendingPods, body).model_dump())
        return {"sequence": self.sequence, "true_at": now}


def _template(cpu: str, **more: str) -> dict[str, Any]:
    spec = {"containers": [{"resources": {"requests": {"cpu": cpu}}}]}
    return {"namespace": "default", "labels": {}, "spec": spec, **more}
