"""Answers of the API about nodes: providers, types, claims, and what applying manifests did."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from stockyard_client.models import Condition, Model, Resource


class NodeProvider(Resource):
    """A source of nodes. ``phase`` is Pending, Available or Failed; ``shared`` ones are the platform's."""

    id: str
    name: str
    kind: str = ""
    shared: bool = False
    display_name: str = ""
    phase: str = ""
    reason: str = ""
    message: str = ""
    node_types: tuple[str, ...] = ()
    warnings: tuple[dict[str, Any], ...] = ()
    created_at: str | None = None


class Capacity(Model):
    """Nodes of a type; all None where they are not limited."""

    total: int | None = None
    claimed: int | None = None
    available: int | None = None
    counted_at: str | None = None


class NodeType(Resource):
    """A kind of node on offer; ``name`` is ``provider.type``."""

    id: str
    name: str
    type: str = ""
    provider: str = ""
    phase: str = ""
    reason: str = ""
    properties: dict[str, str] = Field(default_factory=dict)
    resources: dict[str, str] = Field(default_factory=dict)
    cost: float | None = None
    usd_hour: float | None = None
    owned: bool = False
    capacity: Capacity = Capacity()


class NodeClaim(Resource):
    """One wanted, promised or existing node."""

    id: str
    name: str
    cluster: str = ""
    provider: str = ""
    type: str = ""
    phase: str
    deleting: bool = False
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    placement: dict[str, Any] | None = None
    node_name: str = ""
    power: str = ""
    created_at: str | None = None
    operation_id: str | None = None
    warnings: tuple[dict[str, Any], ...] = ()
    """What to mind of a creation or a change; only in the answer to that."""


class Candidate(Model):
    """A node type, and the first rule that ruled it out for a claim; None: it fits."""

    type: str
    provider: str = ""
    capacity_type: str | None = None
    usd_hour: float | None = None
    owned: bool = False
    cost: float | None = None
    rule: str | None = None
    message: str = ""


class TypeGroup(Model):
    """Node types that one rule excluded, or with the rule ``Fits`` those that were not chosen: the first names."""

    rule: str
    message: str = ""
    count: int = 0
    types: tuple[str, ...] = ()


class Explanation(Model):
    """Reason why a claim got its node type, or has none."""

    claim: str
    decided_at: str | None = None
    chosen: dict[str, Any] | None = None
    options: tuple[dict[str, Any], ...] = ()
    """All ways that the provider was given, the cheapest first."""
    passed_over: dict[str, str] = Field(default_factory=dict)
    """Reasons why the launch did not take options that cost less, by their types."""
    groups: tuple[TypeGroup, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    considered: dict[str, int] = Field(default_factory=dict)
    message: str = ""
    opt_in: str = ""
    """What it would save to ask for spot or another architecture."""
    node: dict[str, Any] | None = None
    """What its node is now: ``name``, ``reported``, ``unschedulable_reason``, ``taints`` and what is ``free``."""
    network: str | None = None
    """The network of its machine, and its place in the cluster's overlay."""


class Applied(Model):
    """Outcome of one manifest: created, changed or unchanged."""

    kind: str
    name: str
    id: str
    action: str
    warnings: tuple[dict[str, Any], ...] = ()
    operation_id: str | None = None


class SetMember(Model):
    """One thing that a set of manifests has applied; ``cluster`` is that of a pool, None of anything else."""

    set: str
    kind: str
    id: str
    name: str
    cluster: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    applied_at: str | None = None


class PriceOf(Model):
    """Price of one thing in a region; ``price`` is None where it is not known."""

    region: str
    kind: str = ""
    name: str
    unit: str = "hour"
    currency: str = "USD"
    price: float | None = None
