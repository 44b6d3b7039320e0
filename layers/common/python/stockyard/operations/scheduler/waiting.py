"""Reads claims that wait: of some tenants, or of all in turn when more wait than one pass reads.

The index of what is due is in order of time over all tenants, and what can never be placed stays at its head. So it
only tells *who* waits; what a tenant waits for is read from its own records, all of it, so that the fair order holds.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from stockyard.domain.records import Fact, NodeClaim
from stockyard.domain.values import times
from stockyard.errors import Conflict
from stockyard.operations.listing import every
from stockyard.ports import Create, Registry, Replace

SCHEDULED, WOKEN = "scheduled-last", "woken-last"
"""The platform's facts of how far a round over all tenants has come: that of the schedule, and that of events."""
REMEMBERED = 5000
"""Tenants that a round remembers to have had their turn. Of more some have it again, which costs reads only."""
EACH = 50
"""Claims that a tenant's turn counts for at least: its query and its catalogue take time however few there are."""


@dataclass(slots=True)
class Waiting:
    """The claims that a pass looks at, by tenant and id, always the newest seen; and what could not be read."""

    registry: Registry
    by_tenant: dict[str, dict[str, NodeClaim]] = field(default_factory=dict)
    failure: Exception | None = None
    """The first; it keeps none of the other tenants."""

    def add(self, claims: Iterable[tuple[str, NodeClaim]], tenants: Collection[str] | None = None) -> None:
        """Add the claims that were read: of these tenants, or of all."""
        for tenant, claim in claims:
            if tenants is None or tenant in tenants:
                newest = self.by_tenant.setdefault(tenant, {})
                if claim.id not in newest or newest[claim.id].version < claim.version:
                    newest[claim.id] = claim

    def read(self, tenants: Iterable[str]) -> int:
        """Read all that these tenants wait for; how many claims were looked at for it, ``EACH`` for each at least."""
        looked = 0
        for tenant in tenants:
            claims: list[NodeClaim] = []
            try:
                claims = list(every(self.registry.store(tenant), NodeClaim))
            except Exception as error:
                self.failure = self.failure or error
            looked += max(EACH, len(claims))
            self.add((tenant, claim) for claim in claims if claim.due_at is not None)
        return looked

    def read_round_robin(self, now: datetime, most: int, name: str) -> None:
        """Read what the next tenants wait for, until ``most`` claims were looked at; the last tenant's all the same.

        A round, remembered as ``name``, goes once through what waited when it began, so that what comes meanwhile
        cannot make it endless, and each tenant has one turn in it. Of several readers that go on with it at once, one
        says how far it came.
        """
        last = self.registry.platform().get(Fact, name)
        current = _Round.of(last, now)
        due = self.registry.due(NodeClaim, current.began, most, current.since)
        if current.since is None and len(due) < most:
            self.add(due)
            return
        looked, following = 0, current.behind(due) if len(due) == most else None
        for tenant, claim in due:
            if tenant in current.served:
                continue
            if looked >= most:
                following = times.from_text(str(claim.due_at))
                break
            looked += self.read([tenant])
            current.served[tenant] = None
        # Written before anything is placed: what fails there, or takes too long, keeps nobody who comes after it.
        fact = Fact(
            name, current.to_text(following), times.to_text(current.began), version=last.version + 1 if last else 1
        )
        with suppress(Conflict):
            self.registry.platform().commit(Replace(fact) if last else Create(fact))


@dataclass(frozen=True, slots=True)
class _Round:
    """``served`` have had their turn, in this order; ``since`` is where the index is read on, None for its head."""

    began: datetime
    since: datetime | None
    served: dict[str, None]

    @classmethod
    def of(cls, last: Fact | None, now: datetime) -> _Round:
        """The round that was begun, else a new one."""
        if last is None or not last.value:
            return cls(now, None, {})
        progress = json.loads(last.value)
        return cls(times.from_text(last.time), times.from_text(progress["since"]), dict.fromkeys(progress["served"]))

    def behind(self, claims: Sequence[tuple[str, NodeClaim]]) -> datetime:
        """Moment from which the index is read on after these claims: at their last moment, which may have more than was
        read of it."""
        end = times.from_text(str(claims[-1][1].due_at))
        return end if end != self.since else end + times.TICK

    def to_text(self, following: datetime | None) -> str:
        """The memory of the claim for the moment when it is tried again; None when it is over."""
        if following is None:
            return ""
        return json.dumps({"since": times.to_text(following), "served": list(self.served)[-REMEMBERED:]})
