"""Comparison of permission checks with policies: what is refused, which grants are used, what is left without one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from local.aws.conditions import many
from local.aws.permissions.policies import Ask, Statement, allowed_by

Policies = Mapping[str, list[dict[str, Any]]]
"""Role -> its statements as IAM reads them."""
Asks = Mapping[str, Mapping[str, Ask]]
"""Role -> the permission checks of its calls, each once, by its text."""


def refused(asks: Asks, policies: Policies) -> list[str]:
    """``role: check`` for all checks that AWS would refuse."""
    return [
        f"{role}: {text}"
        for role, role_asks in asks.items()
        for text, ask in role_asks.items()
        if not allowed_by(policies[role], ask)
    ]


def used(asks: Asks, policies: Policies) -> dict[str, set[str]]:
    """Role -> ``statement action`` of each grant that has allowed a check."""
    return {
        role: {
            f"{statement['Sid']} {ask.action}"
            for ask in role_asks.values()
            for statement in allowed_by(policies[role], ask)
        }
        for role, role_asks in asks.items()
    }


def without(statements: Iterable[Statement], sid: str, action: str) -> list[dict[str, Any]]:
    """The statements, without one action in one of them."""
    return [
        {
            **statement,
            "Action": [name for name in many(statement["Action"]) if name != action or statement["Sid"] != sid],
        }
        for statement in statements
    ]
