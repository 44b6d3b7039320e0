"""Disruption of a cluster's nodes: what is being done, what would be done, and the switches that pause it."""

from __future__ import annotations

from typing import Literal

from stockyard.domain.models.base import Input, View


class DisruptionSwitchPut(Input):
    """``paused``: no node leaves to save money, because it has drifted or because it is too old. Nodes that are not
    ready, and those that their cloud takes back, are replaced all the same."""

    paused: bool


class DisruptionSwitchView(View):
    """The switch of a tenant. ``version`` is 0 until it is set."""

    paused: bool
    updated_at: str | None
    version: int


class PoolSavingView(View):
    """What decisions of this month have changed in a pool's price, in USD a month of 730 hours."""

    pool: str
    usd_month: float


class ClusterDisruptionView(View):
    """The decision that is being carried out in a cluster, or the last one. ``nodes`` and ``replacements`` are ids of
    claims.

    ``paused`` is the cluster's own switch, ``paused_by`` says which one holds. After a decision that was given up
    nothing is decided ``resting_until``. ``usd_month_possible`` is what could be saved at best when that was last
    looked for, ``usd_month_saved`` what decisions of this month have saved, also by pool.
    """

    cluster_id: str
    state: Literal["Idle", "Proposed", "Replacing"]
    reason: str | None
    message: str
    paused: bool
    paused_by: str | None
    resting_until: str | None
    nodes: list[str]
    replacements: list[str]
    usd_hour_before: float
    usd_hour_after: float
    decided_at: str | None
    due_at: str | None
    usd_month_possible: float | None
    usd_month_saved: float
    savings: list[PoolSavingView]


class PlannedReplacementView(View):
    """A node that would come. ``zone`` ``*`` is any."""

    pool: str
    type: str
    zone: str
    capacity_type: str
    usd_hour: float


class PlannedDisruptionView(View):
    """What would be done now: the names of the nodes that go, and what comes first in their place."""

    reason: str
    nodes: list[str]
    replacements: list[PlannedReplacementView]
    usd_hour_before: float
    usd_hour_after: float
    usd_month_saved: float
    usd_month_possible: float | None


class PreviewedNodeView(View):
    """A node: whether it would leave now and for which reason, or which rule keeps it, and until when that is so if it
    ends by itself."""

    name: str
    claim_id: str
    pool: str
    type: str
    usd_hour: float | None
    leaves: bool
    why: str
    until: str | None


class DisruptionPreviewView(View):
    """What would leave now. ``observed_at`` is when the cluster's agent last told of its pods; a decision is carried
    out only on fresh news, and when a second look comes to the same."""

    cluster_id: str
    observed_at: str | None
    message: str
    decision: PlannedDisruptionView | None
    nodes: list[PreviewedNodeView]
