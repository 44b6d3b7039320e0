"""Rules of security groups, each by a call of its own: a duplicate from an earlier try would refuse the others."""

from __future__ import annotations

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
