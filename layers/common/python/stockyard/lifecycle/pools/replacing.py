"""The progress of a pool towards the goal of a change of its cluster: pure, of the pool and its claims."""

from __future__ import annotations

from collections.abc import Sequence, Set

from stockyard.domain.pools.records import Pool
from stockyard.domain.records import NodeClaim
from stockyard.domain.values.frozen import dataclass
from stockyard.lifecycle.nodes.node_claim import AVAILABLE
from stockyard.lifecycle.pools.no_types import why_claims_wait
from stockyard.lifecycle.pools.pool import living, wanted_nodes

WAITS_FOR_MARKET = frozenset({"SpotPriceAboveBid"})
"""Reasons for which a claim waits that no operation waits for: a price may not come back for days."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a pool towards the nodes that it lacks. ``up_to_date`` of ``total`` nodes are as they are to be."""

    pool: str
    total: int
    up_to_date: int
    stale: tuple[str, ...] = ()
    """Names of the nodes that are still as they were."""
    coming: tuple[str, ...] = ()
    """Names of nodes that come up."""
    leaving: tuple[str, ...] = ()
    """Names of nodes that are drained or being given back."""
    why: str | None = None
    """Why nodes that come have no node type yet; None where they have one."""

    @property
    def done(self) -> bool:
        """Whether all is as wanted, and what was too much is gone."""
        return self.up_to_date >= self.total and not (self.stale or self.leaving)

    def text(self) -> str:
        """In words: how many of how many, then the nodes by name."""
        parts = [f"{self.pool}: {self.up_to_date} of {self.total} nodes are as wanted"]
        parts += [
            f"{', '.join(sorted(names)[:MOST_NAMES])}{' and others' if len(names) > MOST_NAMES else ''} {verb}"
            for names, verb in (
                (self.coming, "comes up" if len(self.coming) == 1 else "come up"),
                (self.leaving, "is drained" if len(self.leaving) == 1 else "are drained"),
            )
            if names
        ]
        parts += [self.why.rstrip(".")] if self.why else []
        return "; ".join(parts)


MOST_NAMES = 5


def progress_of(pool: Pool, claims: Sequence[NodeClaim], stale: Set[str]) -> Progress:
    """``claims`` are all of the pool, ``stale`` the ids of those whose nodes are not as they would be made now."""
    current = living(claims)
    waiting = [claim for claim in current if claim.phase != AVAILABLE and claim.reason not in WAITS_FOR_MARKET]
    patient = [claim for claim in current if claim.phase != AVAILABLE and claim.reason in WAITS_FOR_MARKET]
    fresh = [claim for claim in current if claim.phase == AVAILABLE and claim.id not in stale]
    # Nodes that a pool is to have in any case, and what others there are for pods.
    total = max(wanted_nodes(pool) - len(patient), len(current) - len(patient))
    return Progress(
        pool.name,
        total,
        len(fresh),
        tuple(claim.name for claim in current if claim.id in stale),
        tuple(claim.name for claim in waiting),
        tuple(claim.name for claim in claims if claim.deleting),
        why_claims_wait(waiting),
    )
