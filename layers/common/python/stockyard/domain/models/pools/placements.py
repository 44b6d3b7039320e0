"""Nodes that pods would need: manifests in, nodes with their price out. Nothing is made."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from stockyard.domain.models.base import Input, View
from stockyard.domain.models.nodes.node_fields import Reference
from stockyard.domain.models.plan import Remark
from stockyard.domain.models.view_fields import CapacityType, NodeTypeName, UsdHour

MOST_MANIFESTS = 5_000


class PlacementRequest(Input):
    """Manifests of Kubernetes that make pods: Pod, Deployment, ReplicaSet, ReplicationController, StatefulSet, Job,
    CronJob, DaemonSet, and lists of them; other kinds are skipped.

    With a ``cluster`` its dynamic pools may make the nodes, without one every provider of the tenant. ``preferences``
    says whether preferred rules of pods are kept where they can be.
    """

    cluster: Reference | None = None
    """The cluster whose dynamic pools may make the nodes; without one every provider of the tenant may."""
    manifests: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MOST_MANIFESTS)]
    """Manifests of Kubernetes that make pods; other kinds are skipped."""
    preferences: bool = True
    """Whether preferred rules of pods are kept where they can be."""


class PlannedNodeView(View):
    """A node that would be made, and the pods on it."""

    pool: str
    """The pool that would make the node; empty for none."""
    type: NodeTypeName
    provider: str
    """The node provider of the type."""
    zone: str
    """The zone; ``*`` is any."""
    capacity_type: CapacityType
    usd_hour: UsdHour
    owned: bool
    """Whether its machine is the owner's anyway, so that nothing is paid where ``usd_hour`` is 0."""
    alternatives: int
    """How many other node types would do."""
    pods: list[str]
    """The pods on it."""


class NodePodsView(View):
    """A node that is there or on its way, and the pods for which there is room on the node."""

    node: str
    """The name of the node."""
    ready: bool
    """Whether the cluster's agent reports the node as ready. If not, it is on its way."""
    pods: list[str]
    """The pods that it has room for."""


class RefusalView(View):
    """A pool and the first rule that refused the pods there."""

    pool: str
    """The pool; empty: what is said holds for all."""
    rule: str
    """The first rule that refused the pods there."""
    subject: str
    """The taint, label, resource or limit of the rule."""
    message: str
    """The same as a sentence for people."""


class LeftOutView(View):
    """Equal pods that would have no place, and why."""

    count: int
    """How many pods have no place."""
    pods: list[str]
    """The names of some."""
    reasons: list[RefusalView]
    """Why, for each pool."""


class PlacementsView(View):
    """Places where pods would go, and at what price."""

    cluster_id: str | None
    """The id of the cluster that was asked about; null for none."""
    pods: int
    """How many pods the manifests make."""
    nodes: list[PlannedNodeView]
    """The nodes that would be made."""
    existing: list[NodePodsView]
    """Nodes that are there or on their way, with the pods that they have room for."""
    left_out: list[LeftOutView]
    """Pods that would have no place."""
    complete: bool
    """Whether each pod had its turn. If not, the first warning says so, and pods without a turn are left out."""
    usd_hour: float | None
    """What the new nodes cost together, in USD an hour; null where a price is not known."""
    bound: float | None
    """What every packing of these pods costs at least, in USD an hour; null where that is not known."""
    gap: float | None
    """By how much the price is above the bound, where 0.01 is one per cent; null where that is not known."""
    opt_in: str
    """What it would save to ask for spot or another architecture, which come only when they are asked for; empty where
    it saves nothing."""
    warnings: list[Remark]
    """What was skipped, and what else to mind."""
