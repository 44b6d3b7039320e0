"""Manifests as they are sent: their forms, read into documents of providers and claims."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, create_model, field_validator, model_validator

from stockyard.domain import manifests, provider_kinds
from stockyard.domain.manifests import OWN
from stockyard.domain.models import fields, patterns
from stockyard.domain.models.base import refuse
from stockyard.domain.models.node_claims import Power, Priority
from stockyard.domain.models.node_fields import (
    Annotations,
    Camel,
    CamelRequirements,
    DisplayName,
    DnsLabel,
    KubeletArgs,
    Properties,
    Reference,
    Resources,
    Taints,
)
from stockyard.domain.models.node_providers import UnitPrice
from stockyard.domain.provider_kinds import ProviderKind

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


class Metadata(Camel):
    """Names and labels; what a server fills in is not looked at."""

    name: DnsLabel
    namespace: DnsLabel | None = None
    labels: fields.Labels = Field(default_factory=dict)
    annotations: Annotations = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _sent(cls, document: Any) -> Any:
        if isinstance(document, dict):
            return {key: value for key, value in document.items() if key not in _MADE_BY_A_SERVER}
        return document

    @model_validator(mode="after")
    def _one_namespace(self) -> Self:
        if self.namespace and self.labels.get(manifests.NAMESPACE, self.namespace) != self.namespace:
            raise refuse((("labels", manifests.NAMESPACE), "is not the namespace of the manifest"))
        return self

    def kept_labels(self) -> dict[str, str]:
        """The labels, the namespace among them."""
        return {**self.labels, **({manifests.NAMESPACE: self.namespace} if self.namespace else {})}


class ProviderSpec(Camel):
    """What a node provider is, in every form."""

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
    """What the published kinds have."""

    @model_validator(mode="before")
    @classmethod
    def _published(cls, document: Any) -> Any:
        own_fields = [
            name for name in (*(kind.name for kind in _kinds(own=True)), "pricePerCostUnit") if name in document
        ]
        if own_fields:
            raise refuse(*(((name,), f"only a NodeProvider of {OWN} has this") for name in own_fields))
        return document


class OwnProviderSpec(ProviderSpec):
    """What all kinds have, and what makes a cost money."""

    price_per_cost_unit: UnitPrice | None = None


def _kinds(*, own: bool) -> list[ProviderKind]:
    return [kind for name in provider_kinds.names() if (kind := provider_kinds.kind(name)).own is own]


def _with_blocks(spec: type[ProviderSpec], kinds: list[ProviderKind]) -> type[ProviderSpec]:
    blocks: dict[str, Any] = {kind.name: (kind.block() | None, Field(None, alias=kind.name)) for kind in kinds}
    return create_model(spec.__name__, __base__=spec, **blocks)


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
    node_class_ref: NodeClassRef
    termination_grace_period: Annotated[str, StringConstraints(pattern=patterns.DURATION)] | None = None
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
    display_name: DisplayName = ""


class Manifest(Camel):
    """What every manifest has."""

    api_version: str
    kind: str
    metadata: Metadata
    status: Any = None

    @field_validator("status")
    @classmethod
    def _is_not_asked_for(cls, _: Any) -> None:
        return None


class VClusterClaim(Manifest):
    """A NodeClaim of ``management.loft.sh/v1``."""

    spec: VClusterClaimSpec


class SubdomainMetadata(Metadata):
    """Of what Karpenter names after its pool: a DNS subdomain, as Kubernetes has it."""

    name: fields.Subdomain


class KarpenterClaim(Manifest):
    """A NodeClaim of ``karpenter.sh/v1``."""

    metadata: SubdomainMetadata
    spec: KarpenterClaimSpec


class OwnClaim(Manifest):
    """A NodeClaim of ``stockyard/v1``."""

    spec: OwnClaimSpec


class ProviderManifest(Manifest):
    """A NodeProvider. Its ``spec`` has a field for each kind that there is."""

    spec: ProviderSpec


@cache
def foreign_provider() -> type[ProviderManifest]:
    """A NodeProvider of ``management.loft.sh/v1``: of one of the published kinds."""
    spec = _with_blocks(ForeignProviderSpec, _kinds(own=False))
    return create_model("ForeignProvider", __base__=ProviderManifest, spec=(spec, ...))


@cache
def own_provider() -> type[ProviderManifest]:
    """A NodeProvider of ``stockyard/v1``: of any kind."""
    spec = _with_blocks(OwnProviderSpec, [*_kinds(own=False), *_kinds(own=True)])
    return create_model("OwnProvider", __base__=ProviderManifest, spec=(spec, ...))
