"""Whether what comes in the place of nodes that go will come: a replacement that fails ends its decision at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stockyard.domain.pools.disruption_records import ClusterDisruption
from stockyard.domain.pools.records import Pool
from stockyard.domain.pools.replacements import failure_of
from stockyard.domain.records import NodeClaim
from stockyard.lifecycle.nodes.node_phases import SCHEDULED
from stockyard.lifecycle.pools.pool import living, pause_text, pauses
from stockyard.operations.services import Services

START_SECONDS = 330
"""How long the pass may take that makes the replacements: its function has five minutes."""
REPLACE_SECONDS = 1200
"""How long replacements may take before the decision is given up."""
BIND_SECONDS = 30
"""How long a claim that the scheduler has never placed may wait."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Reason why the nodes of a decision will not come, in words, and the node ``types`` that could not be had, where
    that is known."""

    message: str
    types: tuple[str, ...] = ()

    @classmethod
    def of(cls, failure: Mapping[str, str], more: str = "") -> Failure:
        """The failure of a claim, see ``failure_of``; ``more`` is said after its message."""
        texts = (failure["message"] or "its claim is being removed.", more)
        types = tuple(name for name in failure["types"].split(",") if name)
        return cls(" ".join(("A replacement did not come:", *filter(None, texts))), types)


def hopeless(
    services: Services,
    pools: Sequence[Pool],
    claims: Sequence[NodeClaim],
    record: ClusterDisruption,
    waits_for: str | None,
) -> Failure | None:
    """Reason why what the decision ``waits_for`` (None: nothing) will not come; None: it may."""
    failure = _lost_replacement(services, claims, record)
    if failure is not None or not waits_for:
        return failure
    too_long = Failure(f"After {REPLACE_SECONDS // 60} minutes it still waited for {waits_for}.")
    is_late = services.seconds_since(record.decided_at) > REPLACE_SECONDS
    return _failing_pool(services, pools, claims, record) or (too_long if is_late else None)


def _lost_replacement(services: Services, claims: Sequence[NodeClaim], record: ClusterDisruption) -> Failure | None:
    """Reason why one of the replacements that the decision has asked for becomes no node; None while each may."""
    by_id = {claim.id: claim for claim in claims}
    # The pass that makes them may still be at it.
    complete = record.all_made or services.seconds_since(record.decided_at) > START_SECONDS
    for claim_id in record.replacements:
        claim = by_id.get(claim_id)
        if claim_id in record.failures:
            return Failure.of(record.failures[claim_id])
        if claim is None:
            if complete:
                return Failure("A replacement did not come: its claim was removed.")
        elif claim.deleting:
            return Failure.of({"message": claim.message, "types": ""})
        elif claim.phase == "Failed" or _is_unplaceable(services, claim):
            return Failure.of(failure_of(claim))
    return None


def _failing_pool(
    services: Services, pools: Sequence[Pool], claims: Sequence[NodeClaim], record: ClusterDisruption
) -> Failure | None:
    """Reason why a pool that makes replacements by itself makes nothing now; None where it may. One failure is not the
    end: the pool tries again after its pause."""
    if record.replacements:
        return None
    names = {claim.pool for claim in claims if claim.id in record.nodes}
    for pool in (pool for pool in pools if pool.name in names):
        coming = [claim for claim in living(claims) if claim.pool == pool.name and claim.phase == "Pending"]
        unplaceable = [claim for claim in coming if _is_unplaceable(services, claim)]
        if unplaceable and unplaceable == coming:
            return Failure.of(failure_of(unplaceable[0]))
        if record.failures and not coming and pauses(pool, services.now()):
            last = next(reversed(record.failures.values()))
            return Failure.of(last, f"Pool {pool.name} {pause_text(pool)}.")
    return None


def _is_unplaceable(services: Services, claim: NodeClaim) -> bool:
    """Whether the scheduler has found no node type for the claim. It has looked at once after a refusal."""
    if claim.phase != "Pending" or claim.placement is not None:
        return False
    if claim.last_refusal is not None and claim.message != claim.last_refusal:
        return True
    condition = next((entry for entry in claim.conditions if entry.type == SCHEDULED and entry.status == "False"), None)
    return condition is not None and services.seconds_since(condition.last_transition_time) >= BIND_SECONDS
