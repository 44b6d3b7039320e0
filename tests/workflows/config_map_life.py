"""One claim's life with a machine that is a ConfigMap and at most one fault: a simulated host behind its transport, the
store in memory. Time passes on a virtual clock."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import httpx

from stockyard.domain.records import Cluster
from stockyard.domain.values import ids
from stockyard.ports import Create
from stockyard.providers.clouds.kubernetes.cloud import KubernetesHosts
from stockyard.providers.kubernetes.client import ATTEMPTS
from stockyard.providers.nodes.config_maps.provider import ConfigMapNodes
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.harness.worlds.kubernetes_host import NAMESPACE, NUMBER, SITE, KubernetesHost
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import make_world
from tests.unit.operations.nodes import Nodes
from tests.workflows.cudo_life import FaultyCommits
from tests.workflows.fake_agent import FakeAgent
from tests.workflows.faulty_cloud import CLUSTER, Died, FaultInjection, Site
from tests.workflows.machine_life import SCARCE, MachineLife

_BUSY = {"unavailable": (503, "ServiceUnavailable"), "throttled": (429, "TooManyRequests")}
_NAMES = re.compile(r"/stockyard-[a-z0-9-]+")


@dataclass
class FaultyHost:
    """The transport to a host, where the request number ``injection.site`` fails."""

    host: KubernetesHost
    injection: FaultInjection
    busy: int = 0

    def answer(self, request: httpx.Request) -> httpx.Response:
        """The answer to one request, or what the fault makes of it."""
        injection = self.injection
        if not injection.point:
            return self.host.answer(request)
        if self.busy:
            self.busy -= 1
            return self._refusal()
        at_site = len(injection.sites) == injection.site
        injection.sites.append(Site(injection.point, f"{request.method} {_NAMES.sub('/-', request.url.path)}"))
        if not at_site:
            return self.host.answer(request)
        injection.fired = True
        if injection.fault == "before":
            raise Died("before the call")
        if injection.fault in _BUSY:
            self.busy = ATTEMPTS - 1
            return self._refusal()
        answer = self.host.answer(request)
        if injection.fault == "after":
            raise Died("after the call")
        if injection.fault == "lost":
            raise httpx.ReadTimeout("no answer", request=request)
        return answer

    def _refusal(self) -> httpx.Response:
        status, reason = _BUSY[self.injection.fault]
        return httpx.Response(status, json={"kind": "Status", "code": status, "reason": reason, "message": "later"})


@dataclass
class Listed:
    """A machine of the host, as the life reads it."""

    id: str
    state: str


@dataclass
class Machines:
    """The host as a life sees it."""

    host: KubernetesHost
    cluster: Cluster

    def machines(self) -> list[Listed]:
        """The machines that are there."""
        states = {"On": "running", "Off": "stopped"}
        return [
            Listed(document["metadata"]["name"], states[document["data"]["power"]])
            for document in self.host.objects("configmaps").values()
        ]

    def leftovers(self) -> list[str]:
        """Objects of ours that stand in the host."""
        return [*self.host.objects("configmaps"), *self.host.objects("secrets")]


class ConfigMapLife(MachineLife):
    """A claim for a ConfigMap, from its request to the end of its deletion. ``full``: the host has no room. ``via``:
    it is reached through a site. ``without``: verbs and resources that the account lacks. ``host``: another one
    than the simulated one in this process."""

    provider = "toys."

    def __init__(
        self,
        injection: FaultInjection | None = None,
        *,
        full: bool = False,
        via: str | None = None,
        without: tuple[tuple[str, str], ...] = (),
        host: KubernetesHost | None = None,
    ) -> None:
        world = make_world()
        self.injection = injection or FaultInjection()
        self.injection.point = ""
        self.host = host = host or KubernetesHost(clock=world.clock)
        for verb, resource in without:
            host.without(verb, resource)
        if via is not None:
            host.account = replace(host.account, attributes={"via": SITE, "namespaces": [NAMESPACE]}, secrets=())
        wire = FaultyHost(host, self.injection)
        access = host.access(httpx.MockTransport(wire.answer))
        self.nodes = nodes = Nodes.of(world.registry, world.services, world.clock)
        moment = world.services.now()
        cluster = Cluster(
            CLUSTER, "demo", "d", "k8s", "kubernetes", int(NUMBER), ids.client_id("acme", CLUSTER, "demo"), "ready", {},
            moment, moment, endpoint="demo.example.test",
        )  # fmt: skip
        world.services.store.commit(Create(cluster), Create(host.account))
        small = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "cost": 1, "maxCapacity": 1}
        block = {"clusterRef": {"cluster": NUMBER, "namespace": NAMESPACE}, "launchSeconds": 3}
        nodes.provider("toys", small, kind="configMap", block=block)
        if full:
            nodes.provider("lab", SCARCE, block={"launchSeconds": 1, "joinSeconds": 2})
        store: Any = FaultyCommits(world.registry.store("acme"), self.injection)
        source = ConfigMapNodes(access, lambda _: store, offered=True)
        if full:
            source.refuses = lambda *_: True
        sources = {"configMap": source, "simulated": SimulatedNodes(lambda _: store)}
        clouds = {**nodes.services.clouds, "kubernetes": KubernetesHosts(access, world.clock.now)}
        nodes.services = with_ports(replace(nodes.services, store=store), node_sources=sources, clouds=clouds)
        self.cloud: Any = Machines(host, cluster)
        self.agent = FakeAgent(nodes, cluster, NUMBER, lambda _machine: False)
        nodes.meanwhile = self._meanwhile
        self.reached_phase, self.machine_count = "", 0
        self.powered: list[str] = []
