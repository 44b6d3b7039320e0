"""Node claims as callers send and see them."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal

from pydantic import Field, RootModel, model_validator

from stockyard.domain.models import fields
from stockyard.domain.models.base import Input, Irremovable, View, check_fixed, read
from stockyard.domain.models.bid_fields import MaxPrice
from stockyard.domain.models.cluster_views import ConditionView
from stockyard.domain.models.manifest_views import ManifestView
from stockyard.domain.models.node_fields import (
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
from stockyard.domain.models.node_providers import merged
from stockyard.domain.models.plan import GroupView, Remark
from stockyard.domain.node_records import NewClaim, NodeClaim

Power = Literal["On", "Off"]
Priority = Annotated[int, Field(ge=-100, le=100)]
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
    """One wanted node. Without a ``provider`` it is the cheapest of all that fit; without a ``name`` it gets one.

    ``keep_failed`` is for how many minutes its machine is kept if that does not come up, so that somebody can look.
    ``termination_grace_period`` is how long its deletion waits for pods that budgets or annotations hold; ``Never`` is
    as long as it takes. ``max_price`` is the most that it may cost as spot.
    """

    name: DnsLabel | None = None
    cluster: Reference
    provider: DnsLabel | None = None
    type: Reference | None = None
    requirements: Requirements = Field(default_factory=list)
    resources: Resources = Field(default_factory=dict)
    properties: Properties = Field(default_factory=dict)
    taints: Taints = Field(default_factory=list)
    startup_taints: Taints = Field(default_factory=list)
    kubelet_args: KubeletArgs = Field(default_factory=dict)
    power: Power = "On"
    priority: Priority = 0
    keep_failed: fields.KeepFailed = 0
    termination_grace_period: Grace | None = None
    display_name: DisplayName = ""
    labels: fields.Labels = Field(default_factory=dict)
    annotations: Annotations = Field(default_factory=dict)
    max_price: MaxPrice | None = None

    def new_claim(self) -> NewClaim:
        """The claim that is asked for."""
        document = {"spec": {"type": self.type}} if self.type else {}
        return NewClaim(**claim_fields(self), document=document)


def claim_fields(document: Input) -> dict[str, Any]:
    """What ``document`` says of a claim, by the names of :class:`NewClaim`. Whatever it does not say is left out."""
    values = {_RENAMED.get(name, name): getattr(document, name) for name in type(document).model_fields}
    return {name: _plain(value) for name, value in values.items() if name in _CLAIM_FIELDS and value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(entry.entry() for entry in value)
    if isinstance(value, MaxPrice):
        return value.entry()
    return {key: str(inner) for key, inner in value.items()} if isinstance(value, dict) else value


class _Changed(Input):
    """What a patch makes of a claim's changeable fields."""

    display_name: DisplayName = ""
    power: Power = "On"
    labels: fields.Labels = Field(default_factory=dict)
    annotations: Annotations = Field(default_factory=dict)


class NodeClaimPatch(Input):
    """A JSON merge patch of a node claim: absent means as it was, null removes."""

    display_name: Irremovable[DisplayName] = None
    power: Irremovable[Power] = None
    labels: dict[str, fields.LabelValue | None] | None = None
    annotations: dict[str, str | None] | None = None

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
    """What the machine of a claim shall do. ``Reboot`` is done once."""

    state: Literal["On", "Off", "Reboot"]


class RequirementView(View):
    """What a node must be."""

    key: str
    operator: str
    values: list[str]
    min_values: int | None


class PlacementOption(View):
    """A way to get the node, the cheapest first."""

    type: str
    capacity_type: str
    zones: list[str]
    usd_hour: float | None
    cost: float


class PlacementView(PlacementOption):
    """What the scheduler decided, and what it decided from: ``considered`` counts the types by what ruled them out."""

    decided_at: str
    attempt: int
    options: list[PlacementOption]
    considered: dict[str, int]


class NodeClaimView(View):
    """One wanted, promised or existing node. ``type`` is filled by the scheduler unless the claim asked for one.

    ``expire_after`` is how old the node may become, as its pool said when it was made: a duration, ``Never``, or empty
    for a claim of no pool. ``warnings`` are those of the creation, in its answer alone.
    """

    id: str
    name: str
    cluster: str
    cluster_id: str | None
    provider: str
    type: str
    environment: str
    display_name: str
    requirements: list[RequirementView]
    resources: dict[str, str]
    properties: dict[str, str]
    taints: list[dict[str, Any]]
    startup_taints: list[dict[str, Any]]
    kubelet_args: dict[str, str]
    control_plane: bool
    power: str
    power_observed: str
    priority: int
    keep_failed: int
    termination_grace_period: str
    expire_after: str
    form: Literal["stockyard", "vcluster", "karpenter"]
    labels: dict[str, str]
    annotations: dict[str, str]
    max_price: dict[str, float]
    phase: Literal["Pending", "Available", "Failed"]
    deleting: bool
    kept_until: str | None
    ends_at: str | None
    deletion_timestamp: str | None
    drain_until: str | None
    reason: str
    message: str
    conditions: list[ConditionView]
    placement: PlacementView | None
    machine_id: str
    node_name: str
    node_labels: dict[str, str]
    remaining: list[str]
    created_by: str
    created_at: str
    updated_at: str
    version: int
    operation_id: str | None
    warnings: list[Remark]


class NodeClaimDocument(RootModel[NodeClaimView | ManifestView]):
    """A node claim, or with ``form=manifest`` its manifest."""


class ChosenView(PlacementOption):
    """The way that was chosen."""

    provider: str


class CandidateView(View):
    """A node type and the first rule that ruled it out; null: it fits."""

    type: str
    provider: str
    capacity_type: str | None
    usd_hour: float | None
    cost: float | None
    rule: str | None
    message: str


class ExplanationView(View):
    """Why a claim got its node type, or why it has none. ``considered`` counts the types by rule. ``groups`` are those
    that were not chosen: what fits too, then what each rule excluded. ``candidates`` names up to 200 one by one: what
    fits by price, then the others in the order of the groups."""

    claim: str
    decided_at: str | None
    chosen: ChosenView | None
    options: list[PlacementOption]
    groups: list[GroupView]
    candidates: list[CandidateView]
    considered: dict[str, int]
    message: str
