"""The Kubernetes of a played cluster: its simulated API, and what controllers and kubelets do there in virtual time.

Deployments and StatefulSets are not stored: their pods are made here, and they are made again when they are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from local.kubernetes import scheduler
from local.kubernetes.api import KubeApi
from local.kubernetes.people import standard_roles
from local.kubernetes.pods import reap
from local.kubernetes.store import Key, Object, stamp
from tests.conformance.bug_levels.scheduling import Scheduling

NAMESPACE = "default"
NAMESPACES = (NAMESPACE, "kube-system", "kube-public", "kube-node-lease")
CLAIM = "stockyard.dev/claim"
FORGOTTEN_SECONDS = 40
"""How long pods are kept whose Node is gone."""
PATIENCE_SECONDS = 300
"""How long pods stay on a node that is not ready."""
PREFIX = "node.kubernetes.io/"


@dataclass
class App:
    """Application that makes pods. A ``stateful`` one gives them numbers from 0, and their claims stay."""

    name: str
    template: Object
    replicas: int = 1
    namespace: str = NAMESPACE
    stateful: bool = False
    volumes: tuple[str, ...] = ()
    """The StorageClasses of its claims."""
    pods_made: int = 0


@dataclass
class Daemon:
    """A DaemonSet, which has a pod on each node that is there."""

    name: str
    namespace: str
    template: Object


@dataclass
class Plane:
    """One cluster. ``later`` does something after so many seconds."""

    now: Callable[[], datetime]
    later: Callable[[float, Callable[[], None]], None]
    apps: dict[str, App] = field(default_factory=dict)
    daemons: list[Daemon] = field(default_factory=list)
    defaults: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """By namespace what a LimitRange has containers request that request nothing."""
    _missing: dict[str, datetime] = field(default_factory=dict)
    """Since when a node is gone, or is not ready, by its name."""

    def __post_init__(self) -> None:
        self.api = KubeApi(now=self.now)
        spaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in NAMESPACES]
        self.api.install([*spaces, *standard_roles()])
        self.scheduling = Scheduling(self.api.store, self.now, self.later)

    # --- looking ------------------------------------------------------------------------------------------------------

    def all(self, resource: str) -> Iterator[Object]:
        """All objects of a resource."""
        return (document for key, document in sorted(self.api.store.objects.items()) if key.resource == resource)

    def nodes(self) -> dict[str, Object]:
        """The nodes of claims, by name."""
        return {node["metadata"]["name"]: node for node in self.all("nodes") if CLAIM in node["metadata"]["labels"]}

    def pods_of(self, name: str) -> list[Object]:
        """The pods of an app that stay, or the one pod of that name."""
        pods = [pod for pod in self.all("pods") if "deletionTimestamp" not in pod["metadata"]]
        own = [pod for pod in pods if pod["metadata"]["labels"].get("app") == name and name in self.apps]
        return own or [pod for pod in pods if pod["metadata"]["name"] == name]

    # --- people -------------------------------------------------------------------------------------------------------

    def change(self, resource: str, name: str, change: Callable[[Object], None]) -> None:
        """Change an object of the core group that has no namespace."""
        key = Key("", resource, "", name)
        document = {**self.api.store.get(key)}
        for part in ("metadata", "spec", "status"):
            document[part] = {**(document.get(part) or {})}
        change(document)
        self.api.store.replace(key, document)

    def set_condition(self, name: str, kind: str, status: str) -> None:
        """A kubelet, or who plays it, says so. Taints follow as the node controller sets them."""

        def write(node: Object) -> None:
            old = [each for each in node["status"].get("conditions") or () if each["type"] != kind]
            new = {"type": kind, "status": status, "lastTransitionTime": stamp(self.now())}
            node["status"]["conditions"] = [*old, new]
            if kind == "Ready":
                own = ("not-ready", "unreachable")
                taints = [t for t in node["spec"].get("taints") or () if t["key"] not in [PREFIX + key for key in own]]
                if status != "True":
                    key = PREFIX + (own[0] if status == "False" else own[1])
                    taints += [{"key": key, "effect": effect} for effect in ("NoSchedule", "NoExecute")]
                node["spec"]["taints"] = taints

        self.change("nodes", name, write)

    def remove_node(self, name: str) -> None:
        """Delete a Node object. Its machine goes on."""
        self.api.store.remove(Key("", "nodes", "", name), {})

    # --- controllers --------------------------------------------------------------------------------------------------

    def work(self) -> None:
        """Do the work of controllers, the scheduler and kubelets in this second."""
        self._forget()
        reap(self.api.store, all_marked=True, nodes_down=frozenset(self._silent()))
        for app in self.apps.values():
            self._fill(app)
        for daemon in self.daemons:
            self._spread(daemon)
        self.scheduling.work()

    def _silent(self) -> set[str]:
        nodes = self.all("nodes")
        return {node["metadata"]["name"] for node in nodes if not _is_ready(node)}

    def _forget(self) -> None:
        """End pods whose node is gone, or has not been ready for long."""
        there = {node["metadata"]["name"] for node in self.all("nodes")}
        silent = self._silent()
        used = {pod["spec"]["nodeName"] for pod in self.all("pods") if pod["spec"].get("nodeName")}
        lost = (used - there) | silent
        self._missing = {name: self._missing.get(name, self.now()) for name in sorted(lost)}
        for pod in list(self.all("pods")):
            name = pod["spec"].get("nodeName", "")
            since = self._missing.get(name)
            if since is None or (name in silent and _is_daemon(pod)):
                continue
            if self.now() - since >= timedelta(seconds=PATIENCE_SECONDS if name in silent else FORGOTTEN_SECONDS):
                self.end(pod)

    def end(self, pod: Object) -> None:
        """Remove a pod at once."""
        meta = pod["metadata"]
        self.api.store.remove(Key("", "pods", meta["namespace"], meta["name"]), {})

    def _fill(self, app: App) -> None:
        """Make the pods that an app lacks, end those that are too many: what waits first, then the youngest."""
        store = self.api.store
        keys = [key for key, pod in store.objects.items() if key.resource == "pods" and _is_of(pod, app)]
        for key in sorted(keys, key=lambda key: (bool(store.objects[key]["spec"].get("nodeName")), -_number(key.name))):
            if len(keys) <= app.replicas:
                break
            if app.stateful and _number(key.name) < app.replicas:
                continue
            self.end(store.objects[key])
            keys.remove(key)
        names = {key.name for key in keys}
        for number in range(app.replicas) if app.stateful else range(app.replicas - len(keys)):
            name = f"{app.name}-{number if app.stateful else app.pods_made + number}"
            if name not in names:
                self._make(app, name)
        app.pods_made += 0 if app.stateful else max(0, app.replicas - len(keys))

    def _make(self, app: App, name: str) -> None:
        spec = {**app.template["spec"]}
        volumes = []
        for number, storage_class in enumerate(app.volumes):
            claim = f"{name}-{number}"
            self.scheduling.claim_volume(app.namespace, claim, storage_class)
            volumes.append({"name": f"v{number}", "persistentVolumeClaim": {"claimName": claim}})
        if volumes:
            spec["volumes"] = [*(spec.get("volumes") or ()), *volumes]
        kind = "StatefulSet" if app.stateful else "ReplicaSet"
        self._create_pod(app.namespace, name, app.template, spec, kind, app.name)

    def _spread(self, daemon: Daemon) -> None:
        there = {
            pod["spec"]["nodeName"]
            for pod in self.all("pods")
            if _is_daemon(pod) and pod["metadata"]["ownerReferences"][0]["name"] == daemon.name
        }
        for name in sorted(self.nodes().keys() - there):
            spec = {"tolerations": [{"operator": "Exists"}], **daemon.template["spec"]}
            pod = f"{daemon.name}-{name}"
            self._create_pod(daemon.namespace, pod, daemon.template, spec, "DaemonSet", daemon.name)
            self.scheduling.bind(Key("", "pods", daemon.namespace, pod), name)

    def _create_pod(
        self, namespace: str, name: str, template: Object, spec: Object, owner_kind: str, owner: str
    ) -> None:
        """As the API server admits it: with the requests and the priority that it gives."""
        requested = self.defaults.get(namespace, {})
        containers = []
        for container in spec["containers"]:
            resources = container.get("resources") or {}
            own = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
            containers.append({**container, "resources": {**resources, "requests": {**requested, **own}}})
        priority = scheduler._classes(self.api.store).get(spec.get("priorityClassName", ""), 0)
        reference = {"kind": owner_kind, "name": owner, "controller": True, "apiVersion": "apps/v1", "uid": owner}
        document = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"labels": dict(template["metadata"]["labels"]), "ownerReferences": [reference]},
            "spec": {"terminationGracePeriodSeconds": 1, "priority": priority, **spec, "containers": containers},
            "status": {"phase": "Pending"},
        }
        self.api.store.create(Key("", "pods", namespace, name), document)


def _is_ready(node: Mapping[str, Any]) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _is_daemon(pod: Mapping[str, Any]) -> bool:
    return any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences") or ())


def _is_of(pod: Mapping[str, Any], app: App) -> bool:
    meta = pod["metadata"]
    owners = [owner["name"] for owner in meta.get("ownerReferences") or () if owner["kind"] != "DaemonSet"]
    return owners == [app.name] and meta["namespace"] == app.namespace and "deletionTimestamp" not in meta


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])
