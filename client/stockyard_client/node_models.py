"""Answers of the API about nodes: providers, types, claims, and what applying manifests did.

Made from the contract by ``local.openapi``.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from stockyard_client.base_models import Model, Resource
from stockyard_client.part_models import Condition


class NodeProvider(Resource):
    """A source of nodes."""

    id: str
    """The id of the provider."""
    name: str
    """The name of the provider, unique in the tenant."""
    kind: str = ""
    """The kind of node provider, which says what `spec` holds."""
    shared: bool = False
    """Whether the platform shares it with all tenants, which see it without its `spec`."""
    display_name: str = ""
    """A name for people."""
    properties: dict[str, str] = Field(default_factory=dict)
    """Properties of all its node types, and settings of the provider itself."""
    price_per_cost_unit: float | None = None
    """USD an hour of one unit of cost; null where costs are no money."""
    implicit: bool = False
    """Whether Stockyard made it for a cloud account or a cluster."""
    spec: dict[str, Any] = Field(default_factory=dict)
    """The block of its kind, as it was sent with published defaults."""
    phase: str = ""
    """Whether nodes can come from it."""
    reason: str = ""
    """A word for programs that says why it is in its phase; may be empty."""
    message: str = ""
    """A sentence for people that says why it is in its phase; may be empty."""
    conditions: tuple[Condition, ...] = ()
    """What is observed of it, an aspect each."""
    node_types: tuple[str, ...] = ()
    """The bare names of the node types that its document declares."""
    offers: dict[str, Any] | None = None
    """What it has on offer now; null where `offers` was not given."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels by key."""
    annotations: dict[str, str] = Field(default_factory=dict)
    """Annotations by key."""
    warnings: tuple[dict[str, Any], ...] = ()
    """What to mind of its document."""
    generation: int = 0
    """Rises with each change of what it asks for."""
    created_at: str | None = None
    """When it was made: RFC 3339 in UTC."""
    updated_at: str | None = None
    """When it was changed last: RFC 3339 in UTC."""


class Capacity(Model):
    """Numbers of nodes of the type: how many there may be, are claimed, and are left."""

    total: int | None = None
    """How many nodes of the type there may be; null for any number."""
    claimed: int | None = None
    """How many of them are claimed; null where the number is not limited."""
    available: int | None = None
    """How many more there may be; null where the number is not limited, negative when the limit was lowered below what
    is claimed."""
    counted_at: str | None = None
    """When the provider's machines were counted; null where the number is only what the document allows."""


class NodeType(Resource):
    """A kind of node on offer."""

    id: str
    """The id of the type."""
    name: str
    """The canonical name, `provider.type`."""
    type: str = ""
    """The bare name."""
    provider: str = ""
    """The name of its node provider."""
    provider_id: str = ""
    """The id of its node provider."""
    display_name: str = ""
    """A name for people."""
    phase: str = ""
    """Whether claims can get a node of it."""
    reason: str = ""
    """A word for programs that says why it is in its phase; may be empty."""
    message: str = ""
    """A sentence for people that says why it is in its phase; may be empty."""
    conditions: tuple[Condition, ...] = ()
    """What is observed of it, an aspect each."""
    properties: dict[str, str] = Field(default_factory=dict)
    """The effective properties, also the built-in ones: one value, a comma list, or `*`."""
    requirements: tuple[dict[str, Any], ...] = ()
    """The same as requirements that a selector has."""
    resources: dict[str, str] = Field(default_factory=dict)
    """What a node of it has, by the name of the resource."""
    allocatable: dict[str, str] = Field(default_factory=dict)
    """What of that is for pods."""
    cost: float | None = None
    """Orders the types of a provider: what is written, else the price where it is known, else an estimate."""
    usd_hour: float | None = None
    """USD an hour of the cheapest offering in its cheapest zone; null where no price is known."""
    owned: bool = False
    """Whether its machines are the owner's anyway: such types come before all that are rented. A node of one costs
    nothing where `usd_hour` is 0."""
    offerings: tuple[dict[str, Any], ...] = ()
    """The ways to get a node of it."""
    disk_gib: int = 0
    """The usual disk of a node in GiB, which is billed beside its machine and is in all prices here; 0: the price of a
    machine has its disk."""
    disk_usd_hour: float | None = None
    """What of a price is that disk, in USD an hour; null where it is not known."""
    capacity: Capacity = Capacity()
    """How many nodes of it there may be."""
    spot_history: dict[str, Any] | None = None
    """Spot prices of the last day by the id of the zone, the oldest first; null where `history` was not in the
    request."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels by key."""
    annotations: dict[str, str] = Field(default_factory=dict)
    """Annotations by key."""
    created_at: str | None = None
    """When it was made: RFC 3339 in UTC."""
    updated_at: str | None = None
    """When it was changed last: RFC 3339 in UTC."""


class NodeClaim(Resource):
    """One wanted, promised or existing node."""

    id: str
    """The id of the claim; it never changes."""
    name: str
    """The name of the claim, unique in the tenant."""
    phase: str
    """Whether there is a node: not yet, yes, or not any more."""
    cluster: str = ""
    """The cluster that the claim names."""
    cluster_id: str | None = None
    """The id of that cluster; null while there is none of the name."""
    provider: str = ""
    """The node provider that the claim names; empty for any."""
    type: str = ""
    """The node type, `provider.type`; the scheduler fills it in unless the claim asked for one."""
    environment: str = ""
    """The id of the node environment that the node is made in; empty before."""
    display_name: str = ""
    """A name for people."""
    requirements: tuple[dict[str, Any], ...] = ()
    """What the labels of the node must be."""
    resources: dict[str, str] = Field(default_factory=dict)
    """What the node must have at least, by the name of the resource."""
    properties: dict[str, str] = Field(default_factory=dict)
    """Settings of the provider that hold for this node."""
    taints: tuple[dict[str, Any], ...] = ()
    """Taints that the node has as long as it is there."""
    startup_taints: tuple[dict[str, Any], ...] = ()
    """Taints of the node's first moment, which who put them there takes away."""
    kubelet_args: dict[str, str] = Field(default_factory=dict)
    """Flags of the kubelet with their values."""
    control_plane: bool = False
    """Whether the node is a member of the control plane."""
    power: str = ""
    """What the machine shall do."""
    power_observed: str = ""
    """What the machine does; empty while that is not known."""
    priority: int = 0
    """Claims of a higher priority are placed first."""
    keep_failed: int = 0
    """For how many minutes a machine is kept that did not come up."""
    termination_grace_period: str = ""
    """How long a deletion waits for pods that cannot go; empty for ten minutes."""
    expire_after: str = ""
    """How old the node may become, as its pool said when it was made: a duration, `Never`, or empty for a claim of no
    pool."""
    form: str = ""
    """The form of the document that the claim came as."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels that the claim gives the node."""
    annotations: dict[str, str] = Field(default_factory=dict)
    """Annotations of the claim."""
    max_price: dict[str, Any] = Field(default_factory=dict)
    """The most that the node may cost as spot: `percent` of its price on demand, or `usd_hour`; empty for no such
    limit."""
    deleting: bool = False
    """Whether the node is being given back."""
    kept_until: str | None = None
    """Until when a machine that did not come up is kept; null when none is."""
    ends_at: str | None = None
    """When the cloud takes the machine back; null while it has not said so."""
    deletion_timestamp: str | None = None
    """When the deletion was asked for first; null before."""
    drain_until: str | None = None
    """Until when pods may hold the node; null before a drain, and for as long as it takes."""
    reason: str = ""
    """A word for programs that says why it is in its phase; may be empty."""
    message: str = ""
    """A sentence for people that says why it is in its phase; may be empty."""
    conditions: tuple[Condition, ...] = ()
    """What is observed of the claim, an aspect each."""
    placement: dict[str, Any] | None = None
    """What the scheduler decided; null before."""
    machine_id: str = ""
    """The id of the machine at its provider; empty before there is one."""
    node_name: str = ""
    """The name of the node in the cluster; empty before it is known."""
    node_labels: dict[str, str] = Field(default_factory=dict)
    """The labels that the node has, fixed at its launch."""
    remaining: tuple[str, ...] = ()
    """What a deletion that failed may have left in the cloud."""
    created_by: str = ""
    """Who asked for the node."""
    created_at: str | None = None
    """When it was made: RFC 3339 in UTC."""
    updated_at: str | None = None
    """When it was changed last: RFC 3339 in UTC."""
    operation_id: str | None = None
    """The last operation on the claim; null before the first."""
    warnings: tuple[dict[str, Any], ...] = ()
    """What to mind of what was asked for; only in the answer to its creation."""


class Candidate(Model):
    """A node type, and the first rule that ruled it out."""

    type: str
    """The canonical name of a node type, `provider.type`."""
    provider: str = ""
    """The node provider of the type."""
    capacity_type: str | None = None
    """`on-demand` or `spot`; null where it is ruled out before that counts."""
    usd_hour: float | None = None
    """USD an hour; null while no price is known."""
    cost: float | None = None
    """What orders the types that fit; null where it is ruled out."""
    owned: bool = False
    """Whether its machine is the owner's anyway, so that nothing is paid where `usd_hour` is 0."""
    rule: str | None = None
    """The first rule that ruled it out; null when it fits."""
    message: str = ""
    """The same as a sentence for people."""


class TypeGroup(Model):
    """Node types that one rule excluded."""

    rule: str
    """The rule; `Fits` for those that fit and were not chosen."""
    message: str = ""
    """What the rule says of them."""
    count: int = 0
    """How many types there are."""
    types: tuple[str, ...] = ()
    """The names of the first ten; of those that fit the cheapest."""


class Explanation(Model):
    """Reasons why a claim got its node type, or why it has none."""

    claim: str
    """The name of the claim."""
    decided_at: str | None = None
    """When the scheduler decided; null while it has not."""
    chosen: dict[str, Any] | None = None
    """The way that was chosen; null for none."""
    options: tuple[dict[str, Any], ...] = ()
    """All ways that came into question, the cheapest first."""
    passed_over: dict[str, str] = Field(default_factory=dict)
    """Why the launch did not take options that cost less, by their types; empty where it took the cheapest."""
    groups: tuple[TypeGroup, ...] = ()
    """The types that were not chosen: what fits too, then what each rule excluded."""
    candidates: tuple[Candidate, ...] = ()
    """Up to 200 node types: what fits by price, then the others in the order of the groups."""
    considered: dict[str, Any] = Field(default_factory=dict)
    """How many node types there are by the rule that ruled them out."""
    message: str = ""
    """The explanation in one sentence."""
    opt_in: str = ""
    """What it would save to ask for spot or another architecture, which come only when they are asked for; empty where
    it saves nothing."""
    bound: float | None = None
    """USD an hour that no machine is below which fits it and can be had now: each node type was looked at. Null where
    nothing fits, where the price of one that fits is not known, and for machines of the owner's."""
    gap: float | None = None
    """By how much its price is above the bound, where 0.01 is one per cent; null where there is none of the two."""
    node: dict[str, Any] | None = None
    """What its node is now; null while it has none, or where no agent tells of its cluster."""
    cures: dict[str, Any] | None = None
    """What would get a machine for a claim that waits; null where `cures` was not in the request."""
    network: str | None = None
    """The network that its machine stands in and its place in the cluster's overlay: address, hub, how many others it
    reaches directly and through hubs. Null without an overlay, and before the machine is in it."""


class Applied(Model):
    """Result of one document."""

    kind: str
    """The kind of the document."""
    name: str
    """The name of what it made or changed."""
    id: str
    """The id of what it made or changed."""
    action: str
    """What was done; `deleted` for a pool that `prune` gives back."""
    index: int = 0
    """The number of the document, from 0; of an item of a list that of the list."""
    warnings: tuple[dict[str, Any], ...] = ()
    """What to mind of this document."""
    operation_id: str | None = None
    """The operation that was started; null for none."""


class SetMember(Model):
    """One thing that a set of manifests has applied."""

    set: str
    """The name of the set."""
    kind: str
    """The kind of the thing, as plans call it."""
    id: str
    """The id of the thing."""
    name: str
    """The name of the thing."""
    cluster: str | None = None
    """Of a pool the name of its cluster; null for anything else."""
    labels: dict[str, str] = Field(default_factory=dict)
    """By which a part of the set is selected: labels of the manifest, tags of a Cluster, labels of a Pool."""
    fields: dict[str, Any] = Field(default_factory=dict)
    """Names of the fields that its manifest said when it was applied last, as a tree; null at each value. A later
    manifest of the set that leaves one out takes it away; what none has said stays."""
    applied_at: str | None = None
    """When it was applied last with anything new: RFC 3339 in UTC."""


class PriceOf(Model):
    """Price of one thing in a region."""

    region: str
    """The region that the price holds in."""
    name: str
    """What is priced: an instance type, or an item such as `nat_gateway`."""
    kind: str = ""
    """`instance`: a machine of that type, on demand; `rate`: anything else."""
    unit: str = "hour"
    """What the price is for: an hour of it, a GB that goes through it, or a GB that is kept for a month."""
    currency: str = "USD"
    """The currency of the price."""
    price: float | None = None
    """The price of one unit; null where it is not known."""
