"""Costs of a tenant, as callers receive them."""

from __future__ import annotations

from typing import Literal

from stockyard.domain.models.base import View


class CostLine(View):
    """Something that costs: an item of a cluster, or the nodes of one pool, type and capacity type."""

    kind: Literal["cluster", "nodes"]
    """``cluster``: what of a cluster is no node, such as its control plane and network; ``nodes``: nodes."""
    cluster_id: str | None
    """The cluster that it belongs to; null for a node of no cluster."""
    cluster: str | None
    """The name of that cluster; null where it is not known any more."""
    pool: str | None
    """The pool of the nodes; null where they belong to none."""
    type: str
    """The node type, ``provider.type``, or the name of the item of the cluster."""
    capacity_type: str | None
    """``on-demand``, ``spot`` or ``reserved``; null for an item of a cluster."""
    quantity: int
    """How many stand now; 0 where all are gone that the month has paid for."""
    hour: float | None
    """What they cost together now, in USD an hour; null where a price is not known."""
    month_rate: float | None
    """The same for a month of 730 hours."""
    spent: float | None
    """What they have cost since the month began, with those that are gone; null where a price is not known."""


class BudgetView(View):
    """The budget of a month of UTC, and what counts for it: what is spent, and what stands until the month ends, spot
    at its present price."""

    scope: Literal["tenant", "cluster", "pool"]
    """What has the budget."""
    cluster_id: str | None
    """The cluster; null for the tenant."""
    cluster: str | None
    """The name of that cluster."""
    pool: str | None
    """The pool; null for a cluster or the tenant."""
    usd_month: float
    """The budget, in USD."""
    spent: float
    """What the month has cost so far, in USD, as far as prices are known."""
    forecast: float
    """What the month will have cost if nothing changes, in USD, as far as prices are known."""
    percent: int
    """The part of the budget that the forecast is."""
    reached: bool
    """Whether nothing new is bought for it."""
    complete: bool
    """False where something counts whose price is not known."""


class CostsView(View):
    """Cost of a tenant, or of one of its clusters, now and since the month began.

    It is made of list prices and of the times at which things were made and removed, so it is an estimate, not a bill:
    a change of settings or of a spot price counts from the beginning of the thing. ``not_included`` says what is not in
    it.
    """

    month: str
    """The month, such as ``2026-11``, in UTC."""
    since: str
    """When the month began."""
    until: str
    """The moment of the report."""
    as_of: str
    """Until when all that has happened is counted: of a tenant with very many nodes, in which much has just happened,
    the rest is counted in the background within a minute or two."""
    currency: str
    """Always ``USD``."""
    hour: float | None
    """What stands now costs so much an hour; null where a line has no known price."""
    month_rate: float | None
    """The same for a month of 730 hours."""
    spent: float | None
    """What the month has cost so far; null where a line has no known price."""
    forecast: float | None
    """What the month will have cost if nothing changes; null where a line has no known price."""
    known_hour: float
    """What of ``hour`` is known: it is at least that."""
    known_month_rate: float
    """The same for a month of 730 hours."""
    known_spent: float
    """What of ``spent`` is known."""
    known_forecast: float
    """What of ``forecast`` is known."""
    complete: bool
    """False where a line has no known price."""
    budgets: list[BudgetView]
    """The budgets of the month: the tenant's first, then those of each cluster and its pools."""
    not_included: list[str]
    """What is billed besides, by use."""
    lines: list[CostLine]
    """Each thing that stands or has stood this month, in order of kind, cluster, pool and type."""
