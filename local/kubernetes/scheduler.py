"""The scheduler and the kubelets' part in starting pods, in a simulated cluster.

A pod gets the node with the most free processors of those that the filters of kube-scheduler's plugins let through:
NodeUnschedulable, TaintToleration, NodeAffinity as far as ``nodeSelector`` says it, and NodeResourcesFit. Where there
is none, the pod is marked as unschedulable. A pod with other rules (affinity, spread, host ports, volumes that are
claimed) is left as it is, because nothing here could judge it. Programs are not run: a pod runs as soon as it has its
node.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from local.kubernetes.store import Key, KubeStore, Object, stamp
from stockyard.domain.quantities import milli

_FINISHED = ("Succeeded", "Failed")
_KEEPS_OUT = ("NoSchedule", "NoExecute")
UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


@dataclass(slots=True)
class _Room:
    """A node, and what its pods leave of it in thousandths."""

    document: Object
    free: dict[str, int]

    @property
    def name(self) -> str:
        return str(self.document["metadata"]["name"])


def schedule(store: KubeStore, down: frozenset[str] = frozenset()) -> int:
    """Bind every pod that fits a node, and mark those that fit none. Returns how many were bound.

    Nodes in ``down`` take no pod: their kubelets do nothing.
    """
    queue = sorted(key for key, document in store.objects.items() if key.resource == "pods" and _is_due(document))
    if not queue:
        return 0
    rooms, count = _rooms(store, down), 0
    for key in queue:
        pod = store.objects[key]
        requests = requests_of(pod)
        faults = {room.name: _fault(pod, requests, room) for room in rooms}
        fitting = [room for room in rooms if not faults[room.name]]
        if not fitting:
            _mark(store, key, _message(len(rooms), Counter(faults.values())))
            continue
        best = max(fitting, key=lambda room: (room.free["cpu"], room.name))
        for name, amount in requests.items():
            best.free[name] -= amount
        _run(store, key, best.name)
        count += 1
    return count


def requests_of(pod: Mapping[str, Any]) -> dict[str, int]:
    """What the pod's containers request together, in thousandths, and its own place among the pods of its node.

    Init containers, which run before the others, count where one of them requests more.
    """
    spec, amounts = pod["spec"], Counter[str]()
    for container in spec.get("containers") or ():
        amounts.update(_requests(container))
    for container in spec.get("initContainers") or ():
        for name, amount in _requests(container).items():
            amounts[name] = max(amounts[name], amount)
    return {**amounts, "pods": 1000}


def _requests(container: Mapping[str, Any]) -> dict[str, int]:
    resources = container.get("resources") or {}
    # What is only limited is requested as well.
    quantities = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: milli(quantity) for name, quantity in quantities.items()}


def _is_due(pod: Object) -> bool:
    """Whether the pod has no node, asks for one, and has no rule that is not judged here."""
    spec = pod["spec"]
    if spec.get("nodeName") or spec.get("schedulingGates") or "deletionTimestamp" in pod["metadata"]:
        return False
    if (pod.get("status") or {}).get("phase", "Pending") != "Pending":
        return False
    ports = (port for container in spec.get("containers") or () for port in container.get("ports") or ())
    volumes = spec.get("volumes") or ()
    return not (
        any((spec.get("affinity") or {}).values())
        or spec.get("topologySpreadConstraints")
        or spec.get("hostNetwork")
        or any(port.get("hostPort") for port in ports)
        or any("persistentVolumeClaim" in volume or "ephemeral" in volume for volume in volumes)
    )


def _rooms(store: KubeStore, down: frozenset[str]) -> list[_Room]:
    used: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for key, pod in store.objects.items():
        if key.resource == "pods" and pod["spec"].get("nodeName") and pod["status"].get("phase") not in _FINISHED:
            used[pod["spec"]["nodeName"]].update(requests_of(pod))
    rooms = []
    for key, document in store.objects.items():
        if key.resource == "nodes" and key.name not in down and _is_ready(document):
            free = Counter({name: milli(quantity) for name, quantity in document["status"]["allocatable"].items()})
            free.subtract(used[key.name])
            rooms.append(_Room(document, free))
    return rooms


def _is_ready(node: Object) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _fault(pod: Object, requests: Mapping[str, int], room: _Room) -> str:
    """Why the pod cannot be on the node, as kube-scheduler words it; empty when it can."""
    spec, node = pod["spec"], room.document["spec"]
    labels = room.document["metadata"].get("labels") or {}
    tolerations = spec.get("tolerations") or ()
    if node.get("unschedulable") and not _tolerated(UNSCHEDULABLE, tolerations):
        return "node(s) were unschedulable"
    for taint in node.get("taints") or ():
        if taint["effect"] in _KEEPS_OUT and not _tolerated(taint, tolerations):
            return f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"
    if any(labels.get(name) != value for name, value in (spec.get("nodeSelector") or {}).items()):
        return "node(s) didn't match Pod's node affinity/selector"
    for name, amount in requests.items():
        if amount > room.free.get(name, 0):
            return "Too many pods" if name == "pods" else f"Insufficient {name}"
    return ""


def takes_pods(node: Mapping[str, Any]) -> bool:
    """Whether a node takes pods that tolerate nothing."""
    spec = node.get("spec") or {}
    return not spec.get("unschedulable") and not any(t["effect"] in _KEEPS_OUT for t in spec.get("taints") or ())


def _tolerated(taint: Mapping[str, Any], tolerations: Any) -> bool:
    return any(
        toleration.get("effect") in (None, "", taint["effect"])
        and toleration.get("key") in (None, "", taint["key"])
        and (toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", ""))
        for toleration in tolerations
    )


def _message(nodes: int, faults: Counter[str]) -> str:
    if not nodes:
        return "no nodes available to schedule pods"
    reasons = ", ".join(sorted(f"{count} {fault}" for fault, count in faults.items()))
    return f"0/{nodes} nodes are available: {reasons}."


def _mark(store: KubeStore, key: Key, message: str) -> None:
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    pod = store.objects[key]
    store.replace(key, {**pod, "status": {**(pod.get("status") or {}), "phase": "Pending", "conditions": [refused]}})


def _run(store: KubeStore, key: Key, node: str) -> None:
    pod, since = store.objects[key], stamp(store.now())
    conditions = [
        {"type": name, "status": "True", "lastTransitionTime": since}
        for name in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    status = {"phase": "Running", "conditions": conditions, "startTime": since}
    store.replace(key, {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": status})
