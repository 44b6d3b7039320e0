"""Whether pods have places together on nodes as Stockyard was told of them, found by trying."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from random import Random
from typing import Any

from agent.stockyard_agent.kubernetes import Object
from local.kubernetes.placing.board import Board
from local.kubernetes.placing.model import Node, Pod, node_of, pod_of
from local.kubernetes.placing.volumes import Storage
from tests.harness.hours.cluster import PlayedCluster
from tests.harness.hours.pods import NAMESPACE, is_ending, stamp
from tests.harness.hours.traces import Size
from tests.harness.people.scheduler import ZONE, board_of, read

_WEIGHTS = ((1, 0), (0, 1), (1, 1))
"""Of cores and memory in the size of a pod."""


def told_nodes(
    kube: PlayedCluster, facts: Mapping[str, Mapping[str, Any]], names: Collection[str], told_at: datetime
) -> list[Node]:
    """Nodes of ``names`` that were reported ready, as reported, with their pods of that time."""
    nodes = []
    for name in sorted(names):
        node_facts = facts.get(name)
        if node_facts is None or node_facts["ready"] != "True" or name not in kube.nodes:
            continue
        spec = {"taints": node_facts["taints"], "unschedulable": node_facts["unschedulable"]}
        status = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": node_facts["allocatable"]}
        meta = {"name": name, "labels": node_facts["labels"]}
        node = node_of({"metadata": meta, "spec": spec, "status": status}, kube.storage.limits())
        for pod in kube.pods.values():
            node_name = pod["spec"].get("nodeName") or pod["status"].get("nominatedNodeName")
            # A pod that was gated for long is bound long after it was made.
            since = pod["status"].get("startTime") or stamp(pod["created"])
            if node_name == name and not is_ending(pod) and datetime.fromisoformat(since) <= told_at:
                node.add(read(pod))
        nodes.append(node)
    return nodes


def would_take(kube: PlayedCluster, pod: Object, size: Size, zones: Iterable[str]) -> bool:
    """Whether a new node of that size in one of the zones would take the pod, beside its pods of DaemonSets."""
    board = board_of(kube)
    fresh = []
    for zone in zones:
        name = f"new-in-{zone}"
        labels = {"kubernetes.io/hostname": name, ZONE: zone}
        allocatable = {"cpu": f"{size.cpu}m", "memory": f"{size.mib}Mi", "pods": "110"}
        status = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": allocatable}
        node = node_of({"metadata": {"name": name, "labels": labels}, "status": status}, kube.storage.limits())
        for daemon in kube.daemons.values():
            node.add(pod_of(daemon.pod(0, kube.now())))
        fresh.append(node)
    faults = Board([*board.nodes, *fresh], board.storage, board.spaces, board.nominated).faults(read(pod))
    return any(not faults[node.name] for node in fresh)


def have_places(pods: Sequence[Pod], nodes: Sequence[Node], storage: Storage, tries: int = 150) -> bool:
    """Whether all of the pods have places together: the largest first where it is tightest, or in another order."""
    chance = Random(0)
    for number in range(tries):
        noise = 0.0 if number < len(_WEIGHTS) else chance.uniform(0.05, 0.5)
        sizes = {id(pod): _size(pod, number) * (1 + noise * chance.random()) for pod in pods}
        # Pods with rules have the fewest places.
        ranked = sorted(pods, key=lambda pod: (not _has_rules(pod), -sizes[id(pod)]))
        if _have_places_in_turn(ranked, nodes, storage, chance if number % 2 else None):
            return True
    return False


def _has_rules(pod: Pod) -> bool:
    return bool(pod.apart or pod.affinity or pod.spread or pod.ports or pod.claims or pod.selector)


def _size(pod: Pod, number: int) -> float:
    """Size of the pod, by one of some measures."""
    cores, memory = _WEIGHTS[number % len(_WEIGHTS)]
    return cores * pod.requests["cpu"] / 1e6 + memory * pod.requests["memory"] / (4096 * 2**20 * 1000)


def _have_places_in_turn(pods: Sequence[Pod], nodes: Sequence[Node], storage: Storage, chance: Random | None) -> bool:
    board = Board(nodes, storage, {NAMESPACE: {}})
    by_name = {node.name: node for node in nodes}
    placed: list[tuple[Node, Pod]] = []
    try:
        for pod in pods:
            fitting = [by_name[name] for name, fault in board.faults(pod).items() if not fault]
            if not fitting:
                return False
            node = min(fitting, key=lambda node: node.free("cpu") / 1e6 + node.free("memory") / (4096 * 2**20 * 1000))
            if chance is not None and chance.random() < 0.2:
                node = chance.choice(fitting)
            node.add(pod)
            placed.append((node, pod))
        return True
    finally:
        for node, pod in placed:
            node.take(pod)
