"""The rules of a cluster's own security groups: what is wanted is let in, and what we let in before no more.

The ledger remembers what a group was given, so that rules of the cluster's controllers, or of a person, stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from stockyard.providers.clouds.aws.errors import accepting
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clouds.aws.network.security_groups import authorize
from stockyard.providers.clusters.ec2.building import Builder, DesiredResource

RULES = "rules"
"""What the ledger calls them: texts such as ``22 203.0.113.0/24`` and ``-1 sg-0123``."""
ALL = -1
UDP = "udp:"


def port_rule(port: int, peer: str) -> str:
    """Rule that a range, or the members of a group, reach a port."""
    return f"{port} {peer}"


def udp_rule(ports: str, peer: str) -> str:
    """Rule that a range, or the members of a group, reach a UDP port, or one of a range such as ``51820-51827``."""
    return f"{UDP}{ports} {peer}"


ITSELF = "itself"
"""As a peer of a rule: the group that has the rule."""


def group(
    builder: Builder,
    key: str,
    vpc: str,
    description: str,
    wanted_rules: Sequence[str],
    extra: Mapping[str, str] | None = None,
) -> str:
    """The group with these rules. One with ``extra`` tags is known to the cluster's controllers, which add their own
    rules to it."""
    name = builder.name(f"{key}-sg")
    described: dict[str, Any] = {"GroupName": name, "Description": description, "VpcId": vpc}
    create = builder.creation("create_security_group", "security-group", "GroupId", **described)

    def configure(group: str) -> None:
        for rule in _resolved(wanted_rules, group):
            authorize(builder.calls, group, permission(rule))

    kind = ec2_kinds.SECURITY_GROUP
    detail = {RULES: list(wanted_rules)}
    vendor_id = builder.want(
        DesiredResource(kind, key, name, create, configure, detail=detail, extra_tags=extra)
    ).vendor_id
    line = builder.ledger.find(kind.name, key)
    if line is not None and line.detail.get(RULES) != list(wanted_rules):
        former = line.detail.get(RULES)
        before = _resolved(former or (), vendor_id)
        if former is None and not extra:
            before = _present(builder, vendor_id)
        # Both, so that a change that is cut off and followed by another one leaves no rule that nobody remembers.
        both = [*(former or before), *(rule for rule in wanted_rules if rule not in (former or before))]
        line = builder.ledger.made(line, vendor_id, {**line.detail, RULES: both})
        replace(builder, vendor_id, before, _resolved(wanted_rules, vendor_id))
        builder.ledger.made(line, vendor_id, {**line.detail, RULES: list(wanted_rules)})
    return vendor_id


def _resolved(rules: Iterable[str], group: str) -> list[str]:
    return [rule.replace(ITSELF, group) for rule in rules]


def replace(builder: Builder, group: str, before: Sequence[str], wanted_rules: Sequence[str]) -> None:
    """Let in what is wanted, then no more what was let in before. What is wanted may be on the ledger already, of a try
    that did not come to let it in."""
    for rule in wanted_rules:
        authorize(builder.calls, group, permission(rule))
    for rule in before:
        if rule not in wanted_rules:
            revoke(builder, group, rule)


def revoke(builder: Builder, group: str, rule: str) -> None:
    """Let that in no more; where it is not let in, that is as well."""
    with accepting("InvalidPermission.NotFound"):
        builder.calls.call("ec2", "revoke_security_group_ingress", GroupId=group, IpPermissions=[permission(rule)])


def permission(rule: str) -> dict[str, Any]:
    """A rule as EC2 has it."""
    port, peer = rule.split(" ")
    if port.startswith(UDP):
        first, _, last = port.removeprefix(UDP).partition("-")
        ports: dict[str, Any] = {"IpProtocol": "udp", "FromPort": int(first), "ToPort": int(last or first)}
    elif int(port) == ALL:
        ports = {"IpProtocol": "-1"}
    else:
        ports = {"IpProtocol": "tcp", "FromPort": int(port), "ToPort": int(port)}
    if peer.startswith("sg-"):
        return {**ports, "UserIdGroupPairs": [{"GroupId": peer}]}
    if ":" in peer:
        return {**ports, "Ipv6Ranges": [{"CidrIpv6": peer}]}
    return {**ports, "IpRanges": [{"CidrIp": peer}]}


def _present(builder: Builder, group: str) -> list[str]:
    """The rules that a group has for single ports. An earlier release has not written down which it was given."""
    described = builder.calls.call("ec2", "describe_security_groups", GroupIds=[group])["SecurityGroups"]
    return [rule for item in described for entry in item.get("IpPermissions", ()) for rule in _read(entry)]


def _read(entry: Mapping[str, Any]) -> Iterator[str]:
    if entry.get("IpProtocol") == "udp":
        return
    port = ALL if entry.get("IpProtocol") == "-1" else int(entry.get("FromPort", ALL))
    peers = [
        *(item["CidrIp"] for item in entry.get("IpRanges", ())),
        *(item["CidrIpv6"] for item in entry.get("Ipv6Ranges", ())),
        *(item["GroupId"] for item in entry.get("UserIdGroupPairs", ())),
    ]
    if entry.get("FromPort") == entry.get("ToPort"):
        yield from (port_rule(port, str(peer)) for peer in peers)
