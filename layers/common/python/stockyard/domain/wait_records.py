"""The records of who holds a function: while it waits for news, or answers a question."""

from __future__ import annotations

from dataclasses import field

from stockyard.domain.nodes.records import VersionedRecord
from stockyard.domain.values.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Waiters(VersionedRecord):
    """The requests of a tenant, or with the platform those of all, that hold a function: ``WAITERS`` wait for news,
    ``QUESTIONS`` are being answered."""

    leases: dict[str, str] = field(default_factory=dict)
    """For each request a random name, and until when it holds one at most: one that died is forgotten then."""


WAITERS, QUESTIONS = "waiters", "questions"
"""The ids of the records."""
