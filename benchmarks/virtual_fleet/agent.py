"""A cluster with its agent, played: its nodes and pods, what its agent posts and when, and what it does when content.

The bodies of posts are made by the agent's own code from objects of Kubernetes; when they are posted follows the
agent's rules (``stockyard_agent.loop``, ``stockyard_agent.pod_reports``) and the product's answers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agent.stockyard_agent import VERSION
from agent.stockyard_agent.cluster.nodes import INTERRUPTION, node_of
from agent.stockyard_agent.cluster.pod_state import PodState
from agent.stockyard_agent.cluster.pod_templates import group_id
from agent.stockyard_agent.loop import SOON_SECONDS
from agent.stockyard_agent.observation import _observed_node, timestamp
from agent.stockyard_agent.pod_reports import MOVES_SECONDS, NODES_SECONDS, REFRESH_SECONDS, SHORTEST
from benchmarks.virtual_fleet.clusters import NODE_KIND, ON_DEMAND, SPOT, FleetCluster
from benchmarks.virtual_fleet.posts import Post
from benchmarks.virtual_fleet.requests import send
from benchmarks.virtual_fleet.stage import FleetStage
from stockyard.domain.values import times
from stockyard.domain.values.requirements import CAPACITY_TYPE

NEWS_SECONDS = (0.15, 0.45)
"""From a pod that waits to its post, as ``benchmarks.time_to_node`` measured it."""
DRAIN_SECONDS = (5.0, 30.0)
NEED = 1800
"""Thousandths of a CPU of each pod: it fills a node of two."""
PODS: Mapping[str, Mapping[str, Any]] = {
    capacity_type: {
        "namespace": "default",
        "labels": {},
        "spec": {
            "containers": [{"resources": {"requests": {"cpu": f"{NEED}m", "memory": "2Gi"}}}],
            "nodeSelector": {CAPACITY_TYPE: capacity_type},
        },
    }
    for capacity_type in (SPOT, ON_DEMAND)
}
"""Pods of each capacity type, which stay with it: so a fleet whose pods come and go keeps its nodes, and whatever
consolidation finds comes of what happens."""
GROUPS = {capacity_type: group_id(pod) for capacity_type, pod in PODS.items()}
PIN = "sha256:" + "0" * 64
BUSY = 1930 / 2000


@dataclass
class Node:
    """A node of the cluster: its object's facts for both posts, and its pods. ``text`` is its part of a post."""

    name: str
    claim: str
    observed: dict[str, Any]
    facts: dict[str, Any]
    room: int
    pods: set[str] = field(default_factory=set)
    text: str = ""

    @property
    def capacity_type(self) -> str:
        """Capacity type by the label of the node."""
        return str(self.observed["labels"].get(CAPACITY_TYPE, ON_DEMAND))

    def write(self) -> None:
        """Make its part of a post anew."""
        self.text = json.dumps({**self.observed, "pods": len(self.pods)}, separators=(",", ":"))


@dataclass
class PlayedAgent:
    """``waiting`` are names of pods by their capacity type, in their order."""

    stage: FleetStage
    of: FleetCluster
    nodes: dict[str, Node] = field(default_factory=dict)
    waiting: dict[str, list[str]] = field(default_factory=lambda: {SPOT: [], ON_DEMAND: []})
    _sequence: int = 0
    _base: int = 0
    _sent: PodState | None = None
    _pods_at: float = -REFRESH_SECONDS
    _pods_pause: float = REFRESH_SECONDS
    _pods_within: float = REFRESH_SECONDS
    _posting: float | None = None
    """When the next report of pods goes out; None where none is due."""
    _reporting: bool = False
    _next: float = 0.0
    _round: int = 0
    _done: dict[str, str] = field(default_factory=dict)
    _draining: set[str] = field(default_factory=set)
    _number: int = 0

    # --- the cluster ---

    def join(self, claim: str, name: str, kind: str, labels: Mapping[str, str], *, pod: bool = False) -> None:
        """A node joins, ready."""
        now, size = times.to_text(self.stage.time.moment()), int(cpus(kind))
        # A machine on spot labels its own Node: its agent need not come as often as the warning is long.
        watched = {INTERRUPTION: "watched"} if labels.get(CAPACITY_TYPE) == SPOT else {}
        cpu = f"{int(size * 1000 * BUSY)}m"
        thing: dict[str, Any] = {
            "metadata": {
                "name": name, "uid": f"node-{claim}", "creationTimestamp": now,
                "labels": {**labels, **watched, "stockyard.dev/claim": claim, "node.kubernetes.io/instance-type": kind,
                           "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": name},
            },
            "spec": {},
            "status": {
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": now}],
                "allocatable": {"cpu": cpu, "memory": f"{size * 4 - 1}Gi", "pods": "29"},
            },
        }  # fmt: skip
        _, facts = node_of(thing)
        room = int(size * 1000 * BUSY) // NEED
        node = Node(name, claim, _observed_node(thing), {**facts, "pod_event_at": None}, room)
        self.nodes[name] = node
        if pod:
            node.pods.add(self._pod_name())
        node.write()
        self.place()
        self._due(NODES_SECONDS)

    def leave(self, name: str) -> None:
        """A node goes, with its machine; its pods are made anew."""
        node = self.nodes.pop(name, None)
        if node is not None:
            self.waiting[node.capacity_type] += sorted(node.pods)
            self.place()
            self._due(0.0)

    def arrive(self, capacity_type: str) -> None:
        """A pod comes that asks for this capacity type."""
        self.waiting[capacity_type].append(self._pod_name())
        self.place()

    def depart(self) -> None:
        """A pod ends: the one that has been there for longest."""
        node = next((node for node in self.nodes.values() if node.pods and not node.observed["unschedulable"]), None)
        if node is not None:
            node.pods.pop()
            self._moved(node)
            # So that the next one that ends is another's.
            self.nodes[node.name] = self.nodes.pop(node.name)
            self._due(self._pace)
            self.place()

    def _pod_name(self) -> str:
        self._number += 1
        return f"default/web-{self._number}"

    def place(self) -> None:
        """Let the scheduler of the cluster find nodes for what waits."""
        moved, waits = False, any(self.waiting.values())
        for node in self.nodes.values() if waits else ():
            pods = self.waiting[node.capacity_type]
            while pods and len(node.pods) < node.room and not node.observed["unschedulable"]:
                node.pods.add(pods.pop(0))
                self._moved(node)
                moved = True
        before = self._sent.pending if self._sent is not None else {}
        if any(len(pods) > before.get(GROUPS[kind], {}).get("count", 0) for kind, pods in self.waiting.items()):
            self._due(self.stage.delays.between(*NEWS_SECONDS))
        if moved:
            self._due(MOVES_SECONDS if any(self.waiting.values()) else self._pace)

    def _moved(self, node: Node) -> None:
        node.facts = {**node.facts, "pod_event_at": times.to_text(self.stage.time.moment())}
        node.write()

    # --- posts ---

    def begin(self) -> None:
        """Begin to post."""
        self._due(self.stage.delays.between(0, 60))
        self._plan(self.stage.delays.between(0, 60))

    def soon(self) -> None:
        """Post within a few seconds."""
        if self._next > self.stage.time.now + SOON_SECONDS:
            self._plan(self.stage.delays.between(1, SOON_SECONDS))

    def _plan(self, seconds: float) -> None:
        self._round += 1
        number, self._next = self._round, self.stage.time.now + seconds
        self.stage.time.after(seconds, lambda: self.stage.time.spawn(self._post) if number == self._round else None)

    def _post(self) -> None:
        self._sequence = max(self._sequence + 1, int(self.stage.time.moment().timestamp() * 1000))
        now = timestamp(self.stage.time.moment())
        results = [{"id": name, "status": status} for name, status in self._done.items()]
        head = {
            "sequence": self._sequence, "observed_at": now, "agent_version": VERSION, "kubernetes_version": "v1.36.3",
            "ca_hash": PIN, "results": results, "overlay": None,
            "pods": {"sequence": self._base, "true_at": now} if self._sent is not None else None,
        }  # fmt: skip
        text = json.dumps(head, separators=(",", ":"))[:-1]
        post = self.stage.posts.of(self.of.cluster.id, ",".join(node.text for node in self.nodes.values()))
        body = f'{text},"nodes":[{"" if post.repeated else post.nodes}]}}'.encode()
        self._plan(3600)
        _, answer = self._send("POST /v1/clusters/{id}/observations", body, post)
        if answer is None:
            self._plan(self.stage.delays.between(5, 30))
            return
        self._pods_within = answer["pods_interval_seconds"] or REFRESH_SECONDS
        self._plan(answer["interval_seconds"] * self.stage.delays.between(0.9, 1.1))
        self._obey(answer["commands"])

    def _send(self, route: str, body: bytes, post: Post | None = None) -> tuple[int, Any]:
        return send(self.stage, self.of, "machines", route, body, {"id": self.of.cluster.id}, machine=True, post=post)

    def _obey(self, commands: list[dict[str, Any]]) -> None:
        ids = {command["id"] for command in commands}
        self._done = {name: status for name, status in self._done.items() if name in ids}
        for command in commands:
            if command["id"] in self._done:
                continue
            if command["kind"] == "drain":
                self._drain(command["id"], command["node"])
                continue
            if command["kind"] == "delete_node":
                self.leave(command["node"])
            elif command["kind"] == "label":
                self._label(command["node"], command["labels"])
            self._done[command["id"]] = "done"
            self.soon()

    def _label(self, name: str, labels: Mapping[str, str]) -> None:
        node = self.nodes.get(name)
        if node is not None:
            node.observed["labels"] = {**node.observed["labels"], **labels}
            node.write()

    def _drain(self, command: str, name: str) -> None:
        node = self.nodes.get(name)
        if node is None:
            self._done[command] = "done"
            return
        if command in self._draining:
            return
        self._draining.add(command)
        node.observed["unschedulable"], node.facts = True, {**node.facts, "unschedulable": True}
        node.write()
        self._due(NODES_SECONDS)

        def drained() -> None:
            evicted, node.pods = sorted(node.pods), set()
            self._moved(node)
            self.waiting[node.capacity_type] += evicted
            self.place()
            self._done[command] = "done"
            self._draining.discard(command)
            self.soon()

        self.stage.time.after(self.stage.delays.between(*DRAIN_SECONDS), drained)

    # --- reports of pods ---

    @property
    def _pace(self) -> float:
        return min(self._pods_pause, self._pods_within)

    def _due(self, seconds: float) -> None:
        """A report of pods is due: so long after the last one at the soonest, unless pods have come to wait."""
        now = self.stage.time.now
        at = max(now + seconds, self._pods_at + SHORTEST) if seconds < 1 else max(now, self._pods_at + seconds)
        if self._posting is None or at < self._posting:
            self._posting = at
            self.stage.time.after(at - now, lambda: self._report_at(at))

    def _report_at(self, at: float) -> None:
        if self._posting != at:
            return
        early = self._pods_at + SHORTEST - self.stage.time.now
        if self._reporting or early > 0:  # the last one was answered late, or is still under way
            self.stage.time.after(max(early, SHORTEST), lambda: self._report_at(at))
            return
        self._reporting = True
        self.stage.time.spawn(self._report)

    def _state(self) -> PodState:
        waiting = self.waiting.items()
        pending = {GROUPS[kind]: {"count": len(pods), "names": pods[:5]} for kind, pods in waiting if pods}
        running = {node.name: {GROUPS[node.capacity_type]: len(node.pods)} for node in self.nodes.values() if node.pods}
        facts = {node.name: node.facts for node in self.nodes.values()}
        return PodState({GROUPS[kind]: pod for kind, pod in PODS.items()}, pending, running, {}, {}, 0, facts, {})

    def _report(self) -> None:
        try:
            self._report_pods()
        finally:
            self._reporting, self._pods_at = False, self.stage.time.now

    def _report_pods(self) -> None:
        self._posting, self._pods_at = None, self.stage.time.now
        state, now = self._state(), self.stage.time.moment()
        for _ in range(2):
            sequence = max(self._base + 1, int(now.timestamp() * 1000))
            head = {"sequence": sequence, "observed_at": timestamp(now), "agent_version": VERSION}
            content = {"base": None, **state.whole()}
            if self._sent is not None:
                content = {"base": self._base, **state.changes(self._sent)}
            body = json.dumps({**head, **content}, separators=(",", ":")).encode()
            _, answer = self._send("POST /v1/clusters/{id}/pending-pods", body)
            if answer is None:
                self._due(self.stage.delays.between(1, 5))
                return
            self._base = answer["sequence"]
            if not answer["resync"]:
                break
            self._sent = None
        if state.has_news_for_waiting(self._sent or PodState()):
            self.soon()
        self._sent = replace(state)
        self._pods_pause = answer["interval_seconds"] * self.stage.delays.between(0.9, 1.1)
        self._due(REFRESH_SECONDS)


def cpus(kind: str) -> float:
    """Virtual CPUs of a type of EC2's families m5 and m6i."""
    size = kind.rpartition(".")[2] if kind != NODE_KIND else "large"
    if size in ("large", "xlarge"):
        return 2.0 if size == "large" else 4.0
    return 4.0 * float(size.removesuffix("xlarge") or 24) if size != "metal" else 96.0
