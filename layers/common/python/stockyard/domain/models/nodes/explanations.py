"""Explanations of claims as callers see them."""

from __future__ import annotations

from typing import Any

from stockyard.domain.models.base import View
from stockyard.domain.models.nodes.node_claims import PlacementOption
from stockyard.domain.models.plan import GroupView
from stockyard.domain.models.view_fields import CapacityType, NodeTypeName, UsdHour


class ChosenView(PlacementOption):
    """The way that was chosen."""

    provider: str
    """The node provider of the type."""
    owned: bool
    """Whether its machine is the owner's anyway, so that nothing is paid where ``usd_hour`` is 0."""


class CandidateView(View):
    """A node type, and the first rule that ruled it out."""

    type: NodeTypeName
    provider: str
    """The node provider of the type."""
    capacity_type: str | None
    """``on-demand`` or ``spot``; null where it is ruled out before that counts."""
    usd_hour: UsdHour
    cost: float | None
    """What orders the types that fit; null where it is ruled out."""
    owned: bool
    """Whether its machine is the owner's anyway, so that nothing is paid where ``usd_hour`` is 0."""
    rule: str | None
    """The first rule that ruled it out; null when it fits."""
    message: str
    """The same as a sentence for people."""


class NodeStateView(View):
    """The node of a claim as room for pods, as it counts in every plan."""

    name: str
    """The name of the node."""
    reported: bool
    """Whether its cluster has reported it; until then claim and node type speak for it."""
    unschedulable_reason: str | None
    """Why no pod is planned onto it; null where pods are."""
    taints: list[str]
    """Taints that keep pods away, as ``key=value:effect``."""
    free: dict[str, str]
    """What is free for pods, as Kubernetes quantities."""


class CureView(View):
    """A change of the claim that would get it a machine now."""

    change: str
    """The change in words, such as ``without karpenter.sh/capacity-type``."""
    body: dict[str, Any]
    """The changed claim as the body of a request for a new one, without a name."""
    type: NodeTypeName
    """The node type that would be chosen."""
    capacity_type: CapacityType
    zones: list[str]
    """The zones where it is on offer; ``*`` stands for all."""
    usd_hour: UsdHour
    fits: int
    """How many node types would fit."""


class CuresView(View):
    """Cures of a claim that waits, and hindrances that pass with time."""

    tried: int
    """How many changes were looked at."""
    cures: list[CureView]
    """At most six changes that would, the smallest first; none for a claim that has a machine."""
    passing: list[str]
    """Sentences of what passes by itself, such as a refusal that is forgotten at a moment."""


class ExplanationView(View):
    """Reasons why a claim got its node type, or why it has none."""

    claim: str
    """The name of the claim."""
    decided_at: str | None
    """When the scheduler decided; null while it has not."""
    chosen: ChosenView | None
    """The way that was chosen; null for none."""
    options: list[PlacementOption]
    """All ways that came into question, the cheapest first."""
    passed_over: dict[str, str]
    """Why the launch did not take options that cost less, by their types; empty where it took the cheapest."""
    groups: list[GroupView]
    """The types that were not chosen: what fits too, then what each rule excluded."""
    candidates: list[CandidateView]
    """Up to 200 node types: what fits by price, then the others in the order of the groups."""
    considered: dict[str, int]
    """How many node types there are by the rule that ruled them out."""
    message: str
    """The explanation in one sentence."""
    opt_in: str
    """What it would save to ask for spot or another architecture, which come only when they are asked for; empty where
    it saves nothing."""
    bound: float | None
    """USD an hour that no machine is below which fits it and can be had now: each node type was looked at. Null where
    nothing fits, where the price of one that fits is not known, and for machines of the owner's."""
    gap: float | None
    """By how much its price is above the bound, where 0.01 is one per cent; null where there is none of the two."""
    node: NodeStateView | None
    """What its node is now; null while it has none, or where no agent tells of its cluster."""
    cures: CuresView | None
    """What would get a machine for a claim that waits; null where ``cures`` was not in the request."""
    network: str | None
    """The network that its machine stands in and its place in the cluster's overlay: address, hub, how many others it
    reaches directly and through hubs. Null without an overlay, and before the machine is in it."""
