"""The scheduler of a played cluster, and the provisioner of its volumes, which takes its time.

Pods are placed by the rules of the local scheduler. A volume that waits for its first consumer is made some seconds
after the pod was assigned: until then the pod is neither bound nor called unschedulable, and its room is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from local.kubernetes import scheduler
from local.kubernetes.placing.board import Board
from local.kubernetes.placing.model import Pod, pod_of
from local.kubernetes.placing.volumes import LATE
from local.kubernetes.store import Key, KubeStore, Object

STORAGE = "storage.k8s.io"
ZONE = "topology.kubernetes.io/zone"
SOME_ZONE = "us-east-1a"
CLAIMS = "persistentvolumeclaims"


@dataclass
class Scheduling:
    """Over the objects of one cluster. ``later`` does something after so many seconds."""

    store: KubeStore
    now: Callable[[], datetime]
    later: Callable[[float, Callable[[], None]], None]
    delays: dict[str, float] = field(default_factory=dict)
    """How long it takes until a volume of a StorageClass is made, in seconds."""
    assigned: dict[Key, str] = field(default_factory=dict)
    """Pods that wait for their volumes, and the nodes that they are assigned to."""

    # --- volumes ------------------------------------------------------------------------------------------------------

    def storage_class(self, name: str, provisioner: str, binding: str, delay: float, zones: Iterable[str]) -> None:
        """Make a StorageClass."""
        document: Object = {
            "apiVersion": f"{STORAGE}/v1",
            "kind": "StorageClass",
            "provisioner": provisioner,
            "volumeBindingMode": binding,
        }
        if values := list(zones):
            document["allowedTopologies"] = [{"matchLabelExpressions": [{"key": ZONE, "values": values}]}]
        self.store.create(Key(STORAGE, "storageclasses", "", name), document)
        self.delays[name] = delay

    def claim_volume(self, namespace: str, name: str, storage_class: str) -> None:
        """Make a claim of a volume, unless it is there. A class that binds at once has the volume made now."""
        key = Key("", CLAIMS, namespace, name)
        if key in self.store.objects:
            return
        spec = {"storageClassName": storage_class, "accessModes": ["ReadWriteOnce"]}
        self.store.create(key, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": spec, "status": {}})
        own = self.store.get(Key(STORAGE, "storageclasses", "", storage_class))
        if own["volumeBindingMode"] != LATE:
            self.later(self.delays[storage_class], lambda: self._provision(key, own, SOME_ZONE))

    def _provision(self, claim: Key, storage_class: Object, zone: str) -> None:
        document = self.store.objects.get(claim)
        if document is None or document["spec"].get("volumeName"):
            return
        name = f"pv-{claim.namespace}-{claim.name}"
        zone_term = {"key": ZONE, "operator": "In", "values": [zone]}
        volume: Object = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "spec": {
                "storageClassName": storage_class["metadata"]["name"],
                "csi": {"driver": storage_class["provisioner"], "volumeHandle": name},
                "claimRef": {"namespace": claim.namespace, "name": claim.name},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone_term]}]}},
            },
        }
        self.store.create(Key("", "persistentvolumes", "", name), volume)
        spec = {**document["spec"], "volumeName": name}
        self.store.replace(claim, {**document, "spec": spec, "status": {"phase": "Bound"}})

    def _late(self, pod: Pod) -> list[Key]:
        """The claims of a pod whose volumes are to be made where it goes."""
        keys = [Key("", CLAIMS, pod.namespace, name) for name in pod.claims]
        return [key for key in keys if not self.store.objects[key]["spec"].get("volumeName")]

    # --- placing ------------------------------------------------------------------------------------------------------

    def work(self) -> None:
        """Place each pod that waits, those of the highest priority first."""
        self._finish()
        objects = self.store.objects
        due = [key for key, each in objects.items() if key.resource == "pods" and scheduler._is_due(each)]
        if not due:
            return
        classes = scheduler._classes(self.store)
        board = scheduler._board(self.store, frozenset(), classes)
        pods = {key: pod_of(objects[key], classes) for key in due}
        board.nominated = [pod for pod in pods.values() if pod.nominated]
        waiting = [key for key in due if key not in self.assigned]
        for key in sorted(waiting, key=lambda key: (-pods[key].priority, key)):
            self._place(key, pods[key], board)

    def _finish(self) -> None:
        """Bind the assigned pods whose volumes are there; let go those whose pods or nodes are not."""
        for key, node in list(self.assigned.items()):
            document = self.store.objects.get(key)
            if document is None or Key("", "nodes", "", node) not in self.store.objects:
                del self.assigned[key]
            elif not self._late(pod_of(document)):
                del self.assigned[key]
                self.bind(key, node)

    def _place(self, key: Key, pod: Pod, board: Board) -> None:
        faults = board.faults(pod)
        fitting = [name for name, fault in faults.items() if not fault]
        if not fitting:
            nominated = scheduler._preempt(self.store, board, pod)
            scheduler._note(self.store, key, scheduler._message(faults), nominated)
            return
        name = pod.nominated if pod.nominated in fitting else board.best(pod, fitting).name
        node = next(node for node in board.nodes if node.name == name)
        late = self._late(pod)
        if late:
            self._assign(key, pod, name, late, node.labels.get(ZONE, SOME_ZONE))
        else:
            self.bind(key, name)
        pod.document = self.store.objects[key]
        board.nominated = [other for other in board.nominated if other is not pod]
        node.add(pod)

    def _assign(self, key: Key, pod: Pod, node: str, late: Iterable[Key], zone: str) -> None:
        self.assigned[key] = node
        status = {"phase": "Pending", "nominatedNodeName": node, "conditions": []}
        self.store.replace(key, {**pod.document, "status": status})
        for claim in late:
            document = self.store.objects[claim]
            meta = {**document["metadata"], "annotations": {"volume.kubernetes.io/selected-node": node}}
            self.store.replace(claim, {**document, "metadata": meta})
            own = self.store.get(Key(STORAGE, "storageclasses", "", document["spec"]["storageClassName"]))
            delay = self.delays[own["metadata"]["name"]]
            self.later(delay, lambda claim=claim, own=own: self._provision(claim, own, zone))

    def bind(self, key: Key, node: str) -> None:
        """Put the pod onto the node, whose kubelet runs it at once."""
        scheduler._run(self.store, key, node)
