"""Members of a control plane that live and are not well: what is said of them, and when one is replaced.

Pure, as Cluster API's MachineHealthCheck decides: unhealthy for longer than a limit, and only while most are well. What
becomes of such a member is decided in ``lifecycle.clusters.control_plane``, which keeps etcd's quorum.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from stockyard.domain.records import NodeClaim
from stockyard.domain.values import times
from stockyard.domain.values.conditions import Condition
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.states import Truth
from stockyard.lifecycle.change import Transition
from stockyard.lifecycle.nodes.machine_gone import is_lost
from stockyard.lifecycle.nodes.node_claim import AVAILABLE, MOVES

HEALTHY = "HealthCheckSucceeded"
"""The condition of a member's claim, called as Cluster API calls it."""
ALL_HEALTHY = "ControlPlaneHealthy"
"""The condition of a cluster whose control plane has several members."""
COMPLETE = "ControlPlaneComplete"
"""The condition of a cluster whose control plane has all members that are wanted."""
MARKED = "MembersMarked"
"""The condition of a cluster some of whose members lack the mark by which its own controllers know them."""
UNMARKED = "MarkMissing"
"""Its reason."""
WELL, SILENT, NODE_NOT_READY = "Healthy", "ApiServerSilent", "NodeNotReady"
"""Its reasons: the member answers and its node is ready; the balancer gets no answer of its API server, which has none
without its etcd; its node is not ready, or there is none."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A member as it is seen now. ``answers``: what the balancer says of its API server. ``ready``: what the cluster
    says of its node, ``True`` too where nobody knows; ``since`` is from when on it is not."""

    answers: bool
    ready: bool = True
    since: str = ""


def noted(claim: NodeClaim, sight: Sight, now: str) -> tuple[NodeClaim, Transition] | None:
    """Note what is seen of a member, on its claim; None when it is known. The condition turned when it began to be
    so."""
    status: Truth = "True" if sight.answers and sight.ready else "False"
    reason = WELL if status == "True" else NODE_NOT_READY if sight.answers else SILENT
    earlier = condition_of(claim)
    if earlier is not None and (earlier.status, earlier.reason) == (status, reason):
        return None
    if earlier is None and status == "True":
        return None
    since = min(sight.since, now) if status == "False" and not sight.ready and sight.since else now
    text = _TEXTS[reason].format(claim.host_name or claim.node_name or claim.name)
    changed = MOVES.condition(MOVES.touch(claim, now), HEALTHY, status, reason, text, since)
    return changed, MOVES.transition(claim.phase, claim.phase, reason, text)


MISSING = "MembersMissing"
"""The reason where a member is gone, or not there yet."""
_TEXTS = {
    WELL: "Member {} is healthy.",
    SILENT: "The load balancer gets no answer of the API server on member {}.",
    NODE_NOT_READY: "The node of member {} is not ready.",
}


def condition_of(claim: NodeClaim) -> Condition | None:
    """Condition of the member's health; None where nothing was ever wrong."""
    return next((part for part in claim.conditions if part.type == HEALTHY), None)


def unhealthy(claims: Sequence[NodeClaim]) -> list[NodeClaim]:
    """The members that live and are not well, the one of the longest first."""
    entries = [
        (part.last_transition_time, claim.id, claim)
        for claim in claims
        if claim.phase == AVAILABLE and not claim.deleting
        if (part := condition_of(claim)) is not None and part.status == "False"
    ]
    return [claim for *_, claim in sorted(entries, key=lambda entry: entry[:2])]


def failing(claims: Sequence[NodeClaim], limit_seconds: int, now: str) -> list[NodeClaim]:
    """The members that have not been well for longer than the limit. None where most are not: then the fault is hardly
    theirs, and whoever replaced them would give up the quorum."""
    sick = unhealthy(claims)
    if len(sick) > (len(claims) - 1) // 2:
        return []
    moment = times.from_text(now)
    return [
        claim
        for claim in sick
        if (part := condition_of(claim)) is not None
        and (moment - times.from_text(part.last_transition_time)).total_seconds() > limit_seconds
    ]


def summary(claims: Sequence[NodeClaim], now: str, size: int, gone_ids: Collection[str] = ()) -> Condition:
    """Condition of the health of a control plane of ``size`` members with these claims. ``gone_ids`` are the ids of
    those whose machine is seen to be no more."""
    sick = [claim for claim in unhealthy(claims) if claim.id not in gone_ids]
    parts = [part for claim in sick if (part := condition_of(claim)) is not None]
    texts = [f"{part.message[:-1]} since {part.last_transition_time}." for part in parts]
    healthy = len(there(claims, gone_ids)) - len(sick)
    if healthy >= size:
        return Condition(ALL_HEALTHY, "True", WELL, f"All {healthy} members are healthy.", now)
    missing = [f"{healthy} of {size} members are healthy."] if len(there(claims, gone_ids)) < size else []
    reason = parts[0].reason if parts else MISSING
    return Condition(ALL_HEALTHY, "False", reason, " ".join([*missing, *texts]), now)


def there(claims: Sequence[NodeClaim], gone_ids: Collection[str] = ()) -> list[NodeClaim]:
    """The members that are there, healthy or not."""
    return [
        claim
        for claim in claims
        if claim.phase == AVAILABLE and not claim.deleting and not is_lost(claim) and claim.id not in gone_ids
    ]


def completeness(
    claims: Sequence[NodeClaim], now: str, size: int, gone_ids: Collection[str] = (), more: str = ""
) -> Condition:
    """Condition of how many members there are: with ``more``, and with what keeps new ones from coming up."""
    count = len(there(claims, gone_ids))
    text = f"{count} of {size} members are there."
    if count >= size:
        return Condition(COMPLETE, "True", COMPLETE, text, now)
    coming = [claim for claim in claims if claim.phase != AVAILABLE and not claim.deleting and claim.message]
    reasons = [f"{claim.name}: {claim.message.rstrip('.')}." for claim in coming]
    return Condition(COMPLETE, "False", MISSING, " ".join([text, *reasons, *([more] if more else [])]), now)


def unmarked(text: str, now: str) -> Condition:
    """Condition of members without their mark; ``text`` says which, and what to do."""
    return Condition(MARKED, "False", UNMARKED, text, now)
