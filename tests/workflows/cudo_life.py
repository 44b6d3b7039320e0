"""One claim's life with a machine of Cudo and at most one fault: the simulated Cudo behind its transport, the store in
memory. Time passes on a virtual clock."""

from __future__ import annotations

import base64
import io
import json
import re
import tarfile
from dataclasses import dataclass, replace
from typing import Any

import httpx

from stockyard.domain.clusters import overlay
from stockyard.domain.records import Cluster, Fact, NodeClaim, PriceSheet
from stockyard.domain.values import ids
from stockyard.operations.machines.overlay import TABLE
from stockyard.ports import Create, Put
from stockyard.providers.clouds.cudo.cloud import CudoCloud
from stockyard.providers.nodes.cudo.configuration import CudoNodesConfig
from stockyard.providers.nodes.cudo.provider import CudoNodes
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.harness.worlds.cudo_yard import DALLAS, NUMBER, CudoYard
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import make_world
from tests.unit.operations.nodes import Nodes
from tests.workflows.fake_agent import FakeAgent
from tests.workflows.faulty_cloud import CLUSTER, URL, Died, FaultInjection, Site
from tests.workflows.machine_life import SCARCE, MachineLife

TRIES = 4
"""How often the client asks again where it may: a fault lasts longer than that."""
DEATHS, ANSWERS = ("before", "after"), ("lost", "unavailable", "throttled")
_BUSY = {"unavailable": (503, "UNAVAILABLE"), "throttled": (429, "RESOURCE_EXHAUSTED")}
_PACKED = re.compile(r"\n(H4sI[A-Za-z0-9+/=\n]+)END_OF_FILES")


def faults_of(site: Site) -> tuple[str, ...]:
    """The faults possible at a site. A read can only have a bad answer; at a change the worker can also die."""
    if site.name == "commit":
        return DEATHS
    return ANSWERS if site.name.startswith("GET ") else (*DEATHS, *ANSWERS)


@dataclass
class FaultyWire:
    """The transport to a simulated Cudo, where the request number ``injection.site`` fails."""

    yard: CudoYard
    injection: FaultInjection
    busy: int = 0

    def answer(self, request: httpx.Request) -> httpx.Response:
        """The answer to one request, or what the fault makes of it."""
        injection = self.injection
        if not injection.point:
            return self.yard.cudo.answer(request)
        if self.busy:
            self.busy -= 1
            return self._refusal()
        at_site = len(injection.sites) == injection.site
        path = re.sub(r"/(vm|vms|networks|security-groups)/[^/]+", r"/\1/-", request.url.path)
        injection.sites.append(Site(injection.point, f"{request.method} {path}"))
        if not at_site:
            return self.yard.cudo.answer(request)
        injection.fired = True
        if injection.fault == "before":
            raise Died("before the call")
        if injection.fault in _BUSY:
            self.busy = TRIES - 1
            return self._refusal()
        answer = self.yard.cudo.answer(request)
        if injection.fault == "after":
            raise Died("after the call")
        if injection.fault == "lost":
            raise httpx.ReadTimeout("no answer", request=request)
        return answer

    def _refusal(self) -> httpx.Response:
        status, name = _BUSY[self.injection.fault]
        return httpx.Response(status, json={"code": status, "status": name, "message": "later", "details": []})


@dataclass
class FaultyCommits:
    """A tenant's store where a commit can fail."""

    store: Any
    injection: FaultInjection

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def commit(self, *writes: Any) -> None:
        injection = self.injection
        at_site = len(injection.sites) == injection.site
        injection.sites.append(Site(injection.point, "commit"))
        injection.fired = injection.fired or at_site
        if at_site and injection.fault == "before":
            raise Died("before the write")
        self.store.commit(*writes)
        if at_site:
            raise Died("after the write")


@dataclass
class Listed:
    """A machine of the project, as the life reads it."""

    id: str
    state: str


@dataclass
class Project:
    """The project as a life sees it."""

    yard: CudoYard
    cluster: Cluster

    def machines(self) -> list[Listed]:
        """The machines that nobody has ended."""
        now = self.yard.clock.now()
        machines = self.yard.project.machines
        return [
            Listed(vm_id, {"ACTIVE": "running", "STOPPED": "stopped"}[machine.power])
            for vm_id, machine in machines.items()
            if machine.gone_at is None and machine.ready_at <= now
        ]

    def leftovers(self) -> list[str]:
        """Machines that stand in the project, disks, and groups of a cluster that stands elsewhere."""
        groups = self.yard.project.groups if self.cluster.settings else ()
        return [*self.yard.machines(), *self.yard.project.disks, *groups]


class CudoLife(MachineLife):
    """A claim for a machine of Cudo, from its request to the end of its deletion. ``full``: Cudo has no room. ``far``:
    its cluster stands elsewhere, and has an overlay."""

    provider = "gpus."

    def __init__(self, injection: FaultInjection | None = None, *, full: bool = False, far: bool = False) -> None:
        world = make_world()
        self.injection = injection or FaultInjection()
        self.injection.point = ""
        self.yard = yard = CudoYard("intel", clock=world.clock)
        self.nodes = nodes = Nodes.of(world.registry, world.services, world.clock)
        moment = world.services.now()
        client_id = ids.client_id("acme", CLUSTER, "demo")
        cluster = Cluster(
            CLUSTER, "demo", "d", "k8s", "cudo", int(NUMBER), client_id, "ready", {}, moment, moment, place=DALLAS,
            endpoint="demo.example.test",
        )  # fmt: skip
        if far:
            span = {"range": overlay.DEFAULT_RANGE, "node_to_node": True}
            cluster = replace(cluster, place="us-east-1", settings={overlay.SETTING: span})
        else:
            yard.cluster_network(client_id, CLUSTER)
        access = yard.access(httpx.MockTransport(FaultyWire(yard, self.injection).answer))
        cloud = CudoCloud(access)
        sheet = PriceSheet(ids.account_sheet(NUMBER), moment, cloud.offers(yard.account, "acme", moment))
        world.services.store.commit(Create(cluster), Create(yard.account), Put(sheet))
        if full:
            yard.run_out(["intel"])
        limited = yard.spec(nodeTypes=[{"name": yard.type_name("intel"), "maxCapacity": 1}])
        nodes.provider("gpus", kind="cudo", block=limited["cudo"])
        nodes.provider("lab", SCARCE, block={"launchSeconds": 1, "joinSeconds": 2})
        store: Any = FaultyCommits(world.registry.store("acme"), self.injection)
        sources = {
            "cudo": CudoNodes(CudoNodesConfig("vantage", URL), access),
            "simulated": SimulatedNodes(lambda _: store),
        }
        clouds = {**nodes.services.clouds, "cudo": cloud}
        nodes.services = with_ports(replace(nodes.services, store=store), node_sources=sources, clouds=clouds)
        self.cloud: Any = Project(yard, cluster)
        self.agent = FakeAgent(nodes, cluster, NUMBER, self._runs, token_of=self._token)
        self.agent.overlay_key = "A" * 43 + "=" if far else None
        nodes.meanwhile = self._meanwhile
        self.reached_phase, self.machine_count = "", 0
        self.powered: list[str] = []

    def _token(self, claim: NodeClaim) -> str:
        """The token in the user data of the claim's machine."""
        body = self.yard.project.machines[claim.machine_id or ""].body
        return str(user_data(body["startScript"])["token"])

    def wrong(self) -> list[str]:
        """The faults of this life at its end, and requests that Cudo's document does not know."""
        fact = self.nodes.services.store.get(Fact, f"{CLUSTER}/{TABLE}")
        peers = overlay.Table.read(fact.value if fact is not None else None).peers
        return [*super().wrong(), *self.yard.cudo.outside, *(f"still in the overlay: {owner}" for owner in peers)]


def user_data(script: str) -> dict[str, Any]:
    """User data of a machine's start script for the program of a node."""
    match = _PACKED.search(script)
    assert match is not None
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(match[1])), mode="r:gz") as archive:
        member = archive.extractfile("etc/stockyard/node.json")
        assert member is not None
        document: dict[str, Any] = json.load(member)
    return document
