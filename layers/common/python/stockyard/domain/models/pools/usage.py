"""Use of a cluster's nodes as callers see it."""

from __future__ import annotations

from stockyard.domain.models.base import View


class NodeUsageView(View):
    """Requests of the pods on a node, of what it has for pods."""

    name: str
    """The name of the node."""
    claim_id: str
    """The id of its claim."""
    pool: str | None
    """The pool of the claim; null for none."""
    allocatable: dict[str, str]
    """What it has for pods, by the name of the resource."""
    requested: dict[str, str]
    """What pods that run on it, or were sent to it, ask for."""
    used: dict[str, float]
    """The second as a part of the first, where 1 is all of it."""


class PoolUsageView(View):
    """Sums over the nodes of a pool."""

    pool: str | None
    """The name of the pool; null for nodes of none."""
    nodes: int
    """How many nodes are counted."""
    allocatable: dict[str, str]
    """What they have for pods together, by the name of the resource."""
    requested: dict[str, str]
    """What their pods ask for together."""
    used: dict[str, float]
    """The second as a part of the first, where 1 is all of it."""


class ClusterUsageView(View):
    """Use of the nodes of a cluster, as its agent has last told."""

    cluster_id: str
    """The id of the cluster."""
    observed_at: str | None
    """When the agent looked; null where none has told of the cluster."""
    nodes: list[NodeUsageView]
    """The nodes that the cluster reports, by name."""
    pools: list[PoolUsageView]
    """Sums by pool."""
