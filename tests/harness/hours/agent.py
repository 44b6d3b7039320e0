"""The agent of a played cluster: its own code observes and drains; only when it comes is played, by the answers.

Posts that could tell nothing are left out. Before somebody looks, the last one that there would have been is made up
for, with the moment until which the agent could have known the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any, cast

from agent.stockyard_agent.cluster.csi import limits
from agent.stockyard_agent.cluster.node_facts import facts_of, listed
from agent.stockyard_agent.cluster.pod_state import PodState, pod_state_of
from agent.stockyard_agent.cluster.pods import Pods
from agent.stockyard_agent.cluster.sources import Permits, Sources
from agent.stockyard_agent.commands.inbox import CommandInbox
from agent.stockyard_agent.kubernetes import Kubernetes
from stockyard.domain.models.base import read
from stockyard.domain.models.pools.pending_pods import PendingPods
from stockyard.domain.records import Cluster
from stockyard.domain.values import times
from stockyard.errors import StockyardError
from stockyard.operations.machines.observe import observe
from stockyard.operations.machines.pending_pods import receive
from stockyard.operations.services import Services
from stockyard.ports import Registry
from tests.harness.hours.cluster import PlayedCluster

KEY = b"the installation's key"
CLAIM = "stockyard.dev/claim"
SOON = timedelta(seconds=2)
"""How soon it is told that pods wait."""
RETRY = timedelta(seconds=10)


@dataclass
class PlayedAgent:
    """``silent_until``: before that it tells and does nothing, and after it, it begins anew."""

    services: Callable[[], Services]
    registry: Registry
    cluster: Cluster
    kube: PlayedCluster
    now: Callable[[], datetime]
    chance: Random
    silent_until: datetime | None = None
    report_due: datetime | None = None
    pod_state: PodState = field(default_factory=PodState)
    """What Stockyard was told last."""
    told_at: datetime | None = None
    """When the picture was true."""
    vouched_until: datetime | None = None
    """Until when it has vouched for the picture."""
    posts: int = 0
    reports: int = 0
    _pods: Pods = field(init=False)
    _sources: Sources = field(init=False)
    _inbox: CommandInbox = field(init=False)
    _sequence: int = 0
    _base: int = 0
    _posted_at: datetime | None = None
    _interval: float = 60.0
    _pace: float = 300.0
    _reported_at: datetime | None = None
    _changed_at: datetime | None = None
    _waiting: bool = False
    _nodes: Mapping[str, Any] = field(default_factory=dict)
    """What nodes were when they were last looked at: of a change of one is told soon."""

    def __post_init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        kube = cast(Kubernetes, self.kube)
        self._pods = Pods(kube, self.now)
        self._sources = Sources(kube, lambda: self.now().timestamp(), Permits(lambda _: None))
        self._inbox = CommandInbox(kube, now=self.now, monotonic=lambda: 0.0, log=lambda _: None)

    @property
    def silent(self) -> bool:
        """Whether nothing is heard of it now."""
        return self.silent_until is not None

    def be_silent(self, until: datetime) -> None:
        """Say nothing before that moment."""
        self.silent_until = max(until, self.silent_until or until)

    def come_back(self) -> None:
        """Begin anew, if the time has come."""
        if self.silent_until is not None and self.now() >= self.silent_until:
            self.silent_until = None
            self._begin()
            self._changed_at = self.now()
            self.report_due = self.now() + SOON

    # --- reports of pods ----------------------------------------------------------------------------------------------

    def follow(self) -> None:
        """Hear what has changed, and say when that is to be told."""
        if self.silent or not self.kube.changed:
            return
        self.kube.changed = False
        news = self._pods.news
        self._pods.follow()
        now = self.now()
        self._changed_at = self._changed_at or now
        due = (self._reported_at or now) + timedelta(seconds=self._pace)
        nodes = listed(cast(Kubernetes, self.kube)).nodes
        if self._pods.news != news or self._reported_at is None or nodes != self._nodes:
            due, self._nodes = now, nodes
        elif self._waiting:
            due = (self._reported_at or now) + RETRY
        due = max(due, now + SOON)
        self.report_due = due if self.report_due is None else min(self.report_due, due)

    def report(self) -> None:
        """Tell all that is there."""
        now = self.now()
        self.report_due = None
        if self.silent:
            return
        self._pods.follow()
        kube = cast(Kubernetes, self.kube)
        listing, sources = replace(listed(kube), limits=limits(kube)), self._sources
        sources.refresh(list(self._pods))
        pods = sources.nominated(list(self._pods))
        pod_state = pod_state_of(
            pods, sources.daemons, sources.places, listing.nodes, sources.attached, sources.namespaces
        )
        facts = facts_of(pods, self._pods.events, listing, sources.attached)
        if facts is not None:
            pod_state.nodes, pod_state.budgets = facts
        self._sequence = max(self._sequence + 1, int(now.timestamp() * 1000))
        head = {"sequence": self._sequence, "observed_at": times.to_text(now), "agent_version": "1", "base": None}
        try:
            answer = receive(
                self.services(), self.cluster, read(PendingPods, {**head, **pod_state.whole()}).model_dump()
            )
        except StockyardError:
            self.report_due = now + RETRY
            return
        self.reports += 1
        if answer.resync:
            self.report_due = now + RETRY
            return
        self._base, self._pace, self._reported_at = answer.sequence, float(answer.interval_seconds), now
        self.pod_state, self.told_at, self.vouched_until, self._changed_at = pod_state, now, now, None
        self._waiting = bool(pod_state.pending)

    # --- posts --------------------------------------------------------------------------------------------------------

    def post(self) -> None:
        """Tell of the nodes, and do what the answer says."""
        if self.silent:
            return
        now = self.now()
        moment = self._posted_at or now
        steps = int((now - moment).total_seconds() // self._interval)
        moment = max(moment + timedelta(seconds=steps * self._interval), now - timedelta(seconds=self._interval))
        true_at = moment if self._changed_at is None else min(moment, self._changed_at)
        self._sequence = max(self._sequence + 1, int(now.timestamp() * 1000))
        pods: dict[str, Any] = {"sequence": self._base, "true_at": times.to_text(max(true_at, self.told_at or true_at))}
        body = {
            "sequence": self._sequence,
            "observed_at": times.to_text(now),
            "agent_version": "1",
            "kubernetes_version": "v1.34.1",
            "ca_hash": "sha256:" + "0" * 64,
            "nodes": [_observed(node) for node in self.kube.nodes.values()],
            "results": self._inbox.results,
            "pods": pods if self._base else None,
        }
        try:
            answer = observe(self.services(), self.registry.in_hand, KEY, self.cluster, body)
        except StockyardError:
            return
        self.posts += 1
        if self._base:
            self.vouched_until = times.from_text(pods["true_at"])
        self._posted_at, self._interval = now, answer.interval_seconds * (0.9 + 0.2 * self.chance.random())
        if answer.pods_interval_seconds is not None:
            self._pace = min(self._pace, float(answer.pods_interval_seconds))
            if self._changed_at is not None and self.report_due is not None:
                latest = (self._reported_at or now) + timedelta(seconds=self._pace)
                self.report_due = max(now + SOON, min(self.report_due, latest))
        # Machines of this world join by themselves.
        commands = [command.document() for command in answer.commands if command.kind != "bootstrap_token"]
        self._inbox.take(commands)

    def next_post(self) -> datetime:
        """Time of the next post, while the agent has something to do."""
        if self._posted_at is None:
            return self.now()
        return self._posted_at + timedelta(seconds=min(self._interval, 60.0))

    def make_up(self) -> None:
        """The last post that there would have been by now."""
        if self._posted_at is None or (self.now() - self._posted_at).total_seconds() >= self._interval:
            self.post()


def _observed(node: dict[str, Any]) -> dict[str, Any]:
    meta, spec = node["metadata"], node["spec"]
    return {
        "name": meta["name"],
        "uid": meta["uid"],
        "provider_id": "",
        "created_at": meta["creationTimestamp"],
        "claim": meta["labels"].get(CLAIM),
        "ready": node["status"]["conditions"][0]["status"],
        "unschedulable": bool(spec.get("unschedulable")),
        "taints": spec.get("taints") or [],
        "labels": meta["labels"],
        "capacity": {},
        "allocatable": {},
        "pods": 0,
    }
