"""Node claims as callers send and see them."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal

from pydantic import Field, RootModel, model_validator

from stockyard.domain.models import fields
from stockyard.domain.models.base import Input, Irremovable, View, check_fixed, read
from stockyard.domain.models.clusters.views import ConditionView
from stockyard.domain.models.manifests.views import ManifestView
from stockyard.domain.models.nodes.node_fields import (
    Annotations,
    DisplayName,
    DnsLabel,
    Grace,
    KubeletArgs,
    Properties,
    Reference,
    Requirements,
    Resources,
    Taints,
)
from stockyard.domain.models.nodes.node_providers import merged
from stockyard.domain.models.plan import Remark
from stockyard.domain.models.pools.bid_fields import MaxPrice
from stockyard.domain.models.view_fields import (
    CapacityType,
    CreatedAt,
    Message,
    NodeTypeName,
    Reason,
    UpdatedAt,
    UsdHour,
    Version,
)
from stockyard.domain.nodes.records import NewClaim, NodeClaim
from stockyard.domain.values.states import DesiredPower, Power, ReadyPhase

Priority = Annotated[int, Field(ge=-100, le=100)]
"""Claims of a higher priority are placed first; -100 to 100."""
_CLAIM_FIELDS = frozenset(field.name for field in dataclasses.fields(NewClaim))
_RENAMED = {
    "cluster": "cluster_ref",
    "v_cluster_ref": "cluster_ref",
    "provider": "provider_ref",
    "type": "type_ref",
    "desired_capacity": "resources",
}
"""Names of a claim's fields that documents have, and what the record calls them."""
_CHANGEABLE = ("display_name", "labels", "annotations", "power")


class NodeClaimCreate(Input):
    """One wanted node."""

    name: DnsLabel | None = None
    """The name of the claim, unique in the tenant; one is made where none is given."""
    cluster: Reference
    """The name or id of the cluster that the node joins."""
    provider: DnsLabel | None = None
    """The node provider; where none is given, the cheapest of all that fit."""
    type: Reference | None = None
    """The node type, ``provider.type`` or its bare name; where none is given, the scheduler chooses."""
    requirements: Requirements = Field(default_factory=list)
    resources: Resources = Field(default_factory=dict)
    """What the node must have at least, by the name of the resource."""
    properties: Properties = Field(default_factory=dict)
    taints: Taints = Field(default_factory=list)
    startup_taints: Taints = Field(default_factory=list)
    """Taints of the node's first moment. Who put them there takes them away; the claim is not Available before."""
    kubelet_args: KubeletArgs = Field(default_factory=dict)
    power: Power = "On"
    priority: Priority = 0
    keep_failed: fields.KeepFailed = 0
    """For how many minutes a machine is kept that did not come up, so that somebody can look. It is billed meanwhile.
    """
    termination_grace_period: Grace | None = None
    """How long a deletion waits for pods that budgets or annotations hold; ``Never`` is as long as it takes."""
    display_name: DisplayName = ""
    labels: fields.Labels = Field(default_factory=dict)
    """Labels of the node, over those of its type."""
    annotations: Annotations = Field(default_factory=dict)
    max_price: MaxPrice | None = None
    """The most that the node may cost as spot."""

    def new_claim(self) -> NewClaim:
        """The claim that is asked for."""
        document = {"spec": {"type": self.type}} if self.type else {}
        return NewClaim(**claim_fields(self), document=document)


def claim_fields(document: Input) -> dict[str, Any]:
    """Fields of a claim in ``document``, by the names of :class:`NewClaim`. Whatever it does not say is left out."""
    values = {_RENAMED.get(name, name): getattr(document, name) for name in type(document).model_fields}
    return {name: _plain(value) for name, value in values.items() if name in _CLAIM_FIELDS and value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(entry.entry() for entry in value)
    if isinstance(value, MaxPrice):
        return value.entry()
    return {key: str(inner) for key, inner in value.items()} if isinstance(value, dict) else value


class _Changed(Input):
    """Changeable fields of a claim after a patch."""

    display_name: DisplayName = ""
    power: Power = "On"
    labels: fields.Labels = Field(default_factory=dict)
    annotations: Annotations = Field(default_factory=dict)


class NodeClaimPatch(Input):
    """A JSON merge patch of a node claim: absent means as it was, null removes."""

    display_name: Irremovable[DisplayName] = None
    """The new name for people."""
    power: Irremovable[Power] = None
    labels: dict[str, fields.LabelValue | None] | None = None
    """Labels to add or change; null takes one away, or all of them."""
    annotations: dict[str, str | None] | None = None
    """Annotations to add or change; null takes one away, or all of them."""

    @model_validator(mode="before")
    @classmethod
    def _fixed(cls, document: Any) -> Any:
        return check_fixed(document, NodeClaimCreate.model_fields.keys() - set(_CHANGEABLE))

    def changes(self, claim: NodeClaim) -> dict[str, Any]:
        """The record's fields that this patch gives, whole. Raises ``InvalidInput`` for what they then would be."""
        names = self.model_fields_set
        whole: dict[str, Any] = {name: getattr(self, name) for name in ("display_name", "power") if name in names}
        for name in ("labels", "annotations"):
            if name in names:
                whole[name] = merged(getattr(claim, name), getattr(self, name))
        read(_Changed, whole)
        return whole


class PowerChange(Input):
    """Power action for the machine of a claim."""

    state: DesiredPower
    """What the machine shall do; ``Reboot`` is done once."""


class RequirementView(View):
    """Requirement of a node."""

    key: str
    """The label that is required."""
    operator: str
    """How the label is compared with the values."""
    values: list[str]
    """The values to compare with."""
    min_values: int | None
    """How many different values the node types must have between them; null for no such rule."""


class PlacementOption(View):
    """A way to get the node."""

    type: NodeTypeName
    capacity_type: CapacityType
    zones: list[str]
    """The zones where it is on offer."""
    usd_hour: UsdHour
    cost: float
    """What orders the options: the cost that the provider names, else the price, else an estimate."""


class PlacementView(PlacementOption):
    """Decision of the scheduler, and the facts behind it."""

    decided_at: str
    """When the scheduler decided."""
    attempt: int
    """Which try to place the claim it was."""
    options: list[PlacementOption]
    """All ways that came into question, the cheapest first."""
    considered: dict[str, int]
    """How many node types there were by the rule that ruled them out."""
    owned: bool
    """Whether its machine is the owner's anyway, so that nothing is paid where ``usd_hour`` is 0."""


class NodeClaimView(View):
    """One wanted, promised or existing node."""

    id: str
    """The id of the claim; it never changes."""
    name: str
    """The name of the claim, unique in the tenant."""
    cluster: str
    """The cluster that the claim names."""
    cluster_id: str | None
    """The id of that cluster; null while there is none of the name."""
    provider: str
    """The node provider that the claim names; empty for any."""
    type: str
    """The node type, ``provider.type``; the scheduler fills it in unless the claim asked for one."""
    environment: str
    """The id of the node environment that the node is made in; empty before."""
    display_name: str
    """A name for people."""
    requirements: list[RequirementView]
    """What the labels of the node must be."""
    resources: dict[str, str]
    """What the node must have at least, by the name of the resource."""
    properties: dict[str, str]
    """Settings of the provider that hold for this node."""
    taints: list[dict[str, Any]]
    """Taints that the node has as long as it is there."""
    startup_taints: list[dict[str, Any]]
    """Taints of the node's first moment, which who put them there takes away."""
    kubelet_args: dict[str, str]
    """Flags of the kubelet with their values."""
    control_plane: bool
    """Whether the node is a member of the control plane."""
    power: str
    """What the machine shall do."""
    power_observed: str
    """What the machine does; empty while that is not known."""
    priority: int
    """Claims of a higher priority are placed first."""
    keep_failed: int
    """For how many minutes a machine is kept that did not come up."""
    termination_grace_period: str
    """How long a deletion waits for pods that cannot go; empty for ten minutes."""
    expire_after: str
    """How old the node may become, as its pool said when it was made: a duration, ``Never``, or empty for a claim of no
    pool."""
    form: Literal["stockyard", "vcluster", "karpenter"]
    """The form of the document that the claim came as."""
    labels: dict[str, str]
    """Labels that the claim gives the node."""
    annotations: dict[str, str]
    """Annotations of the claim."""
    max_price: dict[str, float]
    """The most that the node may cost as spot: ``percent`` of its price on demand, or ``usd_hour``; empty for no such
    limit."""
    phase: ReadyPhase
    """Whether there is a node: not yet, yes, or not any more."""
    deleting: bool
    """Whether the node is being given back."""
    kept_until: str | None
    """Until when a machine that did not come up is kept; null when none is."""
    ends_at: str | None
    """When the cloud takes the machine back; null while it has not said so."""
    deletion_timestamp: str | None
    """When the deletion was asked for first; null before."""
    drain_until: str | None
    """Until when pods may hold the node; null before a drain, and for as long as it takes."""
    reason: Reason
    message: Message
    conditions: list[ConditionView]
    """What is observed of the claim, an aspect each."""
    placement: PlacementView | None
    """What the scheduler decided; null before."""
    machine_id: str
    """The id of the machine at its provider; empty before there is one."""
    node_name: str
    """The name of the node in the cluster; empty before it is known."""
    node_labels: dict[str, str]
    """The labels that the node has, fixed at its launch."""
    remaining: list[str]
    """What a deletion that failed may have left in the cloud."""
    created_by: str
    """Who asked for the node."""
    created_at: CreatedAt
    updated_at: UpdatedAt
    version: Version
    operation_id: str | None
    """The last operation on the claim; null before the first."""
    warnings: list[Remark]
    """What to mind of what was asked for; only in the answer to its creation."""


class NodeClaimDocument(RootModel[NodeClaimView | ManifestView]):
    """A node claim, or with ``form=manifest`` its manifest."""
