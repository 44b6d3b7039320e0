"""A call of a route as it came in, the dependencies of the edge, and facts about the call that are known so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from stockyard.domain.records import AuditRecord
from stockyard.domain.values.frozen import dataclass
from stockyard.edge import waiting
from stockyard.edge.contract import Handler, Route
from stockyard.edge.http.paging import PageCodec
from stockyard.edge.idempotency import IdempotencyLease, Keys
from stockyard.edge.identity import ANONYMOUS, Caller

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger


def _everybody(tenant: str) -> None:
    """No limit."""


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Dependencies of the edge: a tenant's keys and audit log, the key of page tokens, time, randomness."""

    keys: Callable[[str], Keys] | None
    audit: Callable[[str, AuditRecord], None] | None
    page_key: Callable[[], bytes] | None
    clock: Callable[[], datetime]
    randomness: Callable[[int], bytes]
    logger: Logger
    admit: Callable[[str], None] = _everybody
    """Raises ``Throttled`` when the tenant has had its share."""
    turns: waiting.Turns = waiting.no_turns
    """Lets a tenant's request wait, if not too many do."""
    questions: waiting.Turns | None = None
    """Lets a tenant's question be answered, if not too many are; None: any number is."""
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Call:
    """One call of one route. ``params`` are those of its path, ``now`` is when it came."""

    dependencies: Dependencies
    route: Route
    handler: Handler
    event: Mapping[str, Any]
    params: Mapping[str, str]
    request_id: str
    now: datetime

    @property
    def path(self) -> str:
        """The path as it was sent."""
        return str(self.event.get("rawPath") or self.route.path)

    def pages(self) -> PageCodec:
        """Codec of the tokens of the route's pages."""
        if self.dependencies.page_key is None:
            raise TypeError(f"{self.route.name} pages, but its function has no page_key")
        return PageCodec(self.dependencies.page_key())

    def token_binding(self, caller: Caller, query: Mapping[str, Any]) -> dict[str, Any]:
        """Values that the token of a page is bound to."""
        return {"tenant": caller.tenant, "route": self.path, "query": query, "now": self.now}


@dataclass(frozen=True, slots=True)
class HeldKey:
    """An idempotency key that this call holds: nobody else's call with the key is carried out meanwhile."""

    keys: Keys
    lease: IdempotencyLease


@dataclass(frozen=True, slots=True)
class Progress:
    """Facts about a call that are known so far. Each step gives the next one more of them; an error is answered, logged
    and audited with those that were known when it came."""

    caller: Caller = ANONYMOUS
    is_dry_run: bool = False
    field_names: tuple[str, ...] = ()
    """The names of the body's fields."""
    held_key: HeldKey | None = None
    is_audited: bool = False
