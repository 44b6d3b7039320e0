"""Loads of a fleet: pods that come and go, claims by the API, machines that are taken back, people who look."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from benchmarks.virtual_fleet.agent import PlayedAgent
from benchmarks.virtual_fleet.clusters import ON_DEMAND, PROVIDER, SPOT, FleetCluster
from benchmarks.virtual_fleet.requests import send
from benchmarks.virtual_fleet.stage import FleetStage
from benchmarks.virtual_fleet.table import Item
from stockyard import wiring
from stockyard.domain.values import times
from stockyard.ports import MachineIdentity
from stockyard.providers.clouds.aws import tags

BOOT_SECONDS, JOIN_SECONDS = (25.0, 45.0), (8.0, 20.0)
"""Of a machine: from its launch until it asks how to join, and from the answer until its node is ready."""
KEEP_SECONDS = 1200.0
"""How long a claim of the API is kept."""
ASK_AGAIN = 5.0
NONE = {"S": ""}
PREFIX = "vantage"
"""Beginning of the names of what the stage makes in accounts."""
LOOKS: Mapping[str, tuple[str, str, str]] = {
    "claims": ("node_claims", "GET /v1/node-claims", "page_size=50"),
    "clusters": ("clusters", "GET /v1/clusters", ""),
    "tree": ("clusters", "GET /v1/clusters/{id}/tree", ""),
    "events": ("records", "GET /v1/events", ""),
    "costs": ("records", "GET /v1/costs", ""),
}


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates of an hour: of each cluster, and looks of each kind of each tenant."""

    pods: float = 4.0
    """Pods that come, and as many that end: each fills a node, so a node lives a day where there are a hundred."""
    claims: float = 0.5
    spot_losses: float = 0.5
    looks: float = 6.0


@dataclass
class Load:
    """Begins what happens to each cluster. ``agents`` by the id of their cluster."""

    stage: FleetStage
    rates: Rates
    seed: int
    agents: dict[str, PlayedAgent] = field(default_factory=dict)
    _machines: dict[str, tuple[PlayedAgent, str]] = field(default_factory=dict)
    """The cluster and the id of the machine of each claim that has one."""
    _chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self.stage.watchers.append(self._follow)

    def add(self, cluster: FleetCluster) -> None:
        """A cluster with its agent, its nodes and its loads."""
        agent = PlayedAgent(self.stage, cluster)
        self.agents[cluster.cluster.id] = agent
        cloud, installation = self.stage.clouds.of(cluster.tenant.number), wiring.installation()
        for claim in cluster.claims:
            machine, kind = str(claim.machine_id), claim.type_ref.partition(".")[2]
            self._machines[claim.id] = agent, machine
            owner = tags.Owner(installation, cluster.tenant.name, claim.id, "1", cluster.cluster.client_id, PREFIX)
            own_tags = tags.full(owner, "instance", "machine", claim.name, claim.created_at)
            cloud.machines[machine] = {
                "InstanceId": machine, "InstanceType": kind, "Placement": {"AvailabilityZone": "us-east-1a"},
                "State": {"Name": "running"}, "Tags": [{"Key": key, "Value": value} for key, value in own_tags.items()],
            }  # fmt: skip
            agent.join(claim.id, claim.name, kind, claim.node_labels, pod=True)
        agent.begin()
        spot = sum(node.capacity_type == SPOT for node in agent.nodes.values()) / max(1, len(agent.nodes))
        self._often(self.rates.pods * spot, partial(agent.arrive, SPOT))
        self._often(self.rates.pods * (1 - spot), partial(agent.arrive, ON_DEMAND))
        self._often(self.rates.pods, agent.depart)
        self._often(self.rates.claims, partial(self._begin, partial(self._new_claim, cluster)))
        self._often(self.rates.spot_losses, partial(self._begin, partial(self._take_back, cluster)))

    def look(self, cluster: FleetCluster) -> None:
        """Let people of the cluster's tenant look at what there is."""
        for name in LOOKS:
            self._often(self.rates.looks, partial(self._begin, partial(self._look, name, cluster)))

    def _begin(self, work: Callable[[], None]) -> None:
        self.stage.time.spawn(work)

    def _often(self, rate: float, do: Callable[[], None]) -> None:
        """Do it so often in an hour, at moments of chance."""
        if rate <= 0:
            return

        def again() -> None:
            do()
            self.stage.time.after(self._chance.expovariate(rate / 3600), again)

        self.stage.time.after(self._chance.expovariate(rate / 3600), again)

    # --- people ---

    def _look(self, name: str, cluster: FleetCluster) -> None:
        function, route, query = LOOKS[name]
        of = self._chance.choice(cluster.tenant.clusters)
        parameters = {"id": of.cluster.id} if "{id}" in route else {}
        send(self.stage, of, function, route, parameters=parameters, query=query)

    def _new_claim(self, cluster: FleetCluster) -> None:
        body = {"cluster": cluster.cluster.id, "provider": PROVIDER, "resources": {"cpu": "1"}}
        _, answer = send(self.stage, cluster, "node_claims", "POST /v1/node-claims", json.dumps(body).encode())
        if answer is not None:
            self.stage.time.sleep(KEEP_SECONDS)
            send(self.stage, cluster, "node_claims", "DELETE /v1/node-claims/{id}", parameters={"id": answer["id"]})

    # --- machines ---

    def _follow(self, old: Item | None, new: Item | None) -> None:
        """Boot the machine of a claim that has one now, and end the node of one that is gone."""
        there = new or old or {}
        if there.get("kind", {}).get("S") != "NodeClaim" or "cluster_id" not in there:
            return
        claim, agent = there["sk"]["S"], self.agents.get(there["cluster_id"]["S"])
        if agent is None:
            return
        if new is None:
            self.stage.time.after(0.0, lambda: agent.leave(there["name"]["S"]))
            self._machines.pop(claim, None)
        elif new.get("machine_id", NONE)["S"] and claim not in self._machines:
            machine, name = new["machine_id"]["S"], new["name"]["S"]
            self._machines[claim] = agent, machine
            boot = self.stage.delays.between(*BOOT_SECONDS)
            self.stage.time.spawn(lambda: self._boot(agent, claim, name, machine), boot)

    def _boot(self, agent: PlayedAgent, claim: str, name: str, machine: str) -> None:
        body = json.dumps(self._proof(agent, claim)).encode()
        for _ in range(100):
            status, answer = send(
                self.stage, agent.of, "machines", "POST /v1/node-claims/{id}/join", body, {"id": claim}, machine=True
            )
            if answer is not None:
                break
            if status != 409:
                return
            self.stage.time.sleep(ASK_AGAIN)
        else:
            return
        self.stage.time.sleep(self.stage.delays.between(*JOIN_SECONDS))
        there = self.stage.clouds.of(agent.of.tenant.number).machines.get(machine)
        if there is not None and there["State"]["Name"] == "running" and claim in self._machines:
            agent.join(claim, name, there["InstanceType"], answer["labels"])

    def _take_back(self, cluster: FleetCluster) -> None:
        """A machine on spot reads that its cloud takes it back, tells, and is gone two minutes later."""
        agent = self.agents[cluster.cluster.id]
        spot = [
            node for node in agent.nodes.values()
            if node.capacity_type == SPOT and not node.observed["unschedulable"]
        ]  # fmt: skip
        if not spot:
            return
        node = self._chance.choice(spot)
        at = times.to_text(self.stage.time.moment().replace(microsecond=0))
        body = json.dumps({**self._proof(agent, node.claim), "kind": "interruption", "time": at}).encode()
        route = "POST /v1/node-claims/{id}/interruptions"
        send(self.stage, cluster, "machines", route, body, {"id": node.claim}, machine=True)
        agent.soon()
        _, machine = self._machines.get(node.claim, (agent, ""))
        self.stage.time.sleep(120.0)
        there = self.stage.clouds.of(cluster.tenant.number).machines.get(machine)
        if there is not None:
            there["State"] = {"Name": "terminated"}
            agent.leave(node.name)

    def _proof(self, agent: PlayedAgent, claim: str) -> dict[str, Any]:
        return {
            "method": "POST", "url": "https://sts.example/machine", "headers": {"x-claim": claim},
            "cluster_id": agent.of.cluster.id,
        }  # fmt: skip

    def attestor(self) -> Any:
        """An attestor that knows the machines of the fleet by the claim in their proof."""
        load = self

        class Attestor:
            def caller(self, proof: Mapping[str, Any]) -> MachineIdentity:
                """See ``ports.MachineAttestor``."""
                load.stage.time.sleep(load.stage.delays.draw("session"))
                load.stage.tally.called("sts GetCallerIdentity", "machines")
                agent, machine = load._machines[proof["headers"]["x-claim"]]
                number, client = agent.of.tenant.number, agent.of.cluster.client_id
                return MachineIdentity(number, f"{PREFIX}-{client}-node-role", machine)

        return Attestor()
