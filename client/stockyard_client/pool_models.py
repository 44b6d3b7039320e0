"""Answers of the API about pools, and about the needs of pods."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from stockyard_client.models import Condition, Model, Resource

STATIC = "static"
GROUP = "group"
"""The form of a pool that is a node group of its cluster."""
READY = "Ready"
POOL_LABEL = "stockyard.dev/pool"
"""The label of the claims and nodes of a pool."""


class PoolNodes(Model):
    """Number of nodes that a pool has to have at least, has asked for, and has; what they cost together in USD an
    hour."""

    desired: int = 0
    claims: int = 0
    available: int = 0
    leaving: int = 0
    usd_hour: float | None = None


class Pool(Resource):
    """A source of nodes of one cluster; ``kind`` is static or dynamic."""

    cluster_id: str = ""
    name: str
    kind: str
    form: str = ""
    group: str | None = None
    """The node group that it is of; of the pool of a control plane the group with the role ``control``."""
    provider: str = ""
    quantity: int = 0
    floor: int = 0
    limits: dict[str, str] = Field(default_factory=dict)
    weight: int = 0
    nodes: PoolNodes = PoolNodes()
    deleting: bool = False
    conditions: tuple[Condition, ...] = ()
    created_at: str | None = None
    warnings: tuple[dict[str, Any], ...] = ()
    """What to mind of a creation or a change; only in the answer to that."""

    @property
    def condition(self) -> Condition | None:
        """The condition that says whether it has its nodes; None until the pool was looked at."""
        return next((condition for condition in self.conditions if condition.type == READY), None)

    @property
    def ready(self) -> bool:
        """Whether it has the nodes that it has to have now.

        The condition alone may be of a moment before the pool was changed, so the nodes are counted as well.
        """
        counted = self.nodes.available >= self.nodes.desired
        exact = self.kind != STATIC or self.nodes.claims == self.nodes.desired
        return counted and exact and self.condition is not None and self.condition.status == "True"


class PlannedNode(Model):
    """A node that pods would need. ``zone`` ``*`` is any; ``alternatives`` counts the other types that would do."""

    pool: str = ""
    type: str
    provider: str = ""
    zone: str = ""
    capacity_type: str = ""
    usd_hour: float | None = None
    owned: bool = False
    alternatives: int = 0
    pods: tuple[str, ...] = ()


class NodePods(Model):
    """A node that is there or on its way, and the pods for which there is room on the node. ``ready``: its cluster says
    so."""

    node: str
    ready: bool = True
    pods: tuple[str, ...] = ()


class Refusal(Model):
    """A pool, and the first rule that refused pods there; no pool where it is the same in all."""

    pool: str = ""
    rule: str
    subject: str = ""
    message: str = ""


class LeftOut(Model):
    """Equal pods that would have no place: how many, the names of some, and why not."""

    count: int = 0
    pods: tuple[str, ...] = ()
    reasons: tuple[Refusal, ...] = ()


class Placements(Model):
    """Nodes where pods would go. ``bound`` is what every packing of them costs at least, ``gap`` how far the price is
    above it (0.01 is one per cent); both None where that is not known. All money is in USD an hour. Not ``complete``:
    some pods had no turn, as the first warning says."""

    pods: int = 0
    nodes: tuple[PlannedNode, ...] = ()
    existing: tuple[NodePods, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    complete: bool = True
    usd_hour: float | None = None
    bound: float | None = None
    gap: float | None = None
    opt_in: str = ""
    """What it would save to ask for spot or another architecture."""
    warnings: tuple[dict[str, Any], ...] = ()
