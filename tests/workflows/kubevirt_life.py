"""One claim's life with a virtual machine of KubeVirt and at most one fault: a simulated host behind its transport, the
store in memory. Time passes on a virtual clock."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from typing import Any

import httpx

from stockyard.domain.records import Cluster, Name, NodeClaim
from stockyard.domain.values import ids
from stockyard.ports import Create
from stockyard.providers.clouds.kubernetes.cloud import KubernetesHosts
from stockyard.providers.nodes.kubevirt.addresses import PREFIX
from stockyard.providers.nodes.kubevirt.provider import KubeVirtNodes
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.harness.kubevirt.host import CONFIG, IMAGE, VirtualMachineHost, block
from tests.harness.worlds.kubernetes_host import NAMESPACE, NUMBER, SITE
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import make_world
from tests.unit.operations.nodes import Nodes
from tests.workflows.config_map_life import FaultyHost
from tests.workflows.cudo_life import FaultyCommits, user_data
from tests.workflows.fake_agent import FakeAgent
from tests.workflows.faulty_cloud import CLUSTER, FaultInjection
from tests.workflows.machine_life import SCARCE, MachineLife

NETWORK = {
    "kubevirt.vcluster.com/network-cidr": "192.168.7.1/24",
    "kubevirt.vcluster.com/network-ip-range": "192.168.7.10-192.168.7.11",
    "kubevirt.vcluster.com/network-nameservers": "192.0.2.53",
}
_STATES = {"Running": "running", "Stopped": "stopped"}


@dataclass
class Listed:
    """A machine of the host, as the life reads it."""

    id: str
    state: str


@dataclass
class Machines:
    """The host as a life sees it."""

    host: VirtualMachineHost
    nodes: Nodes
    cluster: Cluster

    def machines(self) -> list[Listed]:
        """The machines that are there."""
        self.host.settle()
        return [
            Listed(document["metadata"]["name"], _STATES.get(_printed(document), "starting"))
            for document in self.host.objects("virtualmachines").values()
        ]

    def leftovers(self) -> list[str]:
        """Objects of machines that stand in the host, and addresses that they have."""
        names = self.nodes.registry.store("acme").list(Name, prefix=PREFIX, limit=100)
        addresses = [name.id for name in names.items]
        return [*self.host.leftovers(), *addresses]


def _printed(document: dict[str, Any]) -> str:
    return str((document.get("status") or {}).get("printableStatus"))


class KubeVirtLife(MachineLife):
    """A claim for a virtual machine, from its request to the end of its deletion. ``full``: the namespace's quota is
    used up. ``via``: the host is reached through a site. ``without``: verbs and resources that the account lacks.
    ``host``: another one than the simulated one in this process."""

    provider = "vms."

    def __init__(
        self,
        injection: FaultInjection | None = None,
        *,
        full: bool = False,
        via: str | None = None,
        without: tuple[tuple[str, str], ...] = (),
        host: VirtualMachineHost | None = None,
    ) -> None:
        world = make_world()
        self.injection = injection or FaultInjection()
        self.injection.point = ""
        self.host = host = host or VirtualMachineHost(clock=world.clock)
        for verb, resource in without:
            host.without(verb, resource)
        if via is not None:
            attributes = {"via": SITE, "namespaces": [NAMESPACE], "features": list(host.features)}
            host.account = replace(host.account, attributes=attributes, secrets=())
        access = host.access(httpx.MockTransport(FaultyHost(host, self.injection).answer))
        self.nodes = nodes = Nodes.of(world.registry, world.services, world.clock)
        moment = world.services.now()
        cluster = Cluster(
            CLUSTER, "demo", "d", "k8s", "kubernetes", int(NUMBER), ids.client_id("acme", CLUSTER, "demo"), "ready", {},
            moment, moment, endpoint="demo.example.test",
        )  # fmt: skip
        world.services.store.commit(Create(cluster), Create(host.account))
        small = {"name": "small", "cost": 1, "maxCapacity": 1, "properties": {**IMAGE, **NETWORK}}
        nodes.provider("vms", kind="kubeVirt", block=block(small))
        if full:
            nodes.provider("lab", SCARCE, block={"launchSeconds": 1, "joinSeconds": 2})
            host.full.add("small")
        store: Any = FaultyCommits(world.registry.store("acme"), self.injection)
        source = KubeVirtNodes(CONFIG, access, lambda _: store)
        sources = {"kubeVirt": source, "simulated": SimulatedNodes(lambda _: store)}
        clouds = {**nodes.services.clouds, "kubernetes": KubernetesHosts(access, world.clock.now)}
        nodes.services = with_ports(replace(nodes.services, store=store), node_sources=sources, clouds=clouds)
        self.cloud: Any = Machines(host, nodes, cluster)
        self.agent = FakeAgent(nodes, cluster, NUMBER, self._is_running, token_of=self._token)
        nodes.meanwhile = self._meanwhile
        self.reached_phase, self.machine_count = "", 0
        self.powered: list[str] = []

    def _is_running(self, machine: str) -> bool:
        return any(each.id == machine and each.state == "running" for each in self.cloud.machines())

    def _token(self, claim: NodeClaim) -> str:
        """The token in the user data of the claim's machine, as its first boot reads it."""
        secret = self.host.objects("secrets")[f"{NAMESPACE}/{claim.machine_id}-first-boot"]
        return str(user_data(base64.b64decode(secret["data"]["userdata"]).decode())["token"])
