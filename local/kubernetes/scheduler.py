"""The scheduler, the kubelets' part in starting pods, and the provisioner of volumes, in a simulated cluster.

A pod gets a node by the rules of kube-scheduler (:mod:`local.kubernetes.placing`). Where there is none, it is marked as
unschedulable, after it has pushed out pods of lower priority where that helps. Programs are not run: a pod runs as soon
as it has its node. A claim whose class waits for the first pod gets its volume in the zone of that pod's node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from local.kubernetes.placing.board import Board
from local.kubernetes.placing.model import Node, Pod, node_of, pod_of
from local.kubernetes.placing.selectors import KEEPS_OUT
from local.kubernetes.placing.volumes import LATE, Storage
from local.kubernetes.pods import delete
from local.kubernetes.store import Key, KubeStore, Object, stamp

_FINISHED = ("Succeeded", "Failed")
_UNREACHABLE = [{"type": "Ready", "status": "Unknown"}]
_CLAIMS = "cannot allocate all claims"
"""What kube-scheduler says of pods that claim devices: nothing here has any."""


def schedule(store: KubeStore, down: frozenset[str] = frozenset()) -> int:
    """Bind every pod that fits a node, and mark those that fit none. Returns how many were bound.

    Nodes in ``down`` take no pod: their kubelets do nothing. Pods of higher priority come first.
    """
    due = [key for key, document in store.objects.items() if key.resource == "pods" and _is_due(document)]
    if not due:
        return 0
    for key in due:
        _make_claims(store, key)
    classes, count = _classes(store), 0
    board = _board(store, down, classes)
    waiting = {key: pod_of(store.objects[key], classes) for key in due}
    board.nominated = [pod for pod in waiting.values() if pod.nominated]
    for key in sorted(due, key=lambda key: (-waiting[key].priority, key)):
        pod = waiting[key]
        faults = board.faults(pod) if not pod.document["spec"].get("resourceClaims") else _nowhere(board)
        fitting = [name for name, fault in faults.items() if not fault and name not in down]
        if not fitting:
            _note(store, key, _message(faults), _preempt(store, board, pod))
            continue
        best = pod.nominated if pod.nominated in fitting else board.best(pod, fitting).name
        node = next(node for node in board.nodes if node.name == best)
        _provide(store, pod, node)
        _run(store, key, node.name)
        pod.document = store.objects[key]
        node.add(pod)
        board.storage = _storage(store)
        board.nominated = [other for other in board.nominated if other is not pod]
        count += 1
    return count


def _is_due(pod: Object) -> bool:
    """Whether the pod has no node and is to get one."""
    if pod["spec"].get("nodeName") or pod["spec"].get("schedulingGates") or "deletionTimestamp" in pod["metadata"]:
        return False
    return bool((pod.get("status") or {}).get("phase", "Pending") == "Pending")


def _classes(store: KubeStore) -> dict[str, int]:
    """The values of classes of priority; pods that name none have that of the default one."""
    classes = {key.name: item for key, item in store.objects.items() if key.resource == "priorityclasses"}
    values = {name: int(item["value"]) for name, item in classes.items()}
    default = next((values[name] for name, item in classes.items() if item.get("globalDefault")), 0)
    system = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
    return {**system, **values, "": default}


def _board(store: KubeStore, down: frozenset[str], classes: Mapping[str, int]) -> Board:
    nodes: dict[str, Node] = {}
    limits = {key.name: _limits(item) for key, item in store.objects.items() if key.resource == "csinodes"}
    for key, document in store.objects.items():
        if key.resource == "nodes":
            lost = {**document, "status": {**(document.get("status") or {}), "conditions": _UNREACHABLE}}
            nodes[key.name] = node_of(lost if key.name in down else document, limits.get(key.name))
    for key, pod in store.objects.items():
        if key.resource == "pods" and (pod.get("status") or {}).get("phase") not in _FINISHED:
            node = nodes.get(pod["spec"].get("nodeName") or "")
            if node is not None:
                node.add(pod_of(pod, classes))
    spaces = {
        key.name: {"kubernetes.io/metadata.name": key.name, **(item["metadata"].get("labels") or {})}
        for key, item in store.objects.items()
        if key.resource == "namespaces"
    }
    return Board([nodes[name] for name in sorted(nodes)], _storage(store), spaces)


def _limits(item: Object) -> dict[str, int]:
    drivers = (item.get("spec") or {}).get("drivers") or ()
    counts = {driver["name"]: (driver.get("allocatable") or {}).get("count") for driver in drivers}
    return {name: int(count) for name, count in counts.items() if count is not None}


def _storage(store: KubeStore) -> Storage:
    storage = Storage({}, {}, {})
    by_resource: dict[str, dict[str, Object]] = {
        "persistentvolumeclaims": {},
        "persistentvolumes": {},
        "storageclasses": {},
    }
    for key, item in store.objects.items():
        if key.resource in by_resource:
            by_resource[key.resource][f"{key.namespace}/{key.name}" if key.namespace else key.name] = item
    storage.claims, storage.volumes, storage.classes = by_resource.values()
    return storage


def _nowhere(board: Board) -> dict[str, str]:
    return dict.fromkeys((node.name for node in board.nodes), _CLAIMS)


def takes_pods(node: Mapping[str, Any]) -> bool:
    """Whether a node takes pods that tolerate nothing."""
    spec = node.get("spec") or {}
    return not spec.get("unschedulable") and not any(t["effect"] in KEEPS_OUT for t in spec.get("taints") or ())


# --- pods without a node ----------------------------------------------------------------------------------------------


def _message(faults: Mapping[str, str]) -> str:
    if not faults:
        return "no nodes available to schedule pods"
    reasons = ", ".join(sorted(f"{count} {fault}" for fault, count in Counter(faults.values()).items()))
    return f"0/{len(faults)} nodes are available: {reasons}."


def _preempt(store: KubeStore, board: Board, pod: Pod) -> str:
    """The node that the pod is nominated to; empty for none. Pods that go for it are told to end."""
    by_name = {node.name: node for node in board.nodes}
    before = by_name.get(pod.nominated)
    if before is not None and any(other.ending for other in before.pods):
        return before.name
    preemption = board.preempt(pod)
    if preemption is None:
        return ""
    node, victims = preemption
    for victim in victims:
        delete(store, Key("", "pods", victim.namespace, victim.name), {})
        # What had no program to end is gone.
        victim.document = store.objects.get(Key("", "pods", victim.namespace, victim.name), victim.document)
    board.nominated = [*(other for other in board.nominated if other is not pod), pod]
    pod.document = {**pod.document, "status": {**(pod.document.get("status") or {}), "nominatedNodeName": node.name}}
    return node.name


def _note(store: KubeStore, key: Key, message: str, nominated: str) -> None:
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    pod = store.objects[key]
    status = {**(pod.get("status") or {}), "phase": "Pending", "conditions": [refused]}
    status.pop("nominatedNodeName", None)
    store.replace(key, {**pod, "status": {**status, **({"nominatedNodeName": nominated} if nominated else {})}})


def _run(store: KubeStore, key: Key, node: str) -> None:
    pod, since = store.objects[key], stamp(store.now())
    conditions = [
        {"type": name, "status": "True", "lastTransitionTime": since}
        for name in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    status = {"phase": "Running", "conditions": conditions, "startTime": since}
    store.replace(key, {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": status})


# --- volumes ----------------------------------------------------------------------------------------------------------


def _make_claims(store: KubeStore, key: Key) -> None:
    """Make the claims of the pod's ephemeral volumes, as their controller does."""
    for volume in store.objects[key]["spec"].get("volumes") or ():
        template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        claim = Key("", "persistentvolumeclaims", key.namespace, f"{key.name}-{volume['name']}")
        if template is not None and claim not in store.objects:
            meta = {**(template.get("metadata") or {}), "namespace": key.namespace}
            document = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta}
            store.create(claim, {**document, "spec": template["spec"], "status": {"phase": "Pending"}})


def _provide(store: KubeStore, pod: Pod, node: Node) -> None:
    """Make the volumes of claims that have waited for the pod, where its node is."""
    storage = _storage(store)
    for name in pod.claims:
        key = Key("", "persistentvolumeclaims", pod.namespace, name)
        claim = store.objects[key]
        kind = storage.class_of(claim)
        if claim["spec"].get("volumeName") or kind is None or kind.get("volumeBindingMode") != LATE:
            continue
        zone = node.labels.get("topology.kubernetes.io/zone")
        zone_term = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
        terms = {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone_term]}]}}
        volume = f"pvc-{claim['metadata']['uid']}"
        spec = {
            "csi": {"driver": kind.get("provisioner", ""), "volumeHandle": volume},
            "storageClassName": kind["metadata"]["name"],
            "claimRef": {"namespace": pod.namespace, "name": name},
            **({"nodeAffinity": terms} if zone else {}),
        }
        document = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {}, "spec": spec}
        store.create(Key("", "persistentvolumes", "", volume), {**document, "status": {"phase": "Bound"}})
        bound = {**claim["spec"], "volumeName": volume}
        store.replace(key, {**claim, "spec": bound, "status": {**(claim.get("status") or {}), "phase": "Bound"}})
