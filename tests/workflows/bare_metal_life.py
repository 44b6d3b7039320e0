"""One claim's life on a host of bare metal and at most one fault: a simulated API server with the operator of Metal3
behind its transport, the store in memory. Time passes on a virtual clock."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from typing import Any

import httpx

from stockyard.domain.records import Cluster, NodeClaim, PriceSheet
from stockyard.domain.values import ids
from stockyard.ports import Create, Put
from stockyard.providers.clouds.kubernetes import bare_metal
from stockyard.providers.clouds.kubernetes.cloud import KubernetesHosts
from stockyard.providers.nodes.metal3.provider import Metal3Nodes
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.harness.bare_metal.yard import CONFIG, ROUTED, BareMetalYard, block
from tests.harness.worlds.kubernetes_host import NAMESPACE, NUMBER, SITE
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import make_world
from tests.unit.operations.nodes import Nodes
from tests.workflows.config_map_life import FaultyHost, Listed
from tests.workflows.cudo_life import FaultyCommits, user_data
from tests.workflows.fake_agent import FakeAgent
from tests.workflows.faulty_cloud import CLUSTER, FaultInjection
from tests.workflows.machine_life import SCARCE, MachineLife

KIND = "metal"
"""The one node type of hosts."""
NETWORK = {
    "metal3.vcluster.com/network-cidr": "192.0.2.1/24",
    "metal3.vcluster.com/network-ip-range": "192.0.2.10-192.0.2.20",
}


@dataclass
class Hall:
    """The hosts as a life sees them."""

    yard: BareMetalYard
    cluster: Cluster

    def machines(self) -> list[Listed]:
        """The hosts that a claim has, with power as they really have it."""
        self.yard.operate()
        hosts = self.yard.hosts()
        return [
            Listed(name, "running" if bare_metal.is_on(hosts[name]) else "stopped")
            for name in self.yard.hosts_of_claims()
        ]

    def leftovers(self) -> list[str]:
        """Faults of hosts that are not as they were lent, and objects of ours."""
        self.yard.settle()
        return [*self.yard.as_lent(), *self.yard.objects("secrets")]


class BareMetalLife(MachineLife):
    """A claim for a host, from its request to the end of its deletion, where there are two. ``full``: somebody else has
    both, and nobody has counted them since. ``broken``: an image can be written to the second that is tried alone.
    ``via``: the API is reached through a site. ``without``: verbs and resources that the account lacks."""

    provider = "hall."

    def __init__(
        self,
        injection: FaultInjection | None = None,
        *,
        full: bool = False,
        broken: bool = False,
        via: str | None = None,
        without: tuple[tuple[str, str], ...] = (),
    ) -> None:
        world = make_world()
        self.injection = injection or FaultInjection()
        self.injection.point = ""
        self.yard = yard = self.made_yard(world.clock)
        for verb, resource in without:
            yard.without(verb, resource)
        if via is not None:
            attributes = {"via": SITE, "namespaces": [NAMESPACE], "features": list(yard.features)}
            yard.account = replace(yard.account, attributes=attributes, secrets=())
        access = yard.access(httpx.MockTransport(FaultyHost(yard, self.injection).answer))
        cloud = KubernetesHosts(access, world.clock.now)
        self.nodes = nodes = Nodes.of(world.registry, world.services, world.clock)
        moment = world.services.now()
        cluster = Cluster(
            CLUSTER, "demo", "d", "k8s", "aws", 1, ids.client_id("acme", CLUSTER, "demo"), "ready", {},
            moment, moment, endpoint="demo.example.test",
        )  # fmt: skip
        sheet = b"" if without else cloud.offers(yard.account, "acme", moment)
        record = PriceSheet(ids.account_sheet(NUMBER), moment, sheet)
        world.services.store.commit(Create(cluster), Create(yard.account), Put(record))
        nodes.provider("hall", kind="metal3", block=block(KIND, **NETWORK), properties=ROUTED)
        nodes.provider("lab", SCARCE, block={"launchSeconds": 1, "joinSeconds": 2})
        if full:
            yard.use(list(yard.machines))
        if broken:
            yard.operator.failing.add(self.first())
        store: Any = FaultyCommits(world.registry.store("acme"), self.injection)
        source = Metal3Nodes(CONFIG, access, lambda _: store)
        sources = {"metal3": source, "simulated": SimulatedNodes(lambda _: store)}
        clouds = {**nodes.services.clouds, "kubernetes": cloud}
        nodes.services = with_ports(replace(nodes.services, store=store), node_sources=sources, clouds=clouds)
        self.cloud: Any = Hall(yard, cluster)
        self.agent = FakeAgent(nodes, cluster, NUMBER, self._runs, token_of=self._token)
        nodes.meanwhile = self._meanwhile
        self.reached_phase, self.machine_count = "", 0
        self.powered: list[str] = []
        self.ended_on = ""

    def made_yard(self, clock: Any) -> BareMetalYard:
        """The hosts of the life."""
        return BareMetalYard({"m1": {"kind": KIND}, "m2": {"kind": KIND}}, clock)

    def first(self) -> str:
        """The host that the claim tries first."""
        return "m1"

    def _power(self, state: str) -> None:
        self.ended_on = (self._claim() or NodeClaim("", "", "", "")).machine_id or ""
        super()._power(state)

    def _token(self, claim: NodeClaim) -> str:
        """The token in the user data of the claim's host."""
        reference = self.yard.hosts()[claim.machine_id or ""]["spec"]["userData"]
        secret = self.yard.objects("secrets")[f"{NAMESPACE}/{reference['name']}"]
        return str(user_data(base64.b64decode(secret["data"]["userData"]).decode())["token"])

    def wrong(self) -> list[str]:
        """The faults of this life at its end. Whoever had hosts before has them still."""
        foreign = [
            name for name, host in self.yard.hosts().items() if "kind" in (host["spec"].get("consumerRef") or {})
        ]
        if foreign:
            self.yard.use(())
            expected = sorted(self.yard.machines)
            lost = [] if foreign == expected else [f"others have {foreign}, not {expected}"]
            return [*lost, *super().wrong()]
        return super().wrong()
