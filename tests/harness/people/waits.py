"""A judge of pods that wait in hours with people. It reads the texts that the product shows.

What it counts as wrong, beside what ``hours.judge`` does:

- ``silent``: a pod waits for longer than a minute after it was told, no claim on its way is made for it or would take
  it, and the condition does not say of it which pod it is, by its name, and which rule keeps it out. The rule is one
  that this pod has, in the product's own words for it (``texts``). Where a node has room for it as the scheduler sees
  it, the text names such a node as well.
- ``kept out``: a pod waits for longer than ``KEPT_AFTER`` though a new node of a type that is there would take it by
  the rules of kube-scheduler, and no pool is at its limit: nodes that were made in vain before are no excuse.
- ``held``: a decision goes on for longer than ``HELD_AFTER`` after one of its replacements has failed or is gone.
- ``idle``: a scene is made so that some nodes are enough from some moment on, and more are there.
- ``ghost``: a claim is there for longer than ``GHOST_AFTER`` although somebody has deleted its Node object.
- ``lost``: a pod that the product took off its node has no place for longer than ``LOST_AFTER``, although no fault of
  the world holds it.
- ``imageless``: a claim is placed on a type for whose architecture there is no image.
- ``hopeless``: the plan of a pool, asked for while its cluster is prepared, says that nothing fits (``vendor``).
- ``endless``: more than ``MOST_IN_VAIN`` nodes have come, taken no pod and gone within two hours, while the same pod
  waited and people did nothing that could have changed it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from agent.stockyard_agent.kubernetes import Object
from stockyard.domain.pools.disruption_records import REPLACING
from stockyard.domain.records import Cluster, NodeClaim
from tests.harness.hours.traces import SIZES
from tests.harness.people import vendor
from tests.harness.people.places import would_take
from tests.harness.people.scheduler import board_of, read
from tests.harness.people.texts import CAPACITY, LIMIT, PAUSE, REFUSED, RESOURCE, WaitingPod, rules_of, unsaid

if TYPE_CHECKING:
    from tests.harness.hours.world import Hours

MINUTE, LOOK = timedelta(minutes=1), 20.0
LOST_AFTER, KEPT_AFTER, HELD_AFTER = timedelta(minutes=15), timedelta(minutes=10), timedelta(minutes=4)
GHOST_AFTER = timedelta(minutes=10)
SETTLED = timedelta(seconds=30)
"""How long the scheduler of a cluster may need for a node that is ready, before it is said that it takes a pod not."""
REFUSED_FOR = timedelta(hours=1)
"""For how long a pool may say that types could not be had, after they can be had again."""
MOST_IN_VAIN, WINDOW = 5, timedelta(hours=2)
MOST_NODES = 40
"""The limit of each pool."""
_IMAGELESS = frozenset(f"sim.{size.name}" for size in vendor.IMAGELESS)
BY_PRODUCT = ("Empty", "Underutilized", "Drifted", "Expired")
"""Why the product takes pods off their nodes without need."""


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
    _deaf_until: datetime | None = None
    """Until when the agent has been silent, and a little longer."""
    _refused_at: dict[str, datetime] = field(default_factory=dict)
    """When a type could not be had last, by its name."""
    _failed: tuple[str, datetime] | None = None
    """Of a decision of which a replacement has failed: when it was made, and since when that is seen."""
    _came_at: dict[str, datetime] = field(default_factory=dict)
    """When a claim was on its way last that would take the pod, by uid."""
    _explained_at: dict[str, datetime] = field(default_factory=dict)
    """When a text said enough of the pod last, by uid: what is said follows a report within a minute."""
    _helped_since: dict[str, datetime] = field(default_factory=dict)
    """Since when a new node would take the pod, by uid: what people change may let it."""
    _ghosts: dict[str, datetime] = field(default_factory=dict)
    """Since when the Node object of a claim is gone, by the claim's id."""
    _nodes: set[str] = field(default_factory=set)
    """The names of all nodes that there were, and of their claims."""

    def begin(self) -> None:
        """Look from now on."""
        if self.world.trace.people:
            self.world.time.later(LOOK, self._look)

    def changed(self) -> None:
        """Somebody did something: what was waited for in vain may have come of it."""
        self._changed_at = self.world.clock.now()

    def see(self, claim: NodeClaim) -> None:
        """A claim is written."""
        name = claim.placement.type if claim.placement is not None else ""
        if name in _IMAGELESS and ("imageless", claim.id) not in self._judged:
            self._judged.add(("imageless", claim.id))
            self.world.judge.fault("imageless", f"{claim.name} is placed on {name}")

    def _look(self) -> None:
        self.world.time.later(LOOK, self._look)
        now = self.world.clock.now()
        pending = [pod for pod in self.world.kube.pending() if pod["status"]["conditions"]]
        self._refused_at |= dict.fromkeys((name for _, name, _ in self.world.refused), now)
        self._refused_at |= dict.fromkeys(vendor.denied(self.world), now)
        if self.world.agent.silent:
            self._deaf_until = now + timedelta(minutes=5)
        if self.world.agent.silent or self.world.refused:
            self._excused_until = now + timedelta(minutes=5)
        self._follow_claims(now)
        self._note_told(pending, now)
        if self._deaf_until is None or now >= self._deaf_until:
            self._look_at_decision(now)
            self._look_for_ghosts(now)
        if self._excused_until is None or now >= self._excused_until:
            self._judge(pending, now)

    def _note_told(self, pending: Iterable[Object], now: datetime) -> None:
        told_at = self.world.agent.told_at
        waiting = {pod["metadata"]["uid"]: pod for pod in pending}
        self._told_at = {uid: moment for uid, moment in self._told_at.items() if uid in waiting}
        names = {name for entry in self.world.agent.pod_state.pending.values() for name in entry["names"]}
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
        self._nodes |= {name for claim in claims.values() for name in (claim.name, claim.node_name)}
        self._vain = [entry for entry in self._vain if entry[1] > now - WINDOW]

    def _judge(self, pending: Iterable[Object], now: datetime) -> None:
        text = self._text()
        coming: dict[str, bool] = {}
        any_comes = any(_is_coming(claim, now) for claim in self._claims())
        for pod in pending:
            uid, app = pod["metadata"]["uid"], pod["app"]
            since = max(filter(None, (self._told_at.get(uid), self._excused_until)), default=None)
            if uid not in self._told_at or since is None:
                continue
            if now - since <= MINUTE:
                # Nothing is judged yet, so it is not looked which claim takes it.
                coming.setdefault(app, any_comes)
            elif app not in coming:
                coming[app] = any_comes and self._comes(pod, now)
            if coming[app]:
                self._came_at[uid] = now
            else:
                since = max(since, self._came_at[uid] + SETTLED) if uid in self._came_at else since
                self._judge_left(pod, text, since, now)
            if pod["disturbed"] in BY_PRODUCT and now - max(since, pod["created"]) > LOST_AFTER:
                self._fault("lost", pod, f"{pod['disturbed']}: {text}")
            since = max(pod["created"], self._changed_at or pod["created"])
            in_vain = sum(made_at > since for made_at, _ in self._vain)
            if in_vain > self.most_in_vain:
                self._fault("endless", pod, f"{in_vain} nodes came and went in vain")

    def _judge_left(self, pod: Object, text: str, since: datetime, now: datetime) -> None:
        """Judge the text about a pod for which nothing comes."""
        uid = pod["metadata"]["uid"]
        if now - since > MINUTE:
            problem = unsaid(text, self._waiting_pod(pod))
            if not problem:
                self._explained_at[uid] = now
            elif now - self._explained_at.get(uid, since) > MINUTE:
                self._fault("silent", pod, f"{problem}: {text or 'nothing is said'}")
        if not self._helps(pod):
            self._helped_since.pop(uid, None)
        elif now - max(since, self._helped_since.setdefault(uid, now)) > KEPT_AFTER:
            self._fault("kept out", pod, text)

    def _comes(self, pod: Object, now: datetime) -> bool:
        """Whether a claim on its way is for the pod or for equal pods, or will take the pod by type and zone."""
        pending = self.world.agent.pod_state.pending
        groups = {
            group
            for group, entry in pending.items()
            if any(name.rpartition("/")[2].rpartition("-")[0] == pod["app"] for name in entry["names"])
        }
        for claim in self._claims():
            if not _is_coming(claim, now):
                continue
            if claim.placement is None or not groups.isdisjoint(claim.pod_groups):
                return True
            size = self.world.sizes[claim.placement.type]
            if would_take(self.world.kube, pod, size, claim.placement.zones):
                return True
        return False

    def _helps(self, pod: Object) -> bool:
        """Whether a new node of some type in some zone would take the pod, and some pool may make one. Types whose
        launches the vendor refuses now are not there."""
        if self._at_limit() or pod["app"] in self.world.kube.barred:
            return False
        refused_types = vendor.denied(self.world)
        sizes = [size for size in SIZES if size.name not in refused_types]
        # Without refusals the largest one takes whatever another one takes.
        sizes = sizes if refused_types else [max(sizes, key=lambda size: size.cpu * size.mib)]
        return any(would_take(self.world.kube, pod, size, self.world.trace.zones) for size in sizes)

    def _at_limit(self) -> bool:
        """Whether no dynamic pool may have another node."""
        pools = [pool for pool in self.world.pools.values() if pool.kind == "dynamic"]
        return all(sum(claim.pool == pool.name for claim in self._claims()) >= MOST_NODES for pool in pools)

    def _look_at_decision(self, now: datetime) -> None:
        record, by_id = self.world.disruption, self.world.claims
        failed = ""
        if record is not None and record.state == REPLACING and record.all_made:
            claims = {claim_id: by_id.get(claim_id) for claim_id in record.replacements}
            failed = next((key for key, claim in claims.items() if claim is None or _has_failed(claim, now)), "")
        if record is None or not failed:
            self._failed = None
            return
        if self._failed is None or self._failed[0] != record.decided_at:
            self._failed = (record.decided_at, now)
        if now - max(self._failed[1], self._deaf_until or self._failed[1]) > HELD_AFTER:
            self._failed = (record.decided_at, now)
            self.world.judge.fault("held", f"by {failed}, which has failed: {record.message}")

    def _look_for_ghosts(self, now: datetime) -> None:
        ghosts = {
            claim.id
            for claim in self._claims()
            if claim.phase == "Available" and not claim.deleting and claim.node_name not in self.world.kube.nodes
        }
        self._ghosts = {claim_id: self._ghosts.get(claim_id, now) for claim_id in ghosts}
        for claim_id, since in self._ghosts.items():
            if now - max(since, self._deaf_until or since) > GHOST_AFTER:
                self._ghosts[claim_id] = now
                self.world.judge.fault("ghost", f"{self.world.claims[claim_id].name} is no node since {since:%H:%M:%S}")

    def _claims(self) -> Iterable[NodeClaim]:
        return self.world.claims.values()

    def _fault(self, kind: str, pod: Object, text: str) -> None:
        key = (kind, pod["metadata"]["uid"])
        if key not in self._judged:
            self._judged.add(key)
            self.world.judge.fault(kind, f"{pod['metadata']['name']} {text}")

    def _text(self) -> str:
        """Text that is shown of pods that wait."""
        cluster = self.world.store.get(Cluster, self.world.cluster.id)
        conditions = cluster.conditions if cluster is not None else ()
        return " ".join(part.message for part in conditions if part.type.startswith("Pods"))

    def _waiting_pod(self, pod: Object) -> WaitingPod:
        """The pod as somebody sees it who knows the cluster."""
        now = self.world.clock.now()
        group = [other for other in self.world.kube.of(pod["app"]) if "nodeName" not in other["spec"]]
        refused_types = [name for name, moment in self._refused_at.items() if now < moment + REFUSED_FOR]
        known_rules = rules_of(pod)
        if refused_types and self._fits_only_on(pod, refused_types):
            del known_rules[RESOURCE]
        rules = {
            **known_rules,
            LIMIT: ["nodes"] if self._at_limit() else [],
            CAPACITY: refused_types,
            REFUSED: refused_types,
            PAUSE: [pool.name for pool in self.world.pools.values() if pool.retry_at is not None],
        }
        roomy = [name for name, fault in board_of(self.world.kube).faults(read(pod)).items() if not fault]
        return WaitingPod({other["metadata"]["name"] for other in group}, rules, self._nodes, roomy)

    def _fits_only_on(self, pod: Object, names: Collection[str]) -> bool:
        """Whether new nodes of these types would take the pod, and of no other type: then it is no matter of room."""
        kube, zones = self.world.kube, self.world.trace.zones
        takers = [size.name for size in SIZES if would_take(kube, pod, size, zones)]
        return bool(takers) and set(takers) <= set(names)

    def reasons(self) -> Counter[str]:
        """Reasons why the scheduler refuses the pods that wait now, over all nodes: for people who read a run."""
        board = board_of(self.world.kube)
        return Counter(
            f"{pod['app']}: {fault}" for pod in self.world.kube.pending() for fault in board.faults(read(pod)).values()
        )


def _is_coming(claim: NodeClaim, now: datetime) -> bool:
    """Whether the claim becomes a node, or has only just failed, so that the next pass hears of it."""
    if claim.deleting or claim.phase == "Available":
        return False
    return claim.phase != "Failed" or now - datetime.fromisoformat(claim.updated_at) < timedelta(seconds=LOOK)


def _has_failed(claim: NodeClaim, now: datetime) -> bool:
    """Whether the claim becomes no node: it fails, goes, or no type can be had for it."""
    late = now - datetime.fromisoformat(claim.created_at) > MINUTE
    return claim.deleting or claim.phase == "Failed" or (claim.placement is None and late)
