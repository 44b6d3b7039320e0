"""A real control plane behind the endpoint of a cluster of EKS, whose API server asks the webhook as EKS's own does.

It is of the release that is built, whatever version EKS tells. A node's GPUs are there at once: nothing here plays
NVIDIA's device plugin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

from local.aws.token_server import served_reviews
from local.aws.token_webhook import policy_bindings
from local.kubernetes.cluster import InitFailed, Kubelet, PodKeys, Registration
from local.kubernetes.people import Webhook
from local.kubernetes.real import kubelet as real_kubelet
from local.kubernetes.real.build import missing, release
from local.kubernetes.real.client import MERGE, Client, Refused
from local.kubernetes.real.cluster import RealCluster
from local.kubernetes.real.control_plane import PORT, ControlPlane, StartFailed
from local.kubernetes.store import Object

_API = "kubeadm.k8s.io/v1beta4"


class RealManagedCluster(RealCluster):
    """See ``ManagedCluster``. Raises ``InitFailed`` where nothing is built."""

    def __init__(
        self, name: str, _version: str, folder: Path, log: Path, webhook: Webhook, environment: Mapping[str, str]
    ) -> None:
        if reason := missing():
            raise InitFailed(reason)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._reviews = ExitStack()
        flags = self._reviews.enter_context(served_reviews(webhook, folder))
        plane = ControlPlane(folder, _documents(name), folder / "api", environment, node="eks", api_flags=flags)
        try:
            plane.initialize()
        except StartFailed as error:
            self._reviews.close()
            raise InitFailed(str(error)) from None
        super().__init__(name, plane, log, environment)

    @property
    def url(self) -> str:
        """See ``ManagedCluster``."""
        return self.plane.url

    @property
    def certificate(self) -> str:
        """See ``ManagedCluster``."""
        return (self.plane.folder / "pki" / "ca.crt").read_text(encoding="utf-8")

    def start(self) -> None:
        """See ``Cluster``."""
        super().start()
        self.apply(policy_bindings())

    def remove(self) -> None:
        """See ``Cluster``."""
        super().remove()
        self._reviews.close()

    def take_keys(self, keys: PodKeys) -> None:
        """See ``ManagedCluster``."""
        self._keys = keys

    def admit(self, name: str, kubelet: Kubelet, labels: Mapping[str, str], taints: Sequence[Object]) -> None:
        """See ``ManagedCluster``."""
        try:
            present = self._node(name)
            if present is not None and present["spec"].get("providerID") != kubelet.provider_id:
                raise InitFailed(f"there is a node {name} of another instance")
            self._kubelets[name] = kubelet
            real_kubelet.register(self._administrator, Registration(name, labels, taints, "110"), kubelet)
        except (OSError, Refused) as error:
            raise InitFailed(str(error)) from None

    def change(
        self, name: str, labels: Mapping[str, str], taints: Sequence[Object], removed_labels: Sequence[str]
    ) -> None:
        """See ``ManagedCluster``."""
        metadata = {"labels": {**dict.fromkeys(removed_labels), **labels}}
        body = {"metadata": metadata, "spec": {"taints": list(taints)}}
        try:
            self._administrator.call("PATCH", _path(name), body, MERGE)
        except (OSError, Refused) as error:
            self._say(f"node {name}: {error}")

    def forget(self, name: str, provider_id: str) -> None:
        """See ``ManagedCluster``."""
        try:
            node = self._node(name)
            if node is not None and node["spec"].get("providerID") == provider_id:
                self._kubelets.pop(name, None)
                self._administrator.call("DELETE", _path(name))
        except (OSError, Refused) as error:
            self._say(f"node {name}: {error}")

    @property
    def _administrator(self) -> Client:
        return Client.of_kubeconfig(self.plane.kubeconfig)

    def _node(self, name: str) -> Object | None:
        try:
            node: Object = self._administrator.call("GET", _path(name))
        except Refused as refused:
            if refused.status == 404:
                return None
            raise
        return node


def _path(name: str) -> str:
    return f"/api/v1/nodes/{quote(name, safe='')}"


def _documents(name: str) -> list[dict[str, Any]]:
    """Configuration for kubeadm of a control plane that has no machine."""
    return [
        {"apiVersion": _API, "kind": "InitConfiguration"},
        {
            "apiVersion": _API,
            "kind": "ClusterConfiguration",
            "clusterName": name,
            "kubernetesVersion": f"v{release()}",
            "controlPlaneEndpoint": f"eks.invalid:{PORT}",
            "networking": {"serviceSubnet": "172.20.0.0/16"},
            "apiServer": {"certSANs": []},
        },
    ]
