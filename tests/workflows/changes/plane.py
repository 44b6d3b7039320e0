"""A cluster on EC2 whose control plane has three members, all of whose machines and network are in an imitated account,
where things can be taken away by hand. Requests, workflows, passes and the sweep are the product's; time is virtual.

Played are the programs on its machines: they join, answer the balancer and post as the cluster's agent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.ec2.models import ec2_backends

from local.aws.corrections.compute.compute import idempotent_calls, instant_fleets
from local.aws.corrections.compute.key_pairs import known_key_pairs
from local.aws.corrections.refusals import gone_have_no_tags, known_things
from stockyard.domain.nodes.offers import InstanceOffer, RegionOffers
from stockyard.domain.records import CloudAccount, Cluster, Fact, NodeClaim, Operation, Outbox
from stockyard.errors import StockyardError
from stockyard.operations.clusters.creation.create import create_cluster
from stockyard.operations.clusters.members.members import node_of_member
from stockyard.operations.fleet.pools.pools import claims_of
from stockyard.operations.fleet.pools.reconcile import reconcile
from stockyard.operations.listing import every
from stockyard.operations.machines.first_node import FIRST_NODE
from stockyard.operations.machines.member_plan import PLAN, member_fact
from stockyard.ports import Put, Remove, Replace
from stockyard.providers.clouds.aws.cloud import AwsCloud
from stockyard.providers.clusters.ec2.provider import Ec2ClusterDriver, Ec2Config
from stockyard.providers.nodes.ec2.provider import Ec2Nodes, Ec2NodesConfig
from tests.harness.sweeping import Reaper
from tests.harness.walk import Walk
from tests.harness.worlds import inventory
from tests.harness.worlds.direct_aws import direct_aws
from tests.harness.worlds.ports import with_ports
from tests.harness.worlds.stage import Stage
from tests.unit.operations.clusters.balanced_world import USER
from tests.unit.operations.conftest import World, make_world
from tests.unit.operations.nodes import Nodes
from tests.unit.providers.clusters.ec2.network.test_tenant_network import Vpc
from tests.unit.providers.conftest import ENVIRONMENT
from tests.workflows.fake_agent import FakeAgent

ACCOUNT, REGION, URL = "222222222222", "us-east-1", "https://api.example.test"
KEY_PAIR = "my-key"
SIZE = 3
TYPES = ("t3.xlarge", "m5.xlarge")
OFFERS = RegionOffers(
    REGION,
    "2026",
    {name: InstanceOffer(name, 4, 16384, "x86_64", 4, 15, 0.17 + n) for n, name in enumerate(TYPES)},
    {"gp3": 0.0},
)
SETTINGS: Mapping[str, Any] = {
    "region_name": REGION,
    "key_pair": KEY_PAIR,
    "zones": ["us-east-1a", "us-east-1b", "us-east-1c"],
    "control_plane_size": SIZE,
    "control_plane_instance_types": [TYPES[0]],
}
LOOK_SECONDS = 15
MOST_STATES = 300
"""States of a workflow after which nobody waits any longer for its end."""


class MembersAgent(FakeAgent):
    """The cluster's agent, and members that join etcd as their plan says."""

    def _boot(self) -> None:
        services = self.nodes.services
        cluster = services.store.get(Cluster, self.cluster.id)
        super()._boot()
        for claim in every(services.store, NodeClaim):
            if claim.deleting or not claim.machine_id:
                continue
            if claim.machine_id == cluster.instance_id:
                self._adopted(claim)
            elif self.running(claim.machine_id) and claim.name in self.kubernetes_nodes:
                self._join(claim)

    def _do(self, command: dict[str, Any]) -> None:
        if command["kind"] == "delete_node":
            self.drained.add(command["node"])  # nobody drains the node of a machine that is gone
        super()._do(command)

    def _adopted(self, claim: NodeClaim) -> None:
        node = self.kubernetes_nodes.get(claim.host_name)
        if node is not None:
            self.kubernetes_nodes[claim.host_name] = {**node, "claim": claim.id}

    def _join(self, claim: NodeClaim) -> None:
        services = self.nodes.services
        plan_fact, fact = (services.store.get(Fact, n) for n in (f"{self.cluster.id}/{PLAN}", member_fact(claim)))
        plan = json.loads(plan_fact.value) if plan_fact else {"claim": ""}
        if plan["claim"] != claim.id:
            return
        former = json.loads(fact.value)["removed"] if fact else []
        removals = [*plan["remove_before"], *(plan["remove_after"] if fact else ())]
        report = {"state": "joined", "machine": claim.machine_id, "removed": sorted({*former, *removals})}
        services.store.commit(Put(Fact(member_fact(claim), json.dumps(report), services.now())))


@dataclass
class Plane:
    """The cluster, its account, and its observers."""

    world: World
    nodes: Nodes
    id: str = ""
    agent: MembersAgent | None = None
    limits: dict[str, int] = field(default_factory=dict)
    started: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    """Workflows of the cluster that wait to be played."""
    texts: list[tuple[float, int, str]] = field(default_factory=list)
    """What ``ControlPlaneComplete`` said since the loss, with the second of it and how many members
    there were."""
    lost_at: str = ""
    later: list[tuple[float, Callable[[], object]]] = field(default_factory=list)
    """What happens so many seconds after the loss."""

    @property
    def backend(self) -> Any:
        return ec2_backends[ACCOUNT][REGION]

    @property
    def services(self) -> Any:
        return self.nodes.services

    @property
    def cluster(self) -> Cluster | None:
        return self.services.store.get(Cluster, self.id)

    @property
    def operation(self) -> Operation:
        return self.services.store.get(Operation, self.cluster.operation_id)

    def machines(self) -> list[str]:
        """The machines that run."""
        return [
            instance.id
            for group in self.backend.reservations.values()
            for instance in group.instances
            if instance.state == "running"
        ]

    def members(self) -> list[NodeClaim]:
        """The members that are there: claims whose machine runs."""
        claims = claims_of(self.services, self.id, "control-plane")
        return [claim for claim in claims if claim.machine_id in self.machines() and not claim.deleting]

    def condition(self, kind: str) -> Any:
        return next((each for each in self.cluster.conditions if each.type == kind), None)

    def look(self, seconds: float = LOOK_SECONDS) -> None:
        """Time passes: the agent posts, passes and workflows of claims go on, nodes that are away are missed."""
        self.world.clock.advance(seconds)
        self.round()

    def round(self) -> None:
        if self.agent is None or self.cluster is None:
            return
        self.agent.round()
        self._listen()
        with suppress(StockyardError):
            reconcile(self.services, self.id)
        self.nodes.schedule()
        for item in list(every(self.services.store, Outbox)):
            self.services.store.commit(Remove(Outbox, item.id))
            for kind, message in item.messages:
                if kind == "workflow" and "claim_id" in message["input"]:
                    self.nodes.run(str(message["workflow"]), message["input"])
                elif kind == "workflow":
                    self.started.append((str(message["workflow"]), message["input"]))

    def _listen(self) -> None:
        complete = self.condition("ControlPlaneComplete")
        if self.lost_at and complete is not None:
            seconds = self.services.seconds_since(self.lost_at)
            self.texts.append((seconds, len(self.members()), f"{complete.status}: {complete.message}"))
            for entry in [entry for entry in self.later if entry[0] <= seconds]:
                self.later.remove(entry)
                entry[1]()

    def end(self, claim: NodeClaim) -> None:
        """The machine of a member ends, and with it its node is ready no more."""
        self.backend.terminate_instances([claim.machine_id])
        self.agent.kubernetes_nodes.pop(node_of_member(claim), None)

    def lose(self, claim: NodeClaim) -> None:
        """A member ends; whoever hears that its node is not ready looks at it."""
        self.end(claim)
        self.lost_at, self.texts = self.services.now(), []
        self.look(10)
        self.sweep()
        self.round()

    def drive(self) -> list[str]:
        """Play the cluster's workflows that have begun. The last state of each."""
        ends = []
        while self.started:
            name, value = self.started.pop(0)
            walk = Walk(lambda: self.services, self.world.clock, waited=self.round)
            ends.append(walk.run(name, value, MOST_STATES))
        return ends

    def sweep(self) -> None:
        Reaper(self.nodes.registry, self.nodes.clock, lambda _: self.services).run()


def _given_network() -> dict[str, Any]:
    """Settings of a cluster in a VPC that its tenant has made."""
    answer = boto3.client("sts").assume_role(RoleArn=f"arn:aws:iam::{ACCOUNT}:role/stockyard", RoleSessionName="me")
    keys = answer["Credentials"]
    session = boto3.Session(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"], REGION)
    vpc = Vpc(SimpleNamespace(tenant=lambda: session))
    private = {zone: vpc.subnet("private", zone[-1]) for zone in SETTINGS["zones"]}
    subnets = [{"zone": zone, "private": subnet} for zone, subnet in private.items()]
    return {
        **{name: value for name, value in SETTINGS.items() if name != "zones"},
        "vpc_id": vpc.id,
        "subnets": subnets,
    }


def _provision(plane: Plane, settings: Mapping[str, Any]) -> None:
    world = plane.world
    new_cluster = replace(world.new_cluster(settings=dict(settings)), kubernetes_version="1.34")
    plane.id = create_cluster(plane.services, new_cluster, USER)[0].id
    world.services = plane.services
    assert world.drive(plane.cluster, "provision") == "ready", plane.operation
    first_machine = plane.cluster.instance_id  # it boots without the claim that it becomes
    plane.agent = MembersAgent(
        plane.nodes, plane.cluster, ACCOUNT, lambda machine: machine != first_machine and machine in plane.machines()
    )
    first = f"ip-{plane.id[-4:].lower()}"
    plane.services.store.commit(Put(Fact(f"{plane.id}/{FIRST_NODE}", first, plane.services.now())))
    plane.agent.kubernetes_nodes[first] = {
        "name": first, "uid": "uid-first", "created_at": plane.services.now(), "claim": None, "labels": {},
        "provider_id": f"aws:///us-east-1a/{plane.cluster.instance_id}",
    }  # fmt: skip
    plane.nodes.meanwhile = plane.agent.round


@contextmanager
def plane(*, in_given_network: bool = False) -> Iterator[Plane]:
    """A ready cluster with all of its members; ``in_given_network``: in a network that its tenant has made."""
    with pytest.MonkeyPatch.context() as patched, ExitStack() as stack:
        for name, value in ENVIRONMENT.items():
            patched.setenv(name, value)
        patched.delenv("AWS_ENDPOINT_URL", raising=False)
        limits: dict[str, int] = {}
        for each in (mock_aws(), direct_aws(), idempotent_calls(), gone_have_no_tags(), instant_fleets(limits),
                     known_key_pairs(), known_things()):  # fmt: skip
            stack.enter_context(each)
        world = make_world()
        role = inventory.tenant_role(ACCOUNT, "stockyard")
        account = world.services.store.get(CloudAccount, "1")
        assert account is not None
        attributes = {**account.attributes, "role_arn": role.arn}
        world.services.store.commit(Replace(replace(account, attributes=attributes, version=account.version + 1)))
        ec2_backends[ACCOUNT][REGION].create_key_pair(KEY_PAIR, "rsa", {})
        driver = Ec2ClusterDriver(Ec2Config("vantage", URL, "https://id.example.test/realms/s", 60), boto3.Session)
        nodes = Nodes.of(world.registry, world.services, world.clock)
        source = Ec2Nodes(Ec2NodesConfig("vantage", URL, 60), boto3.Session, {REGION: OFFERS}.get)
        nodes.services = with_ports(
            nodes.services,
            node_sources={"ec2": source},
            clouds={"aws": AwsCloud(Stage(), boto3.Session)},
            cluster_drivers={"ec2": driver},
            driver_names={("aws", "k8s"): ("ec2",)},
        )
        standing = Plane(world, nodes, limits=limits)
        _provision(standing, _given_network() if in_given_network else SETTINGS)
        standing.round()
        standing.drive()
        assert len(standing.members()) == SIZE, standing.operation
        yield standing
