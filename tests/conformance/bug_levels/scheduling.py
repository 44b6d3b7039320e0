"""The scheduler of a played cluster, its volumes and its kubelets.

A pod goes onto a node that is ready and open, has its labels, room, ports and slots for volumes, and stands where its
volumes are. A volume that waits for its first consumer is made when the pod has been assigned: until then the pod is
neither bound nor called unschedulable, and its room is kept. A pod of a higher priority ends others of a lower one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from local.kubernetes.scheduler import requests_of
from local.kubernetes.store import Key, KubeStore, Object, stamp
from stockyard.domain.quantities import milli

STORAGE = "storage.k8s.io"
ZONE = "topology.kubernetes.io/zone"
LATE = "WaitForFirstConsumer"
_FINISHED = ("Succeeded", "Failed")
_OPERATORS: Mapping[str, Callable[[str | None, list[str]], bool]] = {
    "In": lambda value, values: value in values,
    "NotIn": lambda value, values: value not in values,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
}


@dataclass
class Scheduling:
    """Over the objects of one cluster."""

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
        """Make a claim of a volume, unless it is there. A class that binds at once makes the volume now."""
        key = Key("", "persistentvolumeclaims", namespace, name)
        if key in self.store.objects:
            return
        spec = {"storageClassName": storage_class, "accessModes": ["ReadWriteOnce"]}
        self.store.create(key, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": spec, "status": {}})
        if self._class_of(key)["volumeBindingMode"] != LATE:
            self.later(self.delays[storage_class], lambda: self._provision(key, ""))

    def _class_of(self, claim: Key) -> Object:
        name = self.store.objects[claim]["spec"]["storageClassName"]
        return self.store.get(Key(STORAGE, "storageclasses", "", name))

    def _provision(self, claim: Key, zone: str) -> None:
        if claim not in self.store.objects or self._volume_of(claim) is not None:
            return
        name, spec = f"pv-{claim.namespace}-{claim.name}", self.store.objects[claim]["spec"]
        zones = [zone] if zone else [self._some_zone()]
        volume: Object = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "spec": {
                "storageClassName": spec["storageClassName"],
                "csi": {"driver": self._class_of(claim)["provisioner"], "volumeHandle": name},
                "claimRef": {"namespace": claim.namespace, "name": claim.name},
                "nodeAffinity": {
                    "required": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": zones}]}]
                    }
                },
            },
        }
        self.store.create(Key("", "persistentvolumes", "", name), volume)
        document = self.store.objects[claim]
        bound = {**document, "spec": {**spec, "volumeName": name}, "status": {"phase": "Bound"}}
        self.store.replace(claim, bound)

    def _some_zone(self) -> str:
        zones = {node["metadata"]["labels"].get(ZONE, "") for node in self._nodes().values()} - {""}
        return min(zones, default="us-east-1a")

    def _volume_of(self, claim: Key) -> Object | None:
        name = self.store.objects[claim]["spec"].get("volumeName")
        return self.store.objects.get(Key("", "persistentvolumes", "", name)) if name else None

    def _claims_of(self, pod: Mapping[str, Any]) -> list[Key]:
        claimed = (volume.get("persistentVolumeClaim") for volume in pod["spec"].get("volumes") or ())
        names = [reference["claimName"] for reference in claimed if reference]
        return [Key("", "persistentvolumeclaims", pod["metadata"]["namespace"], name) for name in names]

    def _drivers_of(self, pod: Mapping[str, Any]) -> Counter[str]:
        return Counter(self._class_of(claim)["provisioner"] for claim in self._claims_of(pod))

    # --- placing ------------------------------------------------------------------------------------------------------

    def work(self) -> None:
        """Place each pod that waits, those of the highest priority first."""
        for key in [key for key in self.assigned if key not in self.store.objects]:
            del self.assigned[key]
        self._finish()
        waiting = [key for key, pod in self.store.objects.items() if key.resource == "pods" and _waits(pod)]
        waiting = [key for key in waiting if key not in self.assigned]
        for key in sorted(waiting, key=lambda key: (-self.store.objects[key]["spec"].get("priority", 0), key)):
            self._place(key)

    def _finish(self) -> None:
        """Bind the assigned pods whose volumes are there, if their nodes are."""
        for key, node in list(self.assigned.items()):
            claims = self._claims_of(self.store.objects[key])
            if node not in self._nodes():
                del self.assigned[key]
            elif all(self._volume_of(claim) is not None for claim in claims):
                del self.assigned[key]
                self.bind(key, node)

    def _place(self, key: Key) -> None:
        pod = self.store.objects[key]
        fitting = [name for name, node in self._nodes().items() if not self._refusal(pod, name, node)]
        if not fitting:
            self._mark(key)
            self._preempt(key)
            return
        node = max(fitting, key=lambda name: (self._free(name)["cpu"], name))
        late = [claim for claim in self._claims_of(pod) if self._volume_of(claim) is None]
        if not late:
            self.bind(key, node)
            return
        self.assigned[key] = node
        zone = self._nodes()[node]["metadata"]["labels"].get(ZONE, "")
        self._write_status(key, {"phase": "Pending", "nominatedNodeName": node, "conditions": []})
        for claim in late:
            document = self.store.objects[claim]
            annotations = {"volume.kubernetes.io/selected-node": node}
            meta = {**document["metadata"], "annotations": annotations}
            self.store.replace(claim, {**document, "metadata": meta})
            delay = self.delays[document["spec"]["storageClassName"]]
            self.later(delay, lambda claim=claim: self._provision(claim, zone))  # type: ignore[misc]

    def bind(self, key: Key, node: str) -> None:
        """Put the pod onto the node, whose kubelet runs it at once."""
        since = stamp(self.now())
        kinds = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        conditions = [{"type": kind, "status": "True", "lastTransitionTime": since} for kind in kinds]
        pod = self.store.objects[key]
        self.store.replace(key, {**pod, "spec": {**pod["spec"], "nodeName": node}})
        self._write_status(key, {"phase": "Running", "conditions": conditions, "startTime": since})

    def _write_status(self, key: Key, status: Object) -> None:
        self.store.replace(key, {**self.store.objects[key], "status": status})

    def _mark(self, key: Key) -> None:
        status = self.store.objects[key]["status"]
        if any(each["type"] == "PodScheduled" for each in status.get("conditions") or ()):
            return
        refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node takes it"}
        refused["lastTransitionTime"] = stamp(self.now())
        self._write_status(key, {**status, "phase": "Pending", "conditions": [refused]})

    def _preempt(self, key: Key) -> None:
        """End pods of a lower priority on the node where that helps with the fewest."""
        pod = self.store.objects[key]
        if pod["status"].get("nominatedNodeName"):
            return
        choices = []
        for name, node in self._nodes().items():
            lower = [each for each in self._on(name) if _priority(self.store.objects[each]) < _priority(pod)]
            lower.sort(key=lambda each: (_priority(self.store.objects[each]), each))
            for count in range(1, len(lower) + 1):
                if not self._refusal(pod, name, node, without=frozenset(lower[:count])):
                    choices.append((count, name, lower[:count]))
                    break
        if choices:
            _, name, victims = min(choices)
            self._write_status(key, {**pod["status"], "nominatedNodeName": name})
            for victim in victims:
                self.store.remove(victim, {})

    # --- filters ------------------------------------------------------------------------------------------------------

    def _nodes(self) -> dict[str, Object]:
        return {key.name: node for key, node in self.store.objects.items() if key.resource == "nodes"}

    def _on(self, name: str) -> list[Key]:
        """The pods that have room on the node."""
        nominated = {key for key, node in self.assigned.items() if node == name}
        bound = {
            key
            for key, pod in self.store.objects.items()
            if key.resource == "pods"
            and pod["spec"].get("nodeName") == name
            and pod["status"].get("phase") not in _FINISHED
        }
        return sorted(nominated | bound)

    def _free(self, name: str, without: frozenset[Key] = frozenset()) -> Counter[str]:
        allocatable = self._nodes()[name]["status"]["allocatable"]
        free = Counter({resource: milli(amount) for resource, amount in allocatable.items()})
        for key in self._on(name):
            if key not in without:
                free.subtract(requests_of(self.store.objects[key]))
        return free

    def _refusal(self, pod: Object, name: str, node: Object, without: frozenset[Key] = frozenset()) -> str:
        """Why the pod may not be on the node; empty when it may."""
        spec, labels = pod["spec"], node["metadata"].get("labels") or {}
        tolerations = spec.get("tolerations") or ()
        taints = list(node["spec"].get("taints") or ())
        if node["spec"].get("unschedulable"):
            taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
        for taint in taints:
            if taint["effect"] != "PreferNoSchedule" and not any(_tolerates(each, taint) for each in tolerations):
                return f"taint {taint['key']}"
        if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
            return "selector"
        free = self._free(name, without)
        short = [resource for resource, amount in requests_of(pod).items() if amount > free[resource]]
        if short:
            return f"too little {short[0]}"
        others = [self.store.objects[key] for key in self._on(name) if key not in without]
        if _ports(pod) & {port for other in others for port in _ports(other)}:
            return "host port"
        return self._volume_refusal(pod, name, labels, others)

    def _volume_refusal(self, pod: Object, name: str, labels: Mapping[str, str], others: list[Object]) -> str:
        for claim in self._claims_of(pod):
            volume, storage_class = self._volume_of(claim), self._class_of(claim)
            if volume is None and storage_class["volumeBindingMode"] != LATE:
                return "unbound volume"
            terms = _where(volume) if volume is not None else _allowed(storage_class)
            if terms and not any(_all_fit(term, labels) for term in terms):
                return "volume elsewhere"
        csi_node = self.store.objects.get(Key(STORAGE, "csinodes", "", name)) or {"spec": {"drivers": []}}
        limits = {each["name"]: each["allocatable"]["count"] for each in csi_node["spec"]["drivers"]}
        used: Counter[str] = Counter()
        for other in others:
            used.update(self._drivers_of(other))
        wanted = self._drivers_of(pod)
        full = [driver for driver, count in wanted.items() if used[driver] + count > limits.get(driver, 10**6)]
        return f"no slot of {full[0]}" if full else ""


def _waits(pod: Mapping[str, Any]) -> bool:
    waits = not pod["spec"].get("nodeName") and not pod["spec"].get("schedulingGates")
    return waits and "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") == "Pending"


def _priority(pod: Mapping[str, Any]) -> int:
    return int(pod["spec"].get("priority") or 0)


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return bool(toleration.get("key") == taint["key"] and toleration.get("value", "") == taint.get("value", ""))


def _ports(pod: Mapping[str, Any]) -> set[tuple[int, str]]:
    ports = (port for container in pod["spec"]["containers"] for port in container.get("ports") or ())
    return {(port["hostPort"], port.get("protocol", "TCP")) for port in ports if port.get("hostPort")}


def _where(volume: Mapping[str, Any]) -> list[list[Object]]:
    required = ((volume["spec"].get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
    return [list(term.get("matchExpressions") or ()) for term in required]


def _allowed(storage_class: Mapping[str, Any]) -> list[list[Object]]:
    return [
        [{**each, "operator": "In"} for each in term["matchLabelExpressions"]]
        for term in storage_class.get("allowedTopologies") or ()
    ]


def _all_fit(term: list[Object], labels: Mapping[str, str]) -> bool:
    return all(_OPERATORS[each["operator"]](labels.get(each["key"]), list(each.get("values") or ())) for each in term)
