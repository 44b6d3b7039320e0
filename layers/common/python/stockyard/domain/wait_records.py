"""The record of who holds a function while it waits for news."""

from __future__ import annotations

from dataclasses import dataclass, field

from stockyard.domain.nodes.records import VersionedRecord


@dataclass(frozen=True, slots=True)
class Waiters(VersionedRecord):
    """The requests of a tenant, or with the platform those of all, that wait for news. There is one, ``WAITERS``."""

    leases: dict[str, str] = field(default_factory=dict)
    """For each waiting request a random name, and until when it waits at most: one that died is forgotten then."""


WAITERS = "waiters"
"""The id of the record."""
