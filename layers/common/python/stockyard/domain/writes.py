"""Writes as values: the members of one transaction (``ports.Store.commit``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from stockyard.domain.records import Record
from stockyard.domain.values.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Create:
    """Insert; conflicts when a record of that kind and id exists."""

    record: Record


@dataclass(frozen=True, slots=True)
class Replace:
    """Overwrite; conflicts unless the stored version is ``record.version - 1``.

    ``fence`` names attributes that must have the given values in the stored record besides.
    """

    record: Record
    fence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Put:
    """Insert or overwrite without a condition; only where the last writer is right, as of facts and quotas, or where
    another write of the transaction guards it, as of the parts of a report."""

    record: Record


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete. With ``version`` it conflicts on another one; without, a missing record is no error.

    ``fence``, only with ``version``, names attributes that must have the given values in the stored record besides:
    a record that was removed and made again may have reached the same version.
    """

    kind: type[Record]
    id: str
    version: int | None = None
    fence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Check:
    """Conflicts unless the record exists with these attribute values (the fence of background work)."""

    kind: type[Record]
    id: str
    equals: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Add:
    """Add ``by`` to a counter. Conflicts when the result would exceed ``limit``; never falls below 0."""

    counter: str
    by: int
    limit: int | None = None


Write = Create | Replace | Put | Remove | Check | Add
