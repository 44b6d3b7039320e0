"""Nodes whose Node object is gone while their machine runs: somebody has deleted it. Pure.

As with Karpenter, to delete a Node ends its machine. The kubelet may register again, when it is started anew: so the
claim waits a moment for that. Members of a control plane are healed by operations of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from stockyard.domain.pools.records import CONTROL_PLANE
from stockyard.domain.pools.workload_records import NodeFacts
from stockyard.domain.records import NodeClaim
from stockyard.domain.values import times
from stockyard.domain.values.conditions import Condition
from stockyard.domain.values.states import Truth
from stockyard.lifecycle.change import Transition
from stockyard.lifecycle.nodes.node_claim import AVAILABLE, FAILED, MOVES, PENDING, shown_phase
from stockyard.lifecycle.nodes.node_phases import JOINED

REPORT_SECONDS = 20
"""How long after its node has joined a claim may be missing in a report: agents list nodes each ten seconds, and their
clocks may be ahead of ours."""
REJOIN_SECONDS = 50
"""How long a node whose object is gone may join again before its machine is ended: until the look of the next
minute."""
MISSED_SECONDS = 300
"""For how long after a node has joined it is looked often whether it is gone, while no report says so for certain."""
MOST_PERCENT = 20
"""Of a pool's nodes at most so many, rounded up, are ended at once: an API server that was restored from an older
snapshot lacks many, and their pods need others first."""
NODE_GONE, NODE_MISSING, REJOINED = "NodeGone", "NodeMissing", "JoinedAgain"
"""Reasons of the condition of joining: the Node object of a node that had joined is gone; pods are bound to a node
whose joining nobody has seen, and that is not there; it is there again."""


def has_vanished(claim: NodeClaim, facts: NodeFacts | None, true_at: str) -> bool:
    """Whether the Node object of a node that had joined is not there any more, by a report of all nodes. ``facts`` are
    what that report has of the node, and ``true_at`` is until when the agent has vouched for it."""
    if facts is not None or claim.phase == FAILED:
        return False
    joined = _joined(claim)
    if joined is not None and joined.reason == NODE_GONE:
        return True
    if joined is not None and joined.reason == NODE_MISSING:
        return times.from_text(joined.last_transition_time) + _REPORT <= times.from_text(true_at)
    since = _there_since(claim)
    return since is not None and since + _REPORT < times.from_text(true_at)


def is_missed(claim: NodeClaim, facts: NodeFacts | None, true_at: str, now: datetime) -> bool:
    """Whether a node that joined a short time ago is in no report, and none is young enough to say that it is gone."""
    since = _there_since(claim)
    if facts is not None or since is None or claim.deleting or claim.phase == FAILED:
        return False
    return now < since + _MISSED and not has_vanished(claim, facts, true_at)


def is_doubtful(claim: NodeClaim, facts: NodeFacts | None, now: datetime) -> bool:
    """Whether a report of all nodes has nothing of a node that is said to be there for longer than agents take to tell
    of it. It need not be gone; whoever asks where pods would go is not to be told that they go there."""
    since = _there_since(claim)
    return facts is None and since is not None and since + _REPORT < now


def gone_since(claim: NodeClaim) -> datetime | None:
    """Moment when the claim's Node object was noted to be gone; None while it is there."""
    joined = _joined(claim)
    if joined is None or joined.reason not in (NODE_GONE, NODE_MISSING):
        return None
    return times.from_text(joined.last_transition_time)


def is_looked_after(claim: NodeClaim) -> bool:
    """Whether a Node object that is gone ends the claim."""
    return not (claim.deleting or claim.phase == FAILED or (claim.control_plane and claim.pool == CONTROL_PLANE))


def noted(
    claim: NodeClaim, facts: NodeFacts | None, true_at: str, now: str, *, has_pods: bool
) -> tuple[NodeClaim, Transition | None] | None:
    """The claim with the news of its Node object, and the events about the news; None where nothing is new.

    ``has_pods``: the report has pods on the node. A Node object was there for them, also where nobody saw it; one that
    has only just come may be missing in the report for a moment, so nothing is told of that.
    """
    name, joined = claim.node_name or claim.name, _joined(claim)
    if facts is not None and joined is not None and joined.reason == NODE_MISSING:
        return _noted(claim, "Unknown", "Pending", f"Node {name} is there.", now)[0], None
    is_noted = gone_since(claim) is not None
    if is_noted and facts is not None:
        return _noted(claim, "True", REJOINED, f"Node {name} has joined again.", now)
    if is_noted or not is_looked_after(claim):
        return None
    end = f"Its machine is ended unless the node joins again within {REJOIN_SECONDS} seconds."
    if has_vanished(claim, facts, true_at):
        return _noted(claim, "False", NODE_GONE, f"Node {name} was deleted in its cluster. {end}", now)
    if facts is None and has_pods and claim.phase == PENDING:
        text = f"Pods are bound to node {name}, which is not there. {end}"
        return _noted(claim, "Unknown", NODE_MISSING, text, now)[0], None
    return None


def to_end(claims: Sequence[NodeClaim], size: int, now: datetime) -> Sequence[NodeClaim]:
    """Claims, of ``claims`` of one pool, whose time to join again is over, the longest gone first; at most
    ``MOST_PERCENT`` of the ``size`` of the pool."""
    since = {claim.id: moment for claim in claims if (moment := gone_since(claim)) is not None}
    over = [claim for claim in claims if claim.id in since and since[claim.id] + _REJOIN <= now]
    most = -(-MOST_PERCENT * size // 100)
    return sorted(over, key=lambda claim: (since[claim.id], claim.id))[:most]


def ends_at(claim: NodeClaim) -> datetime | None:
    """Until when the node may join again; None while its object is there."""
    since = gone_since(claim)
    return since + _REJOIN if since is not None else None


_REPORT, _REJOIN = timedelta(seconds=REPORT_SECONDS), timedelta(seconds=REJOIN_SECONDS)
_MISSED = timedelta(seconds=MISSED_SECONDS)


def _there_since(claim: NodeClaim) -> datetime | None:
    """Since when the node's object is known to have been there; None where nobody has seen it join."""
    joined = _joined(claim)
    if joined is not None and joined.status == "True":
        return times.from_text(joined.last_transition_time)
    return times.from_text(claim.created_at) if claim.phase == AVAILABLE else None


def _joined(claim: NodeClaim) -> Condition | None:
    return next((part for part in claim.conditions if part.type == JOINED), None)


def _noted(claim: NodeClaim, status: Truth, reason: str, text: str, now: str) -> tuple[NodeClaim, Transition]:
    phase = shown_phase(claim)
    changed = MOVES.condition(MOVES.touch(claim, now), JOINED, status, reason, text, now)
    return changed, MOVES.transition(phase, phase, reason, text)
