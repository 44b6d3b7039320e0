"""Page tokens: where a list goes on, signed, bound to tenant, route and query, valid for an hour."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from stockyard.errors import InvalidInput

if TYPE_CHECKING:
    from stockyard.domain.records import Record
    from stockyard.ports import Page

R = TypeVar("R", bound="Record")

LIFE = timedelta(hours=1)
DEFAULT_SIZE = 50
MAX_SIZE = 200
MOST_COUNTED = 1000
"""What is counted of a list that has to be read for it. Who needs more reads the pages."""
_MOST_READ = 2000
"""Records that are looked at for a count: of a list that is filtered few may remain."""
MOST_FILTERED = 1000
"""Records that the table looks at for a page of a list that it filters, and some more."""
MOST_OF_HISTORY = 20_000
"""The same for events, operations and audit, which are small, and of which a page shows one subject among all."""
_MOST_DECODED = 400
"""Records that are filtered here for a page: each takes our own time."""
_SIGNATURE = 32


def filtered(
    read: Callable[..., Page[R]], keep: Callable[[R], bool], *, after: str | None, size: int
) -> tuple[list[R], str | None]:
    """At most ``size`` items behind ``after`` that ``keep`` lets through, and the id to go on behind.

    ``read`` is given where to start and how much to read at once. A page of a list of which few items are left ends
    before it is full, when enough was read for it: the next one goes on there.
    """
    items: list[R] = []
    decoded = looked_at = 0
    while len(items) <= size:
        # One more than the page has tells whether there is a next one.
        part = read(after, max(size + 1, DEFAULT_SIZE))
        items += filter(keep, part.items)
        after = part.next_id
        decoded, looked_at = decoded + len(part.items), looked_at + max(part.read, len(part.items))
        if after is None or len(items) > size:
            break
        if decoded >= _MOST_DECODED or looked_at >= MOST_FILTERED:
            return items, after
    if len(items) > size:
        return items[:size], items[size - 1].id
    return items, None


def total_of(count: int, *, more: bool = False) -> dict[str, Any]:
    """The number of a list as its answer has it; ``more``: there are, or may be, more than that."""
    return {"count": count, "more": more}


def counted(read: Callable[..., Page[R]], keep: Callable[[R], bool]) -> dict[str, Any]:
    """Number of the items that ``keep`` lets through, counted up to ``MOST_COUNTED``; see :func:`total_of`. It may be a
    second old, which costs half."""
    after: str | None = None
    count = looked_at = 0
    while True:
        part = read(after, MAX_SIZE, consistent=False)
        count += sum(map(keep, part.items))
        looked_at += max(part.read, len(part.items))
        after = part.next_id
        if count > MOST_COUNTED or (after is not None and (count == MOST_COUNTED or looked_at >= _MOST_READ)):
            return total_of(min(count, MOST_COUNTED), more=True)
        if after is None:
            return total_of(count)


class PageCodec:
    """Makes and reads page tokens with one secret key."""

    def __init__(self, key: bytes) -> None:
        if len(key) < 16:
            raise ValueError("the key of page tokens needs at least 16 bytes")
        self._key = key

    def encode(self, after: str, *, tenant: str, route: str, query: Mapping[str, Any], now: datetime) -> str:
        """A token that goes on behind ``after``."""
        expires = int((now + LIFE).timestamp())
        payload = json.dumps([after, expires], separators=(",", ":")).encode()
        return _text(self._sign(payload, tenant, route, query) + payload)

    def decode(self, token: str, *, tenant: str, route: str, query: Mapping[str, Any], now: datetime) -> str:
        """Value that :meth:`encode` was given. ``InvalidInput`` for a forged, foreign or expired token."""
        try:
            raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        except ValueError:
            raise _foreign_token() from None
        signature, payload = raw[:_SIGNATURE], raw[_SIGNATURE:]
        # one text per token: spare bits of the last character must not make a second one
        if not hmac.compare_digest(signature, self._sign(payload, tenant, route, query)) or _text(raw) != token:
            raise _foreign_token()
        after, expires = json.loads(payload)
        if now.timestamp() >= expires:
            raise InvalidInput.of_parameter("page_token", "has expired; start from the first page.")
        return str(after)

    def _sign(self, payload: bytes, tenant: str, route: str, query: Mapping[str, Any]) -> bytes:
        bound = json.dumps([tenant, route, sorted(query.items())], separators=(",", ":")).encode()
        return hmac.new(self._key, bound + b"\x00" + payload, hashlib.sha256).digest()


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _foreign_token() -> InvalidInput:
    return InvalidInput.of_parameter("page_token", "is not one of this list and query.")
