"""Answers of the API about pools, and about the needs of pods.

Made from the contract by ``local.openapi``.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from stockyard_client.base_models import Model, Resource
from stockyard_client.part_models import Condition, PoolNodes
from stockyard_client.states import PoolState


class Pool(PoolState, Resource):
    """A source of nodes of one cluster."""

    name: str
    """The name of the pool, once in the cluster."""
    kind: str
    """`static`: always `quantity` nodes. `dynamic`: as many as pending pods need."""
    cluster_id: str = ""
    """The id of the cluster."""
    form: str = ""
    """The form of the document that the pool came as."""
    group: str | None = None
    """The node group of the cluster's settings that the pool is of, by its name there; of the pool `control-plane` the
    group with the role `control`. Null for none."""
    provider: str = ""
    """The node provider that it names; empty for any."""
    requirements: tuple[dict[str, Any], ...] = ()
    """What the labels of its nodes must be."""
    properties: dict[str, str] = Field(default_factory=dict)
    """Settings of the provider that hold for its nodes."""
    taints: tuple[dict[str, Any], ...] = ()
    """Taints that its nodes have as long as they are there."""
    startup_taints: tuple[dict[str, Any], ...] = ()
    """Taints of a node's first moment, which who put them there takes away."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels of its nodes."""
    annotations: dict[str, str] = Field(default_factory=dict)
    """Annotations of its claims."""
    kubelet_args: dict[str, str] = Field(default_factory=dict)
    """Flags of the kubelet with their values."""
    quantity: int = 0
    """How many nodes a static pool has, always; 0 of a dynamic one."""
    floor: int = 0
    """How many nodes a dynamic pool never goes below."""
    headroom: dict[str, str] = Field(default_factory=dict)
    """Resources that a dynamic pool keeps free."""
    limits: dict[str, str] = Field(default_factory=dict)
    """What all its nodes together may have: `nodes`, `usd_hour`, or a resource."""
    weight: int = 0
    """Pools of a higher weight are tried first; 0 for none."""
    expire_after: str = ""
    """How old a node may become; empty for any age."""
    termination_grace_period: str = ""
    """How long a drain waits for pods that cannot go; empty for the usual time."""
    zones: tuple[str, ...] = ()
    """The zones over which its nodes are spread evenly; empty for wherever they are cheapest."""
    max_price: dict[str, Any] = Field(default_factory=dict)
    """The most that a node may cost as spot: `percent` of its price on demand, or `usd_hour`; empty for no such
    limit."""
    update_strategy: dict[str, Any] = Field(default_factory=dict)
    """How nodes are replaced; empty for the next one first."""
    disruption: dict[str, Any] | None = None
    """When its nodes may be removed or replaced; null where nothing is said."""
    nodes: PoolNodes = PoolNodes()
    """How many nodes it is to have and has, and what they cost."""
    deleting: bool = False
    """Whether its nodes are being given back."""
    conditions: tuple[Condition, ...] = ()
    """What is observed of the pool, an aspect each."""
    generation: int = 0
    """Rises with each change of what it asks for."""
    created_by: str = ""
    """Who made it."""
    created_at: str | None = None
    """When it was made: RFC 3339 in UTC."""
    updated_at: str | None = None
    """When it was changed last: RFC 3339 in UTC."""
    warnings: tuple[dict[str, Any], ...] = ()
    """What to mind of a creation or a change; only in the answer to that."""


class PlannedNode(Model):
    """A node that would be made, and the pods on it."""

    type: str
    """The canonical name of a node type, `provider.type`."""
    pool: str = ""
    """The pool that would make the node; empty for none."""
    provider: str = ""
    """The node provider of the type."""
    zone: str = ""
    """The zone; `*` is any."""
    capacity_type: str = ""
    """`on-demand` or `spot`."""
    usd_hour: float | None = None
    """USD an hour; null while no price is known."""
    owned: bool = False
    """Whether its machine is the owner's anyway, so that nothing is paid where `usd_hour` is 0."""
    alternatives: int = 0
    """How many other node types would do."""
    pods: tuple[str, ...] = ()
    """The pods on it."""


class NodePods(Model):
    """A node that is there or on its way, and the pods for which there is room on the node."""

    node: str
    """The name of the node."""
    ready: bool = True
    """Whether the cluster's agent reports the node as ready. If not, it is on its way."""
    pods: tuple[str, ...] = ()
    """The pods that it has room for."""


class Refusal(Model):
    """A pool and the first rule that refused the pods there."""

    rule: str
    """The first rule that refused the pods there."""
    pool: str = ""
    """The pool; empty: what is said holds for all."""
    subject: str = ""
    """The taint, label, resource or limit of the rule."""
    message: str = ""
    """The same as a sentence for people."""


class LeftOut(Model):
    """Equal pods that would have no place, and why."""

    count: int = 0
    """How many pods have no place."""
    pods: tuple[str, ...] = ()
    """The names of some."""
    reasons: tuple[Refusal, ...] = ()
    """Why, for each pool."""


class Placements(Model):
    """Places where pods would go, and at what price."""

    cluster_id: str | None = None
    """The id of the cluster that was asked about; null for none."""
    pods: int = 0
    """How many pods the manifests make."""
    nodes: tuple[PlannedNode, ...] = ()
    """The nodes that would be made."""
    existing: tuple[NodePods, ...] = ()
    """Nodes that are there or on their way, with the pods that they have room for."""
    left_out: tuple[LeftOut, ...] = ()
    """Pods that would have no place."""
    complete: bool = True
    """Whether each pod had its turn. If not, the first warning says so, and pods without a turn are left out."""
    usd_hour: float | None = None
    """What the new nodes cost together, in USD an hour; null where a price is not known."""
    bound: float | None = None
    """What every packing of these pods costs at least, in USD an hour; null where that is not known."""
    gap: float | None = None
    """By how much the price is above the bound, where 0.01 is one per cent; null where that is not known."""
    opt_in: str = ""
    """What it would save to ask for spot or another architecture, which come only when they are asked for; empty where
    it saves nothing."""
    warnings: tuple[dict[str, Any], ...] = ()
    """What was skipped, and what else to mind."""
