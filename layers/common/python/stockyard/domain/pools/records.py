"""The records of pools: what a cluster's nodes shall be, and which claims belong to a cluster."""

from __future__ import annotations

from dataclasses import field, fields
from typing import Any, Final

from stockyard.domain.nodes.records import VersionedRecord
from stockyard.domain.values.conditions import Condition
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.states import PoolKind

STATIC: Final = "static"
DYNAMIC: Final = "dynamic"
GROUP = "group"
"""The form of pools that came as node groups of a cluster."""
CONTROL_PLANE = "control-plane"
"""The form, and the name, of the pool of a control plane's members. Passes over pools leave it alone."""
NO_POOL = "-"
"""What stands for the pool of a claim that has none; no pool can be called so."""
POOL_LABEL = "stockyard.dev/pool"
"""The label of a pool's nodes; the name of their launch template follows from it."""
EXPIRE_AFTER = "720h"
"""How old a node of a dynamic pool becomes where nobody says it, as Karpenter has it."""
NODES, USD_HOUR = "nodes", "usd_hour"
"""Limits that are no resource of a node: how many there are, and what they cost together in USD an hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSpec:
    """Specification of a pool, in whatever form it came.

    The ``static`` kind has always ``quantity`` nodes. The ``dynamic`` kind has as many as pending pods need: never
    fewer than ``floor``, always room for ``headroom``, never more than ``limits``.
    """

    kind: PoolKind = STATIC
    provider_ref: str = ""
    """Name of the provider; empty: the cheapest of all serves each claim."""
    requirements: tuple[dict[str, Any], ...] = ()
    """Selector requirements of the nodes: ``key``, ``operator``, ``values``, ``minValues``."""
    properties: dict[str, str] = field(default_factory=dict)
    """Variables of the provider, such as ``allocation_strategy``."""
    taints: tuple[dict[str, Any], ...] = ()
    startup_taints: tuple[dict[str, Any], ...] = ()
    """Taints that somebody in the cluster takes away when the node is ready for pods."""
    labels: dict[str, str] = field(default_factory=dict)
    """Labels of the nodes."""
    annotations: dict[str, str] = field(default_factory=dict)
    """Annotations of the nodes."""
    kubelet_args: dict[str, str] = field(default_factory=dict)
    quantity: int = 0
    """Nodes of a static pool."""
    floor: int = 0
    """Nodes that a dynamic pool never goes below."""
    headroom: dict[str, str] = field(default_factory=dict)
    """Resources that a dynamic pool keeps free for pods that may come, as Kubernetes quantities."""
    limits: dict[str, str] = field(default_factory=dict)
    """What all nodes of the pool may have together: ``nodes``, ``usd_hour``, the budget of a month as ``usd_month``, or
    a resource as a quantity."""
    weight: int = 0
    """Pools of a higher weight are tried first."""
    expire_after: str = ""
    """How old a node becomes, as a duration of Go; ``Never`` or empty for any age."""
    termination_grace_period: str = ""
    """How long a deletion waits for pods that cannot go, as a duration; ``Never`` or empty for as long as it takes. Of
    a node group, which cannot say it, empty is as long as the stage says."""
    disruption: dict[str, Any] = field(default_factory=dict)
    """``consolidateAfter``, ``consolidationPolicy`` and ``budgets``, as Karpenter's NodePool has them."""
    zones: tuple[str, ...] = ()
    """Zones over which the nodes are spread evenly; empty: wherever they are cheapest."""
    max_price: dict[str, float] = field(default_factory=dict)
    """The most that a node may cost as spot, as a claim has it."""
    update_strategy: dict[str, Any] = field(default_factory=dict)
    """How nodes that have drifted are replaced: ``type``, ``max_surge``, ``max_unavailable``. Empty: what comes is
    added first."""

    def spec(self) -> dict[str, Any]:
        """The fields of the specification by name."""
        return {part.name: getattr(self, part.name) for part in fields(PoolSpec)}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPool(PoolSpec):
    """A pool that is asked for and whose form was checked."""

    name: str
    form: str = "stockyard"
    """Which document it came as: ``stockyard``, ``group``, ``autoNodes`` or ``karpenter``."""
    document: dict[str, Any] = field(default_factory=dict)
    """What the document said that no other field holds, where the form is not our own: a profile, labels of the
    document itself, a node class."""


@dataclass(frozen=True, slots=True)
class Pool(PoolSpec):
    """A source of claims of one cluster. ``id`` is ``{cluster id}/{name}``.

    ``generation`` counts changes of the specification, ``claims_made`` the claims that were ever made for it: each
    batch of claims raises it in the transaction that writes them, so that two passes never both make what is missing.
    """

    id: str
    cluster_id: str
    name: str
    created_at: str
    updated_at: str
    form: str = "stockyard"
    document: dict[str, Any] = field(default_factory=dict)
    deleting: bool = False
    conditions: tuple[Condition, ...] = ()
    due_at: str | None = None
    """When a pass must look at the pool, unless something wakes it earlier; None: never by the schedule."""
    failures: int = 0
    """How often in a row its claims became no node: each time lets the pool wait longer before it makes the next."""
    refusals: int = 0
    """How many of these failures left a type out for a while, so that the next claim became another one."""
    retry_at: str | None = None
    """Until when the pool makes no claim, because earlier ones became no node."""
    claims_made: int = 0
    generation: int = 1
    nodes_since: str = ""
    """Nodes whose claims are older than this moment have drifted: a change remade the group that they come from. Empty
    when none did."""
    created_by: str = ""
    request: str = ""
    """Of the idempotency key that it was made with, the same in every try; empty without a key."""
    sequence: int = 0
    version: int = 1


@dataclass(frozen=True, slots=True)
class ClusterClaim(VersionedRecord):
    """Says that a claim is a cluster's, and of which pool: what a cluster has is listed without reading the tenant.

    ``id`` is ``{cluster id}/{pool or NO_POOL}/{claim id}``. It is written and removed with the claim, or written when
    a claim that waited for its cluster finds it.
    """

    claim_id: str
    made_at: str


def pool_id(cluster_id: str, name: str) -> str:
    """The id of a cluster's pool of that name."""
    return f"{cluster_id}/{name}"


def entry_id(cluster_id: str, pool: str, claim_id: str = "") -> str:
    """The id of a claim's entry in its cluster, or without a claim how those of a pool begin; ``pool`` is the pool's
    name, empty for none."""
    return f"{cluster_id}/{pool or NO_POOL}/{claim_id}"


def cluster_claim(cluster_id: str, pool: str, claim_id: str, made_at: str) -> ClusterClaim:
    """The entry of a claim in its cluster."""
    return ClusterClaim(entry_id(cluster_id, pool, claim_id), claim_id, made_at)
