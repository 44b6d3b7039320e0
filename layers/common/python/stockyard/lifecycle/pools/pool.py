"""Next steps of a pool: pure functions from (records, what was seen, now) to a decision.

::

    ClusterNotReady ──cluster ready──> Scaling ──all there──> Ready
                                          ▲ │                   │
                                          │ └─QuotaExceeded     │ a node is lost, the quantity changes
                                          └─────────────────────┘
    (any) ──deletion──> Deleting ──no claim is there──> gone

``now`` is RFC 3339 text. Nothing here reads a clock or a store.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from datetime import timedelta

from stockyard.domain.nodes.records import NodeClaim
from stockyard.domain.pools.records import STATIC, Pool
from stockyard.domain.records import Cluster
from stockyard.domain.values import times
from stockyard.domain.values.conditions import Condition, with_condition
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.states import Truth
from stockyard.lifecycle.nodes.drift import is_drifted
from stockyard.lifecycle.pools.spread import fullest_first

READY = "Ready"
POOLS_READY = "PoolsReady"
"""The condition of a cluster that says whether its pools have the nodes that they are to have."""
POOLS_NOT_READY = "PoolsNotReady"
PODS_HAVE_ROOM = "PodsHaveRoom"
"""The condition of a cluster that says whether the pools could make a node for each pod that waits."""
WITHIN_LIMITS, LIMIT_REACHED = "WithinLimits", "LimitReached"
"""The condition of a pool whose limits keep pods waiting, or did so once."""
PREPARING = "Preparing"
"""What events call a pool that lacks nodes."""
NOT_READY, SCALING, SATISFIED, LEAVING, QUOTA = "ClusterNotReady", "Scaling", "Satisfied", "Deleting", "QuotaExceeded"
BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS = 30, 3600
"""How long a pool waits after a claim became no node; twice as long after each further one."""
OTHER_TYPES = 24
"""After so many refused launches in a row a pool pauses after these too: the types are hardly to blame. Until then the
next claim is made at once, of another type."""
FORGOTTEN_SECONDS = 24 * 3600
"""After so long without another failure the next one is the first again."""
LOOK_AGAIN_SECONDS = 300
"""When a pool that lacks nodes is looked at again though nothing was told of it."""
SETTLED_SECONDS = 1800
"""When a pool that lacks nothing is looked at again: the event that would wake a pass may be lost, or its pass die."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Decision on a pool: make so many claims, give these back. ``pool`` is the record as it is to be."""

    pool: Pool
    create: int = 0
    give_back: tuple[NodeClaim, ...] = ()
    remove: bool = False
    """Whether the record goes: nothing is left of a pool that is deleted."""


def wanted_nodes(pool: Pool) -> int:
    """Number of nodes that the pool has to have, whatever pods there are."""
    return pool.quantity if pool.kind == STATIC else pool.floor


def living(claims: Sequence[NodeClaim]) -> list[NodeClaim]:
    """The claims that are, or may become, nodes."""
    return [claim for claim in claims if not claim.deleting and claim.phase != "Failed"]


def decide(
    pool: Pool, cluster: Cluster, claims: Sequence[NodeClaim], now: str, replacements: Set[str] = frozenset()
) -> Decision:
    """The next step of a pool; ``claims`` are all of it that exist, those on their way out too.

    ``replacements`` are ids of claims that a decision of disruption has made in the place of others. One that fails is
    given back, and is no reason to pause: the decision ends, and remembers what could not be had.
    """
    if pool.deleting:
        leaving = tuple(claim for claim in claims if not claim.deleting)
        many = f"{len(claims)} nodes are" if len(claims) > 1 else "1 node is"
        text = f"{many} given back." if claims else "Every node is gone."
        changed = _condition(_due_within(pool, now, LOOK_AGAIN_SECONDS), "False", LEAVING, text, now)
        return Decision(changed, give_back=leaving, remove=not claims)
    if cluster.status != "ready":
        text = f"Cluster {cluster.name} is {cluster.status}; its pools make nodes when it is ready."
        seconds = SETTLED_SECONDS if cluster.status == "failed" else LOOK_AGAIN_SECONDS
        return Decision(_condition(_due_within(pool, now, seconds), "False", NOT_READY, text, now))
    # A claim that became no node is given back and replaced. While somebody looks at its machine it stays.
    failed = [claim for claim in claims if claim.phase == "Failed" and not claim.deleting]
    replaced = tuple(claim for claim in failed if claim.kept_until is None or claim.kept_until < now)
    current = living(claims)
    target = wanted_nodes(pool)
    surplus = surplus_of(pool, current) if pool.kind == STATIC else ()
    own = [claim for claim in replaced if claim.id not in replacements]
    pool = _after_failures(_recovered(pool, current), own, now)
    missing = 0 if pauses(pool, now) else max(0, target - len(current))
    available = sum(claim.phase == "Available" for claim in current)
    if available >= target and not surplus:
        settled = _due_within(pool, now, SETTLED_SECONDS)
        return Decision(_condition(settled, "True", SATISFIED, _count(pool, available, target), now), 0, replaced)
    due = _due_within(pool, now, LOOK_AGAIN_SECONDS)
    pause = f" The pool {pause_text(pool)}." if pauses(pool, now) else ""
    changed = _condition(due, "False", SCALING, _count(pool, available, target) + pause, now)
    return Decision(changed, missing, (*replaced, *surplus))


def pauses(pool: Pool, now: str) -> bool:
    """Whether the pool makes no claim for now, because earlier ones became no node."""
    return pool.retry_at is not None and now < pool.retry_at


def pause_text(pool: Pool) -> str:
    """Until when a pool that pauses makes no claim, and why, in words."""
    times_failed = "once" if pool.failures == 1 else f"{pool.failures} times in a row"
    return f"makes no node until {pool.retry_at}, because its claims became none {times_failed}"


def surplus_of(pool: Pool, current: Sequence[NodeClaim], most: int | None = None) -> tuple[NodeClaim, ...]:
    """The claims that a pool with fewer nodes gives back first: those without a machine, then those that are not
    available, then those that are not as they would be made now, then the youngest. ``most`` is how many stay; None: as
    many as the pool has to have."""
    count = len(current) - (wanted_nodes(pool) if most is None else most)
    if count <= 0:
        return ()

    # Pools with zones stay even before all else: what goes is of the fullest one by then.
    def preference(claim: NodeClaim) -> tuple[bool, bool, bool, int]:
        stale = claim.pool_generation != pool.generation or is_drifted(claim)
        return (claim.placement is not None, claim.phase == "Available", not stale, -_age(claim))

    ordered = sorted(current, key=lambda claim: (*preference(claim), claim.id))
    return tuple(fullest_first(pool.zones, ordered, current)[:count])


def refused(pool: Pool, reason: str, message: str, now: str) -> Pool:
    """A pool that could not make its claims for now."""
    changed = _condition(pool, "False", reason, message, now)
    return replace(changed, due_at=later_than(now, LOOK_AGAIN_SECONDS))


def looked_at_within(pool: Pool, now: str, seconds: int) -> bool:
    """Whether the schedule looks at the pool in at most so many seconds."""
    return pool.due_at is not None and pool.due_at <= later_than(now, seconds)


def later_than(now: str, seconds: int) -> str:
    """The moment so many seconds after ``now``."""
    return times.to_text(times.from_text(now) + timedelta(seconds=seconds))


def pools_condition(pools: Sequence[Pool], now: str) -> Condition:
    """``PoolsReady`` of a cluster with these pools."""
    waiting = [pool for pool in pools if not is_ready(pool) and not pool.deleting]
    if not waiting:
        return Condition(POOLS_READY, "True", SATISFIED, "All pools have their nodes.", now)
    reasons = "; ".join(f"{pool.name}: {_message(pool)}" for pool in waiting[:3])
    more = f" (and {len(waiting) - 3} more)" if len(waiting) > 3 else ""
    return Condition(POOLS_READY, "False", POOLS_NOT_READY, f"{reasons}{more}", now)


def pods_condition(message: str | None, now: str, waits: str | None = None) -> Condition:
    """``PodsHaveRoom`` of a cluster: ``message`` says which pods no pool takes, and why, or which have not used their
    room; None when all have room. ``waits`` says which of these have not taken it yet."""
    if message:
        return Condition(PODS_HAVE_ROOM, "False", "NoPoolFits", " ".join(filter(None, (message, waits))), now)
    text = " ".join(filter(None, ("Every pod that waits has a node or one on its way.", waits)))
    return Condition(PODS_HAVE_ROOM, "True", SATISFIED, text, now)


def within_limits(pool: Pool, message: str | None, now: str) -> Pool | None:
    """The pool that says which pods its limits keep waiting; None for none. None where it says so already."""
    last = next((condition for condition in pool.conditions if condition.type == WITHIN_LIMITS), None)
    if message:
        condition = Condition(WITHIN_LIMITS, "False", LIMIT_REACHED, message, now)
    else:
        condition = Condition(WITHIN_LIMITS, "True", SATISFIED, "The limits of the pool keep no pod waiting.", now)
    if (last is None and not message) or (last is not None and last.message == condition.message):
        return None
    return replace(pool, conditions=with_condition(pool.conditions, condition), updated_at=now)


def is_ready(pool: Pool) -> bool:
    """Whether the pool has the nodes that it is to have."""
    return any(condition.type == READY and condition.status == "True" for condition in pool.conditions)


def shown_status(pool: Pool) -> str:
    """The state of a pool as events name it."""
    if pool.deleting:
        return LEAVING
    return READY if is_ready(pool) else PREPARING


def _after_failures(pool: Pool, failed: Sequence[NodeClaim], now: str) -> Pool:
    # A node that was there and is lost is replaced at once; one that never came would fail again just so.
    # Claims that were made before a pause failed for the reason that it was made for, and make it no longer.
    since = pool.retry_at or ""
    never_joined = [claim for claim in failed if not claim.node_name and claim.created_at >= since]
    if not never_joined:
        return pool
    earlier = replace(pool, failures=0, refusals=0) if since and later_than(since, FORGOTTEN_SECONDS) < now else pool
    refusals = earlier.refusals + all(claim.launch_refused for claim in never_joined)
    failures = earlier.failures + 1
    steps = failures - refusals + max(0, refusals - OTHER_TYPES)
    wait = min(BACKOFF_SECONDS * 2 ** (min(steps, 10) - 1), LONGEST_BACKOFF_SECONDS) if steps else 0
    retry_at = later_than(now, wait)
    return replace(pool, failures=failures, refusals=refusals, retry_at=retry_at, due_at=retry_at)


def _recovered(pool: Pool, current: Sequence[NodeClaim]) -> Pool:
    """The pool without its failures, once a claim that was made after the last of them is a node."""
    since = pool.retry_at
    if since is None or not any(claim.phase == "Available" and claim.created_at >= since for claim in current):
        return pool
    return replace(pool, failures=0, refusals=0, retry_at=None)


def _due_within(pool: Pool, now: str, seconds: int) -> Pool:
    """The pool, to be looked at in so many seconds, or when it was to be looked at before that."""
    if pool.due_at is not None and now < pool.due_at and looked_at_within(pool, now, seconds):
        return pool
    return replace(pool, due_at=later_than(now, seconds))


def _age(claim: NodeClaim) -> int:
    return times.epoch(times.from_text(claim.created_at))


def _count(pool: Pool, available: int, target: int) -> str:
    if available > target and pool.kind == STATIC:
        return f"{available} nodes are available, of which {available - target} leave."
    if available > target:  # They came for pods, and nothing says that any of them leaves.
        return f"{available} nodes are available." if available > 1 else "1 node is available."
    return f"{available} of {target} nodes are available."


def _message(pool: Pool) -> str:
    return next((condition.message for condition in pool.conditions if condition.type == READY), "Not looked at yet.")


def _condition(pool: Pool, status: Truth, reason: str, message: str, now: str) -> Pool:
    return replace(pool, conditions=with_condition(pool.conditions, Condition(READY, status, reason, message, now)))
