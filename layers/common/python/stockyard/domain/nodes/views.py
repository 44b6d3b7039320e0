"""Records of nodes as the documents that callers receive: the node part of ``domain.views``, by the same rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any, TypeVar

from stockyard.domain.nodes.declared_types import RESOURCES_UNKNOWN, DeclaredType, block_of, declared, type_id
from stockyard.domain.nodes.manifests import Warnings, provider_warnings
from stockyard.domain.nodes.node_types import ANY, NodeType, Offering, is_setting
from stockyard.domain.nodes.offers import RefusedOffering
from stockyard.domain.nodes.os_images import CONTENT, OSImage
from stockyard.domain.nodes.prices import least_price
from stockyard.domain.nodes.records import NodeClaim, NodeClaimSpec, NodeEnvironment, NodeProvider, Placement
from stockyard.domain.platform import is_foreign, is_shared
from stockyard.domain.values.conditions import Condition
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.notes import remark
from stockyard.domain.values.pointers import pointer
from stockyard.domain.values.quantities import resource_text
from stockyard.domain.values.requirements import CAPACITY_TYPE, ZONE
from stockyard.domain.views import CHANGES, STATE, attributes

T = TypeVar("T")

_WORDS = ("display_name", "properties", "labels", "annotations")
_PROVIDER = ("id", "name", "kind", *_WORDS, "price_per_cost_unit", "implicit", *STATE, "generation", *CHANGES)
_CLAIM_OTHERWISE = frozenset({"cluster_ref", "provider_ref", "requirements", "document"})
"""What a claim's view shows under another name or in another form, or does not show."""
_CLAIM = (
    "id",
    "name",
    *(part.name for part in fields(NodeClaimSpec) if part.name not in _CLAIM_OTHERWISE),
    "expire_after",
    "power_observed",
    *STATE,
    "deleting",
    "kept_until",
    "ends_at",
    "deletion_timestamp",
    "drain_until",
    "machine_id",
    "node_name",
    "node_labels",
    "remaining",
    "created_by",
    *CHANGES,
    "operation_id",
)
_OPTION = ("type", "capacity_type", "zones", "usd_hour", "cost")
_PLACEMENT = (*_OPTION, "decided_at", "attempt", "options", "considered", "owned")
_ENVIRONMENT = ("id", "cluster_id", "provider_id", "properties", *STATE, "outputs", "secret_outputs", *CHANGES)


def remarks(warnings: Warnings) -> list[dict[str, Any]]:
    """Warnings as a plan shows them."""
    return [remark(pointer(*path), detail) for path, detail in warnings]


def os_image_view(image: OSImage) -> dict[str, Any]:
    """``image`` as an ``OSImageView`` document."""
    return attributes(image, ("id", "name", *CONTENT, *CHANGES, "created_by"))


def node_provider_view(provider: NodeProvider, tenant: str) -> dict[str, Any]:
    """``provider`` as a ``NodeProviderView`` document for ``tenant``: of a shared one without what configures it."""
    hidden = is_foreign(tenant, provider)
    return {
        **attributes(provider, _PROVIDER),
        "shared": is_shared(provider),
        **({"properties": _open(provider.properties), "annotations": {}} if hidden else {}),
        "spec": {} if hidden else dict(block_of(provider)),
        "node_types": [declaration.name for declaration in declared(provider)],
        "offers": None,
        "warnings": [] if hidden else remarks(provider_warnings(provider, ("spec",), ("properties",))),
    }


def _open(properties: Mapping[str, T]) -> dict[str, T]:
    """Without what configures the provider."""
    return {key: value for key, value in properties.items() if not is_setting(key)}


@dataclass(frozen=True, slots=True)
class Capacity:
    """Number of nodes that there may be of a type, None for any, how many are claimed, and when machines were counted
    where they are."""

    total: int | None
    claimed: int
    counted_at: str | None = None


def node_type_view(
    provider: NodeProvider,
    node_type: NodeType,
    declaration: DeclaredType | None,
    capacity: Capacity,
    tenant: str,
    refused: Sequence[RefusedOffering] = (),
) -> dict[str, Any]:
    """A node type as a ``NodeTypeView`` document for ``tenant``: of a shared one without what configures it.

    ``declaration`` is what the provider's document says of it, if anything; ``capacity.claimed`` counts the nodes of a
    limited type, which are counted for no other. ``refused`` are the provider's offerings that were refused of late.
    """
    hidden = is_foreign(tenant, provider)
    properties = _open(_properties(node_type)) if hidden else _properties(node_type)
    limit, claimed = capacity.total, capacity.claimed
    return {
        "id": type_id(provider, node_type.bare),
        "name": node_type.name,
        "type": node_type.bare,
        "provider": provider.name,
        "provider_id": provider.id,
        "display_name": declaration.display_name if declaration else "",
        **_type_state(provider, node_type, declaration, limit, claimed),
        "properties": {key: ",".join(values) for key, values in sorted(properties.items())},
        "requirements": [_requirement(key, values) for key, values in sorted(properties.items())],
        "resources": _quantities(node_type.capacity),
        "allocatable": _quantities(node_type.allocatable),
        "cost": node_type.effective_cost,
        "usd_hour": node_type.usd_hour,
        "owned": node_type.owned,
        "offerings": [_offering(node_type, offering, refused) for offering in node_type.offerings],
        "disk_gib": node_type.disk_gib,
        "disk_usd_hour": node_type.disk_usd_hour,
        "capacity": {
            "total": limit,
            "claimed": None if limit is None else claimed,
            "available": None if limit is None else limit - claimed,
            "counted_at": capacity.counted_at,
        },
        "spot_history": None,
        "labels": dict(declaration.labels) if declaration else {},
        "annotations": dict(declaration.annotations) if declaration and not hidden else {},
        "created_at": provider.created_at,
        "updated_at": provider.updated_at,
        "version": provider.version,
    }


def _offering(node_type: NodeType, offering: Offering, refused: Sequence[RefusedOffering]) -> dict[str, Any]:
    """A way to get a node as an ``OfferingView`` document, at the price of its cheapest zone."""

    def price(usd_hour: float | None) -> float | None:
        return node_type.money(replace(offering, usd_hour=usd_hour))

    prices = {zone_id: price(zone.now) for zone_id, zone in sorted(offering.zone_prices.items())}
    return {
        "capacity_type": offering.capacity_type,
        "zones": list(offering.zones),
        "usd_hour": price(least_price(offering, offering.zones, {})),
        "zone_prices": {zone_id: usd for zone_id, usd in prices.items() if usd is not None},
        "refused": [
            attributes(each, ("zone", "reason", "refused_at", "until"))
            for each in refused
            if (each.type, each.capacity_type) == (node_type.bare, offering.capacity_type)
        ],
    }


def _type_state(
    provider: NodeProvider, node_type: NodeType, declaration: DeclaredType | None, limit: int | None, claimed: int
) -> dict[str, Any]:
    """Phase, reason, message and conditions: whether its facts are known, and whether there is room."""
    # What the document leaves to its provider may have been discovered by now.
    if declaration is None or (declaration.reason == RESOURCES_UNKNOWN and node_type.available):
        phase, reason, message = "Available", "", ""
    else:
        phase, reason, message = declaration.phase, declaration.reason, declaration.message
    if phase == "Available" and not node_type.available:
        phase, reason, message = "Pending", provider.reason or "NotAvailable", provider.message
    if phase == "Available" and node_type.unserved is not None:
        phase, reason, message = "Unavailable", "NotServed", f"No node can be made of it yet: {node_type.unserved}."
    synced = phase in ("Available", "Unavailable")
    moment = provider.updated_at
    facts_known = Condition("Synced", "True" if synced else "False", reason or "Synced", message, moment)
    room = limit is None or claimed < limit
    if phase == "Available" and not room:
        phase, reason, message = "Unavailable", "Full", f"{claimed} of {limit} nodes are claimed."
    conditions = (
        facts_known,
        Condition(
            "HasCapacity",
            "True" if room else "False",
            "Unlimited" if limit is None else "Free" if room else "Full",
            "" if limit is None else f"{claimed} of {limit} nodes are claimed.",
            moment,
        ),
    )
    return {
        "phase": phase,
        "reason": reason,
        "message": message,
        "conditions": [asdict(condition) for condition in conditions],
    }


def _properties(node_type: NodeType) -> dict[str, tuple[str, ...]]:
    """All properties, those of the offerings too."""
    zones = tuple(dict.fromkeys(zone for offering in node_type.offerings for zone in offering.zones))
    capacity_types = tuple(dict.fromkeys(offering.capacity_type for offering in node_type.offerings))
    return {**node_type.properties, ZONE: zones, CAPACITY_TYPE: capacity_types}


def _requirement(key: str, values: tuple[str, ...]) -> dict[str, Any]:
    return (
        {"key": key, "operator": "Exists"}
        if values == (ANY,)
        else {"key": key, "operator": "In", "values": list(values)}
    )


def _quantities(resources: Mapping[str, int]) -> dict[str, str]:
    return {name: resource_text(name, amount) for name, amount in sorted(resources.items())}


def requirement_view(requirement: Mapping[str, Any]) -> dict[str, Any]:
    """A requirement of a claim or pool as a ``RequirementView`` document."""
    return {
        "key": requirement["key"],
        "operator": requirement.get("operator", "In"),
        "values": list(requirement.get("values") or ()),
        "min_values": requirement.get("minValues"),
    }


def node_claim_view(claim: NodeClaim) -> dict[str, Any]:
    """``claim`` as a ``NodeClaimView`` document."""
    return {
        **attributes(claim, _CLAIM),
        "cluster": claim.cluster_ref,
        "cluster_id": claim.cluster_id or None,
        "provider": claim.provider_ref,
        "type": claim.type_ref,
        "environment": claim.environment_ref,
        "requirements": [requirement_view(requirement) for requirement in claim.requirements],
        "placement": attributes(claim.placement, _PLACEMENT) if claim.placement else None,
        "warnings": [],
    }


def option_views(placement: Placement) -> list[dict[str, Any]]:
    """The ways that may be launched as ``PlacementOption`` documents."""
    return [attributes(option, _OPTION) for option in placement.options]


def node_environment_view(environment: NodeEnvironment) -> dict[str, Any]:
    """``environment`` as a ``NodeEnvironmentView`` document."""
    return {**attributes(environment, _ENVIRONMENT), "provider": environment.provider_name}
