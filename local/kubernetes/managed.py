"""The Kubernetes clusters that EKS has made: their API behind the endpoint, who is admitted, and their nodes.

The control plane is EKS's own, so no machine of the account is it. Its API takes the tokens that EKS takes, by the
cluster's access entries; an access policy has the rights of the role of Kubernetes that is about the same.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from local.aws.corrections.eks import eks
from local.aws.corrections.eks.access import PODS
from local.aws.corrections.eks.eks import eks_backends
from local.aws.corrections.eks.scaling_groups import LOCK
from local.aws.corrections.roles import service_session
from local.aws.token_webhook import AccessEntry, TokenWebhook, asked_at, policy_bindings
from local.kubernetes.cluster import Cluster, InitFailed, Kubelet, PodKeys
from local.kubernetes.clusters import Clusters
from local.kubernetes.people import Webhook
from local.kubernetes.simulated import SimulatedCluster
from local.kubernetes.store import Key, Object

GPU, PLUGIN = "nvidia.com/gpu", "k8s-device-plugin"
"""What pods ask for, and the image of the DaemonSet that gives it to them."""


class ManagedCluster(Cluster, Protocol):
    """A cluster whose nodes come and go with their instances."""

    @property
    def url(self) -> str:
        """URL of the control plane's API."""

    @property
    def certificate(self) -> str:
        """Certificate of the control plane's authority, PEM."""

    def take_keys(self, keys: PodKeys) -> None:
        """Take from where pods get the keys of the roles of their service accounts."""

    def admit(self, name: str, kubelet: Kubelet, labels: Mapping[str, str], taints: Sequence[Object]) -> None:
        """Register a node. Raises ``InitFailed``, also while there is one of that name of another instance."""

    def change(
        self, name: str, labels: Mapping[str, str], taints: Sequence[Object], removed_labels: Sequence[str]
    ) -> None:
        """Give a node these labels and taints, and take ``removed_labels`` away."""

    def forget(self, name: str, provider_id: str) -> None:
        """Delete the node of an instance that is gone. EC2 may have given its name to another one."""


Make = Callable[[str, str, Path, Path, Webhook], ManagedCluster]
"""(name, version, folder, log, webhook) -> a cluster, not started."""


class SimulatedManagedCluster(SimulatedCluster):
    """A simulated one. A node's GPUs are there once NVIDIA's device plugin is applied."""

    def __init__(self, name: str, version: str, folder: Path, log: Path, webhook: Webhook) -> None:
        super().__init__(name, version, folder, log)
        self.api.webhook = webhook
        self.api.install(policy_bindings())
        self._gpus: dict[str, int] = {}

    @property
    def certificate(self) -> str:
        """See ``ManagedCluster``."""
        return self.authority.pem

    def take_keys(self, keys: PodKeys) -> None:
        """See ``ManagedCluster``: no pod of it is a program of the cloud."""

    def admit(self, name: str, kubelet: Kubelet, labels: Mapping[str, str], taints: Sequence[Object]) -> None:
        """See ``ManagedCluster``."""
        with self.api.locked_store() as store:
            present = store.objects.get(Key("", "nodes", "", name))
        if present is not None and present["spec"].get("providerID") != kubelet.provider_id:
            raise InitFailed(f"there is a node {name} of another instance")
        self._gpus[name] = kubelet.gpus
        plain = Kubelet(kubelet.provider_id, kubelet.cpu, kubelet.memory, kubelet.architecture, kubelet.address)
        document = plain.node(name, labels, taints, "110")
        addresses = [("InternalIP", kubelet.address), ("InternalDNS", name), ("Hostname", name)]
        document["status"]["addresses"] = [{"type": kind, "address": text} for kind, text in addresses]
        self.api.install([self._with_info(document, kubelet)])

    def change(
        self, name: str, labels: Mapping[str, str], taints: Sequence[Object], removed_labels: Sequence[str]
    ) -> None:
        """See ``ManagedCluster``."""
        with self.api.locked_store() as store:
            key = Key("", "nodes", "", name)
            node = store.objects.get(key)
            if node is None:
                return
            present = {k: v for k, v in node["metadata"].get("labels", {}).items() if k not in removed_labels}
            metadata = {**node["metadata"], "labels": {**present, **labels}}
            store.replace(key, {**node, "metadata": metadata, "spec": {**node["spec"], "taints": list(taints)}})

    def forget(self, name: str, provider_id: str) -> None:
        """See ``ManagedCluster``."""
        with self.api.locked_store() as store:
            key = Key("", "nodes", "", name)
            node = store.objects.get(key)
            if node is not None and node["spec"].get("providerID") == provider_id:
                self._gpus.pop(name, None)
                store.remove(key, {})

    def work(self) -> None:
        """See ``Cluster``."""
        self._show_gpus()
        super().work()

    def _show_gpus(self) -> None:
        with self.api.locked_store() as store:
            daemons = [document for key, document in store.objects.items() if key.resource == "daemonsets"]
            if not any(PLUGIN in container["image"] for daemon in daemons for container in _containers(daemon)):
                return
            for name, count in self._gpus.items():
                key = Key("", "nodes", "", name)
                node = store.objects.get(key)
                if not count or node is None or GPU in node["status"]["allocatable"]:
                    continue
                status = {part: {**node["status"][part], GPU: str(count)} for part in ("capacity", "allocatable")}
                store.replace(key, {**node, "status": {**node["status"], **status}})


def _containers(daemon: Object) -> list[Object]:
    return list(daemon["spec"]["template"]["spec"].get("containers", ()))


class ManagedClusters:
    """See ``ControlPlanes``: who plays those of EKS. ``sts_url`` is where the local cloud's STS is."""

    def __init__(
        self, clusters: Clusters, folder: Path, log: Path, sts_url: str, make: Make = SimulatedManagedCluster
    ) -> None:
        self._clusters, self._folder, self._log, self._make = clusters, folder, log, make
        self._ask = asked_at(sts_url)
        self._by_name: dict[tuple[str, str, str], ManagedCluster] = {}
        self._starting: dict[tuple[str, str, str], _Start] = {}

    def begin(self, account: str, region: str, cluster: Mapping[str, Any]) -> tuple[str, str] | None:
        """See ``ControlPlanes``."""
        key = (account, region, str(cluster["name"]))
        if key not in self._starting:
            self._starting[key] = _Start(lambda: self._started(key, str(cluster["version"])))
        start = self._starting[key]
        start.join(0.2)
        if start.is_alive():
            return None
        del self._starting[key]
        if start.result is None:
            raise InitFailed(start.reason)
        self._by_name[key] = start.result
        self._clusters.add(start.result)
        return start.result.url, start.result.certificate

    def _started(self, key: tuple[str, str, str], version: str) -> ManagedCluster:
        account, region, name = key
        folder = self._folder / f"{account}-{region}-{name}"
        shutil.rmtree(folder, ignore_errors=True)
        webhook = TokenWebhook(name, lambda: entries(account, region, name), self._ask)
        cluster = self._make(name, f"v{version}.0", folder, self._log, webhook.review)
        cluster.take_keys(partial(pod_keys, *key))
        cluster.start()
        return cluster

    def update(self, account: str, region: str, cluster: Mapping[str, Any]) -> None:
        """See ``ControlPlanes``."""
        played = self._by_name.get((account, region, str(cluster["name"])))
        if isinstance(played, SimulatedManagedCluster):
            played.api.version = f"v{cluster['version']}.0"

    def end(self, account: str, region: str, cluster: Mapping[str, Any]) -> None:
        """See ``ControlPlanes``."""
        key = (account, region, str(cluster["name"]))
        played = self._by_name.pop(key, None)
        if played is not None:
            # Its pods may take their time, and EKS is not to wait for them.
            threading.Thread(target=self._clusters.remove, args=(played,), daemon=True, name="eks-end").start()

    def at(self, account: str, region: str, name: str) -> ManagedCluster | None:
        """The cluster, once it runs."""
        return self._by_name.get((account, region, name))

    def look(self, account: str, region: str) -> None:
        """Do the work of EKS, its groups and reservations whose time has come."""
        eks.settle(account, region)


class _Start(threading.Thread):
    """The start of a control plane, which may take a minute."""

    def __init__(self, work: Callable[[], ManagedCluster]) -> None:
        super().__init__(daemon=True, name="eks-start")
        self._work = work
        self.result: ManagedCluster | None = None
        self.reason = ""
        self.start()

    def run(self) -> None:
        """See ``Thread``."""
        try:
            self.result = self._work()
        except (InitFailed, OSError) as error:
            self.reason = str(error)


def entries(account: str, region: str, name: str) -> list[AccessEntry]:
    """The access entries of a cluster as they are now."""
    with LOCK:
        cluster = eks_backends[account][region].clusters.get(name)
        if cluster is None:
            return []
        return [
            AccessEntry.described(
                {**entry.copy(), "principalArn": _without_path(principal)},
                list(cluster.policies.get(principal, {}).values()),
                entry.principal_id,
            )
            for principal, entry in cluster.entries.items()
        ]


def pod_keys(cluster_account: str, region: str, name: str, namespace: str, service_account: str) -> Mapping[str, str]:
    """The environment of a pod from EKS's agent on its machine, for the role of its service account by the association
    of that moment; nothing without one."""
    with LOCK:
        cluster = eks_backends[cluster_account][region].clusters.get(name)
        documents = [] if cluster is None else [each.document for each in cluster.associations.values()]
    of_account = [
        each for each in documents if (each["namespace"], each["serviceAccount"]) == (namespace, service_account)
    ]
    if not of_account:
        return {}
    keys = service_session(of_account[0]["roleArn"], PODS, f"eks-{name}-{service_account}"[:64], region)
    names = {
        "AccessKeyId": "AWS_ACCESS_KEY_ID",
        "SecretAccessKey": "AWS_SECRET_ACCESS_KEY",
        "Token": "AWS_SESSION_TOKEN",
    }
    return {variable: keys[field] for field, variable in names.items()}


def _without_path(principal: str) -> str:
    """An entry names a role with its path, which STS leaves out of the name of a session. EKS knows roles by ids."""
    account, separator, name = principal.partition(":role/")
    return f"{account}{separator}{name.rpartition('/')[2]}" if separator else principal
