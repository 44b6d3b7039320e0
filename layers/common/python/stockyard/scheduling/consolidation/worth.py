"""Worth of pods: what they would cost at least if all were packed anew.

The dual of the relaxed packing gives each resource a price at which no node type is worth more than it costs. So the
pods of a node are worth what the cheapest packing of all pods pays for them at least, and a node *wastes* what it costs
more than that. The waste of all nodes together is the most that any consolidation can save.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stockyard.scheduling.consolidation.model import Fleet, RunningNode
from stockyard.scheduling.packing.free import FreePart
from stockyard.scheduling.packing.model import Pod, PodGroup, Problem
from stockyard.scheduling.packing.price import NANO


def wastes(fleet: Fleet, nodes: Sequence[RunningNode]) -> list[float] | None:
    """For each node what it costs more than its pods are worth, in USD an hour; None where some pod has no known
    price, because nothing that is known to be sold takes it."""
    worth = worth_of(fleet, nodes)
    if worth is None:
        return None
    return [node.price - sum(worth[pod] * count for pod, count in node.pods) for node in nodes]


def possible_saving(fleet: Fleet) -> float | None:
    """Largest possible saving in USD an hour if every node might go; None as of ``wastes``. Nodes without a known price
    are left out."""
    nodes = [node for node in fleet.nodes if node.price]
    waste = wastes(fleet, nodes)
    return sum(max(amount, 0.0) for amount in waste) if waste is not None else None


def worth_of(fleet: Fleet, nodes: Sequence[RunningNode]) -> Mapping[Pod, float] | None:
    """Worth of each of the nodes' pods in USD an hour; None as of ``wastes``."""
    counts: dict[Pod, int] = {}
    for node in nodes:
        for pod, count in node.pods:
            counts[pod] = counts.get(pod, 0) + count
    if not counts:
        return {}
    # Only how many there are matters, not what they are called.
    groups = tuple(PodGroup(pod, ("",) * count) for pod, count in counts.items())
    free = FreePart.of(Problem(groups, fleet.pools, (), fleet.daemons))
    certificate = free.certificate
    if certificate is None or not certificate.worst:
        return None
    unit = certificate.scale * certificate.worst * NANO
    values = [[float(value / unit) for value in row] for row in certificate.values]
    return {
        pod_class.pod: sum(value * amount for value, amount in zip(values[group], pod_class.requests, strict=False))
        for pod_class, group in zip(free.solver.classes, certificate.classes, strict=True)
    }
