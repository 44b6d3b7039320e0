"""The record of a cluster's disruptions of nodes for price, age or drift."""

from __future__ import annotations

from dataclasses import field
from typing import Final

from stockyard.domain.nodes.records import VersionedRecord
from stockyard.domain.pools.budgets import UNDERUTILIZED
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.states import DisruptionState

IDLE: Final = "Idle"
PROPOSED: Final = "Proposed"
REPLACING: Final = "Replacing"
"""States of a cluster's disruption: nothing is decided; a decision waits to be confirmed; what comes is being made."""
TYPE = "Type"
"""What keys of holds of node types begin with."""


def hold_key(reason: str, pool: str) -> str:
    """The key of a hold that concerns more than one node: after a decision whose replacements came in vain, all nodes
    that leave for their price, as one decision is about many pools; of other reasons those of the pool."""
    return reason if reason == UNDERUTILIZED else f"{reason}/{pool}"


def node_key(reason: str, claim_id: str) -> str:
    """The key of a hold that concerns the node of one claim alone: what came in its place has failed."""
    return f"{reason}/{claim_id}"


def type_key(node_type: str) -> str:
    """The key of a hold that concerns replacements of one node type."""
    return f"{TYPE}/{node_type}"


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
    state: DisruptionState = IDLE
    reason: str = ""
    """``Empty``, ``Drifted`` or ``Underutilized``."""
    nodes: tuple[str, ...] = ()
    """Ids of the claims that go."""
    replacements: tuple[str, ...] = ()
    """Ids of the claims that come in their place."""
    all_made: bool = False
    """Whether every one of ``replacements`` was written: one that is not there has been removed since."""
    failures: dict[str, dict[str, str]] = field(default_factory=dict)
    """Why claims that were to come in their place became no node, by id of the claim: the ``message``, and the
    ``types`` that could not be had. Pools give such claims back."""
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
    """Until when the same is not decided again, because such a decision was given up. By ``node_key`` for one node
    whose replacement failed and by ``type_key`` for what it was to be, by ``hold_key`` for more."""
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

    def node_held_until(self, reason: str, pool: str, claim_id: str, now: str) -> str | None:
        """Until when the claim's node is not to be replaced for the reason; None: it may be now. A hold of all nodes
        that leave for their price is ``no_savings_until``."""
        keys = [node_key(reason, claim_id), *([] if reason == UNDERUTILIZED else [hold_key(reason, pool)])]
        return max((until for key in keys if (until := self.held_until.get(key, "")) > now), default="")

    def held_types(self, now: str) -> frozenset[str]:
        """The node types that no replacement is to be now."""
        keys = (key.partition("/") for key, until in self.held_until.items() if now < until)
        return frozenset(name for kind, _, name in keys if kind == TYPE)

    def no_savings_until(self, now: str) -> str | None:
        """Until when no node leaves for its price, whatever it would save; None: some may now."""
        until = max(self.rests_until, self.held_until.get(UNDERUTILIZED, ""))
        return until if now < until else None

    @property
    def going(self) -> frozenset[str]:
        """Ids of the claims whose nodes are to be replaced now, so that nothing may count on them any more."""
        return frozenset(self.nodes) if self.state == REPLACING else frozenset()
