"""Whether pods that move have a place, as it is looked at before nodes go: all that are to come are packed at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from stockyard.domain.nodes.node_types import CPU, MEMORY
from stockyard.domain.values.requirements import HOSTNAME
from stockyard.scheduling.consolidation.model import Decision, Fleet, Replacement, RunningNode
from stockyard.scheduling.packing.model import Node, Pod, PodGroup, Problem, Settings
from stockyard.scheduling.packing.plan import grouped, pack
from stockyard.scheduling.packing.price.model import Meter

CHECK_STEPS = 5_000_000
"""The work to find a place for the pods of nodes that are about to leave; where it does not do, they stay."""


READING_STEPS, READING_STEPS_A_NODE = 300, 5
"""What such a packing costs besides, to read the nodes and pods."""


def pods_of(nodes: Iterable[RunningNode]) -> tuple[PodGroup, ...]:
    """The pods that move with the nodes, named after their node."""
    return grouped(
        (f"{node.name}/{kind}/{number}", pod)
        for node in nodes
        for kind, (pod, count) in enumerate(node.pods)
        for number in range(count)
    )


def homeless_pods(fleet: Fleet, nodes: Sequence[RunningNode], meter: Meter | None = None) -> int:
    """Number of pods that would have no place on the other nodes of the fleet: those of the nodes, and those that are
    still to come to the others. They are packed together, as they are when pools are asked for nodes: what comes first
    may take the room of what comes later, so that a place for each of the two by itself is none for both.

    ``meter`` counts the work; it does not bound it.
    """
    names = {node.name for node in nodes}
    if all(node.empty for node in nodes):
        return 0
    staying = [running for running in fleet.nodes if running.name not in names]
    groups = pods_of([*nodes, *(replace(node, pods=fleet.awaited.get(node.name, ())) for node in staying)])
    there = sorted((_without(running.node, fleet.awaited.get(running.name, ())) for running in staying), key=_room)
    # Nodes are filled in the order of their names: the same room has the same answer, whatever its nodes are called.
    ranked = tuple(replace(node, name=f"{rank:06}") for rank, node in enumerate(there))
    settings = Settings(preferences=False, split=False, steps=CHECK_STEPS)
    plan = pack(Problem(groups, (), ranked, fleet.daemons, settings))
    if meter is not None:
        meter.spent += plan.steps + READING_STEPS + READING_STEPS_A_NODE * len(ranked)
    return sum(len(item.pods) for item in plan.left_out)


def _without(node: Node, pods: Sequence[tuple[Pod, int]]) -> Node:
    """The node with the room of these pods free."""
    return node.less((pod, -count) for pod, count in pods) if pods else node


def _room(node: Node) -> tuple[int, int, list[tuple[str, int]], list[tuple[str, str]], str]:
    """Sort key of nodes by their room, the smallest first. Of those with the same room the labels decide, and the name
    only where these are the same, too: what a node that comes will be called is not known when it is decided on."""
    labels = sorted((key, value) for key, value in node.labels.items() if key != HOSTNAME)
    return node.free.get(CPU, 0), node.free.get(MEMORY, 0), sorted(node.free.items()), labels, node.name


def is_easy(fleet: Fleet, decision: Decision, meter: Meter | None = None) -> bool:
    """Whether the pods of the nodes that go will be found places for by ``homeless_pods`` once what comes is there."""
    coming = (_coming(number, replacement) for number, replacement in enumerate(decision.replacements))
    return not homeless_pods(replace(fleet, nodes=(*fleet.nodes, *coming)), decision.nodes, meter)


def _coming(number: int, replacement: Replacement) -> RunningNode:
    """The node that a replacement will be."""
    claim = replacement.claim
    name = f"{claim.pool.name}-{number}"
    node = Node(name, {**claim.labels, HOSTNAME: name}, dict(claim.row.room), claim.pool.taints, ports=claim.row.ports)
    return RunningNode(node, (), claim.pool.name, claim.price, own_usd_hour=claim.own_usd_hour)
