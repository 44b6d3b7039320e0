"""Claims that a scheduling pass looks at: those that woke it, and the older ones that still wait."""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from stockyard.domain.month_budgets import BUDGETS, BudgetWatch
from stockyard.domain.platform import PLATFORM
from stockyard.domain.records import NodeClaim
from stockyard.errors import rather_retryable
from stockyard.metrics import CLAIMS_WAITING
from stockyard.operations.node_providers.allowed_types import ID as ALLOWED_TYPES
from stockyard.operations.scheduler.waiting import SCHEDULED, WOKEN, Waiting
from stockyard.operations.services import Services
from stockyard.ports import RecordChange, Registry
from stockyard.scheduling.order import by_priority_and_age

OLDER = 500
"""Waiting claims that a woken pass reads besides, so that a younger one does not take the place they wait for. When
more wait, it reads what its own tenants wait for, and for all of them takes tenants in turn."""
OVERDUE = 5000
"""Claims that a pass of the schedule looks at. When more wait, it takes tenants in turn and ends with the one that
makes it as many: the next pass goes on behind that."""
AT_ONCE = 500
"""Claims of one tenant that are placed in one turn."""
PASS_SECONDS = 40.0
"""How long a pass begins new turns: the function has 60 seconds."""
BUDGETS_SECONDS = 10.0
"""How long a pass begins to look at budgets behind that. All of them are due when a month begins; what is left is due
still for the next pass."""

Claims = Iterable[tuple[str, NodeClaim]]


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes that the scheduler follows: claims that wait for a node type, as they were written then; the tenants that
    are ``roomier``, because a claim of theirs may be placed now that could not before; (tenant, id) of changed
    providers; and the tenants whose ``budgets`` were set or taken away.
    """

    claims: Sequence[tuple[str, NodeClaim]]
    roomier: frozenset[str]
    providers: frozenset[tuple[str, str]]
    budgets: frozenset[str] = frozenset()

    @classmethod
    def of(cls, written: Iterable[RecordChange]) -> Changes:
        """Read these changes of records."""
        claims: list[tuple[str, NodeClaim]] = []
        roomier: set[str] = set()
        providers: set[tuple[str, str]] = set()
        budgets: set[str] = set()
        for change in written:
            if change.kind == "NodeClaim":
                claim = change.record()
                # One that was changed while it waits, or was told why it does, is looked at by the schedule.
                begins = isinstance(claim, NodeClaim) and (change.created or claim.due_at == claim.updated_at)
                if isinstance(claim, NodeClaim) and claim.due_at and begins:
                    claims.append((change.tenant, claim))
            if change.kind == "NodeProvider" and not change.created:
                providers.add((change.tenant, change.id))
            if _makes_room(change):
                roomier.add(change.tenant)
            if (change.kind, change.id) == ("Fact", BUDGETS):
                budgets.add(change.tenant)
        return cls(claims, frozenset(roomier), frozenset(providers), frozenset(budgets))


def _makes_room(change: RecordChange) -> bool:
    return (
        change.kind == "NodeProvider"
        or (change.kind == "Counter" and change.id.startswith("capacity/") and change.lowered)
        or (change.kind == "Cluster" and change.status == "ready")
        or (change.kind == "Fact" and change.id in (ALLOWED_TYPES, BUDGETS))
    )


@dataclass(frozen=True, slots=True)
class Scheduler:
    """The ports of the scheduler, which works for all tenants, each by itself."""

    registry: Registry
    services_of: Callable[[str], Services]
    seconds: Callable[[], float] = time.monotonic

    def woken(self, claims: Claims, now: datetime, roomier: Collection[str] = ()) -> Mapping[str, int]:
        """Place these claims, and with them older waiting claims of the same tenants and of the tenants in ``roomier``:
        a place was given back, or what may be placed has changed. Of what the platform shares that is so for all."""
        all_of_them = PLATFORM in roomier
        waiting = Waiting(self.registry, {tenant: {} for tenant in roomier if tenant != PLATFORM})
        waiting.add(claims)
        named = frozenset(waiting.by_tenant)
        if named or all_of_them:
            due = self.registry.due(NodeClaim, now, OLDER, tenants=None if all_of_them else named)
            if len(due) < OLDER:
                waiting.add(due)
            else:
                waiting.read(sorted(named))
                if all_of_them:
                    waiting.read_round_robin(now, OLDER, WOKEN)
        return self._all(waiting)

    def overdue(self, now: datetime) -> Mapping[str, int]:
        """Place everything that still waits, or of too much what has its turn."""
        waiting = Waiting(self.registry)
        waiting.read_round_robin(now, OVERDUE, SCHEDULED)
        return self._all(waiting, scheduled=True)

    def review(self, tenants: Iterable[str]) -> int:
        """Look at the budgets of these tenants; how many events tell of them."""
        from stockyard.operations.costs.review import review

        return sum(review(self.services_of(tenant)) for tenant in sorted(tenants))

    def review_budgets(self, now: datetime) -> int:
        """Look at the budgets that are due, the longest due first, until the time is over; how many events tell of
        them. One tenant's failure keeps none of the others; at the end the first is raised, rather one worth a retry.
        """
        events, ends_at = 0, self.seconds() + BUDGETS_SECONDS
        failure: Exception | None = None
        for tenant in dict.fromkeys(tenant for tenant, _ in self.registry.due(BudgetWatch, now, OVERDUE)):
            if self.seconds() >= ends_at:
                break
            try:
                events += self.review([tenant])
            except Exception as error:
                failure = rather_retryable(failure, error)
        if failure is not None:
            raise failure
        return events

    def compare(self, providers: Iterable[tuple[str, str]]) -> int:
        """Compare the nodes of (tenant, id of a changed provider) with it; how many claims say something else now."""
        from stockyard.operations.node_claims.drift import compare_providers

        by_tenant: dict[str, list[str]] = {}
        for tenant, provider in providers:
            by_tenant.setdefault(tenant, []).append(provider)
        return sum(compare_providers(self.services_of(tenant), changed) for tenant, changed in by_tenant.items())

    def _all(self, waiting: Waiting, *, scheduled: bool = False) -> Mapping[str, int]:
        """The tenant whose claim waits longest comes first: places of shared providers are for all of them. A turn is
        ``AT_ONCE`` claims; who has more goes on when all others had theirs, and with the next pass when the time is
        over. One tenant's failure, a fault of ours too, keeps none of the others; when all were tried the first is
        raised, rather one worth a retry."""
        total: Tally[str] = Tally(bound=0, waiting=0, lost=0, left=0)
        by_tenant, failure = waiting.by_tenant, waiting.failure
        order = sorted(by_tenant, key=lambda name: (_longest(by_tenant[name]), name))
        rounds = deque((tenant, by_priority_and_age(by_tenant[tenant].values())) for tenant in order)
        ends_at = self.seconds() + PASS_SECONDS
        while rounds and self.seconds() < ends_at:
            from stockyard.operations.scheduler.schedule import schedule  # most runs of the schedule place nothing

            tenant, claims = rounds.popleft()
            try:
                report = schedule(self.services_of(tenant), claims[:AT_ONCE])
            except Exception as error:
                failure = rather_retryable(failure, error)
                continue
            if len(claims) > AT_ONCE:
                rounds.append((tenant, claims[AT_ONCE:]))
            total.update(bound=report.bound, waiting=report.waiting, lost=report.lost, left=report.unplaced)
        total.update(left=sum(len(claims) for _, claims in rounds))
        if scheduled:
            still = sum(map(len, by_tenant.values())) - total["bound"] - total["lost"]
            self.services_of(PLATFORM).telemetry.measure("claims waiting", CLAIMS_WAITING, still)
        if failure is not None:
            raise failure
        return dict(total)


def _longest(claims: Mapping[str, NodeClaim]) -> str:
    """Since when the one waits that waits longest."""
    return min((claim.created_at for claim in claims.values()), default="")
