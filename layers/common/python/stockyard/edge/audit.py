"""Audit records: one per changing call and per secret that is read, with who, what, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from stockyard.domain import ids, times
from stockyard.domain.records import AuditRecord
from stockyard.edge.identity import Caller

DONE = "done"
_MAX_NAMES = 40


def record(
    caller: Caller,
    *,
    action: str,
    subject: str,
    outcome: str,
    request_id: str,
    fields: Iterable[str],
    started_at: datetime,
    now: datetime,
    randomness: bytes,
) -> AuditRecord:
    """The record of one call, which began at ``started_at``. ``fields`` are the names that the body had; its values
    are never kept. Its id is of the moment in which it is written: records are listed, and followed, in that order."""
    return AuditRecord(
        id=ids.make(ids.AUDIT, now, randomness),
        time=times.to_text(started_at),
        actor=caller.actor,
        action=action,
        subject=subject,
        outcome=outcome,
        request_id=request_id,
        detail=", ".join(list(fields)[:_MAX_NAMES]),
    )


def subject_of(path: str, parameters: Iterable[str], body: Any) -> str:
    """What a call is about: the identifier in its answer, else ``collection/name`` of the path."""
    parts = path.strip("/").split("/")
    collection = parts[1].rstrip("s") if len(parts) > 1 else ""
    identifier = body.get("id") if isinstance(body, dict) else None
    if identifier is None:
        identifier = next(iter(parameters), None)
    if identifier is None:
        return collection
    return str(identifier) if ids.is_id(str(identifier)) else f"{collection}/{identifier}"
