"""The record of what is being done to a cluster's nodes for their price, their age or their drift."""

from __future__ import annotations

from dataclasses import dataclass, field

from stockyard.domain.budgets import UNDERUTILIZED
from stockyard.domain.node_records import VersionedRecord

IDLE, PROPOSED, REPLACING = "Idle", "Proposed", "Replacing"
"""States of a cluster's disruption: nothing is decided; a decision waits to be confirmed; what comes is being made."""


def hold_key(reason: str, pool: str) -> str:
    """What is held back after a decision for the reason failed: of nodes that leave for their price all, as one
    decision is about many pools, of others those of the pool."""
    return reason if reason == UNDERUTILIZED else f"{reason}/{pool}"


@dataclass(frozen=True, slots=True)
class ClusterDisruption(VersionedRecord):
    """The decision that is being carried out in a cluster, one at a time. ``id`` is the cluster's.

    A decision is proposed, confirmed by a later look that comes to the same, and then carried out: the replacements are
    made, and when all of them are available the nodes are given back. From then on their deletion goes its own way, and
    the next decision may come.
    """

    created_at: str
    updated_at: str
    due_at: str | None = None
    """When the next look is due; None: never by the schedule."""
    state: str = IDLE
    reason: str = ""
    """``Empty``, ``Drifted`` or ``Underutilized``."""
    nodes: tuple[str, ...] = ()
    """Ids of the claims that go."""
    replacements: tuple[str, ...] = ()
    """Ids of the claims that come in their place."""
    price_before: float = 0.0
    """What the nodes that go cost in USD an hour."""
    price_after: float = 0.0
    """What those that come cost in USD an hour."""
    possible: float | None = None
    """What could be saved at best in USD an hour when it was last looked for; None where that is not known."""
    decided_at: str = ""
    leaving: bool = False
    """Whether the nodes of the decision are being given back: that they leave has been told and counted."""
    held_until: dict[str, str] = field(default_factory=dict)
    """Until when the same is not decided again, because such a decision was given up: by its reason, of nodes that do
    not leave for their price with their pool, as ``Drifted/web``."""
    held_times: dict[str, int] = field(default_factory=dict)
    """How many times in a row that was."""
    switched_off: bool = False
    """Whether somebody has paused the disruption of the cluster."""
    savings: dict[str, float] = field(default_factory=dict)
    """By pool: USD an hour that decisions of ``savings_month`` have saved; below zero where its nodes became dearer."""
    savings_month: str = ""
    """The month in which nodes last left for their price, as ``2026-01``."""
    left_at: str = ""
    """When nodes last left for their price. Empty: never, or their pods have found no place, which is noted."""
    careful_until: str = ""
    """Until when only such nodes leave whose pods have a place however they are spread. Empty: it is not so."""
    rests_until: str = ""
    """Until when no node leaves for its price, because a careful decision was too tight too."""
    message: str = ""
    """What was decided, or why nothing was, in words."""
    sequence: int = 0

    def is_held(self, key: str, now: str) -> bool:
        """Whether what ``held_until`` has under the key is not to be decided now."""
        return now < self.held_until.get(key, "")

    def no_savings_until(self, now: str) -> str:
        """Until when no node leaves for its price, whatever it would save; empty: some may now."""
        until = max(self.rests_until, self.held_until.get(UNDERUTILIZED, ""))
        return until if now < until else ""

    @property
    def going(self) -> frozenset[str]:
        """Ids of the claims whose nodes are to be replaced now, so that nothing may count on them any more."""
        return frozenset(self.nodes) if self.state == REPLACING else frozenset()
