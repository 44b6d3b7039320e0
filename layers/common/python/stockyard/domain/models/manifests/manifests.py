"""Manifests as they are sent: their forms, read into documents of providers and claims."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import Field, StringConstraints, create_model, field_validator, model_validator

from stockyard.domain.models import fields, patterns
from stockyard.domain.models.base import refuse
from stockyard.domain.models.nodes.node_claims import Priority
from stockyard.domain.models.nodes.node_fields import (
    Annotations,
    Camel,
    CamelRequirements,
    DisplayName,
    DnsLabel,
    Grace,
    KubeletArgs,
    Properties,
    Reference,
    Resources,
    Taints,
)
from stockyard.domain.models.nodes.node_providers import UnitPrice
from stockyard.domain.nodes import manifests, provider_kinds
from stockyard.domain.nodes.manifests import OWN
from stockyard.domain.values.states import Power

Raw = dict[str, Any]
_MADE_BY_A_SERVER = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
)


def without_servers_fields(metadata: Any) -> Any:
    """The metadata without what a server fills in, and without an empty namespace, which Kubernetes reads as none."""
    if not isinstance(metadata, dict):
        return metadata
    own_fields = {key: value for key, value in metadata.items() if key not in _MADE_BY_A_SERVER}
    return {key: value for key, value in own_fields.items() if (key, value) != ("namespace", "")}


class Metadata(Camel):
    """Names and labels; what a server fills in is not looked at."""

    name: DnsLabel
    namespace: DnsLabel | None = None
    labels: fields.Labels = Field(default_factory=dict)
    annotations: Annotations = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _sent(cls, document: Any) -> Any:
        return without_servers_fields(document)

    @model_validator(mode="after")
    def _one_namespace(self) -> Self:
        if self.namespace and self.labels.get(manifests.NAMESPACE, self.namespace) != self.namespace:
            raise refuse((("labels", manifests.NAMESPACE), "is not the namespace of the manifest"))
        return self

    def kept_labels(self) -> dict[str, str]:
        """The labels, the namespace among them."""
        return {**self.labels, **({manifests.NAMESPACE: self.namespace} if self.namespace else {})}


class ProviderSpec(Camel):
    """Content of a node provider, in every form."""

    display_name: DisplayName = ""
    properties: Properties = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_block(self) -> Self:
        if len(self.blocks()) != 1:
            kinds = ", ".join(self.blocks()) or "none"
            raise ValueError(f"a node provider has exactly one block that says its kind, not {kinds}")
        return self

    def blocks(self) -> dict[str, Camel]:
        """The blocks that are given, by kind."""
        named = {field.alias or name: getattr(self, name) for name, field in type(self).model_fields.items()}
        return {name: value for name, value in named.items() if isinstance(value, Camel)}


class ForeignProviderSpec(ProviderSpec):
    """Content of the published kinds."""

    @model_validator(mode="before")
    @classmethod
    def _published(cls, document: Any) -> Any:
        if not isinstance(document, dict):
            return document
        own_kinds = [name for name in provider_kinds.names() if provider_kinds.kind(name).own]
        own_fields = [name for name in (*own_kinds, "pricePerCostUnit") if name in document]
        if own_fields:
            raise refuse(*(((name,), f"only a NodeProvider of {OWN} has this") for name in own_fields))
        return document


class OwnProviderSpec(ProviderSpec):
    """Content of all kinds, and the price that makes a cost money."""

    price_per_cost_unit: UnitPrice | None = None


class PowerState(Camel):
    """Whether the machine shall run."""

    state: Literal["On", "Off", ""] = "On"


class VClusterClaimSpec(Camel):
    """A claim as vCluster's platform has it."""

    display_name: DisplayName = ""
    owner: Raw | None = None
    access: Annotated[list[Raw], Field(max_length=64)] | None = None
    provider_ref: DnsLabel | None = None
    type_ref: Reference | None = None
    environment_ref: Reference | None = None
    properties: Properties = Field(default_factory=dict)
    v_cluster_ref: Reference | None = None
    control_plane: bool = False
    taints: Taints = Field(default_factory=list)
    startup_taints: Taints = Field(default_factory=list)
    kubelet_args: KubeletArgs = Field(default_factory=dict)
    profile_ref: Reference | None = None
    desired_capacity: Resources = Field(default_factory=dict)
    requirements: CamelRequirements = Field(default_factory=list)
    power: PowerState = Field(default_factory=PowerState)


class NodeClassRef(Camel):
    """The node class of a Karpenter; it is kept and not used."""

    group: Annotated[str, StringConstraints(max_length=253)]
    kind: Annotated[str, StringConstraints(min_length=1, max_length=63)]
    name: Annotated[str, StringConstraints(min_length=1, max_length=253)]


class Requests(Camel):
    """Resources that pods ask for."""

    requests: Resources = Field(default_factory=dict)


class KarpenterClaimSpec(Camel):
    """A claim as Karpenter has it."""

    requirements: CamelRequirements
    resources: Requests = Field(default_factory=Requests)
    taints: Taints = Field(default_factory=list)
    startup_taints: Taints = Field(default_factory=list)
    node_class_ref: NodeClassRef | None = None
    termination_grace_period: Grace | None = None
    expire_after: Annotated[str, StringConstraints(pattern=patterns.DURATION_OR_NEVER)] = "720h"


class OwnClaimSpec(Camel):
    """A claim of our own form."""

    cluster: Reference
    provider: DnsLabel | None = None
    type: Reference | None = None
    requirements: CamelRequirements = Field(default_factory=list)
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


M = TypeVar("M", bound=Metadata)
S = TypeVar("S")


class Manifest(Camel, Generic[M, S]):
    """Fields of every manifest."""

    api_version: str
    kind: str
    metadata: M
    spec: S
    status: Any = None

    @field_validator("status")
    @classmethod
    def _is_not_asked_for(cls, _: Any) -> None:
        return None


class SubdomainMetadata(Metadata):
    """Metadata of things that Karpenter names after a pool: a DNS subdomain, as Kubernetes has it."""

    name: fields.Subdomain


VClusterClaim = Manifest[Metadata, VClusterClaimSpec]
KarpenterClaim = Manifest[SubdomainMetadata, KarpenterClaimSpec]
OwnClaim = Manifest[Metadata, OwnClaimSpec]
ProviderManifest = Manifest[Metadata, ProviderSpec]


@cache
def provider_manifest(*, own: bool) -> type[ProviderManifest]:
    """A NodeProvider, whose ``spec`` has a field for each kind: of ours for any kind, else for the published ones."""
    kinds = sorted(map(provider_kinds.kind, provider_kinds.names()), key=lambda kind: kind.own)
    blocks: dict[str, Any] = {
        kind.name: (kind.block() | None, Field(None, alias=kind.name)) for kind in kinds if own or not kind.own
    }
    base = OwnProviderSpec if own else ForeignProviderSpec
    spec = create_model(base.__name__, __base__=base, **blocks)
    return create_model("NodeProvider", __base__=ProviderManifest, spec=(spec, ...))
