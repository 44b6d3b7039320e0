"""A decision about a cluster and its operation, as values: what to write and what to tell."""

from __future__ import annotations

from dataclasses import dataclass

from stockyard.domain.records import Cluster, Operation


@dataclass(frozen=True, slots=True)
class Happening:
    """Something to tell. ``about`` is ``Cluster`` or ``Operation``; it becomes an event and an EventBridge message."""

    about: str
    before: str | None
    after: str | None
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Change:
    """The new records (versions already raised) and what happened. ``workflow`` is the execution to start, if any."""

    cluster: Cluster
    operation: Operation
    happenings: tuple[Happening, ...] = ()
    workflow: str | None = None
    from_phase: str | None = None
    closed: Operation | None = None
    """Another operation that this change ends (a creation overtaken by a deletion)."""
