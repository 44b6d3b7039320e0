"""Rules of security groups, each by a call of its own: a duplicate from an earlier try would refuse the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.errors import accepting

INGRESS, EGRESS = "ingress", "egress"
PEERS: Mapping[str, str] = {"IpRanges": "CidrIp", "Ipv6Ranges": "CidrIpv6", "UserIdGroupPairs": "GroupId"}
"""By part of a permission: what names a peer there."""


def authorize(calls: Calls, group: str, rule: dict[str, Any], side: str = INGRESS) -> None:
    """Let in, or out, what the rule says; what is let already stays."""
    for part in PEERS:
        for peer in rule.get(part, ()):
            ports: dict[str, Any] = {name: rule[name] for name in ("IpProtocol", "FromPort", "ToPort") if name in rule}
            permission = {**ports, part: [peer]}
            with accepting("InvalidPermission.Duplicate"):
                calls.call("ec2", f"authorize_security_group_{side}", GroupId=group, IpPermissions=[permission])


def open_to_itself(calls: Calls, group: str, rules: Sequence[Mapping[str, Any]] = ()) -> None:
    """Let in what the rules say. Without rules the members reach each other by every protocol, in and out."""
    own: dict[str, Any] = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
    for rule in rules or [own]:
        authorize(calls, group, dict(rule))
    if not rules:
        authorize(calls, group, own, EGRESS)


def revoke(calls: Calls, group: str, rule: Mapping[str, Any]) -> None:
    """Let in no more what the rule says, a rule of one peer; what is not let in any more stays so."""
    with accepting("InvalidPermission.NotFound"):
        calls.call("ec2", "revoke_security_group_ingress", GroupId=group, IpPermissions=[dict(rule)])


def peers_of(rules: Sequence[Mapping[str, Any]]) -> list[tuple[int, str, str]]:
    """Each port that rules let in, with the part of the permission and the peer that names who may."""
    return [
        (int(rule["FromPort"]), part, str(peer[name]))
        for rule in rules
        if "FromPort" in rule
        for part, name in PEERS.items()
        for peer in rule.get(part, ())
    ]


def present_rules(calls: Calls, group: str) -> Sequence[Mapping[str, Any]]:
    """What the group lets in, as permissions; nothing for one that is not shown."""
    groups = calls.described_items("describe_security_groups", "SecurityGroups", GroupIds=[group])
    return list(groups[0].get("IpPermissions", ())) if groups else []
