"""The simulated Kubernetes clusters of the local cloud, as ``kubeadm`` and kubelets would run them on its machines.

A cluster's API listens on loopback only, so its nodes, its agent and nobody else talk to it. Its agent is the real one:
a process from what the control plane has applied.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.kubernetes.api import KubeApi, node
from local.kubernetes.authority import Authority
from local.kubernetes.certificates import Wish
from local.kubernetes.containers import Containers
from local.kubernetes.pods import reap
from local.kubernetes.store import Key, Object, StatusError

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
TICK_SECONDS = 0.2
CERTIFICATE_SECONDS, _LOOK_SECONDS = 60.0, 0.05
"""How long a kubelet waits for its first certificate, and how often it looks."""


class JoinFailed(Exception):
    """A machine could not join; the text says why."""


@dataclass(frozen=True, slots=True)
class Kubelet:
    """The properties that a machine registers with. ``memory`` is in MiB."""

    provider_id: str
    cpu: int
    memory: int
    architecture: str = "amd64"

    def node(self, name: str, labels: Mapping[str, str], taints: Sequence[Mapping[str, Any]], pods: str) -> Object:
        """The ready Node."""
        document = node(name)
        document["spec"] = {"providerID": self.provider_id, **({"taints": list(taints)} if taints else {})}
        document["metadata"]["labels"].update({"kubernetes.io/arch": self.architecture, **labels})
        room = {"cpu": str(self.cpu), "memory": f"{self.memory}Mi", "pods": pods}
        document["status"] |= {"capacity": room, "allocatable": dict(room)}
        return document


class Cluster:
    """One cluster. It runs while its control plane machine is on, and keeps its objects while it is off."""

    def __init__(self, endpoint: str, version: str, folder: Path, log: Path) -> None:
        self.endpoint = endpoint
        self.authority = Authority(folder / "pki")
        self.api = KubeApi(version=version)
        self._folder, self._log = folder, log
        self._containers: Containers | None = None
        self._down: set[str] = set()
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the cluster when its control plane machine is on. A second call does nothing."""
        with self._lock:
            if self._containers is not None:
                return
            url = self.api.serve(self.authority.serving())
            self._containers = Containers(self.api, url, self.authority.pem, self._folder, self._log)

    def stop(self) -> None:
        """Stop the cluster when its control plane machine is off. A second call does nothing."""
        with self._lock:
            if self._containers is not None:
                self._containers.close()
                self._containers = None
            self.api.close()

    def work(self) -> None:
        """Do the periodic work of the kubelets: start and end pods."""
        with self._lock:
            if self._containers is not None:
                self._containers.reconcile()
                with self.api.locked_store() as store:
                    # Programs end when they are told to, see ``reap``.
                    reap(store, all_marked=True, nodes_down=frozenset(self._down))

    @property
    def processes(self) -> list[int]:
        """The process ids of its pods."""
        with self._lock:
            return self._containers.processes if self._containers is not None else []

    def register(self, name: str, kubelet: Kubelet) -> None:
        """Register the control plane's own node."""
        taint = {"key": CONTROL_PLANE, "effect": "NoSchedule"}
        self.api.install([kubelet.node(name, {CONTROL_PLANE: ""}, [taint], "110")])

    def join(self, configuration: Mapping[str, Any], kubelet: Kubelet, alive: Callable[[], bool] = lambda: True) -> str:
        """Join a node as ``kubeadm join`` does, as soon as its certificate is approved; wait no longer than the machine
        is ``alive``. Returns the node's name. Raises ``JoinFailed``.
        """
        bootstrap = configuration["discovery"]["bootstrapToken"]
        if self.authority.pin not in bootstrap["caCertHashes"]:
            raise JoinFailed(f"the authority of {self.endpoint} has none of the hashes {bootstrap['caCertHashes']}")
        registration = configuration["nodeRegistration"]
        flags = {argument["name"]: argument["value"] for argument in registration.get("kubeletExtraArgs", ())}
        labels = dict(part.partition("=")[::2] for part in flags.get("node-labels", "").split(",") if part)
        document = kubelet.node(
            registration["name"], labels, registration.get("taints", ()), flags.get("max-pods", "110")
        )
        try:
            request = self.api.request_certificate(bootstrap["token"], Wish(registration["name"]))
            end = time.monotonic() + CERTIFICATE_SECONDS
            while self.api.register(request, document) is None:
                if not alive() or time.monotonic() > end:
                    raise JoinFailed(f"{self.endpoint}: nobody has approved the request {request}")
                time.sleep(_LOOK_SECONDS)
        except StatusError as error:
            raise JoinFailed(f"{self.endpoint}: {error.status} {error.message}") from None
        return str(registration["name"])

    def power(self, name: str, *, on: bool) -> None:
        """Set a node's kubelet to reporting or silent. A deleted node stays deleted."""
        with self.api.locked_store() as store:
            (self._down.discard if on else self._down.add)(name)
            key = Key("", "nodes", "", name)
            document = store.objects.get(key)
            if document is not None:
                condition = {"type": "Ready", "status": "True" if on else "Unknown"}
                store.replace(key, {**document, "status": {**document["status"], "conditions": [condition]}})


class Clusters:
    """All clusters, by the endpoint of their API. The output of their pods goes to ``log``."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._clusters: dict[str, Cluster] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True, name="kubelets")

    def start(self) -> None:
        """Start the kubelets' periodic work."""
        self._thread.start()

    def make(self, endpoint: str, version: str, folder: Path) -> Cluster:
        """A cluster after ``kubeadm init``, not started. ``version`` is such as v1.35.4."""
        cluster = Cluster(endpoint, version, folder, self._log)
        self._clusters[endpoint] = cluster
        return cluster

    def at(self, endpoint: str) -> Cluster:
        """The cluster behind an endpoint. Raises ``JoinFailed`` when nothing answers there."""
        cluster = self._clusters.get(endpoint)
        if cluster is None:
            raise JoinFailed(f"nothing answers at {endpoint}")
        return cluster

    def remove(self, cluster: Cluster) -> None:
        """Remove a cluster whose control plane machine is gone."""
        self._clusters.pop(cluster.endpoint, None)
        cluster.stop()

    @property
    def processes(self) -> list[int]:
        """The process ids of all pods."""
        return [process for cluster in list(self._clusters.values()) for process in cluster.processes]

    def close(self) -> None:
        """Stop all clusters and end their processes."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(5)
        for cluster in list(self._clusters.values()):
            self.remove(cluster)

    def _work(self) -> None:
        while not self._stop.wait(TICK_SECONDS):
            for cluster in list(self._clusters.values()):
                cluster.work()
