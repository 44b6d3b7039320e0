"""A small evaluator of IAM policies, for the statements that we write: full action names, resources with wildcards,
conditions with string operators, ``ForAllValues`` and ``Null``. It grants nothing: it only proves our own policies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from local.aws.corrections.roles import holds, many

Statement = Mapping[str, Any]


@dataclass(frozen=True)
class Ask:
    """One permission check of AWS: an action on a resource. ``context`` has the condition keys of the call."""

    action: str
    resource: str
    context: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.action} on {self.resource} with {dict(self.context)}"


Policies = Mapping[str, list[dict[str, Any]]]
"""Role -> its statements as IAM reads them."""
Asks = Mapping[str, Mapping[str, Ask]]
"""Role -> the permission checks of its calls, each once, by its text."""


def matching(statements: Iterable[Statement], ask: Ask) -> list[Statement]:
    """The statements that apply to this check."""
    return [statement for statement in statements if _applies(statement, ask)]


def allowed_by(statements: Iterable[Statement], ask: Ask) -> list[Statement]:
    """The statements that allow this check; none when it is not allowed, or when a statement denies it."""
    matches = matching(statements, ask)
    return matches if matches and all(statement["Effect"] == "Allow" for statement in matches) else []


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


def _applies(statement: Statement, ask: Ask) -> bool:
    if not any(fnmatchcase(ask.action.lower(), str(name).lower()) for name in many(statement["Action"])):
        return False
    if not any(fnmatchcase(ask.resource, str(pattern)) for pattern in many(statement["Resource"])):
        return False
    return all(
        holds(operator, ask.context.get(key), [str(value) for value in many(values)])
        for operator, pairs in (statement.get("Condition") or {}).items()
        for key, values in pairs.items()
    )
