"""Ready clusters of each driver whose nodes the product itself makes and replaces, to be changed on a virtual clock.

Requests, workflows, passes over pools and disruption, and the lives of claims are the product's. The machines are a
simulated provider's; members of a control plane, and what a driver makes in its cloud, are played.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from stockyard.domain.nodes.manifests import ProviderDocument
from stockyard.domain.pools.group_mapping import Group
from stockyard.domain.records import Cluster, Fact, NodeClaim, Outbox
from stockyard.lifecycle.nodes.machine_gone import is_lost, lose
from stockyard.lifecycle.pools.pool import living
from stockyard.operations.clusters.creation.create import NewCluster, create_cluster
from stockyard.operations.clusters.members.members import node_of_member
from stockyard.operations.fleet.disruption import run
from stockyard.operations.fleet.pools import reconcile
from stockyard.operations.fleet.pools.pools import claims_of, pools_of
from stockyard.operations.listing import every
from stockyard.operations.machines import attention
from stockyard.operations.machines.first_node import FIRST_NODE
from stockyard.ports import CloudWork, Outcome, Put, Remove, Replace
from stockyard.providers.clusters.eks import groups as eks_groups
from tests.harness.walk import Walk, input_of
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.clusters.balanced_world import USER
from tests.unit.operations.clusters.managed_world import ManagedProvider, ManagedWorld
from tests.unit.operations.clusters.members_world import ZONES, MembersProvider, MembersWorld
from tests.unit.operations.conftest import World, make_world
from tests.unit.operations.fleet.disruption.conftest import Pods
from tests.unit.operations.fleet.pools.conftest import Yard
from tests.unit.operations.nodes import Nodes

SETTLING_ROUNDS = 5
"""Looks, each after a minute, at a cluster whose change has ended."""
CHANGES = {"ec2": ("change_balanced", "upgrade_balanced"), "eks": ("change_managed", "upgrade_managed")}


def _types(*names: str) -> list[dict[str, Any]]:
    gpu = {"nvidia.com/gpu": "1"}
    return [
        {
            "name": name,
            "resources": {"cpu": "4", "memory": "16Gi", **(gpu if name.startswith("g") else {})},
            "usdPerHour": 0.1 + number / 100,
            "spotUsdPerHour": 0.05 + number / 100,
            "zones": list(ZONES),
        }
        for number, name in enumerate(names)
    ]


BLOCK = {"nodeTypes": _types("m5.large", "m5.xlarge", "m6i.large", "m6i.xlarge", "g6.xlarge", "g6.2xlarge")}


@dataclass
class Workers:
    """The nodes of the pools of one cluster."""

    nodes: Nodes
    pods: Pods

    @classmethod
    def of(cls, world: World, cluster: Cluster) -> Workers:
        """Workers of a world, whose services get a provider of machines."""
        nodes = Nodes.of(world.registry, world.services, world.clock)
        world.services = nodes.services
        return cls(nodes, Pods(Yard(world, nodes, cluster)))

    def round(self, services: Any) -> None:
        """Do what happens meanwhile: passes over pools and disruption, and the workflows of claims of workers."""
        self.nodes.services = services
        self.pods.tell()
        self.pods.yard.look()
        self.pods.look()
        claims = claims_of(services, self.pods.yard.cluster.id)
        waiting = [claim for claim in claims if not claim.control_plane and claim.due_at]
        if waiting:
            self.nodes.schedule(*waiting)
        self._relay(services, {claim.id for claim in claims if not claim.control_plane})

    def _relay(self, services: Any, workers: set[str]) -> None:
        for item in list(every(services.store, Outbox)):
            services.store.commit(Remove(Outbox, item.id))
            for kind, message in item.messages:
                if kind == "workflow" and message["input"].get("claim_id") in workers:
                    self.nodes.run(str(message["workflow"]), message["input"])


@dataclass
class OwnMembersProvider(MembersProvider):
    """The EC2 driver's cloud, with machines for workers."""

    def group_provider(self, cluster: Cluster, group: Group) -> ProviderDocument:
        return ProviderDocument("yard", "simulated", BLOCK)


@dataclass
class Ec2Fleet(MembersWorld):
    """A cluster whose control plane has members, with workers."""

    workers: Workers | None = None
    driver: str = "ec2"

    def meanwhile(self) -> None:
        """Members as their world plays them; workers by themselves."""
        self.waits += 1
        if self.workers is not None:
            self.workers.round(self.world.services)
        for claim in self.members():
            if claim.deleting:
                self._removed(claim)
            else:
                self._available(claim)
        for claim in self.members():
            self._play(claim)
            self._judge()
        for claim in self.members():
            # No scheduler places it: its machine is played.
            if claim.due_at is not None and claim.placement is not None:
                self._write(claim, due_at=None)

    def _available(self, claim: NodeClaim) -> None:
        if claim.phase != "Available" and not is_lost(claim):
            self._write(claim, phase="Available")

    def _write(self, claim: NodeClaim, **fields: Any) -> None:
        self.world.services.store.commit(Replace(replace(claim, version=claim.version + 1, **fields)))


@dataclass
class GenerationsProvider(ManagedProvider):
    """EKS's managed groups: what it cannot change is made anew, and the former group goes with its last node. With
    another version it ends each machine of a group."""

    shapes: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """By claim, the shape of the group that made its machine."""
    current: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """By pool, the shape of its newest group."""
    ended_claims: set[str] = field(default_factory=set)
    """Claims whose machines were ended by EKS."""
    world: World | None = None

    def group_provider(self, cluster: Cluster, group: Group) -> ProviderDocument:
        return ProviderDocument("yard", "simulated", BLOCK)

    def ensure(self, phase: str, work: CloudWork) -> Outcome:
        before = self.stands.get(phase, ("", {}))[0]
        if phase == "node_groups" and self.world is not None:
            claims = living(claims_of(self.world.services, work.cluster.id))
            if before and before != work.cluster.kubernetes_version:
                self.ended_claims |= {claim.id for claim in claims}
            for group in work.cluster.settings["node_groups"]:
                self.current[group["name"]] = eks_groups.shape(group)
            former = [claim for claim in claims if self.shapes.get(claim.id) != self.current.get(claim.pool)]
            if former:
                return Outcome(False, f"{len(former)} nodes of former groups", 20)
        return super().ensure(phase, work)

    def note_machines(self, claims: Sequence[NodeClaim]) -> None:
        """The newest group makes a machine."""
        for claim in claims:
            if claim.machine_id:
                self.shapes.setdefault(claim.id, self.current.get(claim.pool, {}))


@dataclass
class EksFleet(ManagedWorld):
    """A cluster whose control plane is EKS's, with workers."""

    provider: GenerationsProvider
    workers: Workers | None = None
    driver: str = "eks"

    def meanwhile(self) -> None:
        """Workers by themselves; machines that EKS ends are missed."""
        services = self.world.services
        for claim in claims_of(services, self.id):
            if claim.id in self.provider.ended_claims and not is_lost(claim):
                changed, _ = lose(claim, services.now())
                services.store.commit(Replace(replace(changed, sequence=changed.sequence + 1)))
        if self.workers is not None:
            self.workers.round(services)
        self.provider.note_machines(claims_of(services, self.id))

    def drive(self, document: str = "change_managed") -> str:
        return Walk(lambda: self.world.services, self.world.clock, waited=self.meanwhile).run(
            document, input_of("acme", self.cluster)
        )


Fleet = Ec2Fleet | EksFleet


def node_names(fleet: Fleet) -> set[str]:
    """The nodes that are there, as plans name them."""
    claims = living(claims_of(fleet.world.services, fleet.id))
    return {node_of_member(claim) if claim.control_plane else claim.name for claim in claims}


def settle(fleet: Fleet, seconds: int = 60, rounds: int = SETTLING_ROUNDS) -> None:
    """Let the cluster alone for so long."""
    for _ in range(rounds):
        fleet.world.clock.advance(seconds)
        fleet.meanwhile()


def _with_workers(fleet: Fleet, count: int) -> Fleet:
    fleet.workers = Workers.of(fleet.world, fleet.cluster)
    services = fleet.world.services
    for pool in pools_of(services, fleet.id):
        # The nodes have no pods: none is to leave for that.
        disruption = {**pool.disruption, "consolidateAfter": "Never"}
        services.store.commit(Replace(replace(pool, disruption=disruption, version=pool.version + 1)))
    for _ in range(12):
        settle(fleet, rounds=1)
        claims = claims_of(services, fleet.id)
        if sum(claim.phase == "Available" and not claim.control_plane for claim in claims) == count:
            break
    else:
        raise AssertionError([(claim.name, claim.phase, claim.message) for claim in claims])
    settle(fleet, rounds=3)
    return fleet


def ec2_fleet(settings: Mapping[str, Any], workers: int) -> Fleet:
    """A ready cluster on EC2 with all members of its control plane, and so many workers."""
    world, provider = make_world(), OwnMembersProvider()
    world.provider = provider
    drivers: dict[str, Any] = {"cluster_drivers": {"ec2": provider}, "driver_names": {("aws", "k8s"): ("ec2",)}}
    world.services = with_ports(world.services, **drivers)
    new_cluster = replace(world.new_cluster(settings=dict(settings)), kubernetes_version="1.34")
    fleet = Ec2Fleet(world, provider)
    fleet.id = create_cluster(world.services, new_cluster, USER)[0].id
    assert world.drive(fleet.cluster, "provision") == "ready"
    first = f"ip-{fleet.id[-4:].lower()}"
    world.services.store.commit(Put(Fact(f"{fleet.id}/{FIRST_NODE}", first, world.services.now())))
    fleet.voters.add(first)
    assert fleet.drive() == "changed"
    return _with_workers(fleet, workers)


def eks_fleet(settings: Mapping[str, Any], workers: int) -> Fleet:
    """A ready cluster on EKS with so many workers."""
    world, provider = make_world(), GenerationsProvider()
    world.provider = provider
    drivers: dict[str, Any] = {"cluster_drivers": {"eks": provider}, "driver_names": {("aws", "k8s"): ("eks",)}}
    world.services = with_ports(world.services, **drivers)
    new_cluster = NewCluster("demo", "a cluster", 1, "k8s", dict(settings), kubernetes_version="1.34", driver="eks")
    fleet = EksFleet(world, provider)
    provider.world = world
    fleet.id = create_cluster(world.services, new_cluster, USER)[0].id
    assert fleet.world.drive(fleet.cluster, "provision_managed") == "ready"
    return _with_workers(fleet, workers)


class Beginning:
    """A cluster to which each case comes back."""

    def __init__(self, fleet: Fleet) -> None:
        assert fleet.workers is not None
        pods = fleet.workers.pods
        self.fleet = fleet
        self._checkpoint = fleet.world.checkpoint(fleet, fleet.workers, fleet.workers.nodes, pods, pods.yard)

    def again(self) -> Fleet:
        """The cluster as it was at the beginning."""
        self._checkpoint.restore()
        return self.fleet


@contextmanager
def played_pods() -> Iterator[list[Fleet]]:
    """Workload that the agents of clusters tell: none. The last of the fleets is the one that is looked at."""
    fleets: list[Fleet] = []

    def workload(*_: Any) -> Any:
        workers = fleets[-1].workers if fleets else None
        return workers.pods.workload() if workers is not None else None

    with pytest.MonkeyPatch.context() as patched:
        for module in (run, reconcile):
            patched.setattr(module, "workload_of", workload)
        patched.setattr(attention, "report_age", lambda *_: 0.0)
        yield fleets
