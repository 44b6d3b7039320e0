"""Requests of CloudFormation, read from the events of the provider framework."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from stockyard_stack_resources.documents import filled
from stockyard_stack_resources.errors import StackResourceError
from stockyard_stack_resources.identity import Identity, generated_name, idempotency_key, token_of
from stockyard_stack_resources.kinds import KINDS, Kind

ReadSecret = Callable[[str], str]
"""(ARN of a secret) -> its text."""


@dataclass(frozen=True, slots=True)
class Target:
    """Aim of one set of resource properties. ``document`` is as the API takes it, with its name."""

    kind: Kind
    document: Mapping[str, Any]
    identity: Identity
    adopt: bool
    secrets: Mapping[str, str]

    @classmethod
    def read(cls, event: Mapping[str, Any], properties: Mapping[str, Any]) -> Target:
        """Reads resource properties. Raises ``StackResourceError`` naming the property that is wrong."""
        kind = KINDS.get(str(properties.get("Kind")))
        if kind is None:
            raise StackResourceError(f"Kind: there is no kind {properties.get('Kind')!r} of Stockyard")
        document = _json(properties, "Document")
        secrets = _json(properties, "Secrets")
        stack_id, logical_id = str(event["StackId"]), str(event["LogicalResourceId"])
        fixed = kind.fixed_values(document)
        if not document.get("name"):
            document = {**document, "name": generated_name(stack_id, logical_id, fixed)}
        token = token_of(stack_id, logical_id, kind.name, {**fixed, "name": document["name"]})
        identity = Identity(kind.path(document), token)
        return cls(kind, document, identity, str(properties.get("Adopt", "false")).lower() == "true", secrets)

    def complete(self, read_secret: ReadSecret) -> dict[str, Any]:
        """The document with its secrets in it, which are in no template and no event."""
        return filled(self.document, {pointer: read_secret(arn) for pointer, arn in self.secrets.items()})


def _json(properties: Mapping[str, Any], name: str) -> dict[str, Any]:
    try:
        value = json.loads(properties.get(name) or "{}")
    except ValueError as error:
        raise StackResourceError(f"{name}: it is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise StackResourceError(f"{name}: it is no object")
    return value


@dataclass(frozen=True, slots=True)
class Change:
    """A creation or an update. ``old`` is the target before, ``previous`` the physical id before."""

    target: Target
    old: Target | None
    previous: str | None
    key: str
    since: datetime

    @classmethod
    def read(cls, event: Mapping[str, Any]) -> Change:
        """Reads an event of ``isComplete``."""
        target = Target.read(event, event["ResourceProperties"])
        old = Target.read(event, event["OldResourceProperties"]) if event["RequestType"] == "Update" else None
        key = idempotency_key(target.identity.physical_id, str(event["RequestId"]))
        previous = event.get("Previous")
        return cls(target, old, previous and str(previous), key, datetime.fromisoformat(event["Since"]))

    @property
    def makes(self) -> bool:
        """Whether it makes a resource: a creation, or the one that replaces another."""
        return self.previous != self.target.identity.physical_id

    @property
    def replaces(self) -> str | None:
        """Mark of the resource in whose place this one is made, None where there is none."""
        identity = Identity.of_physical_id(self.previous) if self.makes and self.previous is not None else None
        return None if identity is None else identity.token

    @property
    def sends_secrets(self) -> bool:
        """Whether secrets are sent: with what is new, with other secrets, and with what stands beside them. An account
        whose credentials are sent has to be proven anew."""
        if self.old is None or self.old.secrets != self.target.secrets:
            return True
        fields = {pointer.strip("/").partition("/")[0] for pointer in self.target.secrets}
        return any(self.old.document.get(field) != self.target.document.get(field) for field in fields)

    @property
    def left_over(self) -> Target | None:
        """Remains of an update without an answer, in its rollback: CloudFormation does not know them, so this
        request removes them."""
        if self.old is None or self.previous is None:
            return None
        expected = (self.previous, self.target.identity.physical_id)
        return self.old if self.old.identity.physical_id not in expected else None
