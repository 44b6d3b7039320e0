"""The open ports between machines, as the cloud itself describes a network: an oracle beside the driver.

It reads subnets, route tables, gateways, addresses, security groups and load balancers, and follows a packet: from the
internet to a machine or through a load balancer, from a machine to another, and from a machine to the internet. Nothing
in it knows what a driver meant to make.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Any

ANYWHERE = IPv4Address("203.0.113.99")
"""Somebody on the internet of whom no setting knows."""
EVERY_PORT = (0, 65_535)
_DEFAULT = "0.0.0.0/0"


@dataclass(frozen=True, slots=True, order=True)
class Door:
    """Ports of a machine or a load balancer that answer."""

    thing: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Machine:
    """An instance in the VPC that is not on its way out."""

    id: str
    subnet: str
    private: IPv4Address
    public: str
    groups: frozenset[str]


class Network:
    """One VPC at one moment. ``ec2`` and ``elbv2`` are clients of the account."""

    def __init__(self, ec2: Any, elbv2: Any, vpc_id: str) -> None:
        here = [{"Name": "vpc-id", "Values": [vpc_id]}]
        self.vpc_id = vpc_id
        self.subnets = {item["SubnetId"]: item for item in ec2.describe_subnets(Filters=here)["Subnets"]}
        self.tables = ec2.describe_route_tables(Filters=here)["RouteTables"]
        self.groups = {item["GroupId"]: item for item in ec2.describe_security_groups(Filters=here)["SecurityGroups"]}
        self.gateways = {
            item["InternetGatewayId"]
            for item in ec2.describe_internet_gateways()["InternetGateways"]
            if any(attachment["VpcId"] == vpc_id for attachment in item["Attachments"])
        }
        self.nats = {
            item["NatGatewayId"]: item
            for item in ec2.describe_nat_gateways()["NatGateways"]
            if item["State"] == "available" and item["SubnetId"] in self.subnets
        }
        self.machines = {machine.id: machine for machine in _machines(ec2, here)}
        self.balancers = [
            item for item in elbv2.describe_load_balancers()["LoadBalancers"] if item.get("VpcId") == vpc_id
        ]
        self.listeners = {
            item["LoadBalancerArn"]: elbv2.describe_listeners(LoadBalancerArn=item["LoadBalancerArn"])["Listeners"]
            for item in self.balancers
        }
        arns = {
            action["TargetGroupArn"]
            for listeners in self.listeners.values()
            for listener in listeners
            for action in listener["DefaultActions"]
        }
        self.targets = {
            arn: [
                entry["Target"]
                for entry in elbv2.describe_target_health(TargetGroupArn=arn)["TargetHealthDescriptions"]
            ]
            for arn in arns
        }

    # --- from the internet -------------------------------------------------------------------------------------------

    def doors(self, source: IPv4Address = ANYWHERE) -> set[Door]:
        """Everything that answers somebody on the internet."""
        return {*self._machine_doors(source), *self._balancer_doors(source)}

    def _machine_doors(self, source: IPv4Address) -> Iterator[Door]:
        for machine in self.machines.values():
            if machine.public and self._is_public(machine.subnet):
                for first, last in self._let_in(machine.groups, source, frozenset()):
                    yield Door(machine.id, first, last)

    def _balancer_doors(self, source: IPv4Address) -> Iterator[Door]:
        for balancer in self.balancers:
            subnets = {zone["SubnetId"] for zone in balancer["AvailabilityZones"]}
            if balancer["Scheme"] != "internet-facing" or not any(map(self._is_public, subnets)):
                continue
            own = frozenset(balancer.get("SecurityGroups") or ())
            for listener in self.listeners[balancer["LoadBalancerArn"]]:
                port = int(listener["Port"])
                # One without groups lets everybody in, and its targets see who comes.
                let_in = not own or _within(port, self._let_in(own, source, frozenset()))
                if let_in and any(self._serves(target, source, own) for target in self._targets_of(listener)):
                    yield Door(balancer["LoadBalancerName"], port, port)

    def _targets_of(self, listener: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        for action in listener["DefaultActions"]:
            yield from self.targets[action["TargetGroupArn"]]

    def _serves(self, target: Mapping[str, Any], source: IPv4Address, own: frozenset[str]) -> bool:
        machine = self.machines.get(str(target["Id"]))
        return machine is not None and _within(int(target["Port"]), self._let_in(machine.groups, source, own))

    # --- inside ------------------------------------------------------------------------------------------------------

    def opens(self, source: str, target: str, port: int) -> bool:
        """Whether one machine of the VPC can open a port of another."""
        here, there = self.machines[source], self.machines[target]
        return _within(port, self._let_in(there.groups, here.private, here.groups)) and self._lets_out(
            here.groups, there.private, there.groups, port
        )

    def zones_behind(self, name: str) -> set[str]:
        """The zones in which a load balancer stands."""
        (balancer,) = [item for item in self.balancers if item["LoadBalancerName"] == name]
        return {self.subnets[zone["SubnetId"]]["AvailabilityZone"] for zone in balancer["AvailabilityZones"]}

    # --- to the internet ---------------------------------------------------------------------------------------------

    def gets_out(self, machine_id: str, port: int = 443) -> bool:
        """Whether a machine reaches a server on the internet."""
        machine = self.machines[machine_id]
        if not self._lets_out(machine.groups, ANYWHERE, frozenset(), port):
            return False
        target = self._default(machine.subnet)
        if target in self.gateways:
            return bool(machine.public)
        nat = self.nats.get(target)
        addresses = [entry.get("PublicIp") for entry in nat["NatGatewayAddresses"]] if nat else []
        return nat is not None and any(addresses) and self._is_public(nat["SubnetId"])

    def way_out(self, machine_id: str) -> str:
        """The zone in which a machine's traffic leaves for the internet; empty where it does not."""
        target = self._default(self.machines[machine_id].subnet)
        subnet = self.nats[target]["SubnetId"] if target in self.nats else self.machines[machine_id].subnet
        return str(self.subnets[subnet]["AvailabilityZone"]) if self.gets_out(machine_id) else ""

    # --- parts -------------------------------------------------------------------------------------------------------

    def _is_public(self, subnet: str) -> bool:
        return self._default(subnet) in self.gateways

    def _default(self, subnet: str) -> str:
        """Target of a subnet's default route."""
        pairs = [(table, item) for table in self.tables for item in table["Associations"]]
        own = [table for table, item in pairs if item.get("SubnetId") == subnet]
        main = [table for table, item in pairs if item.get("Main")]
        for table in (own or main)[:1]:
            for route in table["Routes"]:
                if route.get("DestinationCidrBlock") == _DEFAULT and route.get("State", "active") == "active":
                    return str(route.get("NatGatewayId") or route.get("GatewayId") or "")
        return ""

    def _let_in(self, groups: Iterable[str], source: IPv4Address, its_groups: frozenset[str]) -> list[tuple[int, int]]:
        return [ports for name in groups for ports in _allowed(self.groups[name]["IpPermissions"], source, its_groups)]

    def _lets_out(self, groups: Iterable[str], target: IPv4Address, its_groups: frozenset[str], port: int) -> bool:
        rules = [rule for name in groups for rule in self.groups[name]["IpPermissionsEgress"]]
        return _within(port, list(_allowed(rules, target, its_groups)))


def _machines(ec2: Any, here: list[dict[str, Any]]) -> Iterator[Machine]:
    addresses = {
        item.get("InstanceId"): item["PublicIp"]
        for item in ec2.describe_addresses()["Addresses"]
        if item.get("InstanceId")
    }
    for reservation in ec2.describe_instances(Filters=here)["Reservations"]:
        for item in reservation["Instances"]:
            if item["State"]["Name"] in ("shutting-down", "terminated"):
                continue
            (interface,) = item["NetworkInterfaces"]
            public = (
                addresses.get(item["InstanceId"])
                or item.get("PublicIpAddress")
                or interface.get("Association", {}).get("PublicIp", "")
            )
            yield Machine(
                item["InstanceId"],
                interface["SubnetId"],
                IPv4Address(interface["PrivateIpAddress"]),
                str(public),
                frozenset(group["GroupId"] for group in interface["Groups"]),
            )


def _allowed(
    rules: Iterable[Mapping[str, Any]], peer: IPv4Address, its_groups: frozenset[str]
) -> Iterator[tuple[int, int]]:
    for rule in rules:
        if rule["IpProtocol"] not in ("-1", "tcp", "6"):
            continue
        by_range = any(peer in IPv4Network(item["CidrIp"]) for item in rule.get("IpRanges", ()))
        by_group = any(item["GroupId"] in its_groups for item in rule.get("UserIdGroupPairs", ()))
        if by_range or by_group:
            every = rule["IpProtocol"] == "-1" or rule.get("FromPort") in (None, -1)
            yield EVERY_PORT if every else (int(rule["FromPort"]), int(rule["ToPort"]))


def _within(port: int, ranges: Iterable[tuple[int, int]]) -> bool:
    return any(first <= port <= last for first, last in ranges)
