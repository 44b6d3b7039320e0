"""A static pool of machines of EC2 in several zones whose nodes are to be of another type: moto in process, the store
in memory.

Nobody forces a pass: those over pools and disruption come when an event wakes them or when the minute's schedule finds
them due, as they do in a stage. Time passes on a virtual clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import boto3
import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.pools.pools import PoolCreate, PoolPatch
from stockyard.domain.nodes.offers import InstanceOffer, RegionOffers
from stockyard.domain.records import NodeClaim, Outbox
from stockyard.operations.engine.watch import watch
from stockyard.operations.fleet.disruption import run
from stockyard.operations.fleet.disruption.disruptor import Disruptor
from stockyard.operations.fleet.pools import pools, reconcile
from stockyard.operations.fleet.pools.autoscaler import Autoscaler
from stockyard.operations.listing import every
from stockyard.operations.machines import attention
from stockyard.ports import Create, Remove, Store, Write
from stockyard.providers.nodes.ec2.provider import Ec2Nodes, Ec2NodesConfig
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import make_world
from tests.unit.operations.fleet.disruption.conftest import Pods
from tests.unit.operations.fleet.pools.conftest import Yard
from tests.unit.operations.nodes import Nodes
from tests.workflows.fake_agent import FakeAgent
from tests.workflows.faulty_cloud import ACCOUNT, REGION, URL, Cloud, FaultInjection
from tests.workflows.pool_life import WAKES

POOL, QUANTITY = "fixed", 10
BEFORE, AFTER = "m6i.large", "m6i.xlarge"
PRICES = {BEFORE: (2, 8192, 0.09), AFTER: (4, 16384, 0.18)}
OFFERS = RegionOffers(
    REGION,
    "2026",
    {name: InstanceOffer(name, cpu, mib, "x86_64", 3, 10, usd) for name, (cpu, mib, usd) in PRICES.items()},
    {"gp3": 0.0},
)
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
INSTANCE_TYPE = "node.kubernetes.io/instance-type"


def of_type(name: str) -> list[dict[str, Any]]:
    """The requirement of one instance type."""
    return [{"key": INSTANCE_TYPE, "operator": "In", "values": [name]}]


class RollingLife:
    """``fewest`` are the fewest nodes that were there at any write, ``most`` the most claims."""

    def __init__(self, cloud: Cloud) -> None:
        world = make_world()
        cloud.begin(world.clock, FaultInjection(), 1, {})
        self.cloud, self.nodes = cloud, Nodes.of(world.registry, world.services, world.clock)
        world.services.store.commit(Create(cloud.cluster))
        block = {"cloudAccount": 1, "region": REGION, "capacityTypes": ["on-demand"], "instanceTypes": ["m6i.*"]}
        block["subnets"] = list(_subnets(cloud).values())
        self.nodes.provider("aws", kind="ec2", block=block)
        source = Ec2Nodes(Ec2NodesConfig("vantage", URL, 60), boto3.Session, {REGION: OFFERS}.get)
        source._sessions = cloud.sessions
        self.nodes.services = with_ports(self.nodes.services, node_sources={"ec2": source})
        self.agent = FakeAgent(self.nodes, cloud.cluster, ACCOUNT, self._runs, goes_on=True)
        self.nodes.meanwhile = self.agent.round
        self.yard = Yard(world, self.nodes, cloud.cluster)
        self.pods = Pods(self.yard)
        self.fewest = self.most = QUANTITY

    def make(self, **fields: Any) -> None:
        """Make the pool, and its nodes in steps: what comes together is in one zone."""
        body = read(PoolCreate, {"name": POOL, "quantity": 0, "requirements": of_type(BEFORE), **fields})
        pools.create_pool(self.nodes.services, self.cloud.cluster, body.new_pool(), "user:ann")
        for quantity in (*range(2, QUANTITY, 2), QUANTITY):
            self.change(quantity=quantity)
            self.until(lambda quantity=quantity: len(self.claims()) == quantity, 10)

    def change(self, **fields: Any) -> None:
        """Ask for something else of the pool."""
        pool = self.yard.now(POOL)
        changed = read(PoolPatch, fields).apply_to(pool)
        pools.change_pool(self.nodes.services, self.cloud.cluster, pool, pool.version, changed, "user:ann", "request")

    def claims(self) -> list[NodeClaim]:
        """The nodes that pods can be on."""
        return self.pods.claims()

    def types(self) -> set[str]:
        """The instance types of the nodes."""
        return {claim.type_ref.removeprefix("aws.") for claim in self.claims()}

    def zones(self) -> set[str]:
        """The zones in which the nodes are."""
        return {zone for claim in self.claims() if claim.placement is not None for zone in claim.placement.zones}

    def until(self, reached: Any, minutes: int) -> int:
        """Minutes until that is so: how many it took."""
        began = self.nodes.clock.now()
        while not reached():
            passed = self._minutes(began)
            assert passed < minutes, [(claim.phase, claim.type_ref, claim.message) for claim in self.yard.claims(POOL)]
            self._minute()
        return self._minutes(began)

    def _minutes(self, since: datetime) -> int:
        return round((self.nodes.clock.now() - since).total_seconds() / 60)

    def _minute(self) -> None:
        self.nodes.clock.advance(60)
        self.agent.round()
        registry, services = self.nodes.registry, self.nodes.services
        # Each minute's schedule, and not on the dot.
        Disruptor(registry, lambda _: services).due(self.nodes.clock.advance(-0.2))
        Autoscaler(registry, lambda _: services).due(self.nodes.clock.advance(0.2))
        for _ in range(3):
            self.nodes.schedule()
            if not self._relay():
                return

    def _relay(self) -> bool:
        """Run the workflows that were started, and the passes that events wake. Whether there was anything."""
        store, woken, items = self.nodes.services.store, False, list(every(self.nodes.services.store, Outbox))
        for item in items:
            store.commit(Remove(Outbox, item.id))
            for kind, message in item.messages:
                if kind == "workflow":
                    self.nodes.run(str(message["workflow"]), message["input"])
                else:
                    woken |= WAKES.get(message["detail_type"], lambda _: False)(message["detail"])
        if woken:
            Autoscaler(self.nodes.registry, lambda _: self.nodes.services).woken("acme", self.cloud.cluster.id)
            # A node that comes or goes is in the next report of pods.
            watch(self.nodes.services, self.cloud.cluster.id, 30)
        return bool(items)

    def _runs(self, machine: str) -> bool:
        return any(instance.id == machine and instance.state == "running" for instance in self.cloud.machines())

    def count(self) -> None:
        """Look at the claims that there are."""
        present = [claim for claim in self.yard.claims(POOL) if claim.phase != "Failed"]
        self.fewest = min(self.fewest, len(self.claims()))
        self.most = max(self.most, len(present))


def _subnets(cloud: Cloud) -> dict[str, str]:
    """A private subnet of the cluster's network in each of three zones, by zone."""
    (vpc,) = [vpc for vpc in cloud.backend.vpcs.values() if not vpc.is_default]
    present = [subnet for subnet in cloud.backend.describe_subnets() if subnet.vpc_id == vpc.id]
    subnets = {subnet.availability_zone: subnet.id for subnet in present if not subnet.map_public_ip_on_launch}
    for zone in ZONES:
        if zone not in subnets:
            subnets[zone] = cloud.backend.create_subnet(vpc.id, "10.0.192.0/18", availability_zone=zone).id
    return subnets


@contextmanager
def rolling_life(cloud: Cloud) -> Iterator[RollingLife]:
    """A cluster without a pool yet."""
    life = RollingLife(cloud)
    with pytest.MonkeyPatch.context() as patched:
        for module in (run, reconcile):
            patched.setattr(module, "workload_of", lambda *_: life.pods.workload())
        patched.setattr(attention, "report_age", lambda *_: 0.0)
        yield life


@contextmanager
def counted(life: RollingLife) -> Iterator[None]:
    """Count nodes and claims at every write."""
    store_type = type(life.nodes.services.store)
    original = store_type.commit

    def commit(store: Store, *writes: Write) -> None:
        original(store, *writes)
        life.count()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store_type, "commit", commit)
        yield
