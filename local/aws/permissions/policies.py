"""Permission checks, and an evaluator of the policies that decide them: statements that allow or deny, resources with
wildcards, conditions with the operators that ``conditions`` knows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from local.aws.conditions import holds, many

_VARIABLE = re.compile(r"\$\{([^}]+)\}")
"""A condition key as a variable of a policy."""
Statement = Mapping[str, Any]
Context = dict[str, str | tuple[str, ...]]
"""Condition keys of a call."""


@dataclass(frozen=True)
class Wording:
    """Wording of a service for the refusal of a check of its own, where it is not the usual error."""

    code: str
    message: str
    is_in_answer: bool = False
    """Whether the call succeeds, and its answer has the error, as that of a fleet that got no machine."""


@dataclass(frozen=True)
class Ask:
    """One permission check of AWS: an action on a resource. ``context`` has the condition keys of the call."""

    action: str
    resource: str
    context: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    wording: Wording | None = None
    """How a refusal is told; None: as the service refuses calls."""

    def __str__(self) -> str:
        return f"{self.action} on {self.resource} with {dict(self.context)}"


def matching(statements: Iterable[Statement], ask: Ask) -> list[Statement]:
    """The statements that apply to this check."""
    return [statement for statement in statements if _applies(statement, ask)]


def allowed_by(statements: Iterable[Statement], ask: Ask) -> list[Statement]:
    """The statements that allow this check; none when it is not allowed, or when a statement denies it."""
    matches = matching(statements, ask)
    return matches if matches and all(statement["Effect"] == "Allow" for statement in matches) else []


def denied_by(statements: Iterable[Statement], ask: Ask) -> bool:
    """Whether a statement denies the check, whatever others allow."""
    return any(statement["Effect"] == "Deny" for statement in matching(statements, ask))


def _applies(statement: Statement, ask: Ask) -> bool:
    if not _named(statement, "Action", ask.action.lower(), lower=True):
        return False
    if not _named(statement, "Resource", ask.resource, lower=False):
        return False
    return all(
        holds(operator, ask.context.get(key), [_filled(_text(value), ask) for value in many(values)])
        for operator, pairs in (statement.get("Condition") or {}).items()
        for key, values in pairs.items()
    )


def _named(statement: Statement, field_name: str, text: str, *, lower: bool) -> bool:
    """Whether the statement names the text, or names all but some others (``NotAction``)."""
    is_inverse = field_name not in statement
    patterns = many(statement[f"Not{field_name}" if is_inverse else field_name])
    is_named = any(
        _pattern(str(pattern).lower() if lower else str(pattern)).fullmatch(text) is not None for pattern in patterns
    )
    return is_named != is_inverse


def _text(value: Any) -> str:
    """A value of a condition; JSON's ``true`` is IAM's text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _filled(value: str, ask: Ask) -> str:
    """The value with the condition keys that it names as variables; one that the call has not matches nothing, so that
    it stays as it is."""
    return _VARIABLE.sub(lambda match: str(ask.context.get(match[1], match[0])), value)


@lru_cache(4096)
def _pattern(text: str) -> re.Pattern[str]:
    """IAM's wildcards: ``*`` is any text, ``?`` any character; nothing else is special."""
    return re.compile("".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in text), re.DOTALL)
