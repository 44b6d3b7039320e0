"""A cluster as the machines of the local cloud see it: what ``kubeadm``, ``kubectl`` and kubelets do there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from local.kubernetes.api import node
from local.kubernetes.store import Object
from stockyard.domain.values.quantities import milli, resource_text

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
EXTERNAL = "external"
"""The flag of a kubelet whose node no pod comes to before its cloud's controller has seen it."""
_FREE_MEMORY = "memory.available"
CERTIFICATE_SECONDS = 60.0
"""How long a kubelet waits for its first certificate."""


class InitFailed(Exception):
    """``kubeadm init`` did not make a cluster, or it does not start; the text says why."""


class JoinFailed(Exception):
    """A machine could not join; the text says why."""


@dataclass(frozen=True, slots=True)
class Kubelet:
    """The properties that a machine registers with. ``memory`` is in MiB, ``address`` its private one; ``gpus`` are
    there for pods as with NVIDIA's device plugin; ``release`` is the kubelet's, empty for that of the API server.
    ``programs`` gives what the environment tells programs of others that
    ask the machine's cloud. ``annotations`` are what the machine writes on its Node itself."""

    provider_id: str
    cpu: int
    memory: int
    architecture: str = "amd64"
    address: str = ""
    gpus: int = 0
    release: str = ""
    programs: Callable[[], Mapping[str, str]] = field(default=dict, compare=False)
    annotations: Mapping[str, str] = field(default_factory=dict)

    def node(
        self,
        name: str,
        labels: Mapping[str, str],
        taints: Sequence[Mapping[str, Any]],
        pods: str,
        reserved: Mapping[str, int] | None = None,
    ) -> Object:
        """The ready Node. ``reserved`` is what it keeps from pods, in thousandths by resource."""
        document = node(name)
        document["spec"] = {**({"providerID": self.provider_id} if self.provider_id else {})}
        if taints:
            document["spec"]["taints"] = list(taints)
        document["metadata"]["labels"].update({"kubernetes.io/arch": self.architecture, **labels})
        if self.annotations:
            document["metadata"].setdefault("annotations", {}).update(self.annotations)
        room = {"cpu": str(self.cpu), "memory": f"{self.memory}Mi", "pods": pods}
        if self.gpus:
            room["nvidia.com/gpu"] = str(self.gpus)
        free = {
            resource: resource_text(resource, milli(quantity) - (reserved or {}).get(resource, 0))
            for resource, quantity in room.items()
        }
        document["status"] |= {"capacity": room, "allocatable": free}
        if self.address:
            addresses = (("InternalIP", self.address), ("Hostname", name))
            document["status"]["addresses"] = [{"type": kind, "address": text} for kind, text in addresses]
        return document


HOPS = "STOCKYARD_METADATA_HOPS"
"""In the environment of a machine's programs: how many hops its metadata's answers go, one where it says nothing. A pod
in a network of its own is two away."""
PodKeys = Callable[[str, str], Mapping[str, str]]
"""(namespace, service account) -> what the environment tells a pod of its role in the cloud; nothing without one."""


@dataclass(frozen=True, slots=True)
class Registration:
    """The fields of kubeadm's ``JoinConfiguration`` that a kubelet registers its node by."""

    name: str
    labels: Mapping[str, str]
    taints: Sequence[Mapping[str, Any]]
    pods: str
    reserved: Mapping[str, int] = field(default_factory=dict)
    """What the kubelet keeps from pods, in thousandths by resource."""
    external: bool = False
    """Whether the kubelet waits for its cloud's controller."""

    @classmethod
    def read(cls, configuration: Mapping[str, Any]) -> Registration:
        """Read the registration of a ``JoinConfiguration``."""
        registration = configuration["nodeRegistration"]
        flags = {argument["name"]: argument["value"] for argument in registration.get("kubeletExtraArgs", ())}
        labels = dict(part.partition("=")[::2] for part in flags.get("node-labels", "").split(",") if part)
        reserved = Counter[str]()
        for text in (flags.get("kube-reserved", ""), flags.get("system-reserved", "")):
            quantities = (part.partition("=")[::2] for part in text.split(",") if part)
            reserved.update({resource: milli(quantity) for resource, quantity in quantities})
        # Before a node is out of memory its kubelet evicts pods, so that room is no pod's either.
        thresholds = (part.partition("<")[::2] for part in flags.get("eviction-hard", "").split(","))
        memory = dict(thresholds).get(_FREE_MEMORY, "0")
        reserved["memory"] += 0 if memory.endswith("%") else milli(memory)
        pods = flags.get("max-pods", "110")
        external = flags.get("cloud-provider") == EXTERNAL
        return cls(registration["name"], labels, registration.get("taints", ()), pods, reserved, external)


@dataclass(frozen=True, slots=True)
class Saved:
    """Companions of a snapshot of a cluster's objects: their ``revision``, kubeadm's ``configuration``, and ``keys``,
    file below kubeadm's ``pki`` -> text."""

    revision: int
    configuration: str
    keys: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Restored:
    """Files and names of a member that begins a cluster anew: its ``machine`` folder with the keys, the ``snapshot``,
    kubeadm's ``configuration``, and the name of its own ``node``."""

    machine: Path
    snapshot: Path
    configuration: Path
    node: str


KEYS = (
    "ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "sa.key", "sa.pub", "etcd/ca.crt", "etcd/ca.key",
)  # fmt: skip
"""The files of ``Saved.keys``."""


class Cluster(Protocol):
    """One cluster. It runs while its control plane machine is on, and keeps its objects while it is off."""

    @property
    def endpoint(self) -> str:
        """Host and port of its API."""

    @property
    def processes(self) -> list[int]:
        """The process ids of its programs and pods."""

    def start(self) -> None:
        """Start the cluster when its control plane machine is on. A second call does nothing. ``InitFailed``."""

    def stop(self) -> None:
        """Stop the cluster when its control plane machine is off. A second call does nothing."""

    def remove(self) -> None:
        """Stop the cluster and forget its objects: its control plane machine is gone."""

    def work(self) -> None:
        """Do the periodic work of the kubelets."""

    def upgrade(self, release: str) -> None:
        """Be of that release from now on: no member of another one is left. A second call does nothing."""

    def save(self, snapshot: Path) -> Saved:
        """Write a snapshot of all objects there. Raises ``InitFailed`` while it does not run."""

    def begin(self, configuration: Mapping[str, Any], kubelet: Kubelet) -> None:
        """Register the node of a member that has begun the cluster from a snapshot, as its configuration says.
        Raises ``InitFailed``."""

    def apply(self, documents: Sequence[Mapping[str, Any]]) -> None:
        """Apply objects as the administrator. Raises ``InitFailed``."""

    def install(self, files: Mapping[str, str]) -> None:
        """Apply what a control plane's machine has of its cloud's controllers, path -> text, and wait until they have
        seen all nodes. A cluster that cannot run them does nothing. Raises ``InitFailed``."""

    def register(self, name: str, kubelet: Kubelet, *, takes_pods: bool = False) -> None:
        """Register the control plane's own node, without a taint where it takes pods. A second call does nothing.

        Raises ``InitFailed``.
        """

    def join(self, configuration: Mapping[str, Any], kubelet: Kubelet, alive: Callable[[], bool]) -> str:
        """Join a node as ``kubeadm join`` does, as soon as its certificate is approved; wait no longer than the machine
        is ``alive``. Returns the node's name. Raises ``JoinFailed``."""

    def power(self, name: str, *, on: bool) -> None:
        """Set a node's kubelet to reporting or silent. A deleted node stays deleted."""
