"""The quotas that a node claim counts for: all claims, those of its provider, and both for the user who made it."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Sequence

from stockyard.domain.pools.budgets import UNBOUNDED
from stockyard.errors import QuotaExceeded
from stockyard.operations.quotas.limits import PER_USER, limits_of, used
from stockyard.operations.services import Services
from stockyard.ports import Add, Write

CLAIMS = "nodeclaims"
Limits = dict[str, int | None]
"""Limits of quotas by their names; None for no limit."""
_COUNTERS = (f"quota/{CLAIMS}", f"quota/{PER_USER}{CLAIMS}")


def claim_quota_writes(
    services: Services, provider: str, actor: str, by: int, limits: Limits | None = None
) -> list[Add]:
    """Writes by which a transaction counts a claim that comes (``by`` 1, with the limits) or goes (-1).

    ``provider`` is the name the claim asks for, empty for none; ``actor`` who made it. A claim must go as it came.
    ``limits`` are those of quotas that have been read: those that are lacking are read, and entered there.
    """
    names = [CLAIMS, *([f"{CLAIMS}.provider={provider}"] if provider else [])]
    counters = {name: f"quota/{name}" for name in names}
    counters |= {f"{PER_USER}{name}": f"quota/{PER_USER}{name}/{actor}" for name in names}
    limits = {} if limits is None else limits
    lacking = [name for name in counters if name not in limits] if by > 0 else []
    if lacking:
        limits |= limits_of(services, lacking)
    return [Add(counter, by, limit=limits[name] if by > 0 else None) for name, counter in counters.items()]


def used_claims(services: Services) -> int:
    """Number of all claims of the tenant, as they count for its quota."""
    return used(services.store, f"quota/{CLAIMS}")


def remaining_claims(services: Services, provider: str, actor: str) -> int:
    """Number of further claims such as ``claim_quota_writes`` counts that may be made now."""
    rooms = []
    for write in claim_quota_writes(services, provider, actor, 1):
        if write.limit is not None:
            rooms.append(write.limit - used(services.store, write.counter))
    return max(0, min(rooms, default=UNBOUNDED))


def check_claims_room(services: Services, providers: Iterable[str], actor: str) -> None:
    """``QuotaExceeded`` where new claims would go over a quota; ``providers`` has the name that each asks for, or an
    empty one."""
    writes: dict[str, Add] = {}
    added: Tally[str] = Tally()
    for provider, count in Tally(providers).items():
        for write in claim_quota_writes(services, provider, actor, 1):
            writes[write.counter] = write
            added[write.counter] += count
    for counter, write in writes.items():
        if write.limit is not None and used(services.store, counter) + added[counter] > write.limit:
            raise quota_refusal([write], 0)


def quota_refusal(writes: Sequence[Write], index: int) -> QuotaExceeded:
    """The error for a transaction whose write at ``index`` went over its limit. ``ValueError`` for another write."""
    write = writes[index]
    if not isinstance(write, Add) or not write.counter.startswith(_COUNTERS):
        raise ValueError(f"write {index} counts for no quota of claims")
    name = write.counter.removeprefix("quota/")
    scope = "project"
    if name.startswith(PER_USER):
        name, scope = name.removeprefix(PER_USER).partition("/")[0], "per-user"
    text = f"cannot create nodeclaim, because {scope} {name} limit of {write.limit} would be exceeded"
    return QuotaExceeded(f"{text[0].upper()}{text[1:]}.")
