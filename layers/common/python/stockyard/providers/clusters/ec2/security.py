"""The security phase: who may reach the API server, and what nodes may say to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stockyard.ports import Outcome
from stockyard.providers.clouds.aws import ec2_kinds, tags
from stockyard.providers.clouds.aws.security_groups import PEERS, authorize, peers_of, present_rules, revoke
from stockyard.providers.clusters.ec2 import network
from stockyard.providers.clusters.ec2.building import Builder, Wish
from stockyard.providers.clusters.ec2.configuration import EVERYWHERE

API_PORT, SSH_PORT = 6443, 22
RULES = "rules"
"""In the detail of a group's line: the rules that it was last given, as port, kind of peer and peer."""
BALANCER, CONTROL_PLANE, NODE = "balancer", "control-plane", "node"


def ensure(builder: Builder) -> Outcome:
    """The three groups with their rules. Nodes and control plane are both in the node group, which trusts itself.

    A network load balancer that is made without a group can never have one, so its own comes with the first of it.
    """
    net = network.of(builder)
    _group(builder, BALANCER, net.vpc_id, "API endpoint of a Stockyard cluster", balancer_rules(builder, net))
    rules = control_plane_rules(builder, net)
    _group(builder, CONTROL_PLANE, net.vpc_id, "API server of a Stockyard cluster", rules)
    owned = {tags.kubernetes(builder.work.cluster.client_id): "owned"}
    _group(builder, NODE, net.vpc_id, "Nodes of a Stockyard cluster", [], owned)
    return Outcome(True, "three security groups")


def balancer_rules(builder: Builder, net: network.Network) -> list[dict[str, Any]]:
    """The API port for the CIDR list, the VPC and its NAT gateways: nodes come back in through these."""
    api = list(builder.work.cluster.settings.get("api_cidrs") or [EVERYWHERE])
    gateways = (f"{address}/32" for address in network.gateway_addresses(builder, net))
    return [_rule(API_PORT, [*api, *net.cidrs, *gateways])]


def control_plane_rules(builder: Builder, net: network.Network) -> list[dict[str, Any]]:
    """The API port for the load balancer and for the VPC itself; SSH only for ``ssh_cidrs``."""
    settings = builder.work.cluster.settings
    through_balancer = {**_port(API_PORT), "UserIdGroupPairs": [{"GroupId": group(builder, BALANCER)}]}
    rules = [_rule(API_PORT, list(net.cidrs)), through_balancer]
    if settings.get("ssh_cidrs"):
        rules.append(_rule(SSH_PORT, list(settings["ssh_cidrs"])))
    return rules


def _listed(rules: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """Rules as the ledger keeps them."""
    return [list(peer) for peer in peers_of(rules)]


def _port(port: int) -> dict[str, Any]:
    return {"IpProtocol": "tcp", "FromPort": port, "ToPort": port}


def _rule(port: int, cidrs: list[str]) -> dict[str, Any]:
    four = [{"CidrIp": cidr} for cidr in dict.fromkeys(cidrs) if ":" not in cidr]
    six = [{"CidrIpv6": cidr} for cidr in dict.fromkeys(cidrs) if ":" in cidr]
    return {**_port(port), "IpRanges": four, "Ipv6Ranges": six}


def _group(
    builder: Builder,
    key: str,
    vpc: str,
    description: str,
    rules: list[dict[str, Any]],
    extra: dict[str, str] | None = None,
) -> None:
    name = builder.name(f"{key}-sg")

    described: dict[str, Any] = {"GroupName": name, "Description": description, "VpcId": vpc}
    create = builder.creation("create_security_group", "security-group", "GroupId", **described)

    def configure(group: str) -> None:
        permissions = rules or [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
        for rule in permissions:
            authorize(builder.calls, group, rule)

    detail = {RULES: _listed(rules)} if rules else None
    fulfilment = builder.want(
        Wish(ec2_kinds.SECURITY_GROUP, key, name, create, configure, detail=detail, extra_tags=extra)
    )
    if rules:
        _settle(builder, key, fulfilment.vendor_id, rules)


def _settle(builder: Builder, key: str, group: str, rules: list[dict[str, Any]]) -> None:
    """Let in what the rules say, and no more what earlier rules of ours said. The ledger remembers those: what others
    have let in stays. Both are remembered while the group is being changed, so that a crash loses no rule of before."""
    line = builder.work.ledger.find(ec2_kinds.SECURITY_GROUP.name, key)
    current = _listed(rules)
    before = line.detail.get(RULES) if line is not None else None
    if line is None or before == current:
        return
    if before is None:
        # A group of an earlier release: whatever it lets in at our ports is ours.
        before = [peer for peer in _listed(present_rules(builder.calls, group)) if peer[0] in (API_PORT, SSH_PORT)]
    line = builder.work.ledger.made(line, group, {RULES: [*before, *(peer for peer in current if peer not in before)]})
    for rule in rules:
        authorize(builder.calls, group, rule)
    for port, part, value in before:
        if [port, part, value] not in current:
            revoke(builder.calls, group, {**_port(port), part: [{PEERS[part]: value}]})
    builder.work.ledger.made(line, group, {RULES: current})


def group(builder: Builder, key: str) -> str:
    """The id of a group made by this phase; empty where there is none: a cluster of an earlier release has none of
    ``BALANCER``."""
    line = builder.work.ledger.find(ec2_kinds.SECURITY_GROUP.name, key)
    return line.vendor_id if line else ""
