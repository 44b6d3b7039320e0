"""The scheduler of a played cluster: kube-scheduler's rules, in one of some styles of ranking room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from agent.stockyard_agent.kubernetes import Object
from local.kubernetes.placing.board import Board
from local.kubernetes.placing.model import Node, Pod, node_of, pod_of
from tests.harness.hours.pods import NAMESPACE, is_ending

if TYPE_CHECKING:
    from tests.harness.hours.cluster import PlayedCluster

SPREAD, FILL, ANY = "spread", "fill", "any"
"""How the scheduler chooses among nodes with room: the emptiest, the fullest, any."""
STYLES = (SPREAD, FILL, ANY)
ZONE = "topology.kubernetes.io/zone"


def read(pod: Object) -> Pod:
    """The pod as the scheduler reads it; read once."""
    if "read" not in pod:
        pod["read"] = pod_of(pod)
    read_pod: Pod = pod["read"]
    return read_pod


def board_of(kube: PlayedCluster) -> Board:
    """Board as the scheduler sees it: bound pods, and those that it has given a node."""
    limits = kube.storage.limits()
    nodes = {name: node_of(document, limits) for name, document in kube.nodes.items()}
    waiting = []
    for pod in kube.pods.values():
        name = pod["spec"].get("nodeName") or pod.get("assumed")
        if name in nodes:
            nodes[name].add(read(pod))
        elif name is None and pod["status"].get("nominatedNodeName"):
            waiting.append(read(pod))
    return Board(list(nodes.values()), kube.storage.as_seen(), {NAMESPACE: {}}, waiting)


def schedule(kube: PlayedCluster) -> None:
    """Place all pods that wait."""
    pending = kube.pending()
    if not pending:
        return
    board = board_of(kube)
    for document in pending:
        pod = read(document)
        if document["metadata"]["uid"] not in kube.pods or is_ending(document):
            continue
        faults = board.faults(pod)
        is_barred = document["app"] in kube.barred
        fitting = [name for name, fault in faults.items() if not (fault or is_barred or name in kube.spoilt)]
        if not fitting:
            _refuse(kube, document, _preempt(kube, board, pod), _message(faults))
            continue
        before = pod.nominated
        node = board.best(pod, [before] if before in fitting else sorted(fitting), partial(_room, kube))
        node.add(pod)
        board.nominated = [other for other in board.nominated if other is not pod]
        _give(kube, document, node.name)


def _give(kube: PlayedCluster, pod: Object, name: str) -> None:
    if not kube.storage.late(pod):
        kube.bind(pod, name)
        return
    pod["assumed"] = pod["status"]["nominatedNodeName"] = name
    kube.watched.assumed(pod)
    kube.tell(pod)
    kube.at(kube.chance.uniform(*kube.storage.binding), partial(_bind_late, kube, pod, name))


def _bind_late(kube: PlayedCluster, pod: Object, name: str) -> None:
    """Bind a pod whose volumes are made by now: the pod is bound, or waits again where its node is gone."""
    if pod["metadata"]["uid"] not in kube.pods or is_ending(pod):
        return
    if name in kube.nodes:
        for claim in kube.storage.late(pod):
            kube.storage.provide(claim, kube.nodes[name]["metadata"]["labels"][ZONE])
        kube.bind(pod, name)
        return
    del pod["assumed"]
    _refuse(kube, pod, "", "")
    schedule(kube)


def _message(faults: Mapping[str, str]) -> str:
    """Message of kube-scheduler; a node without a fault is barred by a webhook."""
    counts = Counter(fault or "node(s) were barred by a webhook" for fault in faults.values())
    reasons = ", ".join(sorted(f"{count} {fault}" for fault, count in counts.items()))
    return f"0/{len(faults)} nodes are available: {reasons}." if faults else "no nodes available to schedule pods"


def _refuse(kube: PlayedCluster, pod: Object, nominated: str, message: str) -> None:
    status = pod["status"]
    before = (bool(status["conditions"]), status.pop("nominatedNodeName", ""))
    if nominated:
        status["nominatedNodeName"] = nominated
    refusal = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    status["conditions"] = [refusal]
    if before != (True, nominated):
        kube.tell(pod)
    if not before[0]:
        kube.watched.waits(pod)


def _preempt(kube: PlayedCluster, board: Board, pod: Pod) -> str:
    """The node where pods of lower priority go for this one; empty where that does not help."""
    before = next((node for node in board.nodes if node.name == pod.nominated), None)
    if before is not None and any(other.ending for other in before.pods):
        return before.name
    preemption = board.preempt(pod) if pod.priority else None
    if preemption is None:
        return ""
    node, victims = preemption
    kube.watched.preempts(pod.document)
    board.nominated = [*board.nominated, pod]
    for victim in victims:
        if "nodeName" in victim.document["spec"]:
            kube.push_out(victim.document, "preempted")
    return node.name


def _room(kube: PlayedCluster, node: Node) -> float:
    if kube.style == ANY:
        return kube.chance.random()
    shares = [node.free(name) / max(1, node.allocatable[name]) for name in ("cpu", "memory")]
    return sum(shares) / 2 if kube.style == SPREAD else 1 - sum(shares) / 2
