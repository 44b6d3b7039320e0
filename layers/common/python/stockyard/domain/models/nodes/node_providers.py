"""Node providers as callers send and see them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, RootModel
from pydantic_core import CoreSchema, PydanticKnownError, core_schema

from stockyard.domain.models import fields
from stockyard.domain.models.base import Input, Irremovable, View, read
from stockyard.domain.models.clusters.views import ConditionView
from stockyard.domain.models.manifests.views import ManifestView
from stockyard.domain.models.nodes.block_fields import block_document
from stockyard.domain.models.nodes.node_fields import Annotations, DisplayName, DnsLabel, Properties, Property
from stockyard.domain.models.plan import Remark
from stockyard.domain.models.view_fields import CreatedAt, Message, Reason, UpdatedAt, Version
from stockyard.domain.nodes import provider_kinds
from stockyard.domain.nodes.manifests import ProviderDocument
from stockyard.domain.nodes.records import NodeProvider
from stockyard.domain.values.states import ReadyPhase


class _KindName:
    """The name of a kind in the table of kinds, which is looked at when a document is read."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(cls._checked)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"enum": list(provider_kinds.names()), "type": "string"}

    @staticmethod
    def _checked(value: Any) -> str:
        names = provider_kinds.names()
        if isinstance(value, str) and value in names:
            return value
        listed = [f"'{name}'" for name in names]
        raise PydanticKnownError("literal_error", {"expected": f"{', '.join(listed[:-1])} or {listed[-1]}"})


Kind = Annotated[str, _KindName]
"""The kind of node provider, which says what ``spec`` holds."""
UnitPrice = Annotated[float, Field(gt=0, le=1_000_000)]
"""USD an hour of one unit of cost, by which its node types compare with those of others."""


def _block(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    """The block as it is stored. Raises ``InvalidInput`` below ``/spec``."""
    return block_document(read(provider_kinds.kind(kind).block(), spec, at=("spec",)))


class NodeProviderCreate(Input):
    """A node provider to add; see docs/objects.md for the blocks of each kind."""

    name: DnsLabel
    """The name of the provider, unique in the tenant. It cannot be changed."""
    kind: Kind
    display_name: DisplayName = ""
    properties: Properties = Field(default_factory=dict)
    """Properties of all its node types, and settings of the provider itself."""
    price_per_cost_unit: UnitPrice | None = None
    spec: dict[str, Any]
    """The block of its kind, with the names that a manifest has."""
    labels: fields.Labels = Field(default_factory=dict)
    annotations: Annotations = Field(default_factory=dict)

    def block(self) -> dict[str, Any]:
        """The block as it is stored. Raises ``InvalidInput`` with a pointer per fault."""
        return _block(self.kind, self.spec)

    def document(self) -> ProviderDocument:
        """The provider that is asked for. Raises as ``block`` does."""
        return ProviderDocument(
            name=self.name,
            kind=self.kind,
            block=self.block(),
            display_name=self.display_name,
            properties=dict(self.properties),
            price_per_cost_unit=self.price_per_cost_unit,
            labels=dict(self.labels),
            annotations=dict(self.annotations),
        )


class NodeProviderPatch(Input):
    """A JSON merge patch of a node provider: absent means as it was, null removes."""

    display_name: Irremovable[DisplayName] = None
    properties: dict[str, Property | None] | None = None
    """Properties to add or change; null takes one away, or all of them."""
    price_per_cost_unit: UnitPrice | None = None
    spec: Irremovable[dict[str, Any]] = None
    """What of the block changes; null in it takes a field away."""
    labels: dict[str, fields.LabelValue | None] | None = None
    """Labels to add or change; null takes one away, or all of them."""
    annotations: dict[str, str | None] | None = None
    """Annotations to add or change; null takes one away, or all of them."""

    def changes(self, provider: NodeProvider) -> dict[str, Any]:
        """The record's fields that this patch gives, whole. Raises ``InvalidInput`` for what they then would be."""
        patched_fields = self.model_fields_set
        whole: dict[str, Any] = {
            name: getattr(self, name) for name in ("display_name", "price_per_cost_unit") if name in patched_fields
        }
        for name in ("properties", "labels", "annotations"):
            if name in patched_fields:
                whole[name] = merged(getattr(provider, name), getattr(self, name))
        if self.spec is not None:
            whole["spec"] = merged(provider.spec[provider.kind], self.spec)
        checked = read(NodeProviderCreate, {"name": provider.name, "kind": provider.kind, "spec": {}, **whole})
        if self.spec is not None:
            whole["spec"] = {provider.kind: checked.block()}
        return whole


def merged(current: Any, patch: Any) -> Any:
    """``current`` after a JSON merge patch (RFC 7396); None in its place makes an empty object."""
    if patch is None:
        return {}
    if not isinstance(patch, dict):
        return patch
    document = dict(current) if isinstance(current, dict) else {}
    for key, value in patch.items():
        if value is None:
            document.pop(key, None)
        else:
            document[key] = merged(document.get(key), value)
    return document


class ProviderOffers(View):
    """Node types that a provider offers."""

    types: int
    """Number of its node types, declared and discovered ones."""
    usd_hour: float | None
    """The least price of a node of it in USD an hour; null where none is known."""


class NodeProviderView(View):
    """A source of nodes."""

    id: str
    """The id of the provider."""
    name: str
    """The name of the provider, unique in the tenant."""
    kind: Kind
    shared: bool
    """Whether the platform shares it with all tenants, which see it without its ``spec``."""
    display_name: str
    """A name for people."""
    properties: dict[str, str]
    """Properties of all its node types, and settings of the provider itself."""
    price_per_cost_unit: float | None
    """USD an hour of one unit of cost; null where costs are no money."""
    implicit: bool
    """Whether Stockyard made it for a cloud account or a cluster."""
    spec: dict[str, Any]
    """The block of its kind, as it was sent with published defaults."""
    phase: ReadyPhase
    """Whether nodes can come from it."""
    reason: Reason
    message: Message
    conditions: list[ConditionView]
    """What is observed of it, an aspect each."""
    node_types: list[str]
    """The bare names of the node types that its document declares."""
    offers: ProviderOffers | None
    """What it has on offer now; null where ``offers`` was not given."""
    labels: dict[str, str]
    """Labels by key."""
    annotations: dict[str, str]
    """Annotations by key."""
    warnings: list[Remark]
    """What to mind of its document."""
    generation: int
    """Rises with each change of what it asks for."""
    created_at: CreatedAt
    updated_at: UpdatedAt
    version: Version


class NodeProviderDocument(RootModel[NodeProviderView | ManifestView]):
    """A node provider, or with ``form=manifest`` its manifest."""
