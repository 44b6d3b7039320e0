"""The cluster that a trace plays in: its nodes and pods at one moment, as the packer and the search read them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import ceil

from stockyard.domain.nodes.node_types import SPOT
from stockyard.domain.pools import budgets
from stockyard.domain.pools.budgets import NodeState
from stockyard.domain.values.requirements import HOSTNAME
from stockyard.scheduling.consolidation.model import Fleet, PoolRules, RunningNode
from stockyard.scheduling.packing.limits import NODES
from stockyard.scheduling.packing.model import Node, PlacedPod, Pod, Pool
from stockyard.scheduling.packing.plan import Claim
from stockyard.scheduling.simulation.model import FOREVER, PodKind, PoolPolicy, Trace

_NODE = 1000
"""One node in the thousandths of limits."""


@dataclass(slots=True, eq=False)
class SimulatedPod:
    """A pod. ``since`` is when it began to wait for a node, ``node`` the one that it is bound to, and ``runs_from``
    since when. ``planned`` is the node whose room is kept for it while it waits."""

    name: str
    kind: PodKind
    number: int
    since: int
    node: SimulatedNode | None = None
    runs_from: int | None = None
    planned: SimulatedNode | None = None


@dataclass(frozen=True, slots=True)
class Contents:
    """A node for the packer: present and coming pods, the cost of its disruption, and the end of its protection by a
    pod. ``awaited`` are the pods that are to come."""

    node: Node
    pods: tuple[tuple[Pod, int], ...]
    cost: float
    protected_until: float
    awaited: tuple[tuple[Pod, int], ...] = ()


@dataclass(slots=True, eq=False)
class SimulatedNode:
    """A node from the moment on at which it is asked for. ``moved_at`` is when a pod last came or went."""

    name: str
    claim: Claim
    launched: int
    ready_at: int
    moved_at: int
    free: dict[str, int]
    pods: dict[str, SimulatedPod] = field(default_factory=dict)
    planned: dict[str, SimulatedPod] = field(default_factory=dict)
    """The pods that wait for it, and whose room is kept."""
    leaving: bool = False
    _contents: Contents | None = None

    @property
    def pool(self) -> str:
        """The name of its pool."""
        return self.claim.pool.name

    @property
    def price(self) -> float:
        """USD an hour."""
        return self.claim.usd_hour

    @property
    def weight(self) -> float:
        """Weight of the node in decisions, see ``NodeType.weight``."""
        return self.claim.price

    @property
    def totals(self) -> Mapping[str, int]:
        """Resources of the node for pods."""
        return self.claim.row.room

    def take(self, pod: SimulatedPod, now: int) -> None:
        """The pod is bound to the node and runs there."""
        self.pods[pod.name] = pod
        pod.node, pod.runs_from, self.moved_at = self, now, now
        self._use(pod, 1)

    def release(self, pod: SimulatedPod, now: int) -> None:
        """The pod is there no more."""
        del self.pods[pod.name]
        pod.node, pod.runs_from, self.moved_at = None, None, now
        self._use(pod, -1)

    def plan(self, pod: SimulatedPod) -> None:
        """Room is kept for the pod, which waits."""
        self.planned[pod.name] = pod
        pod.planned = self
        self._use(pod, 1)

    def forget(self, pod: SimulatedPod) -> None:
        """No room is kept for the pod any more."""
        del self.planned[pod.name]
        pod.planned = None
        self._use(pod, -1)

    def _use(self, pod: SimulatedPod, sign: int) -> None:
        self._contents = None
        for resource, amount in pod.kind.pod.requests:
            self.free[resource] = self.free.get(resource, 0) - sign * amount

    def contents(self, now: int) -> Contents:
        """Picture of the node's contents. It is read again only when a pod has come or gone, or the node has become
        ready."""
        is_ready = self.ready_at <= now
        if self._contents is None or self._contents.node.initialized != is_ready:
            self._contents = self._read(is_ready=is_ready)
        return self._contents

    def bound(self) -> Node:
        """The node as its cluster's scheduler sees it: room that is only planned is free."""
        free = dict(self.free)
        for pod in self.planned.values():
            for resource, amount in pod.kind.pod.requests:
                free[resource] += amount
        return self._node([pod.kind.pod for pod in self.pods.values()], free, is_ready=True)

    def _node(self, pods: Sequence[Pod], free: Mapping[str, int], *, is_ready: bool) -> Node:
        return Node(
            self.name,
            {**self.claim.labels, HOSTNAME: self.name},
            free,
            self.claim.pool.taints,
            tuple(PlacedPod(pod.namespace, pod.labels, pod.anti_affinity) for pod in pods),
            (*self.claim.row.ports, *(port for pod in pods for port in pod.ports)),
            initialized=is_ready,
        )

    def _read(self, *, is_ready: bool) -> Contents:
        awaited = [pod.kind.pod for pod in self.planned.values()]
        pods = [*(pod.kind.pod for pod in self.pods.values()), *awaited]
        protections = (pod.runs_from + pod.kind.protected for pod in self.pods.values() if pod.runs_from is not None)
        return Contents(
            self._node(pods, dict(self.free), is_ready=is_ready),
            tuple(Counter(pods).items()),
            1.0 + sum(pod.kind.cost for pod in (*self.pods.values(), *self.planned.values())),
            max(protections, default=0.0),
            tuple(Counter(awaited).items()),
        )


class Cluster:
    """The nodes by name, the earliest first, and the pools that make them."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.nodes: dict[str, SimulatedNode] = {}
        self._numbers: Counter[str] = Counter()

    def launch(self, claim: Claim, now: int) -> SimulatedNode:
        """Ask for a node."""
        pool = claim.pool.name
        self._numbers[pool] += 1
        name = f"{pool}-{self._numbers[pool]}"
        ready_at = now + self._trace.start_up
        node = self.nodes[name] = SimulatedNode(name, claim, now, ready_at, ready_at, dict(claim.row.room))
        return node

    def pools(self) -> tuple[Pool, ...]:
        """The pools with what their nodes have of what is limited."""
        return tuple(self._used(pool) for pool in self._trace.pools)

    def _used(self, pool: Pool) -> Pool:
        if not pool.limits and pool.money is None:
            return pool
        nodes = [node for node in self.nodes.values() if node.pool == pool.name]
        used: defaultdict[str, int] = defaultdict(int, {NODES: _NODE * len(nodes)})
        for node in nodes:
            for resource, amount in node.claim.row.node_type.capacity.items():
                used[resource] += amount
        return replace(pool, used=dict(used), spent=sum(node.price for node in nodes))

    def places(self) -> Mapping[str, int]:
        """Number of further nodes of each type that there can be."""
        counts = Counter(node.claim.row.node_type.name for node in self.nodes.values())
        return {name: count - counts[name] for name, count in self._trace.places.items()}

    def rooms(self, now: int, going: Set[str] = frozenset()) -> tuple[Node, ...]:
        """The nodes for planned pods, with those on their way, without the nodes of ``going``."""
        staying = (node for node in self.nodes.values() if not node.leaving and node.name not in going)
        return tuple(node.contents(now).node for node in staying)

    def fleet(self, now: int) -> Fleet:
        """The nodes that are ready, with what keeps each of them."""
        ready = self.ready(now)
        moment = _moment(self._trace, now)
        rules = {pool.name: self._rules(pool.name, moment, now) for pool in self._trace.pools}
        running = tuple(self._running(node, now) for node in ready)
        awaited = {node.name: node.contents(now).awaited for node in ready if node.planned}
        return Fleet(running, self.pools(), rules, self._trace.daemons, self.places(), awaited)

    def ready(self, now: int) -> list[SimulatedNode]:
        """The nodes that its scheduler binds pods to."""
        return [node for node in self.nodes.values() if not node.leaving and node.ready_at <= now]

    def _running(self, node: SimulatedNode, now: int) -> RunningNode:
        contents = node.contents(now)
        return RunningNode(
            contents.node,
            contents.pods,
            node.pool,
            node.weight,
            contents.cost,
            node.claim.row.capacity_type == SPOT,
            "it is held" if now < self._held_until(node, now) else "",
            own_usd_hour=node.claim.own_usd_hour,
        )

    def _held_until(self, node: SimulatedNode, now: int) -> float:
        """Until when the pool's ``consolidateAfter``, or a pod that is not to be disrupted, keeps the node."""
        policy = self._trace.policies.get(node.pool)
        if policy is None or policy.consolidate_after is None:
            return FOREVER
        quiet = max(node.ready_at, node.moved_at) + policy.consolidate_after
        return max(quiet, node.contents(now).protected_until)

    def _rules(self, name: str, moment: datetime, now: int) -> PoolRules:
        policy = self._trace.policies.get(name, PoolPolicy())
        states = [NodeState(initialized=node.ready_at <= now, disrupting=node.leaving) for node in self._of(name)]

        def allowed(reason: str) -> int:
            return budgets.remaining(policy.budgets, reason, states, moment)

        empty, underutilized = allowed(budgets.EMPTY), allowed(budgets.UNDERUTILIZED)
        return PoolRules(policy.policy, empty, underutilized, policy.minimum_saving)

    def _of(self, pool: str) -> Iterable[SimulatedNode]:
        return (node for node in self.nodes.values() if node.pool == pool)

    def next_look(self, now: int) -> int | None:
        """Second from which something may go that may not go now, because time passes; None: never by itself."""
        looks = [until for node in self.nodes.values() if now < (until := self._held_until(node, now)) < FOREVER]
        moment = _moment(self._trace, now)
        for policy in self._trace.policies.values():
            change = budgets.next_change(policy.budgets, moment)
            if change is not None:
                looks.append((change - self._trace.starts_at).total_seconds())
        later = [ceil(look) for look in looks if look > now]
        return min(later, default=None)


def _moment(trace: Trace, now: int) -> datetime:
    return trace.starts_at + timedelta(seconds=now)
