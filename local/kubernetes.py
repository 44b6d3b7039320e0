"""The simulated Kubernetes clusters of the local cloud: what ``kubeadm`` and the kubelets would make of its machines.

A cluster's API listens on loopback only, so its nodes, its agent and nobody else talk to it. Its agent is the real one:
a process from what the control plane has applied.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.kube_api import KubeApi, node
from local.kube_authority import Authority
from local.kube_containers import Containers
from local.kube_pods import reap
from local.kube_store import Denied, Key, Object

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
TICK_SECONDS = 0.2


class NotJoined(Exception):
    """A machine could not join; the text says why."""


@dataclass(frozen=True, slots=True)
class Kubelet:
    """What a machine tells of itself when it registers. ``memory`` in MiB."""

    provider_id: str
    cpu: int
    memory: int
    architecture: str = "amd64"

    def node(self, name: str, labels: Mapping[str, str], taints: Sequence[Mapping[str, Any]], pods: str) -> Object:
        """The ready Node."""
        made = node(name)
        made["spec"] = {"providerID": self.provider_id, **({"taints": list(taints)} if taints else {})}
        made["metadata"]["labels"].update({"kubernetes.io/arch": self.architecture, **labels})
        room = {"cpu": str(self.cpu), "memory": f"{self.memory}Mi", "pods": pods}
        made["status"] |= {"capacity": room, "allocatable": dict(room)}
        return made


class Cluster:
    """One cluster. It runs while its control plane's machine does, and keeps its objects when that is off."""

    def __init__(self, endpoint: str, minor: str, folder: Path, log: Path) -> None:
        self.endpoint = endpoint
        self.authority = Authority(folder / "pki")
        self.api = KubeApi(version=f"v{minor}.0")
        self._folder, self._log = folder, log
        self._containers: Containers | None = None
        self._down: set[str] = set()
        self._lock = threading.Lock()

    def start(self) -> None:
        """The control plane's machine is on. A second call does nothing."""
        with self._lock:
            if self._containers is not None:
                return
            url = self.api.serve(self.authority.serving())
            self._containers = Containers(self.api, url, self.authority.pem, self._folder, self._log)

    def stop(self) -> None:
        """It is off: nothing of the cluster runs. A second call does nothing."""
        with self._lock:
            if self._containers is not None:
                self._containers.close()
                self._containers = None
            self.api.close()

    def work(self) -> None:
        """What its kubelets do from time to time: begin and end pods."""
        with self._lock:
            if self._containers is not None:
                self._containers.reconcile()
                with self.api.held() as store:
                    # The grace that a pod has is not waited for here.
                    reap(store, all_marked=True, nodes_down=frozenset(self._down))

    @property
    def processes(self) -> list[int]:
        """The ids of the processes of its pods."""
        with self._lock:
            return self._containers.processes if self._containers is not None else []

    def register(self, name: str, kubelet: Kubelet) -> None:
        """The control plane's own node."""
        taint = {"key": CONTROL_PLANE, "effect": "NoSchedule"}
        self.api.install([kubelet.node(name, {CONTROL_PLANE: ""}, [taint], "110")])

    def join(self, configuration: Mapping[str, Any], kubelet: Kubelet) -> str:
        """What ``kubeadm join`` does with its configuration; the node's name. Raises ``NotJoined``."""
        given = configuration["discovery"]["bootstrapToken"]
        if self.authority.pin not in given["caCertHashes"]:
            raise NotJoined(f"the authority of {self.endpoint} has none of the hashes {given['caCertHashes']}")
        wanted = configuration["nodeRegistration"]
        flags = {one["name"]: one["value"] for one in wanted.get("kubeletExtraArgs", ())}
        labels = dict(part.partition("=")[::2] for part in flags.get("node-labels", "").split(",") if part)
        made = kubelet.node(wanted["name"], labels, wanted.get("taints", ()), flags.get("max-pods", "110"))
        try:
            self.api.join(given["token"], made)
        except Denied as denied:
            raise NotJoined(f"{self.endpoint}: {denied.status} {denied.message}") from None
        return str(wanted["name"])

    def power(self, name: str, *, on: bool) -> None:
        """A node's kubelet reports, or is silent. A node that was deleted stays away."""
        with self.api.held() as store:
            (self._down.discard if on else self._down.add)(name)
            key = Key("", "nodes", "", name)
            found = store.objects.get(key)
            if found is not None:
                condition = {"type": "Ready", "status": "True" if on else "Unknown"}
                store.replace(key, {**found, "status": {**found["status"], "conditions": [condition]}})


class Clusters:
    """All clusters, by the endpoint of their API; what their pods print goes to ``log``."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._clusters: dict[str, Cluster] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True, name="kubelets")

    def start(self) -> None:
        """Let kubelets work."""
        self._thread.start()

    def make(self, endpoint: str, minor: str, folder: Path) -> Cluster:
        """A cluster as ``kubeadm init`` leaves it, not started. ``minor`` is Kubernetes' version: 1.34."""
        made = Cluster(endpoint, minor, folder, self._log)
        self._clusters[endpoint] = made
        return made

    def at(self, endpoint: str) -> Cluster:
        """The cluster behind an endpoint. Raises ``NotJoined`` when nothing answers there."""
        found = self._clusters.get(endpoint)
        if found is None:
            raise NotJoined(f"nothing answers at {endpoint}")
        return found

    def remove(self, cluster: Cluster) -> None:
        """Its control plane's machine is gone."""
        self._clusters.pop(cluster.endpoint, None)
        cluster.stop()

    @property
    def processes(self) -> list[int]:
        """The ids of the processes of all pods."""
        return [one for cluster in list(self._clusters.values()) for one in cluster.processes]

    def close(self) -> None:
        """End everything; no process is left."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(5)
        for cluster in list(self._clusters.values()):
            self.remove(cluster)

    def _work(self) -> None:
        while not self._stop.wait(TICK_SECONDS):
            for cluster in list(self._clusters.values()):
                cluster.work()
