"""Deployments, DaemonSets and budgets on nodes whose kubelets kwok plays, and a witness of what becomes of their pods.

Controllers and the scheduler are the real ones, so a pod that is evicted comes back, and gets a node if there is one.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from agent.stockyard_agent.cluster.pods import PATH
from agent.stockyard_agent.kubernetes import Kubernetes
from local.kubernetes.pods import ready
from local.kubernetes.real.control_plane import KWOK
from local.kubernetes.store import Object
from tests.kubernetes.rigs import BUDGETS, WEB, ContractRig, until
from tests.unit.agent.rig import KUBE

APPS = "/apis/apps/v1/namespaces/web"
MERGE = "application/merge-patch+json"
SECONDS = 60.0
"""How long anything may take that the cluster does by itself."""
WATCHED = 1
"""Seconds of one watch of the witness."""


@dataclass
class Workloads:
    """Workloads of the namespace ``web``. Pods of an application have the label ``app``."""

    rig: ContractRig
    collections: dict[str, str] = field(default_factory=dict)
    """Path of each Deployment and DaemonSet -> the application."""

    def add_node(
        self, name: str, cpu: str = "4", memory: str = "16Gi", taints: Sequence[Object] = (), **labels: str
    ) -> Object:
        """A ready node whose kubelet is played."""
        room = {"cpu": cpu, "memory": memory, "pods": "110"}
        ready_now = {"type": "Ready", "status": "True"}
        meta = {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **labels}}
        meta["labels"][KWOK] = "on"
        status = {"capacity": room, "allocatable": room, "conditions": [ready_now]}
        document = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": meta,
            "spec": {"taints": list(taints)},
            "status": status,
        }
        return self.rig.administer("POST", "/api/v1/nodes", document)

    def deployment(self, app: str, replicas: int, cpu: str = "100m", **more: Any) -> str:
        """Make a Deployment; its path. ``annotations`` are those of its pods, ``more`` are members of their
        specification."""
        template = _template(app, cpu, more.pop("annotations", {}), more)
        spec = {"replicas": replicas, "selector": {"matchLabels": {"app": app}}, "template": template}
        return self._create("deployments", "Deployment", app, spec)

    def daemon_set(self, app: str, cpu: str = "10m", **more: Any) -> str:
        """Make a DaemonSet for every node; its path."""
        spec = {"selector": {"matchLabels": {"app": app}}, "template": _template(app, cpu, {}, more)}
        return self._create("daemonsets", "DaemonSet", app, spec)

    def budget(self, app: str, **spec: Any) -> str:
        """Make a budget of an application; its path."""
        document = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": app},
            "spec": {**spec, "selector": {"matchLabels": {"app": app}}},
        }
        self.rig.administer("POST", BUDGETS, document)
        self.budgets_settle()
        return f"{BUDGETS}/{app}"

    def budgets_settle(self) -> None:
        """Wait until the budgets know the pods that there are."""
        until(self._budgets_know, SECONDS)

    def scale(self, path: str, replicas: int) -> None:
        """Change how many pods a Deployment has."""
        self.rig.administer("PATCH", path, {"spec": {"replicas": replicas}}, MERGE)

    def pods(self) -> list[Object]:
        """All pods of the namespace."""
        items: list[Object] = self.rig.administer("GET", WEB)["items"]
        return items

    def where(self, app: str) -> list[str]:
        """The nodes of an application's pods that are not being deleted; empty for a pod without a node."""
        return sorted(pod["spec"].get("nodeName", "") for pod in self.pods() if app_of(pod) == app and not ending(pod))

    def on(self, node: str) -> list[str]:
        """The applications of the pods on a node."""
        return sorted(app_of(pod) for pod in self.pods() if pod["spec"].get("nodeName") == node)

    def run(self, **counts: int) -> None:
        """Wait until so many pods of each application run, no others, and all of them are ready."""
        until(lambda: self.running() == counts and all(map(ready, self.pods())), SECONDS)
        self.budgets_settle()

    def running(self) -> dict[str, int]:
        """Number of pods of each application that are ready on a node."""
        return dict(Counter(app_of(pod) for pod in self.pods() if ready(pod)))

    def settle(self) -> None:
        """Wait until kubelets have ended what has to end, controllers have replaced it, and budgets know of it."""
        until(lambda: not any(ending(pod) and not pod["metadata"].get("finalizers") for pod in self.pods()), SECONDS)
        until(self._controllers_are_done, SECONDS)
        self.budgets_settle()

    def clear(self) -> None:
        """Leave no controller and no pod; the rig removes budgets and nodes."""
        for path in self.collections:
            self.rig.administer("DELETE", f"{path}?propagationPolicy=Orphan")
        for plural in ("deployments", "daemonsets"):
            until(lambda plural=plural: not self.rig.administer("GET", f"{APPS}/{plural}")["items"], SECONDS)
        self.rig.administer("DELETE", f"{APPS}/replicasets?propagationPolicy=Orphan")
        until(lambda: not self.rig.administer("GET", f"{APPS}/replicasets")["items"], SECONDS)
        self.rig.administer("DELETE", f"{WEB}?gracePeriodSeconds=0")
        until(lambda: all(pod["metadata"].get("finalizers") for pod in self.pods()), SECONDS)

    def _create(self, plural: str, kind: str, app: str, spec: Object) -> str:
        document = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": app}, "spec": spec}
        self.rig.administer("POST", f"{APPS}/{plural}", document)
        path = f"{APPS}/{plural}/{app}"
        self.collections[path] = app
        return path

    def _controllers_are_done(self) -> bool:
        """Whether every Deployment has its pods, with or without a node."""
        counts = Counter(app_of(pod) for pod in self.pods() if not ending(pod))
        deployments = self.rig.administer("GET", f"{APPS}/deployments")["items"]
        return all(counts[each["metadata"]["name"]] == each["spec"]["replicas"] for each in deployments)

    def _budgets_know(self) -> bool:
        pods = self.pods()
        for budget in self.rig.administer("GET", BUDGETS)["items"]:
            status, app = budget.get("status") or {}, budget["metadata"]["name"]
            current = status.get("observedGeneration") == budget["metadata"]["generation"]
            healthy = sum(ready(pod) for pod in pods if app_of(pod) == app)
            if not (current and status["currentHealthy"] == healthy and not status.get("disruptedPods")):
                return False
        return True


@dataclass
class Witness:
    """Hears every change of a pod in its order. ``fewest`` are the fewest pods of each application that were ready
    at any moment."""

    fewest: dict[str, int] = field(default_factory=dict)
    _ready: dict[str, str] = field(default_factory=dict)

    def hear(self, kind: str, pod: Object) -> None:
        """Note one change."""
        uid, app = pod["metadata"]["uid"], app_of(pod)
        if kind != "DELETED" and ready(pod):
            self._ready[uid] = app
        else:
            self._ready.pop(uid, None)
        count = sum(other == app for other in self._ready.values())
        self.fewest[app] = min(self.fewest.get(app, count), count)

    def begin(self, pods: list[Object]) -> None:
        """Start with the pods that there are."""
        self._ready = {pod["metadata"]["uid"]: app_of(pod) for pod in pods if ready(pod)}
        self.fewest = dict(Counter(self._ready.values()))


@contextmanager
def witnessed(rig: ContractRig) -> Iterator[Witness]:
    """A witness of all that becomes of the pods of the namespace ``web`` meanwhile."""
    witness, stop, failures = Witness(), threading.Event(), list[Exception]()
    kube = Kubernetes(KUBE, rig.deliver, lambda: rig.account)
    listed = rig.administer("GET", WEB)
    witness.begin(listed["items"])
    version = listed["metadata"]["resourceVersion"]

    def follow() -> None:
        nonlocal version
        try:
            finished = False
            while not finished:
                # What happened before the end is heard too.
                finished = stop.is_set()
                query = {"resourceVersion": version, "allowWatchBookmarks": "true"}
                for kind, pod in kube.watch(PATH, query, WATCHED):
                    version = pod["metadata"]["resourceVersion"]
                    if kind != "BOOKMARK" and pod["metadata"]["namespace"] == "web":
                        witness.hear(kind, pod)
        except Exception as error:  # told to who waits for the thread
            failures.append(error)

    thread = threading.Thread(target=follow, name="witness")
    thread.start()
    try:
        yield witness
    finally:
        stop.set()
        thread.join()
    assert not failures, failures


def app_of(pod: Mapping[str, Any]) -> str:
    """The application of a pod."""
    return str((pod["metadata"].get("labels") or {}).get("app", ""))


def ending(pod: Mapping[str, Any]) -> bool:
    """Whether the pod is being deleted."""
    return "deletionTimestamp" in pod["metadata"]


def _template(app: str, cpu: str, annotations: Mapping[str, str], more: Mapping[str, Any]) -> Object:
    resources = {"requests": {"cpu": cpu, "memory": "64Mi"}}
    container = {"name": "c", "image": "none", "resources": resources}
    spec = {"automountServiceAccountToken": False, "containers": [container], **more}
    return {"metadata": {"labels": {"app": app}, "annotations": dict(annotations)}, "spec": spec}
