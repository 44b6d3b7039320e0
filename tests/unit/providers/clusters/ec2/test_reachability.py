"""Reach of the internet into a cluster, and of its machines outwards, in every layout: judged by an oracle that reads
the cloud and knows nothing of the driver.

``make test`` judges some layouts, ``make soak`` all.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from ipaddress import IPv4Address
from itertools import product
from typing import Any

import pytest

from stockyard.providers.clouds.aws.kinds import elb as elb_kinds
from stockyard.providers.clusters.ec2.network import network
from stockyard.providers.clusters.ec2.network.security import API_PORT
from stockyard.providers.nodes.ec2 import node_class
from tests.harness.reachability import Door, Network
from tests.unit.providers.clusters.ec2.network.test_bastion import BASTION
from tests.unit.providers.clusters.ec2.network.test_tenant_network import Vpc
from tests.unit.providers.conftest import Moment
from tests.unit.providers.nodes.ec2.conftest import provider as node_provider

PERSON = IPv4Address("198.51.100.7")
"""Somebody in ``ssh_cidrs``."""
SSH, KUBELET = 22, 10250
Layout = tuple[int, str, bool]
LAYOUTS: list[Layout] = list(product(range(1, 7), ("one", "per_zone", "static", "internal"), (True, False)))
SAMPLE = 6


class LaidOutCluster:
    """A cluster of a layout with a member of the control plane and a node in each zone."""

    def __init__(self, yard: Any, layout: Layout) -> None:
        self.yard, self.layout = yard, layout
        count, kind, has_bastion = layout
        zones = [f"us-east-1{letter}" for letter in "abcdef"[:count]]
        bastion = BASTION if has_bastion and kind != "internal" else None
        yard.with_settings(bastion=bastion, ssh_cidrs=["198.51.100.0/24"])
        if kind in ("static", "internal"):
            vpc = Vpc(yard)
            entry = {"zone": "", "private": "", "public": None}
            subnets = [{**entry, "zone": zone, "private": vpc.subnet("private", zone[-1])} for zone in zones]
            if kind == "static":
                for item in subnets:
                    item["public"] = vpc.subnet("public", item["zone"][-1])
            # Its gateway is where somebody has put it: in a public subnet that is not the cluster's.
            yard.with_settings(vpc_id=vpc.id, subnets=subnets)
            self._with_a_way_out(vpc, [str(item["private"]) for item in subnets])
        else:
            yard.with_settings(zones=zones, nat_gateways=kind)
        self.zones = zones
        self.facts = yard.create()
        self.builder = yard.provider._builder(yard.work("control_plane"))
        self.net = network.of(self.builder)
        session = yard.tenant()
        self.ec2, self.elbv2 = session.client("ec2"), session.client("elbv2")
        self.members = [self.facts["instance_id"], *(self._member(subnet) for subnet, _ in self.net.places[1:])]
        calls = self.builder.calls
        usable = node_class.usable_subnets(calls, node_provider(), yard.cluster, self.net.vpc_id)
        self.nodes = {subnet.zone: self._machine(subnet.id, "node") for subnet in usable}

    def _with_a_way_out(self, vpc: Vpc, private: list[str]) -> None:
        gateway = vpc.subnet("public", "a")
        address = vpc.ec2.allocate_address(Domain="vpc")["AllocationId"]
        nat = vpc.ec2.create_nat_gateway(SubnetId=gateway, AllocationId=address)["NatGateway"]["NatGatewayId"]
        for subnet in private:
            of_subnet = [{"Name": "association.subnet-id", "Values": [subnet]}]
            (table,) = vpc.ec2.describe_route_tables(Filters=of_subnet)["RouteTables"]
            vpc.ec2.replace_route(
                RouteTableId=table["RouteTableId"], DestinationCidrBlock="0.0.0.0/0", NatGatewayId=nat
            )

    def group(self, key: str) -> str:
        return str(self.yard.ledger.find("security_group", key).vendor_id)

    def _member(self, subnet: str) -> str:
        machine = self._machine(subnet, "control-plane", "node")
        arn = self.yard.ledger.find(elb_kinds.TARGET_GROUP.name, "api").vendor_id
        self.elbv2.register_targets(TargetGroupArn=arn, Targets=[{"Id": machine, "Port": API_PORT}])
        return machine

    def _machine(self, subnet: str, *keys: str) -> str:
        interface = {"DeviceIndex": 0, "SubnetId": subnet, "Groups": [self.group(key) for key in keys]}
        image = self.ec2.describe_images()["Images"][0]["ImageId"]
        answer = self.ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, NetworkInterfaces=[interface])
        return str(answer["Instances"][0]["InstanceId"])

    def change(self, zones: list[str], kind: str) -> None:
        """Change the network as a change of a ready cluster does, and the machines where they then are."""
        self.yard.later(120)
        leaving = [self.nodes.pop(zone) for zone in self.zones if zone not in zones]
        members_by_zone = {zone: member for (_, zone), member in zip(self.net.places, self.members, strict=True)}
        leaving += [members_by_zone.pop(zone) for zone in self.zones if zone not in zones]
        if leaving:
            self.ec2.terminate_instances(InstanceIds=leaving)
        self.yard.with_settings(zones=zones, nat_gateways=kind)
        for phase in ("network", "security", "endpoint", "bastion"):
            self.yard.ensure(phase)
        self.layout, self.zones = (len(zones), kind, self.layout[2]), zones
        self.builder = self.yard.provider._builder(self.yard.work("control_plane"))
        self.net = network.of(self.builder)
        for subnet, zone in self.net.places:
            if zone not in members_by_zone:
                members_by_zone[zone] = self._member(subnet)
                self.nodes[zone] = self._machine(subnet, "node")
        self.members = [members_by_zone[zone] for _, zone in self.net.places]

    @property
    def bastion(self) -> str:
        line = self.yard.ledger.find("instance", "bastion")
        return str(line.vendor_id) if line is not None else ""

    @property
    def api(self) -> str:
        return str(self.elbv2.describe_load_balancers()["LoadBalancers"][0]["LoadBalancerName"])

    def look(self) -> Network:
        return Network(self.ec2, self.elbv2, self.net.vpc_id)

    def wanted_doors(self, source: str) -> set[Door]:
        doors = set() if self.layout[1] == "internal" else {Door(self.api, API_PORT, API_PORT)}
        return doors | ({Door(self.bastion, SSH, SSH)} if self.bastion and source == "person" else set())


def layouts(seed: int, soaking: bool) -> Iterator[Layout]:
    """All, or one of each number of zones, with every kind and the bastion on and off among them."""
    if soaking:
        yield from LAYOUTS
        return
    chance = random.Random(seed)
    kinds = ["one", "per_zone", "static", "internal", "per_zone", "static"]
    chance.shuffle(kinds)
    for count, kind in enumerate(kinds[:SAMPLE], 1):
        yield count, kind, kind != "internal" and chance.random() < 0.6


def judge(there: LaidOutCluster) -> list[str]:
    """Faults of the network."""
    net = there.look()
    wrong = [
        f"from {source}: {sorted(net.doors(address))}"
        for source, address in (("anywhere", IPv4Address("203.0.113.99")), ("person", PERSON))
        if net.doors(address) != there.wanted_doors(source)
    ]
    machines = [*there.members, *there.nodes.values()]
    wrong += [f"{machine} does not get out" for machine in machines if not net.gets_out(machine)]
    wrong += [f"{machine} has a public address" for machine in machines if net.machines[machine].public]
    if there.layout[1] == "per_zone":
        wrong += [f"a node leaves {zone} for the internet" for zone, x in there.nodes.items() if net.way_out(x) != zone]
    if set(there.nodes) != set(there.zones) or net.zones_behind(there.api) != set(there.zones):
        wrong.append("nodes or the balancer are not in each zone")
    inside = [(a, b, port) for a in machines for b in machines if a != b for port in (KUBELET, API_PORT)]
    wrong += [f"{a} does not open {port} of {b}" for a, b, port in inside if not net.opens(a, b, port)]
    if there.bastion:
        wrong += [f"the bastion does not open SSH of {x}" for x in machines if not net.opens(there.bastion, x, SSH)]
        wrong += [f"the bastion opens the kubelet of {x}" for x in machines if net.opens(there.bastion, x, KUBELET)]
        wrong += [f"{x} opens SSH of the bastion" for x in machines if net.opens(x, there.bastion, SSH)]
    return wrong


@pytest.mark.timeout(1800)
def test_from_the_internet_only_the_api_and_the_bastion_answer(yard: Any, seed: int, soaking: bool) -> None:
    wrong, empty = {}, Moment.now()
    for layout in layouts(seed, soaking):
        empty.restore()
        faults = judge(LaidOutCluster(yard.copy(), layout))
        wrong |= {layout: faults} if faults else {}
    assert wrong == {}


ALL = [f"us-east-1{letter}" for letter in "abcdef"]
Step = tuple[list[str], str]
CHANGES: list[tuple[Step, list[Step]]] = [
    # Each begins, grows or shrinks, and changes its gateways on the way.
    ((ALL[:2], "one"), [(ALL[:3], "per_zone"), ([ALL[0], ALL[2]], "one")]),
    ((ALL[:1], "per_zone"), [(ALL[:6], "per_zone"), (ALL[:6], "one"), (ALL[:2], "per_zone")]),
    ((ALL[:4], "one"), [([*ALL[:2], ALL[4]], "per_zone"), (ALL[:5], "one")]),
]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("has_bastion", [True, False])
def test_the_same_answers_after_each_change_of_zones_and_gateways(
    yard: Any, seed: int, soaking: bool, has_bastion: bool
) -> None:
    wrong, empty = {}, Moment.now()
    for (zones, kind), steps in CHANGES if soaking else CHANGES[:1]:
        empty.restore()
        there = LaidOutCluster(yard.copy(), (len(zones), kind, has_bastion))
        for step in steps:
            there.change(*step)
            faults = judge(there)
            wrong |= {(kind, *map(str, step)): faults} if faults else {}
    assert wrong == {}, seed


def test_what_somebody_opens_is_found(yard: Any) -> None:
    """A rule, an address and a route only together open a private node; any of them alone does not. A listener and a
    rule of the bastion do by themselves."""
    there = LaidOutCluster(yard, (2, "per_zone", True))
    assert judge(there) == []
    before, ec2, node = there.look().doors(), there.ec2, there.nodes["us-east-1b"]
    subnet = there.look().machines[node].subnet
    of_subnet = [{"Name": "association.subnet-id", "Values": [subnet]}]
    (table,) = [item["RouteTableId"] for item in ec2.describe_route_tables(Filters=of_subnet)["RouteTables"]]
    rule = {"IpProtocol": "tcp", "FromPort": KUBELET, "ToPort": KUBELET, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    ec2.authorize_security_group_ingress(GroupId=there.group("node"), IpPermissions=[rule])
    assert there.look().doors() == before, "a private node has no address"
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]
    ec2.associate_address(AllocationId=address, InstanceId=node)
    assert there.look().doors() == before, "nothing leads there"
    assert f"{node} has a public address" in judge(there)
    gateway = next(iter(there.look().gateways))
    ec2.replace_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    assert there.look().doors() - before == {Door(node, KUBELET, KUBELET)}
    ec2.revoke_security_group_ingress(GroupId=there.group("node"), IpPermissions=[rule])
    assert there.look().doors() == before
    rule = {**rule, "FromPort": 8000, "ToPort": 8100}
    ec2.authorize_security_group_ingress(GroupId=there.group("bastion"), IpPermissions=[rule])
    assert there.look().doors() - before == {Door(there.bastion, 8000, 8100)}
    (balancer,) = there.elbv2.describe_load_balancers()["LoadBalancers"]
    arn = there.yard.ledger.find(elb_kinds.TARGET_GROUP.name, "api").vendor_id
    forward = [{"Type": "forward", "TargetGroupArn": arn}]
    there.elbv2.create_listener(
        LoadBalancerArn=balancer["LoadBalancerArn"], Protocol="TCP", Port=443, DefaultActions=forward
    )
    door = Door(there.api, 443, 443)
    assert door not in there.look().doors(), "its group lets only the API's port in"
    rule = {**rule, "FromPort": 443, "ToPort": 443}
    ec2.authorize_security_group_ingress(GroupId=there.group("balancer"), IpPermissions=[rule])
    assert door in there.look().doors()


def test_a_node_without_a_gateway_or_with_a_closed_group_does_not_get_out(yard: Any) -> None:
    there = LaidOutCluster(yard, (2, "one", False))
    node = there.nodes["us-east-1a"]
    everything = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    there.ec2.revoke_security_group_egress(GroupId=there.group("node"), IpPermissions=[everything])
    assert not there.look().gets_out(node)
    there.ec2.authorize_security_group_egress(GroupId=there.group("node"), IpPermissions=[everything])
    assert there.look().gets_out(node)
    (gateway,) = there.ec2.describe_nat_gateways()["NatGateways"]
    there.ec2.delete_nat_gateway(NatGatewayId=gateway["NatGatewayId"])
    assert not there.look().gets_out(node)
