"""A life of a cluster's pools in which somebody acts on a node, while more pods come, under at most one fault.

The cluster's scheduler places by all rules: its pods are spread, keep apart, and have volumes. The agent reports what
there is in each round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from local.kubernetes.placing.board import Board
from local.kubernetes.placing.model import Node, node_of, pod_of
from local.kubernetes.placing.volumes import Storage
from stockyard.domain.models.base import read
from stockyard.domain.models.pools.pending_pods import PendingPods
from stockyard.domain.records import NodeClaim
from stockyard.lifecycle.pools.pool import living
from stockyard.operations.fleet.disruption.disruptor import Disruptor
from stockyard.operations.fleet.pools.pools import claims_of
from stockyard.operations.machines import attention
from stockyard.operations.machines.pending_pods import receive
from tests.workflows.people.acts import ACTS, DAEMON, DAEMON_GROWS, DELETED, DRAIN, NOT_READY
from tests.workflows.pool_life import PoolLife

PUSHING = frozenset({DRAIN, DELETED, NOT_READY})
"""Acts after which the pods of the node wait."""
DRIVER = "disk.csi.example.test"
HOST = "kubernetes.io/hostname"
DAEMON_CPU, GROWN = 100, 550
"""Thousandths of a core of a DaemonSet's pod, before and after it grows."""
BASE_TAINTS = (("k", "", "NoSchedule"),)
ROOM = {"cpu": "2", "memory": "4Gi", "pods": "110"}


def _apart(app: str) -> dict[str, Any]:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def _spread(app: str) -> dict[str, Any]:
    rule = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**rule, "labelSelector": {"matchLabels": {"app": app}}}]}


@dataclass(frozen=True, slots=True)
class App:
    """``cpu`` in thousandths of a core; ``volumes``: how many each pod has of its own."""

    group: str
    cpu: int
    rules: Mapping[str, Any] = field(default_factory=dict)
    volumes: int = 0

    def spec(self, name: str) -> dict[str, Any]:
        """The specification of one of its pods."""
        container = {"resources": {"requests": {"cpu": f"{self.cpu}m", "memory": "64Mi"}}}
        disks = [{"persistentVolumeClaim": {"claimName": name}}] * self.volumes
        return {"containers": [container], "volumes": disks, **self.rules}


APPS: Mapping[str, App] = {
    "web": App("0" * 15 + "1", 400, _spread("web")),
    "db": App("0" * 15 + "2", 200, _apart("db")),
    "disk": App("0" * 15 + "3", 200, volumes=1),
    "late": App("0" * 15 + "4", 700),
}
"""By cores all pods of the first three have room on one node; by rules and volumes one of each has on a node."""
PROXY = "0" * 15 + "5"
FIRST, LATE = ("web-0", "web-1", "db-0", "db-1", "disk-0", "disk-1"), ("late-0", "late-1")
PODS = {name: APPS[name.partition("-")[0]] for name in (*FIRST, *LATE)}
STORAGE = Storage(
    {f"default/{name}": {"metadata": {}, "spec": {"volumeName": name}} for name in FIRST},
    {name: {"metadata": {"name": name}, "spec": {"csi": {"driver": DRIVER, "volumeHandle": name}}} for name in FIRST},
)


@dataclass
class PeoplePoolLife(PoolLife):
    """``on`` is where each pod is; those that wait have an empty text. ``acted_on`` is the node of the act while it
    lasts."""

    act: str = ""
    on: dict[str, str] = field(default_factory=dict)
    acted_on: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    gone_names: set[str] = field(default_factory=set)
    daemon_cpu: int = DAEMON_CPU
    sequence: int = 0

    def _live(self) -> None:
        self.step = "make"
        body = {"name": "base", "quantity": 2, "provider": "lab", "taints": [{"key": "k", "effect": "NoSchedule"}]}
        self._accepted("POST", "pools", 201, body)
        self._put(status="ready")
        self.events.append(self._event("Cluster", phase={"before": "preparing", "after": "ready"}))
        self._until(lambda: self._settled(2))
        self.step, self.needed = "pods", 2
        self.on = dict.fromkeys(FIRST, "")
        self._until(lambda: self._settled(2))
        self.step, self.needed = "people", 3
        self._act(min(set(self.on.values())))
        self.on |= dict.fromkeys(LATE, "")
        self._until(lambda: self._settled(2))
        self.step = "back"
        self.acted_on, self.facts, self.daemon_cpu = "", {}, DAEMON_CPU
        self._until(lambda: self._settled(2))
        self.step = "delete"
        self._accepted("DELETE", "pools/base", 202, may_be_gone=True)
        self._until(lambda: "base" not in self._pools() and self._settled(0))
        self.step, self.on = "end", {}
        self._put(status="deleting")
        self._until(self._released)
        self.wrong += [f"left: {thing}" for thing in self._leftovers()]

    def _act(self, node: str) -> None:
        if self.act == DAEMON_GROWS:
            self.daemon_cpu = GROWN
            return
        self.acted_on, self.facts = node, ACTS[self.act].facts(self.nodes.services.now())
        if self.act == DELETED:
            self.gone_names.add(node)
        if self.act in PUSHING:
            self.on = {pod: "" if at == node else at for pod, at in self.on.items()}

    def _due(self) -> None:
        """As the schedule does; before it, the scheduler places and the agent reports."""
        if self.step != "end" and self._cluster().status == "ready":
            self._place()
            self._post()
            self._relay()
            self._deliver()
        if self.act == DELETED:
            # It ends the machine. Its passes have a matrix of their own.
            with patch.object(attention, "report_age", lambda *_: 0.0):
                Disruptor(self.nodes.registry, lambda _: self.nodes.services).due(self.nodes.clock.now())
        super()._due()

    def _settled(self, quantity: int) -> bool:
        """Also: no pod waits. The machine of a deleted Node is ended, and none more is there than before the act."""
        before = self.needed
        if self.step not in ("make", "pods") and self.act == DELETED:
            self.needed -= 1
        try:
            return super()._settled(quantity) and all(self.on.values())
        finally:
            self.needed = before

    # --- the cluster -------------------------------------------------------------------------------------------------

    def _hosts(self) -> dict[str, NodeClaim]:
        claims = living(claims_of(self.nodes.services, self.cluster_id))
        hosts = {claim.node_name: claim for claim in claims if claim.phase == "Available"}
        return {name: claim for name, claim in hosts.items() if name not in self.gone_names}

    def _facts_of(self, name: str, claim: NodeClaim) -> dict[str, Any]:
        facts: dict[str, Any] = {"ready": "True", "ready_since": claim.created_at, "allocatable": ROOM}
        facts |= {"unschedulable": False, "taints": BASE_TAINTS if claim.pool == "base" else ()}
        facts |= self.facts if name == self.acted_on else {}
        facts["taints"] = [dict(zip(("key", "value", "effect"), taint, strict=True)) for taint in facts["taints"]]
        return facts

    def _board(self) -> Board:
        nodes: dict[str, Node] = {}
        for name, claim in self._hosts().items():
            facts = self._facts_of(name, claim)
            spec = {"taints": facts["taints"], "unschedulable": facts["unschedulable"]}
            status = {"conditions": [{"type": "Ready", "status": facts["ready"]}], "allocatable": facts["allocatable"]}
            document = {"metadata": {"name": name, "labels": {HOST: name}}, "spec": spec, "status": status}
            nodes[name] = node_of(document, {DRIVER: 1})
            nodes[name].add(_pod("proxy", App(PROXY, self.daemon_cpu)))
        for pod, name in self.on.items():
            if name in nodes:
                nodes[name].add(_pod(pod, PODS[pod]))
        return Board(list(nodes.values()), STORAGE, {"default": {}})

    def _place(self) -> None:
        hosts = self._hosts()
        self.on = {pod: name if name in hosts else "" for pod, name in self.on.items()}
        board = self._board()
        for name in [pod for pod, at in self.on.items() if not at]:
            pod = _pod(name, PODS[name])
            fitting = [node for node, fault in board.faults(pod).items() if not fault]
            if fitting:
                node = board.best(pod, fitting)
                node.add(pod)
                self.on[name] = node.name

    @property
    def told_cpu(self) -> int:
        """Size of a DaemonSet's pods that the agent tells."""
        return self.daemon_cpu

    def _post(self) -> None:
        self.nodes.clock.advance(1)
        self.sequence += 1
        pending = [pod for pod, at in self.on.items() if not at]
        counts = Counter(PODS[pod].group for pod in pending)
        names = {group: [f"default/{pod}" for pod in pending if PODS[pod].group == group] for group in counts}
        hosts = self._hosts()
        body = {
            "sequence": self.sequence,
            "observed_at": self.nodes.services.now(),
            "agent_version": "1",
            "groups": {**{app.group: _template(name, app) for name, app in APPS.items()}, PROXY: self._proxy()},
            "pending": {group: {"count": count, "names": names[group]} for group, count in counts.items()},
            "running": {name: self._pods_of(name) for name in hosts},
            "daemon_sets": {DAEMON: PROXY},
            "nodes": {name: self._told_of(name, claim) for name, claim in hosts.items()},
            "budgets": {},
        }
        receive(self.nodes.services, self._cluster(), read(PendingPods, body).model_dump())

    def _proxy(self) -> dict[str, Any]:
        return {**_template("proxy", App(PROXY, self.told_cpu)), "daemon_set": DAEMON}

    def _pods_of(self, name: str) -> dict[str, int]:
        return {PROXY: 1, **Counter(PODS[pod].group for pod, at in self.on.items() if at == name)}

    def _told_of(self, name: str, claim: NodeClaim) -> dict[str, Any]:
        disks = sum(PODS[pod].volumes for pod, at in self.on.items() if at == name)
        more = {"created_at": claim.created_at, "uid": claim.id, "volume_limits": {DRIVER: 1}}
        return {**self._facts_of(name, claim), **more, "volumes": {DRIVER: disks} if disks else {}}


def _pod(name: str, app: App) -> Any:
    metadata = {"namespace": "default", "name": name, "labels": {"app": name.partition("-")[0]}}
    return pod_of({"metadata": metadata, "spec": app.spec(name)})


def _template(name: str, app: App) -> dict[str, Any]:
    attachments = {DRIVER: app.volumes} if app.volumes else {}
    spec = {key: value for key, value in app.spec(name).items() if key != "volumes"}
    return {"namespace": "default", "labels": {"app": name}, "spec": spec, "attachments": attachments}
