"""An independent judge of simulated hours: it sees what was written and evicted, and knows none of the deciding code.

What it counts as wrong:

- ``budget``: a node leaves though more of its pool's nodes are on their way out, or not ready, than the strictest open
  budget for the reason allows. Windows are read minute by minute on the clock of their zone.
- ``forbidden``: a node leaves, or a pod is evicted, against a rule: a pod that is not to be disrupted, a budget of
  pods, a pool that is paused, static, never consolidated or not quiet for long enough, or news that are too old.
- ``homeless``: when nodes leave by a decision, the pods of theirs that were told have no places on the other ready
  nodes, all of them taken together.
- ``runaway``: a cluster has more nodes than its demand can need; see ``bound``.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from agent.stockyard_agent.kubernetes import Object
from stockyard.domain.pools.disruption_records import ClusterDisruption
from stockyard.domain.pools.records import Pool
from stockyard.domain.records import NodeClaim
from tests.harness.hours.cluster import PlayedCluster
from tests.harness.hours.rules import most_at_a_time, seconds_of
from tests.harness.hours.traces import SIZES
from tests.harness.people.places import have_places, told_nodes
from tests.harness.people.scheduler import read

COST = ("Empty", "Underutilized")
OLDEST = 120.0
"""Seconds: two intervals of an agent."""
LOOKED = 24 * 3600.0
"""For how long the most that was asked for bounds the nodes: windows of budgets keep nodes for hours."""


@dataclass
class Sights:
    """Facts that the judge looks at: the records as they are, and what Stockyard was told."""

    now: Callable[[], datetime]
    kube: PlayedCluster
    claims: Mapping[str, NodeClaim]
    pools: Mapping[str, Pool]
    disruption: Callable[[], ClusterDisruption | None]
    news: Callable[[], tuple[Mapping[str, Any], Mapping[str, int], datetime | None, datetime | None]]
    """Facts of nodes and budgets of pods as Stockyard was told them, when that was, and until when it held."""


@dataclass
class Judge:
    """``wrong`` is what went wrong, in words that begin with its kind; ``counts`` what happened."""

    sights: Sights
    wrong: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)
    """Why the claims on their way out have to leave."""
    _peaks: dict[str, deque[tuple[datetime, int]]] = field(default_factory=dict)

    def fault(self, kind: str, text: str) -> None:
        """Something is wrong."""
        self.counts[kind] += 1
        self.wrong.append(f"{kind}: {self.sights.now():%Y-%m-%d %H:%M:%S} {text}")

    # --- nodes that leave ---------------------------------------------------------------------------------------------

    def leaves(self, before: NodeClaim, after: NodeClaim, pass_name: str) -> None:
        """A claim is given back; ``place`` is who does it."""
        self.counts[f"left by {pass_name}"] += 1
        self.reasons[after.id] = pass_name
        if pass_name != "disruption":
            return
        record = self.sights.disruption()
        # Nodes that are repaired leave without a decision, and so do those that their cloud may take back. Those that
        # came for a decision that is given up go back before they are used.
        reason = record.reason if record is not None and before.id in record.going else "NotReady"
        if reason == "NotReady" and any(part.type == "Interrupted" for part in after.conditions):
            reason = "Interrupted"
        if record is not None and before.id in record.replacements:
            reason = "GivenBack"
        self.reasons[after.id] = reason
        self.counts[f"nodes {reason}"] += 1
        pool = self.sights.pools.get(f"{after.cluster_id}/{after.pool}")
        name = after.node_name or after.name
        if pool is None:
            self.fault("forbidden", f"{name} is of no pool")
            return
        if reason == "GivenBack":
            self._check_return(after)
            return
        self._check_news(name)
        if reason == "NotReady":
            if self.sights.kube.is_ready(name) and self._is_told_ready(name):
                self.fault("forbidden", f"{name} is repaired and ready")
            return
        if reason != "Interrupted":
            self._check_budget(pool, after, reason)
            if pool.disruption.get("paused"):
                self.fault("forbidden", f"{name} leaves for {reason} though its pool is paused")
        if reason in COST:
            self._check_cost(pool, name, reason)
        if reason in COST or (reason == "Drifted" and after.termination_grace_period in ("", "Never")):
            self._check_pods(name, reason)

    def _check_return(self, claim: NodeClaim) -> None:
        """Check the return of a replacement that is not needed. Of one that never was a node there is nothing to be
        known."""
        if not claim.node_name:
            return
        self._check_news(claim.node_name)
        if self._pods_told(claim.node_name):
            self.fault("forbidden", f"{claim.node_name} goes back with pods")

    def _check_news(self, name: str) -> None:
        _, _, _, until = self.sights.news()
        if until is None or (self.sights.now() - until).total_seconds() > OLDEST:
            self.fault("forbidden", f"{name} leaves on news that held until {until}")

    def _is_told_ready(self, name: str) -> bool:
        nodes = self.sights.news()[0]
        return name in nodes and nodes[name]["ready"] == "True"

    def _check_budget(self, pool: Pool, leaving: NodeClaim, reason: str) -> None:
        own = [claim for claim in self.sights.claims.values() if claim.pool == pool.name and claim.id != leaving.id]
        nodes = [claim for claim in own if claim.phase == "Available" or (claim.deleting and claim.node_name)]
        missing = [
            claim
            for claim in nodes
            if claim.deleting
            or not (self._is_told_ready(claim.node_name) or self.sights.kube.is_ready(claim.node_name))
        ]
        most = most_at_a_time(pool.disruption, reason, len(nodes) + 1, self.sights.now())
        if most is not None and len(missing) + 1 > most:
            text = f"{leaving.name} is number {len(missing) + 1} of {len(nodes) + 1} to leave for {reason}, of {most}"
            self.fault("budget", f"{text}: {pool.disruption}")

    def _check_cost(self, pool: Pool, name: str, reason: str) -> None:
        rules, now = pool.disruption, self.sights.now()
        if pool.kind != "dynamic" or rules.get("consolidateAfter") == "Never":
            self.fault("forbidden", f"{name} leaves for {reason} of pool {pool.name}")
            return
        if reason == "Underutilized" and rules.get("consolidationPolicy") == "WhenEmpty":
            self.fault("forbidden", f"{name} leaves for {reason}, and only empty nodes may")
        facts = self.sights.news()[0].get(name) or {}
        event = facts.get("pod_event_at")
        if event and now < datetime.fromisoformat(event) + timedelta(seconds=seconds_of(rules["consolidateAfter"])):
            self.fault("forbidden", f"{name} leaves for {reason}, its pods moved at {event}: {rules}")
        if reason == "Empty" and self._pods_told(name):
            self.fault("forbidden", f"{name} has pods and leaves as empty")

    def _pods_told(self, name: str) -> list[Object]:
        """The pods of the node that were there when Stockyard was told of them."""
        told_at = self.sights.news()[2]
        pods = self.sights.kube.on(name) if name in self.sights.kube.nodes else []
        return [pod for pod in pods if told_at is not None and datetime.fromisoformat(pod["status"]["startTime"])
                <= told_at.replace(microsecond=0) - timedelta(seconds=1)]  # fmt: skip

    def _check_pods(self, name: str, reason: str) -> None:
        budgets = self.sights.news()[1]
        for pod in self._pods_told(name):
            if self.is_protected(pod):
                self.fault("forbidden", f"{name} leaves for {reason} under {pod['metadata']['name']}")
            if budgets.get(f"default/{pod['app']}") == 0:
                self.fault("forbidden", f"{name} leaves for {reason}, budget {pod['app']} allows no eviction")

    def is_protected(self, pod: Object) -> bool:
        """Whether the pod's annotation protects it now."""
        value = pod["metadata"]["annotations"].get("karpenter.sh/do-not-disrupt", "")
        if value in ("", "true", "soon"):
            return bool(value == "true")
        start = datetime.fromisoformat(pod["status"]["startTime"])
        return self.sights.now() < start + timedelta(seconds=seconds_of(value))

    def depart(self, ids: Sequence[str]) -> None:
        """All claims that one pass over disruption has given back: their pods must have places."""
        claims = [self.sights.claims[claim_id] for claim_id in ids if claim_id in self.sights.claims]
        going = {claim.node_name or claim.name for claim in claims if self.reasons.get(claim.id) != "NotReady"}
        told_at = self.sights.news()[2]
        pods = [pod for name in sorted(going) for pod in self._pods_told(name)]
        self.counts["pods to move"] += len(pods)
        if not pods or told_at is None:
            return
        staying = {claim.node_name or claim.name for claim in self.sights.claims.values() if not claim.deleting} - going
        nodes = told_nodes(self.sights.kube, self.sights.news()[0], staying, told_at)
        if not have_places([read(pod) for pod in pods], nodes, self.sights.kube.storage.as_seen()):
            names = Counter(pod["app"] for pod in pods)
            self.fault("homeless", f"{dict(names)} of {sorted(going)} had no place together")

    # --- pods ---------------------------------------------------------------------------------------------------------

    def evicted(self, pod: Object, verb: str) -> str:
        """The agent evicts or deletes a pod; why its node leaves."""
        self.counts[f"pods {verb}"] += 1
        name, now = pod["spec"].get("nodeName", ""), self.sights.now()
        owners = [claim for claim in self.sights.claims.values() if claim.node_name == name]
        claim = owners[0] if owners else None
        text = f"{pod['metadata']['name']} on {name}"
        if claim is None or not claim.deleting:
            self.fault("forbidden", f"{text}: {verb} on a node that stays")
            return "nothing"
        reason = self.reasons.get(claim.id, "nothing")
        self.counts[f"{verb} {reason}"] += 1
        if verb == "evict" and self.is_protected(pod):
            self.fault("forbidden", f"{text} is not to be disrupted")
        ends = [datetime.fromisoformat(text) for text in (claim.drain_until, claim.ends_at) if text]
        grace = claim.termination_grace_period
        if grace not in ("", "Never"):
            ends.append(datetime.fromisoformat(str(claim.deletion_timestamp)) + timedelta(seconds=seconds_of(grace)))
        if verb == "delete" and not (ends and now >= min(ends) - timedelta(seconds=60)):
            self.fault("forbidden", f"{text} is deleted before its deadline {ends}")
        return reason

    def machine_ends(self, claim: NodeClaim, name: str) -> None:
        """The claim's machine is ended by Stockyard, with what is still on its node."""
        pods = self.sights.kube.on(name) if self.sights.kube.is_ready(name) else []
        ends = [datetime.fromisoformat(text) for text in (claim.drain_until, claim.ends_at) if text]
        late = any(end - timedelta(seconds=60) <= self.sights.now() for end in ends)
        # What a cloud takes back is a fault: its pods are lost with it in any case.
        late = late or self.reasons.get(claim.id) == "cloud"
        if pods and not late and claim.termination_grace_period in ("", "Never"):
            self.fault("forbidden", f"{name} ends with {len(pods)} pods, {self.reasons.get(claim.id)}")

    def waits(self, pod: Object) -> None:
        """A pod found no room: a new one, or one in the place of another that was lost with a node, or evicted."""
        self.counts[f"waits {pod['disturbed'] or 'new'}"] += 1

    # --- nodes --------------------------------------------------------------------------------------------------------

    def demand(self, app: str, replicas: int) -> None:
        """A deployment is to have so many pods."""
        peaks, now = self._peaks.setdefault(app, deque()), self.sights.now()
        if peaks:
            peaks.append((now, max(peaks[-1][1], 0)))
        peaks.append((now, replicas))

    def _peak(self, app: str) -> int:
        peaks, since = self._peaks.get(app, deque()), self.sights.now() - timedelta(seconds=LOOKED)
        while len(peaks) > 1 and peaks[1][0] < since:
            peaks.popleft()
        return max((replicas for _, replicas in peaks), default=0)

    def bound(self) -> int:
        """Number of nodes that dynamic pools may have: no two of them less than half full of the most that each
        deployment has asked for within a day, were all of the smallest type, as any packing that opens a node only for
        a pod without room keeps it; more for the pools' floors, for nodes that are replaced, and for lost ones."""
        kube, smallest = self.sights.kube, min(SIZES, key=lambda size: size.usd)
        cpu = max(100, smallest.cpu - sum(daemon.cpu for daemon in kube.daemons.values()))
        mib = smallest.mib - sum(daemon.mib for daemon in kube.daemons.values())
        halves = 0.0
        for app in kube.apps.values():
            each = (
                1.0
                if app.alone or app.port or app.spec or app.volume or app.priority
                else 2 * min(1.0, max(app.cpu / cpu, app.mib / mib))
            )
            halves += self._peak(app.name) * each
        record = self.sights.disruption()
        replaced = len(record.replacements) if record is not None else 0
        marked = sum(
            any(part.type == "Interrupted" for part in claim.conditions) for claim in self.sights.claims.values()
        )
        floors = sum(pool.floor for pool in self.sights.pools.values())
        gone_nodes = sum(
            claim.phase == "Available" and claim.node_name not in kube.nodes for claim in self.sights.claims.values()
        )
        closed = sum(map(kube.is_closed, kube.nodes)) + len(kube.unready_since) + gone_nodes
        return int(halves) + 2 + floors + replaced + marked + closed

    def grown(self) -> None:
        """Claims were made."""
        dynamic = {pool.name for pool in self.sights.pools.values() if pool.kind == "dynamic"}
        living = [
            claim
            for claim in self.sights.claims.values()
            if claim.pool in dynamic and not claim.deleting and claim.phase != "Failed"
        ]
        self.counts["most nodes"] = max(self.counts["most nodes"], len(living))
        bound = self.bound()
        if len(living) > bound:
            self.fault("runaway", f"{len(living)} nodes, and {bound} are enough")
