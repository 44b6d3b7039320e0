"""A simulated cluster: its API is :mod:`local.kubernetes.api`, its nodes register by themselves.

Its API listens on loopback only, so its nodes, its agent and whoever has its administrator's kubeconfig talk to it. Its
agent is the real one: a process from what the control plane has applied.
"""

from __future__ import annotations

import base64
import json
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from local.authority import LOOPBACK, Authority
from local.kubernetes import processes
from local.kubernetes.api import KubeApi
from local.kubernetes.certificates import CertificateRequest
from local.kubernetes.cluster import (
    CERTIFICATE_SECONDS,
    CONTROL_PLANE,
    KEYS,
    Cluster,
    JoinFailed,
    Kubelet,
    Registration,
    Restored,
    Saved,
)
from local.kubernetes.containers import Containers
from local.kubernetes.controllers.upkeep import keep
from local.kubernetes.controllers.workloads import settle
from local.kubernetes.logins import logins
from local.kubernetes.people import standard_roles
from local.kubernetes.pods import reap
from local.kubernetes.scheduler import schedule
from local.kubernetes.store import Key, Object, StatusError

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
"""Those that are there from the start."""
_LOOK_SECONDS = 0.05
_SYSTEM = {
    "osImage": "a simulated machine",
    "kernelVersion": "none",
    "containerRuntimeVersion": "none://runs-in-name-only",
}
"""Facts of its machine that a node tells."""
ADMINISTRATOR = "super-admin.conf"
"""The kubeconfig of kubeadm that needs no binding, in the cluster's folder. It names the port where the API listens."""


class SimulatedCluster:
    """See :class:`local.kubernetes.cluster.Cluster`. ``version`` is such as v1.35.4; its files go into ``folder``."""

    def __init__(
        self, endpoint: str, version: str, folder: Path, log: Path, pair: tuple[str, str] | None = None
    ) -> None:
        self.endpoint = endpoint
        self.authority = Authority(folder / "pki", pair=pair)
        self.api = KubeApi(version=version)
        spaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}} for space in NAMESPACES]
        self.api.install([*spaces, *standard_roles()])
        self.url = ""
        """Where its API listens, while it runs."""
        self._folder, self._log = folder, log
        self._containers: Containers | None = None
        self._down: set[str] = set()
        self._lock = threading.Lock()

    @classmethod
    def initialized(cls, state: Path, _node: str, log: Path) -> SimulatedCluster:
        """Make what ``kubeadm init`` leaves in ``state``: a cluster, its authority, an administrator's kubeconfig."""
        documents = yaml.safe_load_all((state / "kubeadm.yaml").read_text(encoding="utf-8"))
        configuration = next(document for document in documents if document["kind"] == "ClusterConfiguration")
        endpoint, version = (str(configuration[name]) for name in ("controlPlaneEndpoint", "kubernetesVersion"))
        # It outlives the machine that has made it, when others have become members.
        own_folder = state.with_name(f"{state.name}.kubernetes")
        own_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (state / "kubernetes").exists():
            (state / "kubernetes").symlink_to(own_folder, target_is_directory=True)
        cluster = cls(endpoint, version, own_folder, log)
        cluster.api.webhook = logins(state)
        config = yaml.safe_dump(_kubeconfig(endpoint, cluster.authority.pem, cluster.api.administrator()))
        (state / "kubernetes" / "admin.conf").write_text(config, encoding="utf-8")
        return cluster

    @classmethod
    def restored(cls, endpoint: str, restored: Restored, log: Path, present: Cluster | None) -> SimulatedCluster:
        """The cluster whose objects are those of a snapshot, and no others. One that is gone is made anew, with its
        authority."""
        folder = restored.machine.with_name(f"{restored.machine.name}.kubernetes")
        if isinstance(present, SimulatedCluster):
            cluster = present
        else:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            pki = restored.machine / "kubernetes" / "pki"
            certificate, key = ((pki / name).read_text(encoding="utf-8") for name in ("ca.crt", "ca.key"))
            cluster = cls(endpoint, "v1.0.0", folder, log, (certificate, key))
        cluster.stop()
        listed: list[tuple[dict[str, str], Object]] = json.loads(restored.snapshot.read_text(encoding="utf-8"))
        with cluster.api.locked_store() as store:
            store.load({Key(**key): document for key, document in listed})
        return cluster

    def start(self) -> None:
        """See ``Cluster``."""
        with self._lock:
            if self._containers is not None:
                return
            address = _address(self.endpoint)
            self.url = url = self.api.serve(self.authority.serving("apiserver", address[0]), address)
            config = _kubeconfig(urlsplit(url).netloc, self.authority.pem, self.api.administrator())
            processes.write(self._folder / ADMINISTRATOR, yaml.safe_dump(config).encode())
            self._containers = Containers(self.api, url, self.authority.pem, self._folder, self._log)

    def stop(self) -> None:
        """See ``Cluster``."""
        with self._lock:
            if self._containers is not None:
                self._containers.close()
                self._containers = None
            self.api.close()

    def remove(self) -> None:
        """See ``Cluster``."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def work(self) -> None:
        """Start, place and end pods."""
        with self._lock:
            if self._containers is not None:
                self._containers.reconcile()
                with self.api.locked_store() as store:
                    # Programs end when they are told to, see ``reap``.
                    reap(store, all_marked=True, nodes_down=frozenset(self._down))
                    schedule(store, frozenset(self._down))
                    settle(store, self._down)
                    keep(store)

    def upgrade(self, release: str) -> None:
        """See ``Cluster``."""
        self.api.version = f"v{release}"

    def save(self, snapshot: Path) -> Saved:
        """See ``Cluster``: the list of the objects."""
        with self.api.locked_store() as store:
            listed = [[asdict(key), document] for key, document in store.objects.items()]
        snapshot.write_text(json.dumps(listed), encoding="utf-8")
        keys = {**dict.fromkeys(KEYS, "played"), "ca.crt": self.authority.pem, "ca.key": self.authority.key}
        return Saved(len(listed), "kubernetesVersion: v1.0.0\n", keys)

    @property
    def processes(self) -> list[int]:
        """The process ids of its pods."""
        with self._lock:
            return self._containers.processes if self._containers is not None else []

    def apply(self, documents: Sequence[Mapping[str, Any]]) -> None:
        """See ``Cluster``."""
        self.api.install(documents)

    def install(self, files: Mapping[str, str]) -> None:
        """See ``Cluster``: nobody here is there to run them."""

    def register(self, name: str, kubelet: Kubelet, *, takes_pods: bool = False) -> None:
        """See ``Cluster``."""
        taints = [] if takes_pods else [{"key": CONTROL_PLANE, "effect": "NoSchedule"}]
        self.api.install([self._with_info(kubelet.node(name, {CONTROL_PLANE: ""}, taints, "110"), kubelet)])

    def begin(self, configuration: Mapping[str, Any], kubelet: Kubelet) -> None:
        """See ``Cluster``."""
        registration = Registration.read(configuration)
        node = kubelet.node(
            registration.name, {**registration.labels, CONTROL_PLANE: ""}, registration.taints, registration.pods
        )
        self.api.install([self._with_info(node, kubelet)])

    def join(self, configuration: Mapping[str, Any], kubelet: Kubelet, alive: Callable[[], bool] = lambda: True) -> str:
        """See ``Cluster``."""
        bootstrap = configuration["discovery"]["bootstrapToken"]
        if self.authority.pin not in bootstrap["caCertHashes"]:
            raise JoinFailed(f"the authority of {self.endpoint} has none of the hashes {bootstrap['caCertHashes']}")
        registration = Registration.read(configuration)
        document = self._with_info(
            kubelet.node(
                registration.name, registration.labels, registration.taints, registration.pods, registration.reserved
            ),
            kubelet,
        )
        try:
            request = self.api.request_certificate(bootstrap["token"], CertificateRequest(registration.name))
            end = time.monotonic() + CERTIFICATE_SECONDS
            while self.api.register(request, document) is None:
                if not alive() or time.monotonic() > end:
                    raise JoinFailed(f"{self.endpoint}: nobody has approved the request {request}")
                time.sleep(_LOOK_SECONDS)
        except StatusError as error:
            raise JoinFailed(f"{self.endpoint}: {error.status} {error.message}") from None
        return registration.name

    def _with_info(self, node: Object, kubelet: Kubelet) -> Object:
        """A node that says what it runs."""
        version = f"v{kubelet.release}" if kubelet.release else self.api.version
        about = {"kubeletVersion": version, "architecture": kubelet.architecture, "operatingSystem": "linux", **_SYSTEM}
        return {**node, "status": {**node["status"], "nodeInfo": about}}

    def power(self, name: str, *, on: bool) -> None:
        """See ``Cluster``."""
        with self.api.locked_store() as store:
            (self._down.discard if on else self._down.add)(name)
            key = Key("", "nodes", "", name)
            document = store.objects.get(key)
            if document is not None:
                condition = {"type": "Ready", "status": "True" if on else "Unknown"}
                store.replace(key, {**document, "status": {**document["status"], "conditions": [condition]}})


def _address(endpoint: str) -> tuple[str, int]:
    """Address on which the API listens: at its endpoint, where that is of this machine."""
    host, _, port = endpoint.rpartition(":")
    return (host, int(port)) if host.startswith("127.") else (LOOPBACK, 0)


def _kubeconfig(endpoint: str, authority: str, token: str) -> dict[str, Any]:
    cluster = {
        "server": f"https://{endpoint}",
        "certificate-authority-data": base64.b64encode(authority.encode()).decode(),
    }
    admin = "kubernetes-admin"
    context = {"cluster": "kubernetes", "user": admin}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": f"{admin}@kubernetes",
        "clusters": [{"name": "kubernetes", "cluster": cluster}],
        "contexts": [{"name": f"{admin}@kubernetes", "context": context}],
        "users": [{"name": admin, "user": {"token": token}}],
    }
