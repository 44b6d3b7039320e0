"""A site of the local cloud: a Kubernetes stand-in that nothing but its own connector, a real process, reaches.

The connector is a Deployment in the stand-in, installed by what ``stockyard site manifest`` prints, as its owner would.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from local.bare_metal import bare_metal_host, credentials
from local.kubernetes.cluster import Kubelet
from local.kubernetes.clusters import Clusters
from local.kubernetes.definitions import METAL3, definitions
from local.kubernetes.real.callers import InProcess
from local.kubernetes.real.client import Client, Refused
from local.kubernetes.real.managed import RealManagedCluster
from local.kubernetes.simulated import SimulatedCluster
from local.kubevirt import kinds, virtual_machine_faults
from local.kubevirt.launchers import SCHEDULABLE
from local.machines.bare_metal_hosts import BareMetalMachines
from local.machines.booted import MachineWatch
from local.machines.kubevirt_guests import KubeVirtGuests

NAMESPACE = "stockyard-site"
VERSION = "v1.35.4"
LOOK_SECONDS = 0.2
ALLOWED = Path(__file__).resolve().parents[2] / "examples" / "site-allowed"
"""What the local cloud's site lets its connector carry out."""
KUBELET = Kubelet("site:///host", 16, 65_536)
"""The node of the site's cluster, on which virtual machines stand."""
HOSTS = {"compute-1": "compute", "compute-2": "compute", "storage-1": "storage"}
"""Hosts of bare metal of the site, each with its role."""


class LocalSite:
    """``call`` speaks to the API as an administrator of the tenant; logs and files go below ``folder``. With an
    ``environment`` of its programs the host is a real control plane. Its machines become nodes of ``clusters``."""

    def __init__(
        self,
        call: Callable[..., Any],
        name: str,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        clusters: Clusters | None = None,
    ) -> None:
        self._clusters, self._machines = clusters, list[MachineWatch]()
        self._call, self._name = call, name
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.log = folder / "connector.log"
        self.cluster: SimulatedCluster | RealManagedCluster
        if environment is None:
            self.cluster = SimulatedCluster("127.0.0.1:0", VERSION, folder, self.log)
        else:
            self.cluster = RealManagedCluster(name, "", folder / "host", self.log, _nobody, environment)
        self._over = threading.Event()
        self._worker = threading.Thread(target=self._work, daemon=True, name="site")

    def start(self) -> None:
        """Make the site, start its cluster, and install the connector there."""
        site = self._call("POST", "/v1/sites", {"name": self._name, "description": "A site of the local cloud"})
        credentials = self._call("POST", f"/v1/sites/{site['id']}/credentials")
        manifest = self._call("GET", f"/v1/sites/{site['id']}/manifest")["text"]
        self.cluster.start()
        if isinstance(self.cluster, RealManagedCluster):
            self.cluster.admit("host", KUBELET, {SCHEDULABLE: "true"}, ())
        self.cluster.apply(_namespaces("machines"))
        self.cluster.apply([json.loads(text) for text in manifest.split("\n---\n")])
        self.cluster.apply([self._secret(credentials), self._allow_list(), *_roles()])
        self._worker.start()
        if self._clusters is not None:
            self._lend_hosts(self._clusters)
            self._make_guests(self._clusters)

    def _lend_hosts(self, clusters: Clusters) -> None:
        """Register the site's hosts of bare metal, and play their operator."""
        self.cluster.apply([dict(each) for each in definitions(METAL3)])
        caller = self._administrator()
        for _ in range(100):
            try:
                caller.call("GET", "/apis/metal3.io/v1alpha1/baremetalhosts")
                break
            except Refused:
                time.sleep(LOOK_SECONDS)  # a real API server serves a new definition a moment later
        hosts = [bare_metal_host(name, "machines", {"role": role}) for name, role in HOSTS.items()]
        self.cluster.apply([credentials(name, "machines") for name in HOSTS])
        self.cluster.apply(hosts)
        machines = BareMetalMachines(caller, self.log.with_name("machines.log"), self.log.parent / "hosts", clusters)
        self._machines.append(machines)
        machines.start()

    def _make_guests(self, clusters: Clusters) -> None:
        """Serve the kinds of KubeVirt, and play its controllers and its guests."""
        self.cluster.apply([dict(each) for each in kinds()])
        is_simulated = isinstance(self.cluster, SimulatedCluster)
        if isinstance(self.cluster, SimulatedCluster):
            self.cluster.api.store.webhooks["VirtualMachine"] = virtual_machine_faults
            self.cluster.apply([KUBELET.node("host", {SCHEDULABLE: "true"}, (), "110")])
        folder = self.log.parent
        logs = folder / "guests.log"
        # The pods of a real cluster's node are started, and a machine's has nothing to start.
        guests = KubeVirtGuests(self._administrator(), logs, folder / "guests", clusters, on_nodes=is_simulated)
        self._machines.append(guests)
        guests.start()

    def _administrator(self) -> Client | InProcess:
        if isinstance(self.cluster, RealManagedCluster):
            return Client.of_kubeconfig(self.cluster.plane.kubeconfig)
        return InProcess(self.cluster.api)

    def close(self) -> None:
        """End the machines, the connector and its cluster."""
        for machines in self._machines:
            machines.close()
        self._over.set()
        if self._worker.is_alive():
            self._worker.join()
        if isinstance(self.cluster, RealManagedCluster):
            self.cluster.remove()
        else:
            self.cluster.stop()

    def kill(self) -> None:
        """Kill the connector's process; a kubelet starts another one."""
        for process in self.cluster.processes:
            os.kill(process, signal.SIGKILL)

    def _work(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self.cluster.work()

    def _secret(self, credentials: Mapping[str, str]) -> dict[str, Any]:
        data = {name: base64.b64encode(credentials[name].encode()).decode() for name in ("client_id", "client_secret")}
        metadata = {"name": NAMESPACE, "namespace": NAMESPACE}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}

    def _allow_list(self) -> dict[str, Any]:
        metadata = {"name": f"{NAMESPACE}-allowed", "namespace": NAMESPACE}
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": {"allowed": ALLOWED.read_text(encoding="utf-8")},
        }


def _nobody(_review: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer of a webhook that knows no token: the host has no people of a cloud."""
    return {"status": {"authenticated": False}}


def _namespaces(*names: str) -> list[dict[str, Any]]:
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]


def _roles() -> Sequence[dict[str, Any]]:
    """The rights of the connector's account, as the host's owner gives them."""
    metadata = {"name": NAMESPACE, "namespace": "machines"}
    verbs = ["get", "list", "create", "patch", "delete"]
    rules = [
        {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": verbs},
        {"apiGroups": ["metal3.io"], "resources": ["baremetalhosts"], "verbs": ["get", "list", "patch"]},
        {"apiGroups": ["kubevirt.io"], "resources": ["virtualmachines"], "verbs": verbs},
        {"apiGroups": ["kubevirt.io"], "resources": ["virtualmachineinstances"], "verbs": ["get", "list", "delete"]},
        {"apiGroups": ["cdi.kubevirt.io"], "resources": ["datavolumes"], "verbs": ["get", "list", "delete"]},
        {"apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": ["get", "list", "delete"]},
    ]
    reads = [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]}]
    group = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": NAMESPACE, "namespace": NAMESPACE}
    reference = {"apiGroup": group, "kind": "Role", "name": NAMESPACE}
    of_host = {"apiVersion": f"{group}/v1", "metadata": {"name": NAMESPACE}}
    return [
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": reference,
            "subjects": [subject],
        },
        {**of_host, "kind": "ClusterRole", "rules": reads},
        {
            **of_host,
            "kind": "ClusterRoleBinding",
            "roleRef": reference | {"kind": "ClusterRole"},
            "subjects": [subject],
        },
    ]
