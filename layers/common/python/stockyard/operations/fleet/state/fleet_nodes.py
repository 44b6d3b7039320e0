"""The state of a cluster's nodes: what is there, what is on its way, and what is free on each.

Nobody else reads claims, the catalogue or reports for that: scale-up, consolidation, its preview, the check before
nodes leave, plans and placements all ask ``fleet_state``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, repeat

from stockyard.domain.pools.workload_records import NodeFacts
from stockyard.domain.records import Cluster, NodeClaim
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.requirements import HOSTNAME
from stockyard.lifecycle.disruption.vanished import has_vanished
from stockyard.lifecycle.nodes.interruption import is_interrupted
from stockyard.lifecycle.nodes.node_claim import AVAILABLE
from stockyard.operations.fleet.state.members import with_room
from stockyard.operations.fleet.state.promised import Promises, Stock
from stockyard.operations.fleet.state.reported import Quantities, attachable_of, taints_of
from stockyard.operations.fleet.state.workload import Workload
from stockyard.operations.services import Services
from stockyard.scheduling.packing import model

Pods = Sequence[tuple[model.Pod, int]]


@dataclass(frozen=True, slots=True)
class FleetNode:
    """One node. ``node`` is what the packer takes; ``facts`` are the report's, None where it has none of the node.

    ``unschedulable_reason`` says why no pod goes onto the node, in words; None: pods may. Taints are not meant: which
    pods they keep away, the packer finds.
    """

    claim: NodeClaim
    node: model.Node
    facts: NodeFacts | None
    unschedulable_reason: str | None = None

    @property
    def is_ready(self) -> bool:
        """Whether its cluster reports it as a node that pods can be on."""
        return self.node.initialized and self.facts is not None and self.facts.ready == "True"


@dataclass(frozen=True)
class FleetState:
    """The nodes of a cluster by name. Those that leave, that failed, or whose Node object is gone are not among
    them."""

    nodes: Mapping[str, FleetNode]

    @cached_property
    def packed(self) -> tuple[model.Node, ...]:
        """The nodes as the packer takes them. On one that takes no pods nothing is free; its pods count for rules."""
        return tuple(state.node for state in self.nodes.values())

    @cached_property
    def ready(self) -> Mapping[str, FleetNode]:
        """The nodes that their cluster reports as ready."""
        return {name: state for name, state in self.nodes.items() if state.is_ready}


def fleet_state(
    services: Services, cluster: Cluster, stock: Stock, claims: Sequence[NodeClaim], workload: Workload
) -> FleetState:
    """The nodes of ``claims``, by the report of their cluster, or by claims and catalogue where the report does not
    have the node yet.

    A claim in flight is the node that it will be: of its type once it is placed, before that of the type that it would
    be bound to now. Of members of the control plane those count that stay, and the first machine that no claim has.
    """
    reading = _Reading(workload, Promises(stock), Quantities(), _PlacedPods())
    present = [claim for claim in claims if not claim.deleting and claim.phase != "Failed"]
    states = (reading.state_of(claim) for claim in with_room(services, cluster, present, workload))
    return FleetState({state.node.name: state for state in states if state is not None})


class _PlacedPods(dict[int, model.PlacedPod]):
    """Pods of nodes by the identity of their ``Pod``: equal ones share one object, however many run."""

    def of(self, pod: model.Pod) -> model.PlacedPod:
        """The pod as topology counts it."""
        placed_pod = self.get(id(pod))
        if placed_pod is None:
            placed_pod = self[id(pod)] = model.PlacedPod(pod.namespace, pod.labels, pod.anti_affinity)
        return placed_pod


@dataclass(frozen=True, slots=True)
class _Reading:
    """One report read together with claims and catalogue."""

    workload: Workload
    promises: Promises
    quantities: Quantities
    placed_pods: _PlacedPods

    def state_of(self, claim: NodeClaim) -> FleetNode | None:
        """None for a claim that is no node, and will be none."""
        workload, facts = self.workload, self.workload.facts_of(claim)
        initialized = claim.phase == AVAILABLE
        if workload.nodes is not None and has_vanished(claim, facts, workload.true_at):
            return None
        allocatable = self._allocatable(claim, facts, initialized=initialized)
        if not allocatable:
            return None
        name = claim.node_name or claim.name
        labels = self._labels(name, claim, facts, initialized=initialized)
        taints = taints_of(claim, facts, initialized=initialized)
        reason = _unschedulable_reason(claim, facts, workload.obscure.get(name), initialized=initialized)
        nominated = workload.nominated.get(name, ())
        there = (*workload.running.get(name, ()), *nominated)
        to_come = tuple(_daemons_to_come(workload, name, labels, taints))
        free = self._free(allocatable, there, to_come) if reason is None else {}
        node = model.Node(
            name,
            labels,
            free,
            taints,
            tuple(chain.from_iterable(repeat(self.placed_pods.of(pod), count) for pod, count in there)),
            tuple(port for pod in (*(pod for pod, _ in there), *to_come) for port in pod.ports),
            initialized=initialized,
            attachable=attachable_of(facts, nominated),
        )
        return FleetNode(claim, node, facts, reason)

    def _allocatable(self, claim: NodeClaim, facts: NodeFacts | None, *, initialized: bool) -> Mapping[str, int]:
        """Allocatable resources of a node, as promised where it is not initialized and does not show them yet: a plugin
        may add it."""
        reported = self.quantities.of(facts.allocatable) if facts is not None and facts.allocatable else {}
        if reported and initialized:
            return reported
        return {**self.promises.allocatable(claim), **{name: amount for name, amount in reported.items() if amount}}

    def _labels(self, name: str, claim: NodeClaim, facts: NodeFacts | None, *, initialized: bool) -> Mapping[str, str]:
        reported = facts.labels if facts is not None and facts.labels is not None else None
        if reported is not None and initialized:
            return reported if HOSTNAME in reported else {**reported, HOSTNAME: name}
        return {**self.promises.labels(claim), HOSTNAME: name, **(reported or {})}

    def _free(self, allocatable: Mapping[str, int], there: Pods, to_come: Iterable[model.Pod]) -> dict[str, int]:
        free = defaultdict(int, allocatable)
        for pod, count in there:
            for resource, amount in pod.requests:
                free[resource] -= amount * count
        for pod in to_come:
            for resource, amount in pod.requests:
                free[resource] -= amount
        return dict(free)


def _unschedulable_reason(
    claim: NodeClaim, facts: NodeFacts | None, unreadable: str | None, *, initialized: bool
) -> str | None:
    if is_interrupted(claim):
        return "its cloud may take it back"
    if initialized and facts is not None and facts.ready != "True":
        return "it is not ready"
    return f"a pod on it cannot be read: {unreadable}" if unreadable is not None else None


def _daemons_to_come(
    workload: Workload, name: str, labels: Mapping[str, str], taints: Sequence[model.Taint]
) -> Iterable[model.Pod]:
    there = workload.daemons_running.get(name, frozenset())
    for daemon_set, pod in workload.daemons.items():
        if daemon_set not in there and _fits(pod, labels) and pod.tolerates(taints, preferred=False):
            yield pod


def _fits(pod: model.Pod, labels: Mapping[str, str]) -> bool:
    return any(
        all(requirement.has(labels[key]) if key in labels else requirement.absence_fits for key, requirement in term)
        for term in pod.terms
    )
