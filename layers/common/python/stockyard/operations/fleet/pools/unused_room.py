"""Room that waiting pods have not used: the record of it, what a plan does with it, and what is said of it."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta

from stockyard.domain.pools.records import DYNAMIC, Pool
from stockyard.domain.pools.workload_records import UnusedRoom
from stockyard.domain.records import Cluster, NodeClaim
from stockyard.domain.values import times
from stockyard.domain.values.requirements import HOSTNAME, IN, NOT_IN
from stockyard.errors import Conflict
from stockyard.lifecycle.waiting import unused
from stockyard.lifecycle.waiting.unused import GroupMemory, MadeNode
from stockyard.operations.fleet.state import FleetNode, FleetState, Workload
from stockyard.operations.services import Services
from stockyard.ports import Check, Create, Replace
from stockyard.scheduling.packing import model
from stockyard.scheduling.packing.plan import Plan

SETTLED_SECONDS = 20
"""How long a node has been ready before it is said that pods wait beside its room: its scheduler takes a moment."""
LOOK_SECONDS = 60
"""When a cluster is looked at again in which room is not used."""
MOST_NAMED = 3
_NO_HOST = "no.host"
"""The host of pods that may go nowhere; no node is made of that name."""
_REPORTED = ("labels", "taints", "allocatable", "unschedulable", "volume_limits", "uid")
"""Facts of a node that decide what its cluster's scheduler puts there."""
Pods = Sequence[tuple[model.Pod, int]]
Kind = tuple[str, object, object]
"""Namespace, labels and requests of a pod."""


class Digests:
    """Digests of what is reported of nodes; one that differs says that something has changed."""

    def __init__(self, fleet: FleetState) -> None:
        self._fleet = fleet
        self._digests: dict[str, str | None] = {}

    def __call__(self, name: str) -> str | None:
        """The digest of the node; None for one that is not ready, or takes no pods."""
        if name not in self._digests:
            state = self._fleet.nodes.get(name)
            self._digests[name] = (
                _node_digest(state) if state is not None and state.unschedulable_reason is None else None
            )
        return self._digests[name]


def _node_digest(state: FleetNode) -> str:
    facts = asdict(state.facts) if state.facts is not None else {}
    return _digest({name: facts.get(name) for name in _REPORTED})


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Belief:
    """Belief about room for pods that wait, when a pass begins. ``memory`` is by group, after the report."""

    fleet: FleetState
    now: datetime
    digests: Digests
    record: UnusedRoom | None = None
    memory: Mapping[str, GroupMemory] = field(default_factory=dict)

    def groups(self, groups: Iterable[model.PodGroup]) -> tuple[model.PodGroup, ...]:
        """The groups as they are to be packed: none goes onto a node whose room it has not used, nor onto a new one
        when new ones have helped it nothing."""
        believed = (self._believed(group) for group in groups)
        return tuple(group for group in believed if group is not None)

    def _believed(self, group: model.PodGroup) -> model.PodGroup | None:
        memory = self.memory.get(group_id(group.names[0])) if self.memory else None
        if memory is None:
            return group
        extra = self._hosts_of(memory)
        if extra is None:
            return group
        return replace(group, pod=_bound(group.pod, *extra)) if extra[1] else None

    def _hosts_of(self, memory: GroupMemory) -> tuple[str, Sequence[str]] | None:
        """The operator and hosts that say where such pods may go; None: anywhere. No hosts: nowhere."""
        distrusted = set(memory.distrusted(self.now))
        if len(distrusted) >= unused.MOST_NODES:
            distrusted = set(self.fleet.nodes)
        hosts = {name: state.node.labels[HOSTNAME] for name, state in self.fleet.nodes.items()}
        if memory.is_held:
            return IN, sorted(host for name, host in hosts.items() if name not in distrusted)
        excluded = sorted(hosts[name] for name in distrusted & hosts.keys())
        return (NOT_IN, excluded) if excluded else None

    def arrivals(self, groups: Iterable[model.PodGroup]) -> tuple[model.PodGroup, ...]:
        """The groups as they are to be packed onto nodes that are there. One that two nodes have not helped goes only
        onto a node that has just become ready: its scheduler has left out all others. So what comes in the place of a
        node has room for the pods of that node."""
        settled = {name for name, state in self.fleet.nodes.items() if _is_settled_since(state, self.now)}
        hosts = sorted(state.node.labels[HOSTNAME] for name, state in self.fleet.nodes.items() if name not in settled)
        braked = {group for group, memory in self.memory.items() if memory.is_braked}
        return tuple(
            replace(group, pod=_bound(group.pod, IN, hosts)) if group_id(group.names[0]) in braked else group
            for group in self.groups(groups)
        )

    def of_running(self, pods: Pods, workload: Workload) -> Pods:
        """Pods that run, as they are to be packed when their node goes: one that is like those that wait goes where
        these are believed to go, besides where it is."""
        kinds = self._restricted_kinds(workload) if any(not entry.is_empty for entry in self.memory.values()) else {}
        if not kinds:
            return pods
        extras = ((pod, count, kinds.get(_kind(pod))) for pod, count in pods)
        return tuple((pod if extra is None else _bound(pod, *extra), count) for pod, count, extra in extras)

    def _restricted_kinds(self, workload: Workload) -> Mapping[Kind, tuple[str, Sequence[str]]]:
        """Hosts that may take a pod that waits, by the pod's kind."""
        entries = ((_kind(group.pod), self.memory.get(group.id)) for group in workload.pending)
        extras = ((kind, self._hosts_of(memory)) for kind, memory in entries if memory is not None)
        return {kind: extra for kind, extra in extras if extra is not None}

    @property
    def kept_for(self) -> Mapping[str, str]:
        """Reason why an empty node stays, by its name: it was made for pods that wait, and no other one is made for
        them."""
        text = "pods wait that it was made for, and no other node is made for them"
        braked_memories = (memory for memory in self.memory.values() if memory.is_held)
        return {name: text for memory in braked_memories for name in (*memory.nodes, *memory.unused)}

    @property
    def withheld(self) -> frozenset[str]:
        """The groups for which no other node is made now."""
        return frozenset(group for group, memory in self.memory.items() if memory.is_held)


def _bound(pod: model.Pod, operator: str, hosts: Sequence[str]) -> model.Pod:
    extra = model.term([{"key": HOSTNAME, "operator": operator, "values": list(hosts) or [_NO_HOST]}])
    terms = tuple(tuple(sorted((*term, *extra), key=lambda item: (item[0], repr(item[1])))) for term in pod.terms)
    return replace(pod, terms=terms)


def _kind(pod: model.Pod) -> Kind:
    """Kind of a pod, by what makes pods alike for a scheduler that keeps some of them waiting."""
    return pod.namespace, pod.labels, pod.requests


def group_id(name: str) -> str:
    """The id of the group of a pod that is packed, by its name there."""
    return name.rpartition("/")[0]


def believe(
    services: Services,
    cluster_id: str,
    pools: Sequence[Pool],
    claims: Sequence[NodeClaim],
    workload: Workload,
    fleet: FleetState,
    groups: Sequence[model.PodGroup],
) -> Belief:
    """The assumption about room for these groups, from memory and the present report."""
    belief = Belief(fleet, services.clock.now(), Digests(fleet), services.store.get(UnusedRoom, cluster_id))
    stored = belief.record.groups if belief.record is not None else {}
    memory = {group: GroupMemory.read(entry) for group, entry in stored.items()}
    waiting = {group_id(group.names[0]): group.pod for group in groups if group.names}
    pending = {group.id for group in workload.pending}
    made_nodes: dict[str, dict[str, MadeNode]] = {group: {} for group in waiting}
    names = set()
    for claim in claims:
        name = claim.node_name or claim.name
        if not claim.deleting and claim.phase != "Failed":
            names.add(name)
        state = fleet.nodes.get(name) if claim.pod_groups else None
        if state is not None:
            for group in waiting.keys() & set(claim.pod_groups):
                node = _made_node(workload, state, waiting[group], is_pending=group in pending)
                if node is not None:
                    made_nodes[group][name] = node
    digest = _learned_under(pools, workload)
    return replace(
        belief,
        memory=unused.after_report(memory, made_nodes, names, belief.digests, digest, times.to_text(belief.now)),
    )


def _made_node(workload: Workload, state: FleetNode, pod: model.Pod, *, is_pending: bool) -> MadeNode | None:
    """Use of the node for its pods; None while that cannot be known: it is on its way, and has room for them.

    Of pods that do not wait yet, on a node that leaves or as headroom, none can be there: room for them will do.
    """
    running = workload.reschedulable.get(state.node.name, ())
    took = any(_kind(each) == _kind(pod) for each, _ in running)
    lacks = any(state.node.free.get(name, 0) < amount for name, amount in pod.requests)
    if not (state.is_ready or lacks):
        return None
    return MadeNode(state.claim.created_at, took or not (is_pending or lacks), is_full=bool(running) and lacks)


def _learned_under(pools: Sequence[Pool], workload: Workload) -> str:
    """Digest of what makes another plan of the same pods: the pools, and what DaemonSets take of each node."""
    kinds = [(pool.name, pool.generation, dict(pool.limits)) for pool in pools if pool.kind == DYNAMIC]
    daemons = [(name, pod.requests, repr(pod.ports)) for name, pod in sorted(workload.daemons.items())]
    return _digest([sorted(kinds, key=lambda kind: kind[0]), daemons])


def remember(
    services: Services, cluster_id: str, belief: Belief, plan: Plan, workload: Workload
) -> Mapping[str, GroupMemory]:
    """Memory after the plan, which is written where it is new. Who is second writes nothing: the next pass sees the
    same."""
    beside: defaultdict[str, set[str]] = defaultdict(set)
    pending = {group.id for group in workload.pending}
    for placement in plan.placements:
        if placement.node not in belief.fleet.ready:
            continue
        for group in {group_id(name) for name in placement.pods} & pending:
            beside[group].add(placement.node)
    now = times.to_text(belief.now)
    bought = {group_id(name) for claim in plan.claims for name in claim.pods}
    if belief.record is not None:
        bought |= belief.record.groups.keys()
    memory = unused.after_plan(belief.memory, beside, bought, belief.digests, now)
    stored = {group: entry.document() for group, entry in memory.items()}
    record = belief.record
    if record is None and stored:
        # It must not come back when the cluster is gone.
        ready = Check(Cluster, cluster_id, {"status": "ready"})
        with suppress(Conflict):
            services.store.commit(Create(UnusedRoom(cluster_id, now, stored)), ready)
    elif record is not None and record.groups != stored:
        with suppress(Conflict):
            changed = replace(record, groups=stored, updated_at=now, version=record.version + 1)
            services.store.commit(Replace(changed))
    return memory


@dataclass(frozen=True, slots=True)
class Remarks:
    """Remarks about room that pods do not use. ``waits``: they have a place that their scheduler has not taken yet;
    ``fails``: it is not believed any more, or no other node is made. None: nothing."""

    waits: str | None = None
    fails: str | None = None


def remarks(belief: Belief, memory: Mapping[str, GroupMemory], workload: Workload) -> Remarks:
    """Remarks to make: pods, nodes, what is done, and what the cluster's scheduler says."""
    waits, fails = [], []
    for group in workload.pending:
        entry = memory.get(group.id)
        if entry is None or entry.is_empty:
            continue
        pods, says = _pods(next(iter(group.names), "a pod"), group.count), group.scheduler_text
        distrusted = entry.unused_rooms(belief.now, unused.BELIEVED_SECONDS)
        if entry.is_braked:
            text = "so no other node is made until the pods, their pool, a DaemonSet or a node changes."
            fails.append(f"{pods}: {_few(entry.unused)} were made for them and took none of them, {text}{says}")
        elif distrusted:
            since = min(entry.rooms[name][0] for name in distrusted)
            text = f"its scheduler has not used since {since}, so that it is not counted for them any more."
            fails.append(f"{pods}: {_few(distrusted)} had room by what the cluster reports, which {text}{says}")
        elif entry.is_held and (made_nodes := sorted({*entry.nodes, *entry.unused})):
            text = "no other node is made before it is known whether they have room for them."
            waits.append(f"{pods}: {_few(made_nodes)} were made for them; {text}{says}")
        elif settled := [name for name in entry.rooms if _is_settled(belief, entry, name)]:
            text = f"{pods}: {_few(settled)} has room by what the cluster reports, which is not used"
            if late := entry.unused_rooms(belief.now, SETTLED_SECONDS):
                since = min(entry.rooms[name][0] for name in late)
                fails.append(f"{text} since {since}; after {unused.BELIEVED_SECONDS} seconds it is not counted.{says}")
            else:
                waits.append(f"{text} yet.{says}")
    return Remarks(_first(waits), _first(fails))


def _first(texts: Sequence[str]) -> str | None:
    more = f" (and {len(texts) - MOST_NAMED} more kinds of pods)" if len(texts) > MOST_NAMED else ""
    return f"{' '.join(texts[:MOST_NAMED])}{more}" if texts else None


def _is_settled(belief: Belief, entry: GroupMemory, name: str) -> bool:
    state = belief.fleet.nodes.get(name)
    is_old = times.from_text(entry.rooms[name][0]) + timedelta(seconds=SETTLED_SECONDS) <= belief.now
    return is_old or (state is not None and _is_settled_since(state, belief.now))


def _is_settled_since(state: FleetNode, now: datetime) -> bool:
    """Whether the node has been ready long enough for its scheduler to have looked at it."""
    since = state.facts.ready_since if state.facts is not None else None
    return since is not None and times.from_text(since) + timedelta(seconds=SETTLED_SECONDS) <= now


def _pods(example: str, count: int) -> str:
    return f"{example} and {count - 1} like it" if count > 1 else example


def _few(names: Iterable[str]) -> str:
    listed = sorted(names)
    more = f" and {len(listed) - MOST_NAMED} more nodes" if len(listed) > MOST_NAMED else ""
    return f"{', '.join(listed[:MOST_NAMED])}{more}"
