"""Rules of security groups, each by a call of its own: a duplicate from an earlier try would refuse the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.errors import accepting

INGRESS, EGRESS = "ingress", "egress"


def authorize(calls: Calls, group: str, rule: dict[str, Any], side: str = INGRESS) -> None:
    """Let in, or out, what the rule says; what is let already stays."""
    for part in ("IpRanges", "Ipv6Ranges", "UserIdGroupPairs"):
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
