"""One moment of a cluster: where a pod may be, where it would rather be, and whom it would push out.

The filters are those of kube-scheduler's plugins: NodeUnschedulable, TaintToleration, NodeAffinity, NodePorts,
NodeResourcesFit, VolumeBinding, VolumeZone, VolumeRestrictions (ReadWriteOncePod), NodeVolumeLimits, PodTopologySpread,
InterPodAffinity and DefaultPreemption. Preferred rules only rank, with the weights that these plugins have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from local.kubernetes.placing.model import Node, Pod
from local.kubernetes.placing.requests import clash
from local.kubernetes.placing.selectors import Labels, in_terms, tolerates, untolerated
from local.kubernetes.placing.topology import Topology, crowded, is_wanted, wished
from local.kubernetes.placing.volumes import Need, Storage, fault_of

TAINTS, NODES, SPREAD, PODS = 3, 2, 2, 2
"""Weights of kube-scheduler's plugins for preferred rules; the room that is free has weight 1."""
_WHOLE = 100.0
Room = Callable[[Node], float]
"""How well the room of a node suits, from 0 to 1."""


def emptiest(node: Node) -> float:
    """Share of processors and memory that no pod has: kube-scheduler's rule without other settings."""
    shares = [node.free(name) / node.allocatable[name] for name in ("cpu", "memory") if node.allocatable.get(name)]
    return sum(shares) / len(shares) if shares else 0.0


@dataclass
class Board:
    """``nodes`` hold their pods; ``spaces`` are labels of namespaces. ``nominated`` are pods that were given a node
    and are not bound to it: they keep their room there from pods of no higher priority."""

    nodes: Sequence[Node]
    storage: Storage = field(default_factory=Storage)
    spaces: Mapping[str, Labels] = field(default_factory=dict)
    nominated: Sequence[Pod] = ()

    def faults(self, pod: Pod) -> dict[str, str]:
        """Reasons why the pod cannot be on each node, as kube-scheduler words them; empty where it can."""
        kept_pods = [other for other in self.nominated if other is not pod and other.priority >= pod.priority]
        by_name = {node.name: node for node in self.nodes}
        placed = [(by_name[other.nominated], other) for other in kept_pods if other.nominated in by_name]
        for node, other in placed:
            node.add(other)
        try:
            return self._faults(pod)
        finally:
            for node, other in placed:
                node.take(other)

    def _faults(self, pod: Pod) -> dict[str, str]:
        needs = self.storage.needs(pod)
        problem = next((need.problem for need in needs if need.problem), "") or self._alone(pod)
        if problem:
            return dict.fromkeys((node.name for node in self.nodes), problem)
        topology = Topology(pod, self.nodes, self.spaces)
        return {node.name: self._fault(pod, node, needs, topology) for node in self.nodes}

    def _alone(self, pod: Pod) -> str:
        """Reason why a claim that only one pod may use keeps the pod out; empty when it does not."""
        for name in pod.claims:
            claim = self.storage.claims.get(f"{pod.namespace}/{name}") or {}
            if "ReadWriteOncePod" in ((claim.get("spec") or {}).get("accessModes") or ()) and any(
                name in other.claims and other.namespace == pod.namespace for node in self.nodes for other in node.pods
            ):
                return "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
        return ""

    def _fault(self, pod: Pod, node: Node, needs: Sequence[Need], topology: Topology) -> str:
        taint = untolerated(pod.tolerations, node.taints)
        if taint is not None:
            if taint["key"] == "node.kubernetes.io/unschedulable":
                return "node(s) were unschedulable"
            return f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value') or ''}}}"
        if not is_wanted(pod, node):
            return "node(s) didn't match Pod's node affinity/selector"
        if pod.ports and clash(pod.ports, (port for other in node.pods for port in other.ports)):
            return "node(s) didn't have free ports for the requested pod ports"
        for name, amount in pod.requests.items():
            if amount and amount > node.free(name):
                return "Too many pods" if name == "pods" else f"Insufficient {name}"
        return fault_of(needs, node, self.storage) or topology.fault(node)

    def best(self, pod: Pod, names: Sequence[str], room: Room = emptiest) -> Node:
        """The node of these that the scheduler takes: preferred rules rank first, then room, then the last name."""
        fitting = [node for node in self.nodes if node.name in set(names)]
        scores = dict.fromkeys((node.name for node in fitting), 0.0)

        def add(values: Mapping[str, float], weight: int) -> None:
            low, high = min(values.values()), max(values.values())
            for name, value in values.items():
                scores[name] += weight * _WHOLE * ((value - low) / (high - low) if high > low else 0.0)

        add({node.name: -_disliked(pod, node) for node in fitting}, TAINTS)
        add({node.name: _preferred(pod, node) for node in fitting}, NODES)
        add({name: -count for name, count in crowded(pod, fitting, self.nodes).items()}, SPREAD)
        add(wished(pod, fitting, self.nodes, self.spaces), PODS)
        for node in fitting:
            scores[node.name] += _WHOLE * room(node)
        return max(fitting, key=lambda node: (scores[node.name], node.name))

    def preempt(self, pod: Pod) -> tuple[Node, list[Pod]] | None:
        """The node where fewest and lowest pods would have to go, and these; None where that helps nowhere."""
        if not pod.preempts:
            return None
        options = []
        for node in self.nodes:
            victims = self._victims(pod, node)
            if victims:
                highest = max(victim.priority for victim in victims)
                options.append((highest, len(victims), node.name, node, victims))
        if not options:
            return None
        *_, node, victims = min(options, key=lambda entry: entry[:3])
        return node, victims

    def _victims(self, pod: Pod, node: Node) -> list[Pod]:
        """Pods of the node that would have to go for the pod; none when that does not help."""
        lower = sorted(
            (other for other in node.pods if other.priority < pod.priority), key=lambda other: -other.priority
        )
        if not lower:
            return []
        for other in lower:
            node.take(other)
        victims = []
        try:
            if self.faults(pod)[node.name]:
                return []
            for other in lower:
                node.add(other)
                if self.faults(pod)[node.name]:
                    node.take(other)
                    victims.append(other)
        finally:
            for other in lower:
                if other not in node.pods:
                    node.add(other)
        return victims


def _disliked(pod: Pod, node: Node) -> int:
    return sum(taint["effect"] == "PreferNoSchedule" and not tolerates(pod.tolerations, taint) for taint in node.taints)


def _preferred(pod: Pod, node: Node) -> int:
    return sum(
        int(entry["weight"]) for entry in pod.preferred if in_terms((entry["preference"],), node.name, node.labels)
    )
