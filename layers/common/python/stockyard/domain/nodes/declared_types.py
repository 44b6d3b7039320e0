"""The node types that a provider's document declares, and how the scheduler sees them. Nothing of it is stored twice.

Where a type's resources are not written they may come from a template, as its kind has it; a type without any waits
until its provider tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from stockyard.domain.nodes import provider_kinds
from stockyard.domain.nodes.node_types import Declaration, NodeType, Offering, is_label_text, node_type_of
from stockyard.domain.nodes.records import NodeProvider
from stockyard.domain.platform import CAPACITY
from stockyard.domain.values import ids
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.requirements import ZONE, normal_key
from stockyard.domain.values.states import ReadyPhase

NOT_AVAILABLE, RESOURCES_UNKNOWN = "ProviderNotAvailable", "ResourcesUnknown"
_NO_RESOURCES: Mapping[str, str | float] = {"cpu": 0, "memory": 0}

Quantities = Mapping[str, str | float]


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """A node type as its provider's document has it: properties and quantities are texts, as they were written.

    ``max_capacity`` is None where nodes are not limited or where their number is not known. ``phase`` is ``Available``
    or ``Pending``, then with ``reason`` and ``message``.
    """

    name: str
    display_name: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    resources: Quantities = field(default_factory=dict)
    overhead: Quantities = field(default_factory=dict)
    cost: int | None = None
    zone: str | None = None
    max_capacity: int | None = None
    offerings: tuple[Offering, ...] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    phase: str = "Available"
    reason: str = ""
    message: str = ""


def type_id(provider: NodeProvider, name: str) -> str:
    """The id of a provider's node type, by its bare name."""
    return ids.derive(ids.NODE_TYPE, provider.id, name)


def capacity_counter(provider: NodeProvider, name: str) -> str:
    """The id of the counter of a limited type's nodes."""
    return f"{CAPACITY}{provider.id}/{name}"


def block_of(provider: NodeProvider) -> Mapping[str, Any]:
    """The part of the document that its kind configures."""
    block: Mapping[str, Any] = provider.spec.get(provider.kind) or {}
    return block


def declared(provider: NodeProvider) -> list[DeclaredType]:
    """Every node type of the document, in its order. A kind that discovers its types has only those that differ."""
    block = block_of(provider)
    return [_declared(provider, block, entry) for entry in block.get("nodeTypes") or ()]


def declared_type(provider: NodeProvider, name: str) -> DeclaredType | None:
    """The node type of that bare name, if the document has it."""
    block = block_of(provider)
    entry = next((declaration for declaration in block.get("nodeTypes") or () if declaration["name"] == name), None)
    return None if entry is None else _declared(provider, block, entry)


def node_types_of(provider: NodeProvider, *, built: bool) -> list[NodeType]:
    """The declared types as the scheduler sees them; with ``built`` False, or before their resources are known, none
    of them is available. Of a kind that discovers its types there are none.
    """
    if provider_kinds.kind(provider.kind).discovers:
        return []
    return [_node_type(provider, declaration, built=built) for declaration in declared(provider)]


def provider_state(kind: str) -> tuple[ReadyPhase, str, str]:
    """Phase, reason and message of a provider that was just written down."""
    if provider_kinds.kind(kind).built:
        return "Available", "", ""
    text = f"Providers of kind {kind} are not built yet; its node types are listed and its claims wait."
    return "Pending", NOT_AVAILABLE, text


def choosable(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that a node can be chosen by: a provider's own settings that are no label values are left out."""
    return {key: text for key, text in properties.items() if not key.startswith("vcluster.com/") or is_label_text(text)}


def written_zone(*properties: Mapping[str, str]) -> str:
    """The zones as the first of these properties names them, by a key of any release; empty when none does."""
    return next(
        (text for mapping in properties for key, text in mapping.items() if normal_key(key) == ZONE and text), ""
    )


def _declared(provider: NodeProvider, block: Mapping[str, Any], entry: Mapping[str, Any]) -> DeclaredType:
    metadata = entry.get("metadata") or {}
    kind = provider_kinds.kind(provider.kind)
    resources = kind.resources(block, entry)
    phase, reason, message = provider_state(provider.kind)
    if not kind.discovers and not {"cpu", "memory"} <= set(resources):
        text = "cpu and memory are neither written here nor found in a template; the provider has to tell them."
        phase, reason, message = "Pending", RESOURCES_UNKNOWN, text
    return DeclaredType(
        name=entry["name"],
        display_name=entry.get("displayName") or "",
        properties=entry.get("properties") or {},
        resources=resources,
        overhead=(entry.get("overhead") or {}).get("kubeReserved") or {},
        cost=entry.get("cost"),
        zone=entry.get("zone"),
        max_capacity=kind.limit(entry),
        offerings=kind.offerings(provider.properties, entry),
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        phase=phase,
        reason=reason,
        message=message,
    )


def _node_type(provider: NodeProvider, declaration: DeclaredType, *, built: bool) -> NodeType:
    has_resources = declaration.reason != RESOURCES_UNKNOWN
    return node_type_of(
        Declaration(
            provider=provider.name,
            name=declaration.name,
            resources=declaration.resources if has_resources else {**_NO_RESOURCES, **declaration.resources},
            overhead=declaration.overhead,
            provider_properties=choosable(provider.properties),
            properties=choosable(declaration.properties),
            zone=declaration.zone,
            cost=declaration.cost,
            unit_price=provider.price_per_cost_unit,
            limited=declaration.max_capacity is not None,
            available=built and has_resources,
            offerings=declaration.offerings,
            owned=provider_kinds.kind(provider.kind).owned,
        )
    )
