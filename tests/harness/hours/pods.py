"""Pods of a played cluster, and what makes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agent.stockyard_agent.kubernetes import Object

NAMESPACE = "default"
DAEMON_CPU, DAEMON_MIB = 100, 64
"""What the one DaemonSet takes on each node."""
TOLERATES_ALL = [{"operator": "Exists"}]
GATE = [{"name": "example.test/later"}]
DRIVER, LATE = "disk.csi.example.test", "late"
"""The driver of all volumes, and the class of those that are made for their first pod."""


def stamp(moment: datetime) -> str:
    """The moment as Kubernetes writes it, in whole seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class App:
    """A deployment. ``cpu`` in thousandths of a core, ``mib`` of memory; ``selector`` are labels of its nodes.

    ``least``: pods that its PodDisruptionBudget keeps healthy; None: it has none. ``protection`` is the annotation
    ``karpenter.sh/do-not-disrupt`` of its pods. ``alone``: no two of its pods are on one node. ``grace`` and ``begin``
    are the seconds in which a pod ends, and becomes ready. ``spec`` has more members of the specification of its pods,
    ``port`` a host port, ``volume`` the zone of the one volume that its pods share, or ``LATE``: each pod has one of
    its own, that is made where the pod is. ``gated``: its pods are not to be scheduled yet.
    """

    name: str
    cpu: int
    mib: int
    selector: Mapping[str, str] = field(default_factory=dict)
    least: int | None = None
    protection: str = ""
    alone: bool = False
    grace: int = 5
    begin: int = 20
    cost: int = 0
    replicas: int = 0
    spec: Mapping[str, Any] = field(default_factory=dict)
    port: int = 0
    volume: str = ""
    priority: int = 0
    gated: bool = False


@dataclass
class Daemon:
    """A DaemonSet. ``cpu`` is what its pods take in fact, ``template_cpu`` what its template says: a LimitRange or a
    webhook makes pods larger. ``port`` is a host port, 0 for none."""

    name: str
    cpu: int = DAEMON_CPU
    mib: int = DAEMON_MIB
    template_cpu: int = DAEMON_CPU
    port: int = 0

    def document(self) -> Object:
        """The DaemonSet as the API has it."""
        return {
            "metadata": {"namespace": NAMESPACE, "name": self.name},
            "spec": {"template": {"metadata": {"labels": {"app": self.name}}, "spec": self._spec(self.template_cpu)}},
        }

    def pod(self, number: int, now: datetime) -> Object:
        """A pod of it."""
        pod = _document(self.name, number, now, self._spec(self.cpu), self.cpu, self.mib)
        pod["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": self.name, "controller": True}]
        return pod

    def _spec(self, cpu: int) -> Object:
        return {"containers": [_container(cpu, self.mib, self.port)], "tolerations": TOLERATES_ALL}


def pod_of(app: App, number: int, now: datetime) -> Object:
    """The next pod of a deployment."""
    labels = {"app": app.name}
    alone = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [alone]}}
    own = f"{app.name}-{number}-disk" if app.volume == LATE else f"{app.name}-disk"
    volumes = [{"name": "disk", "persistentVolumeClaim": {"claimName": own}}]
    spec = {
        "containers": [_container(app.cpu, app.mib, app.port)],
        "terminationGracePeriodSeconds": 30,
        **({"nodeSelector": dict(app.selector)} if app.selector else {}),
        **({"affinity": affinity} if app.alone else {}),
        **({"volumes": volumes} if app.volume else {}),
        **({"priority": app.priority} if app.priority else {}),
        **({"schedulingGates": GATE} if app.gated else {}),
        **app.spec,
    }
    annotations = {"karpenter.sh/do-not-disrupt": app.protection} if app.protection else {}
    if app.cost:
        annotations["controller.kubernetes.io/pod-deletion-cost"] = str(app.cost)
    pod = _document(app.name, number, now, spec, app.cpu, app.mib)
    pod["metadata"]["annotations"] = annotations
    return pod


def _container(cpu: int, mib: int, port: int) -> Object:
    container: Object = {"resources": {"requests": {"cpu": f"{cpu}m", "memory": f"{mib}Mi"}}}
    return {**container, "ports": [{"hostPort": port, "containerPort": port}]} if port else container


def _document(app: str, number: int, now: datetime, spec: Mapping[str, Any], cpu: int, mib: int) -> Object:
    return {
        "metadata": {
            "namespace": NAMESPACE,
            "name": f"{app}-{number}",
            "uid": f"pod-{number}",
            "labels": {"app": app},
            "annotations": {},
            "creationTimestamp": stamp(now),
        },
        "spec": dict(spec),
        "status": {"phase": "Pending", "conditions": []},
        "app": app,
        "cpu": cpu,
        "mib": mib,
        "number": number,
        "created": now,
        "disturbed": "",
    }


def is_ending(pod: Object) -> bool:
    """Whether the pod is being deleted."""
    return "deletionTimestamp" in pod["metadata"]


def is_healthy(pod: Object) -> bool:
    """Whether the pod is ready and stays."""
    return not is_ending(pod) and any(part["type"] == "Ready" for part in pod["status"]["conditions"])
