"""A cluster with a real control plane: what its machines do is done by kubeadm, or as a kubelet does it."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from local.kubernetes import processes
from local.kubernetes.cluster import (
    CONTROL_PLANE,
    KEYS,
    Cluster,
    InitFailed,
    JoinFailed,
    Kubelet,
    PodKeys,
    Registration,
    Restored,
    Saved,
)
from local.kubernetes.real import cloud
from local.kubernetes.real import kubelet as real_kubelet
from local.kubernetes.real.build import missing, missing_previous, release, releases
from local.kubernetes.real.client import MERGE, Client, Refused
from local.kubernetes.real.control_plane import KWOK, ControlPlane, StartFailed
from local.kubernetes.real.pods import Pods

LOOK_SECONDS = 1.0
INITIALIZED_SECONDS = 60.0
"""How long a control plane's machine waits for its cloud's controller before its start script fails."""
_OF_KUBEADM = ("InitConfiguration", "ClusterConfiguration")
_MANAGER = "--field-manager=stockyard-agent"


class RealCluster:
    """See :class:`local.kubernetes.cluster.Cluster`. ``environment`` is added to that of its programs and pods."""

    def __init__(self, endpoint: str, plane: ControlPlane, log: Path, environment: Mapping[str, str]) -> None:
        self.endpoint, self.plane = endpoint, plane
        self._log, self._environment = log, environment
        self._pods: Pods | None = None
        self._keys: PodKeys = lambda _namespace, _account: {}
        self._kubelets: dict[str, Kubelet] = {}
        self._down: set[str] = set()
        self._looked_at = 0.0
        self._lock = threading.Lock()

    @classmethod
    def initialized(
        cls, state: Path, node: str, log: Path, environment: Mapping[str, str], planes: Path
    ) -> RealCluster:
        """Make a cluster by ``kubeadm init`` from the ``kubeadm.yaml`` in ``state``, the folder of the first machine.
        Raises ``InitFailed``.

        All that the control plane keeps is in a folder of the cluster's own below ``planes``: it outlives the machine,
        which may be replaced. The machine has a link to it.
        """
        if reason := missing():
            raise InitFailed(reason)
        documents = list(yaml.safe_load_all((state / "kubeadm.yaml").read_text(encoding="utf-8")))
        configuration = next(document for document in documents if document["kind"] == "ClusterConfiguration")
        _check_release(str(configuration["kubernetesVersion"]).removeprefix("v"))
        endpoint = str(configuration["controlPlaneEndpoint"])
        folder = _own_folder(planes / endpoint.replace(":", "-"), state)
        address = _address(configuration)
        # A name that only machines of the cluster know leads nowhere on this one.
        configuration["controlPlaneEndpoint"] = f"{address}:{endpoint.rpartition(':')[2]}"
        plane = ControlPlane(folder, documents, folder / "api", environment, address=address, node=node)
        try:
            plane.initialize()
        except StartFailed as error:
            raise InitFailed(str(error)) from None
        return cls(endpoint, plane, log, environment)

    @classmethod
    def restored(
        cls,
        endpoint: str,
        restored: Restored,
        log: Path,
        present: Cluster | None,
        environment: Mapping[str, str],
        planes: Path,
    ) -> RealCluster:
        """Make a cluster by ``kubeadm init`` from the objects, the keys and the configuration that a machine has of a
        snapshot. Of the cluster that may be there still nothing is left. Raises ``InitFailed``."""
        if present is not None:
            present.remove()
        documents = list(yaml.safe_load_all(restored.configuration.read_text(encoding="utf-8")))
        documents = [document for document in documents if document["kind"] in _OF_KUBEADM]
        configuration = next(document for document in documents if document["kind"] == "ClusterConfiguration")
        _check_release(str(configuration["kubernetesVersion"]).removeprefix("v"))
        keys = {name: (restored.machine / "kubernetes" / "pki" / name).read_bytes() for name in KEYS}
        folder = _own_folder(planes / endpoint.replace(":", "-"), restored.machine)
        for name, content in keys.items():
            processes.write(folder / "pki" / name, content)
        address = _address(configuration)
        plane = ControlPlane(folder, documents, folder / "api", environment, address=address, node=restored.node)
        try:
            plane.initialize()
            plane.restore(restored.snapshot)
        except StartFailed as error:
            raise InitFailed(str(error)) from None
        return cls(endpoint, plane, log, environment)

    @property
    def processes(self) -> list[int]:
        """See ``Cluster``."""
        return [*self.plane.processes, *(self._pods.processes if self._pods is not None else ())]

    def start(self) -> None:
        """See ``Cluster``."""
        with self._lock:
            if self._pods is not None:
                return
            try:
                self.plane.start()
            except StartFailed as error:
                raise InitFailed(str(error)) from None
            administrator = Client.of_kubeconfig(self.plane.kubeconfig)
            self._pods = Pods(
                administrator, self.plane.url, self.plane.folder, self._log, self._environment, self._programs,
                self._keys,
            )  # fmt: skip

    def stop(self) -> None:
        """See ``Cluster``."""
        self.plane.stop()
        with self._lock:
            if self._pods is not None:
                self._pods.close()
                self._pods = None
            self.plane.stop()

    def remove(self) -> None:
        """See ``Cluster``."""
        self.stop()
        shutil.rmtree(self.plane.folder, ignore_errors=True)

    def work(self) -> None:
        """Start and end the pods that are processes. What the API refuses now is tried again later."""
        if time.monotonic() - self._looked_at < LOOK_SECONDS or not self._lock.acquire(blocking=False):
            return
        try:
            if self._pods is not None:
                self._pods.reconcile(frozenset(self._down))
        except (OSError, Refused) as error:
            self._say(str(error))
        finally:
            self._looked_at = time.monotonic()
            self._lock.release()

    def upgrade(self, release: str) -> None:
        """See ``Cluster``. Its API does not answer for some seconds, as that of a single member."""
        if release == self.plane.release:
            return
        with self._lock:
            try:
                _check_release(release)
                self.plane.upgrade(release)
            except (InitFailed, StartFailed) as error:
                self._say(str(error))

    def save(self, snapshot: Path) -> Saved:
        """See ``Cluster``."""
        path = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config"
        try:
            revision = self.plane.save(snapshot)
            configuration = Client.of_kubeconfig(self.plane.kubeconfig).call("GET", path)["data"]
        except (OSError, Refused, StartFailed) as error:
            raise InitFailed(str(error)) from None
        keys = {name: (self.plane.folder / "pki" / name).read_text(encoding="utf-8") for name in KEYS}
        return Saved(revision, configuration["ClusterConfiguration"], keys)

    def apply(self, documents: Sequence[Mapping[str, Any]]) -> None:
        """See ``Cluster``."""
        path = self.plane.folder / "applied.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)}), encoding="utf-8")
        try:
            self.plane.kubectl("apply", "--server-side", "--force-conflicts", _MANAGER, "-f", str(path))
        except StartFailed as error:
            raise InitFailed(str(error)) from None
        finally:
            path.unlink()

    def install(self, files: Mapping[str, str]) -> None:
        """See ``Cluster``."""
        folder = self.plane.folder / "cloud"
        if not cloud.prepared(folder, files):
            return
        try:
            self.plane.kubectl("apply", "-k", str(folder))
            waiting = self._uninitialized()
            ends_at = time.monotonic() + INITIALIZED_SECONDS
            while waiting and time.monotonic() < ends_at:
                time.sleep(LOOK_SECONDS / 2)
                waiting = self._uninitialized()
        except (OSError, Refused, StartFailed) as error:
            raise InitFailed(str(error)) from None
        if waiting:
            raise InitFailed(f"the cloud's controller has not initialized {', '.join(waiting)}")

    def register(self, name: str, kubelet: Kubelet, *, takes_pods: bool = False) -> None:
        """See ``Cluster``. The administrator gives the node its role, which a kubelet may not give itself."""
        try:
            own = Client.of_kubeconfig(self.plane.folder / "kubelet.conf")
            taints = [] if takes_pods else [{"key": CONTROL_PLANE, "effect": "NoSchedule"}]
            registration = Registration(name, {}, taints, "110", external=self.plane.external)
            self._kubelets[name] = kubelet
            real_kubelet.register(own, registration, replace(kubelet, release=self.plane.release))
            self._label(name, CONTROL_PLANE, "")
        except (OSError, Refused) as error:
            raise InitFailed(str(error)) from None

    def begin(self, configuration: Mapping[str, Any], kubelet: Kubelet) -> None:
        """See ``Cluster``."""
        registration = Registration.read(configuration)
        self._kubelets[registration.name] = kubelet
        try:
            real_kubelet.register(Client.of_kubeconfig(self.plane.folder / "kubelet.conf"), registration, kubelet)
            self._label(registration.name, CONTROL_PLANE, "")
        except (OSError, Refused) as error:
            raise InitFailed(str(error)) from None

    def join(self, configuration: Mapping[str, Any], kubelet: Kubelet, alive: Callable[[], bool]) -> str:
        """See ``Cluster``."""
        self._kubelets[Registration.read(configuration).name] = kubelet
        kubelet = replace(kubelet, release=kubelet.release or self.plane.release)
        name = real_kubelet.join(configuration, kubelet, self.plane.url, self.plane.folder / "nodes", alive)
        if "controlPlane" in configuration:
            try:
                self._label(name, CONTROL_PLANE, "")
            except (OSError, Refused) as error:
                raise JoinFailed(str(error)) from None
        return name

    def power(self, name: str, *, on: bool) -> None:
        """See ``Cluster``. Without its label kwok no longer plays the kubelet, and the node's lease ends."""
        (self._down.discard if on else self._down.add)(name)
        try:
            if self._pods is not None:
                self._label(name, KWOK, "on" if on else None)
        except (OSError, Refused) as error:
            if getattr(error, "status", 0) != 404:
                self._say(f"node {name}: {error}")

    def _programs(self, node: str) -> Mapping[str, str]:
        kubelet = self._kubelets.get(node)
        return kubelet.programs() if kubelet is not None else {}

    def _uninitialized(self) -> list[str]:
        """The nodes that the cloud's controller has not seen yet."""
        items = Client.of_kubeconfig(self.plane.kubeconfig).call("GET", "/api/v1/nodes")["items"]
        tainted = [item for item in items if real_kubelet.UNINITIALIZED in item["spec"].get("taints", ())]
        return [item["metadata"]["name"] for item in tainted]

    def _label(self, name: str, key: str, value: str | None) -> None:
        administrator = Client.of_kubeconfig(self.plane.kubeconfig)
        patch = {"metadata": {"labels": {key: value}}}
        administrator.call("PATCH", f"/api/v1/nodes/{quote(name, safe='')}", patch, MERGE)

    def _say(self, text: str) -> None:
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"{self.endpoint}: {text}\n")


def _check_release(registration: str) -> None:
    """Raises ``InitFailed`` for one that is not built."""
    built = releases().values()
    if registration not in built:
        raise InitFailed(
            f"Kubernetes {registration} is not built, only {' and '.join(built)}; a cluster must be of these"
        )
    if registration == release("kubernetes_previous") and (reason := missing_previous()):
        raise InitFailed(reason)


def _own_folder(folder: Path, state: Path) -> Path:
    """The folder of a new control plane, with what its first machine wrote for the API server, and the machine's link
    to it. An earlier try that failed leaves nothing."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    if (state / "api").exists():
        shutil.copytree(state / "api", folder / "api")
    link = state / "kubernetes"
    if link.is_symlink():
        link.unlink()
    shutil.rmtree(link, ignore_errors=True)
    link.symlink_to(folder.absolute(), target_is_directory=True)
    return folder


def _address(configuration: Mapping[str, Any]) -> str:
    """Address on which the API listens: the endpoint's host if that is an address, else the first address in the
    certificate."""
    host = str(configuration["controlPlaneEndpoint"]).rpartition(":")[0]
    names = [host, *configuration["apiServer"].get("certSANs", ())]
    return next((name for name in names if _is_address(name)), host)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
