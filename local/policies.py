"""A small evaluator of IAM policies, for the statements we write: actions spelt out, resources with wildcards,
conditions of the string operators and ``Null``. Who may do what is never granted by it: it proves our own policies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from local.corrections.roles import holds, many

Statement = Mapping[str, Any]


@dataclass(frozen=True)
class Ask:
    """What AWS checks for one call on one thing. ``context`` holds the condition keys that it knows then."""

    action: str
    resource: str
    context: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.action} on {self.resource} with {dict(self.context)}"


Policies = Mapping[str, list[dict[str, Any]]]
"""Whose -> the statements of the role as IAM reads them."""
Asks = Mapping[str, Mapping[str, Ask]]
"""Who -> what was asked of AWS, each once, by its text."""


def matching(statements: Iterable[Statement], ask: Ask) -> list[Statement]:
    """The statements that speak about it."""
    return [one for one in statements if _speaks(one, ask)]


def allowed_by(statements: Iterable[Statement], ask: Ask) -> list[Statement]:
    """The statements that allow it; none when it is not allowed, or denied by another."""
    found = matching(statements, ask)
    return found if found and all(one["Effect"] == "Allow" for one in found) else []


def refused(asks: Asks, policies: Policies) -> list[str]:
    """``who: ask`` for all that AWS would refuse."""
    return [
        f"{who}: {text}"
        for who, them in asks.items()
        for text, ask in them.items()
        if not allowed_by(policies[who], ask)
    ]


def used(asks: Asks, policies: Policies) -> dict[str, set[str]]:
    """Who -> ``statement action`` of each grant that something was allowed by."""
    return {
        who: {f"{one['Sid']} {ask.action}" for ask in them.values() for one in allowed_by(policies[who], ask)}
        for who, them in asks.items()
    }


def without(statements: Iterable[Statement], sid: str, action: str) -> list[dict[str, Any]]:
    """The statements with one action less in one of them."""
    return [
        {**one, "Action": [name for name in many(one["Action"]) if name != action or one["Sid"] != sid]}
        for one in statements
    ]


def _speaks(statement: Statement, ask: Ask) -> bool:
    if not any(fnmatchcase(ask.action.lower(), str(name).lower()) for name in many(statement["Action"])):
        return False
    if not any(fnmatchcase(ask.resource, str(pattern)) for pattern in many(statement["Resource"])):
        return False
    return all(
        holds(operator, ask.context.get(key), [str(value) for value in many(values)])
        for operator, pairs in (statement.get("Condition") or {}).items()
        for key, values in pairs.items()
    )
