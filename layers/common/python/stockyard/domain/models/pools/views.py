"""Pools as callers see them on our own routes."""

from __future__ import annotations

from typing import Any

from pydantic import RootModel

from stockyard.domain.models.base import View
from stockyard.domain.models.clusters.views import ConditionView
from stockyard.domain.models.nodes.node_claims import RequirementView
from stockyard.domain.models.plan import Remark
from stockyard.domain.models.view_fields import CreatedAt, UpdatedAt, Version
from stockyard.domain.values.states import PoolKind


class BudgetView(View):
    """Number of nodes that may be disrupted at a time."""

    nodes: str
    """How many nodes, or which part of them in percent, may be disrupted at a time."""
    reasons: list[str] | None
    """The reasons that it holds for; null for all but ``Expired``."""
    schedule: str | None
    """When its window opens; null for always open."""
    duration: str | None
    """For how long its window is open; null for always."""
    time_zone: str | None
    """The time zone of the schedule; null for UTC."""


class DisruptionView(View):
    """Rules for when nodes may be replaced or removed to save money."""

    consolidate_after: str
    """How long no pod may have come to a node or left it before it leaves to save money."""
    consolidation_policy: str
    """Which nodes leave to save money."""
    budgets: list[BudgetView]
    """How many nodes may be disrupted at a time."""
    minimum_saving: float
    """How much each node that leaves has to save, in USD an hour."""
    paused: bool
    """Whether no node of the pool leaves now."""


class PoolNodesView(View):
    """Numbers of nodes that a pool is to have and has, and their cost."""

    desired: int
    """How many nodes there are to be at least: the quantity or the floor."""
    claims: int
    """How many claims there are that are not being deleted."""
    available: int
    """How many of them have a node that is ready."""
    leaving: int
    """How many more are being drained or given back; they cost until they are gone."""
    usd_hour: float | None
    """What all of them cost together, in USD an hour; null while a price is not known."""


class PoolView(View):
    """A source of nodes of one cluster."""

    cluster_id: str
    """The id of the cluster."""
    name: str
    """The name of the pool, once in the cluster."""
    kind: PoolKind
    """``static``: always ``quantity`` nodes. ``dynamic``: as many as pending pods need."""
    form: str
    """The form of the document that the pool came as."""
    group: str | None
    """The node group of the cluster's settings that the pool is of, by its name there; of the pool ``control-plane``
    the group with the role ``control``. Null for none."""
    provider: str
    """The node provider that it names; empty for any."""
    requirements: list[RequirementView]
    """What the labels of its nodes must be."""
    properties: dict[str, str]
    """Settings of the provider that hold for its nodes."""
    taints: list[dict[str, Any]]
    """Taints that its nodes have as long as they are there."""
    startup_taints: list[dict[str, Any]]
    """Taints of a node's first moment, which who put them there takes away."""
    labels: dict[str, str]
    """Labels of its nodes."""
    annotations: dict[str, str]
    """Annotations of its claims."""
    kubelet_args: dict[str, str]
    """Flags of the kubelet with their values."""
    quantity: int
    """How many nodes a static pool has, always; 0 of a dynamic one."""
    floor: int
    """How many nodes a dynamic pool never goes below."""
    headroom: dict[str, str]
    """Resources that a dynamic pool keeps free."""
    limits: dict[str, str]
    """What all its nodes together may have: ``nodes``, ``usd_hour``, or a resource."""
    weight: int
    """Pools of a higher weight are tried first; 0 for none."""
    expire_after: str
    """How old a node may become; empty for any age."""
    termination_grace_period: str
    """How long a drain waits for pods that cannot go; empty for the usual time."""
    zones: list[str]
    """The zones over which its nodes are spread evenly; empty for wherever they are cheapest."""
    max_price: dict[str, float]
    """The most that a node may cost as spot: ``percent`` of its price on demand, or ``usd_hour``; empty for no such
    limit."""
    update_strategy: dict[str, str | int]
    """How nodes are replaced; empty for the next one first."""
    disruption: DisruptionView | None
    """When its nodes may be removed or replaced; null where nothing is said."""
    nodes: PoolNodesView
    """How many nodes it is to have and has, and what they cost."""
    deleting: bool
    """Whether its nodes are being given back."""
    conditions: list[ConditionView]
    """What is observed of the pool, an aspect each."""
    generation: int
    """Rises with each change of what it asks for."""
    created_by: str
    """Who made it."""
    created_at: CreatedAt
    updated_at: UpdatedAt
    version: Version
    warnings: list[Remark]
    """What to mind of a creation or a change; only in the answer to that."""


class PoolDocument(RootModel[PoolView | dict[str, Any]]):
    """A pool, or with ``form=manifest`` the document that it came as."""
