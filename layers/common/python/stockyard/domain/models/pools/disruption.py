"""Disruption of a cluster's nodes: what is being done, what would be done, and the switches that pause it."""

from __future__ import annotations

from stockyard.domain.models.base import Input, View
from stockyard.domain.models.view_fields import UsdHour
from stockyard.domain.values.states import DisruptionState


class DisruptionSwitchPut(Input):
    """The switch that pauses disruption."""

    paused: bool
    """True: no node leaves to save money, because it has drifted or because it is too old. Nodes that are not ready,
    and those that their cloud takes back, are replaced all the same."""


class DisruptionSwitchView(View):
    """The switch of a tenant."""

    paused: bool
    """Whether disruption is paused."""
    updated_at: str | None
    """When it was set last; null for never."""
    version: int
    """Rises each time that it is set; 0 before."""


class PoolSavingView(View):
    """Change of a pool's price by the decisions of this month."""

    pool: str
    """The name of the pool."""
    usd_month: float
    """USD a month of 730 hours."""


class ClusterDisruptionView(View):
    """The decision that is being carried out in a cluster, or the last one, and what decisions save."""

    cluster_id: str
    """The id of the cluster."""
    state: DisruptionState
    """What is being done: nothing, a decision that is looked at again, or nodes that are being replaced."""
    reason: str | None
    """Why the nodes leave, such as ``Empty`` or ``Underutilized``; null for no decision."""
    message: str
    """What goes on, as a sentence."""
    paused: bool
    """Whether the switch of this cluster pauses disruption."""
    paused_by: str | None
    """Which switch pauses it; null when none does."""
    paused_pools: list[str]
    """The pools whose own switch is set: none of their nodes leave, whatever the other switches say."""
    resting_until: str | None
    """Until when nothing is decided, after a decision that was given up; null when it does not rest."""
    nodes: list[str]
    """The ids of the claims whose nodes leave."""
    replacements: list[str]
    """The ids of the claims that come in their place."""
    usd_hour_before: float
    """What the nodes that leave cost together, in USD an hour."""
    usd_hour_after: float
    """What those in their place cost together, in USD an hour."""
    decided_at: str | None
    """When it was decided; null for no decision."""
    due_at: str | None
    """When the decision is looked at again; null when it is not."""
    usd_month_possible: float | None
    """What could be saved at best when that was last looked for, in USD a month; null when it is not known."""
    usd_month_saved: float
    """What decisions of this month have saved, in USD a month."""
    savings: list[PoolSavingView]
    """The same by pool."""


class PlannedReplacementView(View):
    """A node that would come."""

    pool: str
    """The pool that makes the node."""
    type: str
    """The node type."""
    zone: str
    """The zone; ``*`` is any."""
    capacity_type: str
    """``on-demand`` or ``spot``."""
    usd_hour: float
    """What the node costs, in USD an hour."""


class PlannedDisruptionView(View):
    """Disruption that would happen now."""

    reason: str
    """Why the nodes would leave."""
    nodes: list[str]
    """The names of the nodes that would leave."""
    replacements: list[PlannedReplacementView]
    """What would come first in their place."""
    usd_hour_before: float
    """What the nodes that leave cost together, in USD an hour."""
    usd_hour_after: float
    """What those in their place cost together, in USD an hour."""
    usd_month_saved: float
    """What that saves, in USD a month."""
    usd_month_possible: float | None
    """What could be saved at best, in USD a month; null when it is not known."""


class PreviewedNodeView(View):
    """A node: whether it would leave now, and why."""

    name: str
    """The name of the node."""
    claim_id: str
    """The id of its claim."""
    pool: str
    """The pool that it is of; empty for none."""
    type: str
    """Its node type."""
    usd_hour: UsdHour
    """What the node counts with when a saving is looked for, in USD an hour: of spot the least that it cost of late, so
    that no saving is gone with the next price. Null while no price is known."""
    leaves: bool
    """Whether it would leave now."""
    why: str
    """The reason for which it leaves, or the rule that keeps it."""
    until: str | None
    """Until when the rule keeps it, if it ends by itself; else null."""


class DisruptionPreviewView(View):
    """Nodes that would leave now. A decision is carried out only on fresh news, and when a second look comes to the
    same."""

    cluster_id: str
    """The id of the cluster."""
    observed_at: str | None
    """When the cluster's agent last told of its pods; null for never."""
    message: str
    """Why nothing would leave, or what goes on."""
    decision: PlannedDisruptionView | None
    """What would be done now; null for nothing."""
    nodes: list[PreviewedNodeView]
    """Each node, and why it would leave or stay."""
