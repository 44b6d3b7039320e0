"""Checks of both stores before they write: the batch as a whole, and conditions on single attributes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from stockyard.adapters.dynamodb import codec, keys
from stockyard.domain.platform import home, use_by
from stockyard.domain.records import Counter, Fact
from stockyard.domain.values.frozen import dataclass
from stockyard.ports import Add, Check, Create, Put, Remove, Replace, Write

MAX_WRITES = 100
"""DynamoDB's limit of a transaction."""


def target(write: Write) -> tuple[keys.Kind, str]:
    """The kind and id of the record that a write is about."""
    if isinstance(write, Create | Replace | Put):
        return type(write.record), write.record.id
    if isinstance(write, Remove | Check):
        return write.kind, write.id
    return Counter, write.counter


def check(tenant: str, writes: Sequence[Write]) -> None:
    """Raise ``ValueError`` for what no table accepts: more than 100 writes, or two writes of one record. Also for a
    fence on a removal that may find nothing, and for a tenant's change of what the platform shares with it.

    Raises ``InvalidInput`` for an id that cannot be a key.
    """
    if len(writes) > MAX_WRITES:
        raise ValueError(f"{len(writes)} writes; a transaction has at most {MAX_WRITES}")
    targets: set[tuple[keys.Kind, str]] = set()
    for write in writes:
        if isinstance(write, Remove) and write.fence and write.version is None:
            raise ValueError("a removal without a version has no fence")
        kind, name = target(write)
        keys.checked_id(kind, name)
        if (kind, name) in targets:
            raise ValueError(f"two writes of {kind.__name__} {name} in one transaction")
        if home(tenant, kind, name) != tenant and not _shared_write(tenant, write):
            raise ValueError(f"{kind.__name__} {name} is the platform's")
        targets.add((kind, name))


def _shared_write(tenant: str, write: Write) -> bool:
    """Whether a tenant may write this of what the platform shares: places that it takes and gives back, and that it
    has had a node."""
    if isinstance(write, Put):
        return isinstance(write.record, Fact) and use_by(write.record.id) == tenant == write.record.value
    return isinstance(write, Add | Check)


@dataclass(frozen=True, slots=True)
class Equal:
    """The condition that a stored field has a value. ``absent`` tells that a missing attribute means that value too."""

    attribute: str
    value: codec.Attribute | None
    absent: bool

    def holds(self, item: Mapping[str, codec.Attribute]) -> bool:
        """Whether a stored item fulfils it."""
        stored = item.get(self.attribute)
        return self.absent if stored is None else stored == self.value


def equalities(kind: keys.Kind, values: Mapping[str, Any]) -> list[Equal]:
    """Conditions that top-level fields have these values, as reading them back would give.

    Raises ``ValueError`` for a field that the kind does not have.
    """
    conditions = []
    for field, value in values.items():
        default = codec.default(kind, field)
        meant_by_absence = value is None if default is dataclasses.MISSING else value == default
        encoded = None if value is None else codec.encode(value)
        conditions.append(Equal(keys.attribute(field), encoded, meant_by_absence))
    return conditions
