"""A judge of pods that wait in hours with people. It reads the texts that the product shows.

What it counts as wrong, beside what ``hours.judge`` does:

- ``silent``: a pod waits for longer than a minute after it was told, and neither a condition nor a claim on its way
  says of it: which pod, by its name, and why. Where a node has room for it as the scheduler sees it, or would have
  but for a rule of that node, the text names a node as well.
- ``kept out``: a pod waits for longer than ``KEPT_AFTER`` though a new node of a type that is there would take it by
  the rules of kube-scheduler, no pool is at its limit, and nobody says that nodes were made in vain.
- ``held``: a decision waits for longer than ``HELD_AFTER`` for replacements of which one has failed.
- ``lost``: a pod that the product took off its node has no place for longer than ``LOST_AFTER``, although no fault of
  the world holds it.
- ``endless``: more than ``MOST_IN_VAIN`` nodes have come, taken no pod and gone within two hours, while the same pod
  waited and people did nothing that could have changed it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from agent.stockyard_agent.kubernetes import Object
from local.kubernetes.placing.board import Board
from local.kubernetes.placing.model import node_of, pod_of
from stockyard.domain.records import Cluster, NodeClaim
from tests.harness.hours.traces import SIZES
from tests.harness.people.scheduler import ZONE, board_of, read

if TYPE_CHECKING:
    from tests.harness.hours.world import Hours

MINUTE, LOOK = timedelta(minutes=1), 20.0
LOST_AFTER, KEPT_AFTER, HELD_AFTER = timedelta(minutes=15), timedelta(minutes=10), timedelta(minutes=10)
SETTLED = timedelta(seconds=30)
"""How long the scheduler of a cluster may need for a node that is ready, before it is said that it takes a pod not."""
MOST_IN_VAIN, WINDOW = 5, timedelta(hours=2)
IN_VAIN = "took none"
"""Words of a text which says that nodes were made for pods and did not help."""
MOST_NODES = 40
"""The limit of each pool."""
BY_PRODUCT = ("Empty", "Underutilized", "Drifted", "Expired")
"""Why the product takes pods off their nodes without need."""
RULES = (
    "taint", "cordon", "unschedulable", "not ready", "cpu", "memory", "port", "volume", "zone", "affinity", "spread",
    "topology", "label", "selector", "limit", "pods", "room", "requirement", "capacity", "hostname", "brake",
)  # fmt: skip
"""Words of which a text that says why has one."""


@dataclass
class Waits:
    """Looks at the pods that wait three times a minute."""

    world: Hours
    most_in_vain: int = MOST_IN_VAIN
    _told_at: dict[str, datetime] = field(default_factory=dict)
    """When pods were told as waiting first, by uid."""
    _judged: set[tuple[str, str]] = field(default_factory=set)
    _vain: list[tuple[datetime, datetime]] = field(default_factory=list)
    """Of nodes that no pod was on: when their claims were made, and when they went."""
    _used: set[str] = field(default_factory=set)
    _living: dict[str, NodeClaim] = field(default_factory=dict)
    _changed_at: datetime | None = None
    _excused_until: datetime | None = None
    _failed_since: datetime | None = None
    _came_at: datetime | None = None
    """When a claim was on its way last."""

    def begin(self) -> None:
        """Look from now on."""
        if self.world.trace.people:
            self.world.time.later(LOOK, self._look)

    def changed(self) -> None:
        """Somebody did something: what was waited for in vain may have come of it."""
        self._changed_at = self.world.clock.now()

    def _look(self) -> None:
        self.world.time.later(LOOK, self._look)
        now = self.world.clock.now()
        pending = [pod for pod in self.world.kube.pending() if pod["status"]["conditions"]]
        self._follow_claims(now)
        self._look_at_decision(now)
        if self.world.agent.silent or self.world.refused:
            self._excused_until = now + timedelta(minutes=5)
        self._note_told(pending, now)
        excused = self._excused_until is not None and now < self._excused_until
        if not excused:
            self._judge(pending, now)

    def _note_told(self, pending: Iterable[Object], now: datetime) -> None:
        told_at = self.world.agent.told_at
        waiting = {pod["metadata"]["uid"]: pod for pod in pending}
        self._told_at = {uid: moment for uid, moment in self._told_at.items() if uid in waiting}
        names = {name for entry in self.world.agent.picture.pending.values() for name in entry["names"]}
        groups = {name.rpartition("/")[2].rpartition("-")[0] for name in names}
        for uid, pod in waiting.items():
            if told_at is not None and pod["created"] <= told_at and pod["app"] in groups:
                self._told_at.setdefault(uid, now)

    def _follow_claims(self, now: datetime) -> None:
        claims, kube = self.world.claims, self.world.kube
        self._used |= {pod["spec"].get("nodeName") or pod.get("assumed", "") for pod in kube.pods.values()
                       if pod["app"] in kube.apps}  # fmt: skip
        for claim_id in self._living.keys() - claims.keys():
            claim = self._living.pop(claim_id)
            if claim.node_name and claim.node_name not in self._used:
                self._vain.append((datetime.fromisoformat(claim.created_at), now))
        self._living.update(claims)
        self._vain = [entry for entry in self._vain if entry[1] > now - WINDOW]

    def _judge(self, pending: Iterable[Object], now: datetime) -> None:
        text = self._text()
        coming = any(not claim.deleting and claim.phase not in ("Available", "Failed") for claim in self._claims())
        self._came_at = now if coming else self._came_at
        for pod in pending:
            uid = pod["metadata"]["uid"]
            came_at = self._came_at and self._came_at + SETTLED
            since = max(filter(None, (self._told_at.get(uid), self._excused_until, came_at)), default=None)
            if uid not in self._told_at or since is None:
                continue
            if now - since > MINUTE and not coming and (problem := self._unsaid(pod, text)):
                self._fault("silent", pod, f"{problem}: {text or 'nothing is said'}")
            if now - since > KEPT_AFTER and not coming and IN_VAIN not in text and self._helps(pod):
                self._fault("kept out", pod, text)
            if pod["disturbed"] in BY_PRODUCT and now - max(since, pod["created"]) > LOST_AFTER:
                self._fault("lost", pod, f"{pod['disturbed']}: {text}")
            since = max(pod["created"], self._changed_at or pod["created"])
            in_vain = sum(made_at > since for made_at, _ in self._vain)
            if in_vain > self.most_in_vain:
                self._fault("endless", pod, f"{in_vain} nodes came and went in vain")

    def _helps(self, pod: Object) -> bool:
        """Whether a new node of some type in some zone would take the pod, and some pool may make one."""
        pools = [pool for pool in self.world.pools.values() if pool.kind == "dynamic"]
        if all(sum(claim.pool == pool.name for claim in self._claims()) >= MOST_NODES for pool in pools):
            return False
        board, daemons = board_of(self.world.kube), list(self.world.kube.daemons.values())
        fresh = []
        for zone in self.world.trace.zones:
            size = max(SIZES, key=lambda size: size.cpu * size.mib)
            name = f"new-in-{zone}"
            labels = {"kubernetes.io/hostname": name, ZONE: zone}
            allocatable = {"cpu": f"{size.cpu}m", "memory": f"{size.mib}Mi", "pods": "110"}
            status = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": allocatable}
            node = node_of(
                {"metadata": {"name": name, "labels": labels}, "status": status},
                board.nodes[0].limits if board.nodes else {},
            )
            for daemon in daemons:
                node.add(pod_of(daemon.pod(0, self.world.clock.now())))
            fresh.append(node)
        faults = Board([*board.nodes, *fresh], board.storage, board.spaces, board.nominated).faults(read(pod))
        return pod["app"] not in self.world.kube.barred and any(not faults[node.name] for node in fresh)

    def _look_at_decision(self, now: datetime) -> None:
        record = self.world.disruption
        names = record.replacements if record is not None else ()
        failed = [claim for claim in self._claims() if claim.id in names and claim.phase == "Failed"]
        self._failed_since = (self._failed_since or now) if failed else None
        if self._failed_since is not None and now - self._failed_since > HELD_AFTER:
            self._failed_since = now
            self.world.judge.fault("held", f"by {failed[0].name}, which has failed")

    def _claims(self) -> Iterable[NodeClaim]:
        return self.world.claims.values()

    def _fault(self, kind: str, pod: Object, text: str) -> None:
        key = (kind, pod["metadata"]["uid"])
        if key not in self._judged:
            self._judged.add(key)
            self.world.judge.fault(kind, f"{pod['metadata']['name']} {text}")

    def _text(self) -> str:
        """What is shown of pods that wait."""
        cluster = self.world.store.get(Cluster, self.world.cluster.id)
        conditions = cluster.conditions if cluster is not None else ()
        return " ".join(part.message for part in conditions if part.type.startswith("Pods"))

    def _unsaid(self, pod: Object, text: str) -> str:
        """What the text does not say of the pod; empty where it says enough."""
        group = [other for other in self.world.kube.of(pod["app"]) if "nodeName" not in other["spec"]]
        if not any(other["metadata"]["name"] in text for other in group):
            return "no pod of it is named"
        if not any(word in text.lower() for word in RULES):
            return "no rule is named"
        roomy = [name for name, fault in board_of(self.world.kube).faults(read(pod)).items() if not fault]
        if roomy and not any(name in text for name in roomy):
            return "no node is named"
        return ""

    def reasons(self) -> Counter[str]:
        """Why the scheduler refuses the pods that wait now, over all nodes: for people who read a run."""
        board = board_of(self.world.kube)
        return Counter(
            f"{pod['app']}: {fault}" for pod in self.world.kube.pending() for fault in board.faults(read(pod)).values()
        )
