"""One claim across hosts of bare metal, virtual machines and EC2: the cheapest of one's own, then what is rented."""

from __future__ import annotations

from typing import Any

import boto3

from stockyard.domain.nodes.offers import InstanceOffer, RegionOffers
from stockyard.domain.records import Cluster, PriceSheet
from stockyard.domain.values import ids
from stockyard.ports import Create, Put
from stockyard.providers.clouds.kubernetes.reach import NETWORK
from stockyard.providers.nodes.ec2.provider import Ec2Nodes, Ec2NodesConfig
from stockyard.providers.nodes.kubevirt.provider import KubeVirtNodes
from stockyard.providers.nodes.metal3.provider import Metal3Nodes
from tests.harness.bare_metal.yard import CONFIG as METAL_CONFIG
from tests.harness.bare_metal.yard import BareMetalYard
from tests.harness.bare_metal.yard import block as metal_block
from tests.harness.kubevirt.host import CONFIG, IMAGE, VirtualMachineHost, block
from tests.harness.worlds.kubernetes_host import NUMBER, TENANT
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

CLUSTER, REGION = "clu_01KDVJXQ80000000000000000A", "us-east-1"
OFFERS = RegionOffers(
    REGION, "2026", {"m5.large": InstanceOffer("m5.large", 2, 8192, "x86_64", 3, 10, 0.1)}, {"gp3": 0.0}
)
ROUTED = {NETWORK: "routed"}


def tenant(world: World, *, metal_cost: int, machine_cost: int) -> Nodes:
    """A cluster on EC2, whose tenant has one host of bare metal, room for one virtual machine, and an account of
    EC2."""
    nodes = Nodes.of(world.registry, world.services, world.clock)
    now = nodes.services.now()
    settings = {"key_pair": "my-key", "region_name": REGION}
    yard = BareMetalYard({"host-1": {"kind": "metal"}}, clock=world.clock)
    host = VirtualMachineHost(clock=world.clock)
    sheet = PriceSheet(ids.account_sheet(NUMBER), now, yard.cloud().offers(yard.account, TENANT, now))
    cluster = Cluster(CLUSTER, "demo", "d", "k8s", "aws", 1, "demo-1", "ready", settings, now, now)
    nodes.services.store.commit(Create(cluster), Create(yard.account), Put(sheet))
    metal: dict[str, Any] = metal_block("metal")
    metal["nodeTypes"] = [{**each, "cost": metal_cost} for each in metal["nodeTypes"]]
    nodes.provider("hall", kind="metal3", block=metal, properties=ROUTED)
    small = {"name": "small", "cost": machine_cost, "maxCapacity": 1, "properties": IMAGE}
    nodes.provider("vms", kind="kubeVirt", block=block(small), properties=ROUTED)
    rented = {"cloudAccount": 1, "region": REGION, "capacityTypes": ["on-demand"], "instanceTypes": ["*"]}
    nodes.provider("cloud", kind="ec2", block=rented)
    store = nodes.services.store
    sources = {
        "metal3": Metal3Nodes(METAL_CONFIG, yard.access(), lambda _tenant: store),
        "kubeVirt": KubeVirtNodes(CONFIG, host.access(), lambda _tenant: store),
        "ec2": Ec2Nodes(Ec2NodesConfig("vantage", "https://api.example.test", 60), boto3.Session, {REGION: OFFERS}.get),
    }
    nodes.services = with_ports(nodes.services, node_sources=sources)
    return nodes


def placed(nodes: Nodes, number: int) -> str:
    """The type that another claim is bound to."""
    claim = nodes.claim(f"n-{number}", cluster_ref=CLUSTER, resources={"cpu": "1", "memory": "1Gi"})
    nodes.schedule(claim)
    return nodes.now(claim).type_ref


def test_claims_go_to_the_cheapest_of_ones_own_first_and_then_to_what_is_rented(world: World) -> None:
    nodes = tenant(world, metal_cost=5, machine_cost=3)
    assert [placed(nodes, number) for number in range(3)] == ["vms.small", "hall.metal", "cloud.m5.large"]


def test_where_bare_metal_is_cheaper_it_comes_first(world: World) -> None:
    nodes = tenant(world, metal_cost=2, machine_cost=3)
    assert [placed(nodes, number) for number in range(3)] == ["hall.metal", "vms.small", "cloud.m5.large"]
