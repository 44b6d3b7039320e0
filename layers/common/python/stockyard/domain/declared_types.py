"""The node types that a provider's document declares, and how the scheduler sees them. Nothing of it is stored twice.

Where a type's resources are not written, those of its virtual machine's template are taken; a type without any waits
until its provider tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stockyard.domain import ids
from stockyard.domain.node_records import NodeProvider
from stockyard.domain.node_types import (
    DEFAULT_ZONE,
    ON_DEMAND,
    SPOT,
    Declaration,
    NodeKind,
    Offering,
    is_label_text,
    kind_of,
    parse_property,
)
from stockyard.domain.platform import CAPACITY
from stockyard.domain.quantities import milli
from stockyard.domain.requirements import CAPACITY_TYPE, INSTANCE_TYPE, NODE_TYPE, OS, ZONE, normal_key

BUILT = frozenset({"ec2", "simulated"})
"""Kinds of providers whose nodes can join. The others are stored, and their claims wait."""
NOT_AVAILABLE, RESOURCES_UNKNOWN = "ProviderNotAvailable", "ResourcesUnknown"
FIXED = frozenset({NODE_TYPE, INSTANCE_TYPE, CAPACITY_TYPE, OS})
"""Properties that Stockyard sets itself: what a document says of them is not used."""
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
    found: Mapping[str, Any] = provider.spec.get(provider.kind) or {}
    return found


def declared(provider: NodeProvider) -> list[DeclaredType]:
    """Every node type of the document, in its order. Of EC2: those whose facts differ from the catalogue's."""
    block = block_of(provider)
    return [_declared(provider, block, entry) for entry in block.get("nodeTypes") or ()]


def declared_type(provider: NodeProvider, name: str) -> DeclaredType | None:
    """The node type of that bare name, if the document has it."""
    block = block_of(provider)
    entry = next((one for one in block.get("nodeTypes") or () if one["name"] == name), None)
    return None if entry is None else _declared(provider, block, entry)


def kinds(provider: NodeProvider, *, built: bool) -> list[NodeKind]:
    """The declared types as the scheduler sees them; with ``built`` False, or before their resources are known, none
    of them is available. Of EC2 there are none: they come from its catalogue.
    """
    if provider.kind == "ec2":
        return []
    return [_kind(provider, one, built=built) for one in declared(provider)]


def provider_state(kind: str) -> tuple[str, str, str]:
    """Phase, reason and message of a provider that was just written down."""
    if kind in BUILT:
        return "Available", "", ""
    text = f"Providers of kind {kind} are not built yet; its node types are listed and its claims wait."
    return "Pending", NOT_AVAILABLE, text


def choosable(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that a node can be chosen by: a provider's own settings that are no label values are left out."""
    return {key: text for key, text in properties.items() if not key.startswith("vcluster.com/") or is_label_text(text)}


def written_zone(*properties: Mapping[str, str]) -> str:
    """The zones as the first of these properties names them, by a key of any release; empty when none does."""
    return next((text for one in properties for key, text in one.items() if normal_key(key) == ZONE and text), "")


def _declared(provider: NodeProvider, block: Mapping[str, Any], entry: Mapping[str, Any]) -> DeclaredType:
    metadata = entry.get("metadata") or {}
    resources = _resources(provider.kind, block, entry)
    phase, reason, message = provider_state(provider.kind)
    if provider.kind != "ec2" and not {"cpu", "memory"} <= set(resources):
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
        max_capacity=_limit(provider.kind, entry),
        offerings=_offerings(provider, entry) if provider.kind == "simulated" else None,
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        phase=phase,
        reason=reason,
        message=message,
    )


def _kind(provider: NodeProvider, one: DeclaredType, *, built: bool) -> NodeKind:
    known = one.reason != RESOURCES_UNKNOWN
    return kind_of(
        Declaration(
            provider=provider.name,
            name=one.name,
            resources=one.resources if known else {**_NO_RESOURCES, **one.resources},
            overhead=one.overhead,
            provider_properties=choosable(provider.properties),
            properties=choosable(one.properties),
            zone=one.zone,
            cost=one.cost,
            unit_price=provider.price_per_cost_unit,
            limited=one.max_capacity is not None,
            available=built and known,
            offerings=one.offerings,
        )
    )


def _limit(kind: str, entry: Mapping[str, Any]) -> int | None:
    """How many nodes of the type there can be: as written, or, of BCM, as many as are named."""
    if kind == "bcm" and entry.get("nodes") and not entry.get("nodeGroups"):
        return len(entry["nodes"])
    limit: int | None = entry.get("maxCapacity")
    return limit


def _offerings(provider: NodeProvider, entry: Mapping[str, Any]) -> tuple[Offering, ...]:
    written = written_zone(entry.get("properties") or {}, provider.properties)
    if entry.get("zones"):
        zones = tuple(entry["zones"])
    elif entry.get("zone") or not written:
        zones = (entry.get("zone") or DEFAULT_ZONE,)
    else:
        zones = parse_property(ZONE, written)
    found = [Offering(ON_DEMAND, zones, _money(entry.get("usdPerHour")))]
    if entry.get("spotUsdPerHour") is not None:
        found.append(Offering(SPOT, zones, _money(entry["spotUsdPerHour"])))
    return tuple(found)


def _money(value: float | None) -> float | None:
    return None if value is None else float(value)


# --- resources of virtual machines ------------------------------------------------------------------------------------


def _resources(kind: str, block: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, str | float]:
    written: dict[str, str | float] = dict(entry.get("resources") or {})
    if kind != "kubeVirt":
        return written
    template = entry.get("virtualMachineTemplate")
    if template is None:
        template = _merged(block.get("virtualMachineTemplate") or {}, entry.get("mergeVirtualMachineTemplate") or {})
    return {**_of_machine(template), **written}


def _merged(base: Any, change: Any) -> Any:
    """``base`` with ``change`` laid over it, object by object; null removes. Lists are replaced: none is on the way to
    the resources."""
    if not isinstance(base, Mapping) or not isinstance(change, Mapping):
        return change
    merged = {**base, **{key: _merged(base.get(key), value) for key, value in change.items()}}
    return {key: value for key, value in merged.items() if value is not None}


def _of_machine(template: Any) -> dict[str, str | float]:
    """cpu, memory and the rest that a virtual machine's template asks for; a part that cannot be read is not there."""
    domain = _below(template, ("spec", "template", "spec", "domain"))
    cpu = _mapping(domain.get("cpu"))
    found: dict[str, str | float] = {}
    if any(isinstance(cpu.get(name), int) for name in ("cores", "sockets", "threads")):
        number = 1
        for name in ("cores", "sockets", "threads"):
            number *= cpu[name] if isinstance(cpu.get(name), int) else 1
        found["cpu"] = number
    guest = _mapping(domain.get("memory")).get("guest")
    requests = _mapping(_mapping(domain.get("resources")).get("requests"))
    found = {**found, **({} if guest is None else {"memory": guest}), **requests}
    return {name: value for name, value in found.items() if _is_quantity(value)}


def _is_quantity(value: Any) -> bool:
    try:
        return milli(value) >= 0
    except ValueError:
        return False


def _below(document: Any, names: Iterable[str]) -> Mapping[str, Any]:
    for name in names:
        document = _mapping(document).get(name)
    return _mapping(document)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
