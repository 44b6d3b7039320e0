"""The security phase: who may reach the API server, and what nodes may say to each other."""

from __future__ import annotations

from stockyard.ports import Outcome
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clusters.ec2.building import Builder
from stockyard.providers.clusters.ec2.configuration import EVERYWHERE
from stockyard.providers.clusters.ec2.network import hubs, network, rules
from stockyard.providers.clusters.ec2.network.network_configuration import bastion_of
from stockyard.providers.clusters.ec2.network.rules import ALL, ITSELF, port_rule

API_PORT, SSH_PORT = 6443, 22
BALANCER, CONTROL_PLANE, NODE = "balancer", "control-plane", "node"


def ensure(builder: Builder) -> Outcome:
    """The three groups with their rules. Nodes and control plane are both in the node group, which trusts itself.

    A network load balancer that is made without a group can never have one, so its own comes with the first of it.
    """
    net = network.of(builder)
    rules.group(builder, BALANCER, net.vpc_id, "API endpoint of a Stockyard cluster", balancer_rules(builder, net))
    of_api = control_plane_rules(builder, net)
    rules.group(builder, CONTROL_PLANE, net.vpc_id, "API server of a Stockyard cluster", of_api)
    owned = {tags.kubernetes(builder.work.cluster.client_id): "owned"}
    own = [port_rule(ALL, ITSELF)]
    rules.group(builder, NODE, net.vpc_id, "Nodes of a Stockyard cluster", own, owned)
    return Outcome(True, "three security groups")


def balancer_rules(builder: Builder, net: network.Network) -> list[str]:
    """The API port for the CIDR list, the VPC and its NAT gateways: nodes come back in through these."""
    api = list(builder.work.cluster.settings.get("api_cidrs") or [EVERYWHERE])
    gateways = (f"{address}/32" for address in network.gateway_addresses(builder, net))
    of_api = [port_rule(API_PORT, cidr) for cidr in dict.fromkeys([*api, *net.cidrs, *gateways])]
    return [*of_api, *hubs.balancer_rules(builder)]


def control_plane_rules(builder: Builder, net: network.Network) -> list[str]:
    """The API port for the load balancer and for the VPC itself. SSH for ``ssh_cidrs`` alone; where there is a bastion,
    its phase lets that in and nobody else."""
    settings = builder.work.cluster.settings
    ssh = () if bastion_of(settings) else settings.get("ssh_cidrs") or ()
    balancer = group(builder, BALANCER)
    return [
        *(port_rule(API_PORT, cidr) for cidr in dict.fromkeys(net.cidrs)),
        *([port_rule(API_PORT, balancer)] if balancer else []),
        *hubs.member_rules(builder, balancer),
        *(port_rule(SSH_PORT, str(cidr)) for cidr in dict.fromkeys(ssh)),
    ]


def group(builder: Builder, key: str) -> str:
    """The id of a group made by this phase; empty where there is none: a cluster of an earlier release has none of
    ``BALANCER``."""
    line = builder.work.ledger.find(ec2_kinds.SECURITY_GROUP.name, key)
    return line.vendor_id if line else ""
