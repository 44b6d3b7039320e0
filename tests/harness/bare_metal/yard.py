"""A Kubernetes host that lends hosts of bare metal, with their operator, in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from local.bare_metal import BareMetalOperator, bare_metal_host, credentials
from local.kubernetes.definitions import METAL3 as DEFINED
from local.kubernetes.definitions import definitions
from local.kubernetes.real.callers import Caller, InProcess
from stockyard.providers.clouds.kubernetes import bare_metal, reach
from stockyard.providers.clouds.kubernetes.features import METAL3
from stockyard.providers.kubernetes.client import KubernetesApi
from stockyard.providers.nodes.metal3.launch import Metal3Config
from tests.harness.worlds.kubernetes_host import NAMESPACE, NUMBER, TENANT, KubernetesHost
from tests.harness.worlds.memory import FixedClock

CONFIG = Metal3Config("https://api.example.test")
IMAGE = {
    "metal3.vcluster.com/image-url": "https://images.example.test/noble.qcow2",
    "metal3.vcluster.com/image-checksum": "a" * 64,
}
ROUTED = {reach.NETWORK: reach.ROUTED}
"""Properties of a provider whose hosts and clusters reach each other."""
NETWORK_DATA = {"name": "of-the-owner"}
SIZE = {"cpus": 64, "memory": 262_144}
"""Room of each host: CPUs, and MiB of memory."""
_HOSTS = f"/apis/metal3.io/v1alpha1/namespaces/{NAMESPACE}/baremetalhosts"
_STEP = 0.25
"""Seconds between two looks of the operator while nobody asks the API."""
OWNERS = {"owner.example/rack": "r7 ", "metal3.vcluster.com/gateway": "192.0.2.254"}
"""Annotations of a host that its owner has set."""


class Lent:
    """Hosts of bare metal on an API server, as their owner lends them; ``machines`` are the labels of each by its name.

    ``caller`` is the owner, ``operator`` plays the operator of Metal3.
    """

    machines: dict[str, Mapping[str, str]]
    caller: Caller
    operator: BareMetalOperator
    clock: FixedClock

    def operate(self) -> None:
        """Let the operator do what is due."""
        self.operator.work()

    def register(self, name: str, labels: Mapping[str, str], **spec: Any) -> None:
        """Register a machine, as its owner does."""
        spec = {"networkData": NETWORK_DATA, **spec}
        for each in (credentials(name, NAMESPACE), bare_metal_host(name, NAMESPACE, labels, OWNERS, **spec)):
            self.put(each)

    def put(self, document: Mapping[str, Any]) -> None:
        """Apply an object, as the owner does."""
        resource = {"Secret": f"/api/v1/namespaces/{NAMESPACE}/secrets", "BareMetalHost": _HOSTS}[document["kind"]]
        path = f"{resource}/{document['metadata']['name']}?fieldManager=owner"
        self.caller.call("PATCH", path, document, "application/apply-patch+yaml")

    def settle(self, seconds: float = 30) -> None:
        """Let so much time pass, with the operator at work."""
        self.operate()
        for _ in range(round(seconds / _STEP)):
            self.clock.advance(_STEP)
            self.operate()

    def hosts(self) -> Mapping[str, Any]:
        """All hosts by their names."""
        return {each["metadata"]["name"]: each for each in self.caller.call("GET", _HOSTS)["items"]}

    def hosts_of_claims(self) -> list[str]:
        """Names of the hosts that claims of ours hold."""
        return [name for name, host in self.hosts().items() if bare_metal.holder(host) is not None]

    def use(self, names: Sequence[str]) -> None:
        """Let somebody else have these hosts, and nobody else the others that are free."""
        for name, host in self.hosts().items():
            consumer = host["spec"].get("consumerRef") or {}
            if bare_metal.holder(host) is None and (name in names) != bool(consumer):
                self.change(name, consumerRef={"kind": "Metal3Machine", "name": "m"} if name in names else None)

    def change(self, name: str, **spec: Any) -> None:
        """Change fields of a host, as a person does; None takes one away."""
        self.caller.call("PATCH", f"{_HOSTS}/{name}", {"spec": spec}, "application/merge-patch+json")

    def as_lent(self) -> list[str]:
        """Faults of hosts that are not as their owner has lent them."""
        faults = []
        for name, host in self.hosts().items():
            meta, spec = host["metadata"], host["spec"]
            if (meta.get("annotations") or {}) != OWNERS:
                faults.append(f"{name} has annotations {meta.get('annotations')}")
            if spec.get("networkData") != NETWORK_DATA:
                faults.append(f"{name} has network data {spec.get('networkData')}")
            if (meta.get("labels") or {}) != self.machines[name]:
                faults.append(f"{name} has labels {meta.get('labels')}")
            fields = [field for field in ("consumerRef", "image", "userData") if field in spec]
            if fields or bare_metal.state(host) != "available" or bare_metal.is_on(host) is not spec["online"]:
                faults.append(f"{name} is {bare_metal.state(host)} with {fields}")
        return faults


class BareMetalYard(Lent, KubernetesHost):
    """Such hosts on a simulated API server. Time passes for their operator whenever somebody asks the API."""

    features = (METAL3,)

    def __init__(self, machines: Mapping[str, Mapping[str, str]], clock: FixedClock | None = None) -> None:
        KubernetesHost.__init__(self, clock=clock)
        self.machines, self.caller = dict(machines), InProcess(self.api)
        self.api.install([dict(each) for each in definitions(DEFINED)])
        self.put(secret_of("of-the-owner"))
        for name, labels in self.machines.items():
            self.register(name, labels)
        self.operator = BareMetalOperator(self.caller, self.clock.now, hardware=lambda _: SIZE)
        self._seen: tuple[Any, ...] = ()
        self.settle(1)

    @property
    def api_client(self) -> KubernetesApi:
        """The product's client of the account."""
        return self.access().client(TENANT, self.account)

    def answer(self, request: httpx.Request) -> httpx.Response:
        """See ``KubernetesHost.answer``."""
        self.operate()
        return super().answer(request)

    def operate(self) -> None:
        """See ``Lent.operate``; where nothing has changed since, nothing is due."""
        look = (self.api.store.revision, self.clock.now())
        if look != self._seen:
            self.operator.work()
            self._seen = (self.api.store.revision, self.clock.now())

    def hosts(self) -> Mapping[str, Any]:
        """See ``Lent.hosts``; without a request, which would be a cell of a matrix."""
        objects = self.api.store.objects
        return {key.name: each for key, each in sorted(objects.items()) if key.resource == "baremetalhosts"}


class FullYard(set[str]):
    """Types whose hosts somebody else has."""

    def __init__(self, yard: Lent) -> None:
        super().__init__()
        self._yard = yard

    def add(self, name: str) -> None:
        """Let somebody else have the hosts of a type."""
        self.update((name,))

    def update(self, *names: Any) -> None:
        """Let somebody else have the hosts of these types."""
        super().update(*names)
        self._use()

    def clear(self) -> None:
        """Let nobody else have any."""
        super().clear()
        self._use()

    def _use(self) -> None:
        self._yard.use([name for name, labels in self._yard.machines.items() if labels["kind"] in self])


def secret_of(name: str) -> dict[str, Any]:
    """A Secret of the owner's, with network data."""
    meta = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"networkData": "e30="}}


def block(*types: str, **properties: str) -> dict[str, Any]:
    """The block of a provider whose node types have hosts with the label ``kind`` of the type's name."""
    return {
        "clusterRef": {"cluster": NUMBER, "namespace": NAMESPACE},
        "nodeTypes": [
            {
                "name": name,
                "resources": {"cpu": 2, "memory": "8Gi"},
                "bareMetalHosts": {"selector": {"matchLabels": {"kind": name}}},
                "properties": {**IMAGE, **properties},
            }
            for name in types
        ],
    }
