"""Identity of a resource of a stack: a function of the stack, the logical id and the fields that never change.

Nothing else is in it, so a lost or a doubled request finds what the first one made, and the deletion of a request that
nobody ever answered knows what to look for.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_LONGEST_NAME = 40
_HASH = 8
_TOKEN = 24


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity of one resource. ``path`` is its place in the API without ``/v1/``; ``token`` marks its owner there."""

    path: str
    token: str

    @property
    def physical_id(self) -> str:
        """Physical id for CloudFormation."""
        return f"{self.path}#{self.token}"

    @classmethod
    def of_physical_id(cls, physical_id: str) -> Identity | None:
        """The identity behind a physical id; None for one that CloudFormation made up itself."""
        path, separator, token = physical_id.rpartition("#")
        return cls(path, token) if separator and re.fullmatch(f"[0-9a-f]{{{_TOKEN}}}", token) else None

    def owns(self, mark: str | None) -> bool:
        """Whether a record with that mark is this resource."""
        return mark == self.token


def token_of(stack_id: str, logical_id: str, kind: str, fixed: Mapping[str, Any]) -> str:
    """Mark of the owner: 24 hexadecimal digits."""
    return _digest([stack_id, logical_id, kind, fixed])[:_TOKEN]


def generated_name(stack_id: str, logical_id: str, fixed: Mapping[str, Any]) -> str:
    """A name for a resource without one: at most 40 lower-case letters, digits and hyphens.

    A resource whose fixed fields change gets another one, so that it can be replaced.
    """
    stack = stack_id.rpartition(":stack/")[2].partition("/")[0]
    readable = re.sub(r"[^a-z0-9]+", "-", f"{stack}-{logical_id}".lower()).strip("-")
    stem = readable[: _LONGEST_NAME - _HASH - 1].rstrip("-") or "stack"
    stem = stem if stem[0].isalpha() else f"s{stem}"[: _LONGEST_NAME - _HASH - 1]
    return f"{stem}-{_digest([stack_id, logical_id, fixed])[:_HASH]}"


def idempotency_key(physical_id: str, request_id: str) -> str:
    """Key of the creation that one request of CloudFormation asks for, however often it is delivered."""
    return f"cloudformation-{_digest([physical_id, request_id])[:40]}"


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
