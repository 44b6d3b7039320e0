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
    now: datetime,
    randomness: bytes,
) -> AuditRecord:
    """The record of one call. ``fields`` are the names that the body had; its values are never kept."""
    return AuditRecord(
        id=ids.make(ids.AUDIT, now, randomness),
        time=times.to_text(now),
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
    given = body.get("id") if isinstance(body, dict) else None
    if given is None:
        given = next(iter(parameters), None)
    if given is None:
        return collection
    return str(given) if ids.is_id(str(given)) else f"{collection}/{given}"
