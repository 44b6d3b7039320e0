"""One claim's life with a host of a head node and at most one fault: the simulated head node behind its transport, the
store in memory. Time passes on a virtual clock."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import httpx

from stockyard.domain.records import Cluster, MachineHold, NodeClaim, PriceSheet
from stockyard.domain.values import ids
from stockyard.operations.listing import every
from stockyard.ports import Create, Put
from stockyard.providers.clouds.bcm.cloud import HeadNodes
from stockyard.providers.nodes.bcm.configuration import BcmNodesConfig
from stockyard.providers.nodes.bcm.provider import BcmNodes
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.harness.bcm.yard import ENDPOINT, NAME, NUMBER, HeadYard
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import make_world
from tests.unit.operations.nodes import Nodes
from tests.workflows.cudo_life import FaultyCommits, user_data
from tests.workflows.fake_agent import FakeAgent
from tests.workflows.faulty_cloud import CLUSTER, URL, Died, FaultInjection, Site
from tests.workflows.machine_life import SCARCE, MachineLife

READS = ("GET /api", "getDevices", "getNode", "getNodeGroups", "getStatus", "getSysInfo")
DEATHS, ANSWERS = ("before", "after"), ("lost", "unavailable", "throttled")
_BUSY = {"unavailable": 503, "throttled": 429}


def faults_of(site: Site) -> tuple[str, ...]:
    """The faults possible at a site. A read can only have a bad answer; at a change the worker can also die."""
    if site.name == "commit":
        return DEATHS
    return ANSWERS if site.name in READS else (*DEATHS, *ANSWERS)


@dataclass
class FaultyHead:
    """The transport to a head node, where the request number ``injection.site`` fails."""

    yard: HeadYard
    injection: FaultInjection

    def answer(self, request: httpx.Request) -> httpx.Response:
        """The answer to one request, or what the fault makes of it."""
        injection = self.injection
        if not injection.point:
            return self.yard.answer(request)
        at_site = len(injection.sites) == injection.site
        body = request.read()
        name = json.loads(body)["call"] if body else f"{request.method} {request.url.path}"
        injection.sites.append(Site(injection.point, name))
        if not at_site:
            return self.yard.answer(request)
        injection.fired = True
        if injection.fault == "before":
            raise Died("before the call")
        if injection.fault in _BUSY:
            return httpx.Response(_BUSY[injection.fault], text="later", request=request)
        answer = self.yard.answer(request)
        if injection.fault == "after":
            raise Died("after the call")
        if injection.fault == "lost":
            raise httpx.ReadTimeout("no answer", request=request)
        return answer


@dataclass
class Listed:
    """A host of a claim, as the life reads it."""

    id: str
    state: str


@dataclass
class Inventory:
    """The head node as a life sees it. ``before`` are the devices as they were, by host name."""

    yard: HeadYard
    cluster: Cluster
    before: dict[str, str]

    def machines(self) -> list[Listed]:
        """The hosts that run for a claim, or are off for one."""
        states = {"UP": "running", "DOWN": "stopped"}
        in_use = [(uuid, self.yard.head_node.hardware[uuid].status) for uuid in self.yard.in_use()]
        return [Listed(uuid, states[status]) for uuid, status in in_use if status in states]

    def leftovers(self) -> list[str]:
        """Devices that are not as they were, and what must never have been done."""
        now = self.yard.devices()
        changed = [f"device {name}: {now.get(name)}" for name, text in self.before.items() if now.get(name) != text]
        return [*changed, *self.yard.forbidden()]


class BcmLife(MachineLife):
    """A claim for a host, from its request to the end of its deletion. ``full``: no host is free. ``via``: the head
    node is reached through a site. ``off``: hosts are switched off when nobody has them."""

    provider = "metal."

    def __init__(
        self,
        injection: FaultInjection | None = None,
        *,
        full: bool = False,
        via: bool = False,
        off: bool = False,
        **settings: Any,
    ) -> None:
        world = make_world()
        self.injection = injection or FaultInjection()
        self.injection.point = ""
        self.yard = yard = HeadYard(world.clock, **settings)
        if via:
            yard.through_site()
        access = yard.access(httpx.MockTransport(FaultyHead(yard, self.injection).answer))
        cloud = HeadNodes(access, world.clock.now)
        self.nodes = nodes = Nodes.of(world.registry, world.services, world.clock)
        moment = world.services.now()
        cluster = Cluster(
            CLUSTER, "demo", "d", "k8s", "bcm", int(NUMBER), ids.client_id("acme", CLUSTER, "demo"), "ready", {},
            moment, moment, endpoint="demo.example.test",
        )  # fmt: skip
        sheet = PriceSheet(ids.account_sheet(NUMBER), moment, cloud.offers(yard.account, "acme", moment))
        world.services.store.commit(Create(cluster), Create(yard.account), Put(sheet))
        if full:
            for name in ("node001", "node002"):
                yard.head_node.write(yard.head_node.named(name)["uuid"], {"notes": "mine again"})
        types: list[dict[str, Any]] = [{"name": "cpu", "nodeGroups": ["cpu"], "cost": 1}]
        if off:
            types[0]["properties"] = {"stockyard.dev/power-off-when-free": "true"}
        block = {"secretRef": {"name": NAME}, "endpoint": ENDPOINT, "nodeTypes": types}
        nodes.provider("metal", kind="bcm", block=block)
        if full:
            nodes.provider("lab", SCARCE, block={"launchSeconds": 1, "joinSeconds": 2})
        store: Any = FaultyCommits(world.registry.store("acme"), self.injection)
        self.source = BcmNodes(BcmNodesConfig(URL), access)
        sources = {"bcm": self.source, "simulated": SimulatedNodes(lambda _: store)}
        clouds = {**nodes.services.clouds, "bcm": cloud}
        nodes.services = with_ports(replace(nodes.services, store=store), node_sources=sources, clouds=clouds)
        before = yard.devices()
        self.cloud: Any = Inventory(yard, cluster, before)
        self.agent = FakeAgent(nodes, cluster, NUMBER, self._runs, token_of=self._token)
        nodes.meanwhile = self._meanwhile
        self.reached_phase, self.machine_count = "", 0
        self.powered: list[str] = []

    def _runs(self, machine: str) -> bool:
        hardware = self.yard.head_node.hardware.get(machine)
        return hardware is not None and super()._runs(machine) and bool(hardware.scripts)

    def _token(self, claim: NodeClaim) -> str:
        """The token in the first boot that the finalize script has put on the claim's host."""
        script = self.yard.head_node.hardware[claim.machine_id or ""].scripts[-1]
        return str(user_data(script)["token"])

    def holds(self) -> Sequence[MachineHold]:
        """Leases of hosts that are left."""
        return list(every(self.nodes.registry.store("acme"), MachineHold))

    def wrong(self) -> list[str]:
        """The faults of this life at its end."""
        faults = super().wrong()
        faults += [f"a lease is left: {hold.id}" for hold in self.holds()]
        wiped, used = self.yard.wipes(), self.machine_count and self.reached_phase == "Available"
        if used and self.cloud.before and sum(wiped.values()) % 2 and not self.nodes.machines():
            faults.append(f"a host was not wiped after its use: {wiped}")
        return faults
