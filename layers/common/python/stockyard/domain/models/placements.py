"""What pods would need: manifests in, nodes with their price out. Nothing is made."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from stockyard.domain.models.base import Input, View
from stockyard.domain.models.node_fields import Reference
from stockyard.domain.models.plan import Remark

MOST_MANIFESTS = 5_000


class PlacementRequest(Input):
    """Manifests of Kubernetes that make pods: Pod, Deployment, ReplicaSet, ReplicationController, StatefulSet, Job,
    CronJob, DaemonSet, and lists of them; other kinds are skipped.

    With a ``cluster`` its dynamic pools may make the nodes, without one every provider of the tenant. ``preferences``
    says whether preferred rules of pods are kept where they can be.
    """

    cluster: Reference | None = None
    manifests: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MOST_MANIFESTS)]
    preferences: bool = True


class PlannedNodeView(View):
    """A node that would be made, and the pods on it. ``zone`` ``*`` is any. ``alternatives`` counts the node types that
    would do besides this one; ``usd_hour`` is null where no price is known."""

    pool: str
    type: str
    provider: str
    zone: str
    capacity_type: str
    usd_hour: float | None
    alternatives: int
    pods: list[str]


class NodePodsView(View):
    """A node that is there or on its way, and the pods that it has room for."""

    node: str
    pods: list[str]


class RefusalView(View):
    """A pool and the first rule that refused the pods there; ``subject`` is the rule's taint, label, resource or limit.
    An empty pool: what is said holds for all."""

    pool: str
    rule: str
    subject: str
    message: str


class LeftOutView(View):
    """Equal pods that would have no place: how many, the names of some, and why."""

    count: int
    pods: list[str]
    reasons: list[RefusalView]


class PlacementsView(View):
    """Where pods would go. Money is in USD an hour.

    ``bound`` is what every packing of these pods costs at least, ``gap`` by how much the price is above it (0.01 is one
    per cent). Both are null where that is not known: where pods are left out or have rules between them.
    """

    cluster_id: str | None
    pods: int
    nodes: list[PlannedNodeView]
    existing: list[NodePodsView]
    left_out: list[LeftOutView]
    usd_hour: float | None
    bound: float | None
    gap: float | None
    warnings: list[Remark]
