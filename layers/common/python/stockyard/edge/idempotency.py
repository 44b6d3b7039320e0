"""``Idempotency-Key``: one effect and one answer per key, tenant and route, for 24 hours.

The record is written before the work (``running``, with a lease) and again after it (``done``, with the answer). A
first request that crashed leaves an expired lease; the next one with the key takes over, with the same
:class:`IdempotencyLease`: identifiers made from it are those of the first try, so that its half-done work is found
again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from stockyard.domain.records import Idempotency
from stockyard.domain.values import ids, times
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.patterns import pattern
from stockyard.errors import IdempotencyConflict, InvalidInput, RequestInProgress

LIFE = timedelta(hours=24)
LEASE = timedelta(seconds=60)
SALT_BYTES = 16
_KEY = pattern(r"[ -~]{1,255}")


class Keys(Protocol):
    """The idempotency records of one tenant; the functions pass an implementation over their store."""

    def get(self, id: str) -> Idempotency | None:
        """The record, read consistently."""

    def insert(self, record: Idempotency) -> bool:
        """Create it; False when there is one."""

    def replace(self, record: Idempotency) -> bool:
        """Overwrite version ``record.version - 1``; False when that is not what is there."""


@dataclass(frozen=True, slots=True)
class IdempotencyLease:
    """The right to do the work of a key. An earlier try may have done a part of it.

    ``moment`` and ``randomness`` (10 bytes) are the same in every try: make identifiers from them.
    """

    record: Idempotency

    @property
    def moment(self) -> datetime:
        """Moment when the key was first seen."""
        return times.from_text(self.record.created_at)

    @property
    def randomness(self) -> bytes:
        """Ten bytes that depend on the record alone."""
        return hashlib.sha256(f"{self.record.id}\x00{self.record.salt}".encode()).digest()[:10]

    def stable_id(self, prefix: str) -> str:
        """An identifier of this kind that is the same in every try."""
        return ids.make(prefix, self.moment, self.randomness)


@dataclass(frozen=True, slots=True)
class Replay:
    """The answer that was given before."""

    status: int
    headers: Mapping[str, str]
    body: Mapping[str, Any]


def checked_key(value: str | None) -> str | None:
    """The key of a request, None without one. ``InvalidInput`` unless it is 1 to 255 printable ASCII characters."""
    if value is None:
        return None
    if not _KEY.fullmatch(value):
        raise InvalidInput("Idempotency-Key must have 1 to 255 printable ASCII characters.")
    return value


def digest(document: Any, path: str) -> str:
    """Digest of everything that makes two requests the same: the path and the parsed body, whatever its spelling."""
    canonical = json.dumps([path, document], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def begin(keys: Keys, id: str, body_digest: str, now: datetime, salt: bytes) -> IdempotencyLease | Replay:
    """The right to work, or the earlier answer. ``salt`` is kept by the first try.

    ``IdempotencyConflict`` for another body, ``RequestInProgress`` while the first request runs.
    """
    for _ in range(3):
        stored = keys.get(id)
        # the table removes expired records late
        alive = stored is not None and stored.expires_at > times.epoch(now)
        if stored is not None and alive:
            record = _taken_over(stored, body_digest, now)
            if isinstance(record, Replay):
                return record
        else:
            record = Idempotency(
                id=id,
                digest=body_digest,
                state="running",
                created_at=times.to_text(now),
                lease_expires_at=times.to_text(now + LEASE),
                expires_at=times.epoch(now + LIFE),
                salt=salt.hex(),
            )
            if stored is not None:
                record = replace(record, version=stored.version + 1)
        if keys.replace(record) if stored is not None else keys.insert(record):
            return IdempotencyLease(record)
    raise RequestInProgress("Another request with this Idempotency-Key is running.", retry_after=1)


def finish(
    keys: Keys, lease: IdempotencyLease, status: int, headers: Mapping[str, str], body: Mapping[str, Any]
) -> bool:
    """Keep the answer. False when another request has taken over meanwhile; its answer is the one kept."""
    record = lease.record
    finished = replace(
        record, state="done", status=status, headers=dict(headers), body=dict(body), version=record.version + 1
    )
    return keys.replace(finished)


def give_up(keys: Keys, lease: IdempotencyLease, now: datetime) -> None:
    """After a failure that may pass: end the lease, so that the next try takes over at once, with the same lease."""
    record = lease.record
    keys.replace(replace(record, lease_expires_at=times.to_text(now), version=record.version + 1))


def _taken_over(stored: Idempotency, body_digest: str, now: datetime) -> Idempotency | Replay:
    if stored.digest != body_digest:
        raise IdempotencyConflict("This Idempotency-Key was used with another body.")
    if stored.state == "done":
        return Replay(stored.status, stored.headers, stored.body)
    remaining = (times.from_text(stored.lease_expires_at) - now).total_seconds()
    if remaining > 0:
        raise RequestInProgress(
            "The first request with this Idempotency-Key is still running.", retry_after=min(int(remaining) + 1, 2)
        )
    return replace(stored, lease_expires_at=times.to_text(now + LEASE), version=stored.version + 1)
