"""Records of nodes as the documents that callers receive: the node part of ``domain.views``, by the same rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from stockyard.domain.conditions import Condition
from stockyard.domain.declared_types import DeclaredType, block_of, declared, type_id
from stockyard.domain.manifests import Warnings, provider_warnings
from stockyard.domain.node_records import NodeClaim, NodeEnvironment, NodeProvider, Placement
from stockyard.domain.node_types import ANY, NodeKind, is_setting
from stockyard.domain.platform import is_foreign, is_shared
from stockyard.domain.pointers import pointer
from stockyard.domain.quantities import text
from stockyard.domain.requirements import CAPACITY_TYPE, ZONE

T = TypeVar("T")

_PROVIDER = (
    "id",
    "name",
    "kind",
    "display_name",
    "properties",
    "price_per_cost_unit",
    "phase",
    "reason",
    "message",
    "labels",
    "annotations",
    "generation",
    "created_at",
    "updated_at",
    "version",
)
_CLAIM = (
    "id",
    "name",
    "display_name",
    "resources",
    "properties",
    "kubelet_args",
    "control_plane",
    "power",
    "power_observed",
    "priority",
    "form",
    "labels",
    "annotations",
    "phase",
    "deleting",
    "reason",
    "message",
    "machine_id",
    "node_name",
    "node_labels",
    "created_by",
    "created_at",
    "updated_at",
    "version",
    "operation_id",
)
_ENVIRONMENT = (
    "id",
    "cluster_id",
    "provider_id",
    "properties",
    "phase",
    "reason",
    "message",
    "outputs",
    "created_at",
    "updated_at",
    "version",
)
_BYTES = ("memory", "ephemeral-storage", "hugepages-")
"""Resources whose quantities are shown in Ki, Mi, Gi."""


def _named(record: object, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def _conditions(conditions: Iterable[Condition]) -> list[dict[str, Any]]:
    return [asdict(condition) for condition in conditions]


def remarks(warnings: Warnings) -> list[dict[str, str]]:
    """Warnings as a plan shows them."""
    return [{"pointer": pointer(*place), "detail": detail} for place, detail in warnings]


def node_provider_view(provider: NodeProvider, tenant: str) -> dict[str, Any]:
    """``provider`` as a ``NodeProviderView`` document for ``tenant``: of a shared one without what configures it."""
    hidden = is_foreign(tenant, provider)
    return {
        **_named(provider, _PROVIDER),
        "shared": is_shared(provider),
        **({"properties": _open(provider.properties), "annotations": {}} if hidden else {}),
        "spec": {} if hidden else dict(block_of(provider)),
        "node_types": [one.name for one in declared(provider)],
        "conditions": _conditions(provider.conditions),
        "warnings": [] if hidden else remarks(provider_warnings(provider, ("spec",), ("properties",))),
    }


def _open(properties: Mapping[str, T]) -> dict[str, T]:
    """Without what configures the provider."""
    return {key: found for key, found in properties.items() if not is_setting(key)}


def node_type_view(
    provider: NodeProvider, kind: NodeKind, one: DeclaredType | None, claimed: int, tenant: str
) -> dict[str, Any]:
    """A node type as a ``NodeTypeView`` document for ``tenant``: of a shared one without what configures it.

    ``one`` is what the provider's document says of it, if anything; ``claimed`` the nodes that there are of a limited
    one: those of others are not counted.
    """
    hidden = is_foreign(tenant, provider)
    properties = _open(_properties(kind)) if hidden else _properties(kind)
    limit = one.max_capacity if one else None
    return {
        "id": type_id(provider, kind.bare),
        "name": kind.name,
        "type": kind.bare,
        "provider": provider.name,
        "provider_id": provider.id,
        "display_name": one.display_name if one else "",
        **_type_state(provider, kind, one, limit, claimed),
        "properties": {key: ",".join(values) for key, values in sorted(properties.items())},
        "requirements": [_requirement(key, values) for key, values in sorted(properties.items())],
        "resources": _quantities(kind.capacity),
        "allocatable": _quantities(kind.allocatable),
        "cost": kind.effective_cost,
        "usd_hour": kind.usd_hour,
        "offerings": [
            {"capacity_type": way.capacity_type, "zones": list(way.zones), "usd_hour": way.usd_hour}
            for way in kind.offerings
        ],
        "capacity": {
            "total": limit,
            "claimed": None if limit is None else claimed,
            "available": None if limit is None else limit - claimed,
        },
        "labels": dict(one.labels) if one else {},
        "annotations": dict(one.annotations) if one and not hidden else {},
        "created_at": provider.created_at,
        "updated_at": provider.updated_at,
        "version": provider.version,
    }


def _type_state(
    provider: NodeProvider, kind: NodeKind, one: DeclaredType | None, limit: int | None, claimed: int
) -> dict[str, Any]:
    """Phase, reason, message and conditions: whether its facts are known, and whether there is room."""
    phase, reason, message = (one.phase, one.reason, one.message) if one else ("Available", "", "")
    if phase == "Available" and not kind.available:
        phase, reason, message = "Pending", provider.reason or "NotAvailable", provider.message
    room = limit is None or claimed < limit
    moment = provider.updated_at
    conditions = (
        Condition("Synced", "True" if phase == "Available" else "False", reason or "Synced", message, moment),
        Condition(
            "HasCapacity",
            "True" if room else "False",
            "Unlimited" if limit is None else "Free" if room else "Full",
            "" if limit is None else f"{claimed} of {limit} nodes are claimed.",
            moment,
        ),
    )
    return {"phase": phase, "reason": reason, "message": message, "conditions": _conditions(conditions)}


def _properties(kind: NodeKind) -> dict[str, tuple[str, ...]]:
    """All properties, those of the offerings too."""
    zones = tuple(dict.fromkeys(zone for way in kind.offerings for zone in way.zones))
    capacity_types = tuple(dict.fromkeys(way.capacity_type for way in kind.offerings))
    return {**kind.properties, ZONE: zones, CAPACITY_TYPE: capacity_types}


def _requirement(key: str, values: tuple[str, ...]) -> dict[str, Any]:
    return (
        {"key": key, "operator": "Exists"}
        if values == (ANY,)
        else {"key": key, "operator": "In", "values": list(values)}
    )


def _quantities(resources: Mapping[str, int]) -> dict[str, str]:
    return {name: text(amount, binary=name.startswith(_BYTES)) for name, amount in sorted(resources.items())}


def node_claim_view(claim: NodeClaim) -> dict[str, Any]:
    """``claim`` as a ``NodeClaimView`` document."""
    return {
        **_named(claim, _CLAIM),
        "cluster": claim.cluster_ref,
        "cluster_id": claim.cluster_id or None,
        "provider": claim.provider_ref,
        "type": claim.type_ref,
        "environment": claim.environment_ref,
        "requirements": [
            {
                "key": one["key"],
                "operator": one.get("operator", "In"),
                "values": list(one.get("values") or ()),
                "min_values": one.get("minValues"),
            }
            for one in claim.requirements
        ],
        "taints": list(claim.taints),
        "startup_taints": list(claim.startup_taints),
        "conditions": _conditions(claim.conditions),
        "placement": _placement(claim.placement) if claim.placement else None,
        "remaining": list(claim.remaining),
    }


def _placement(placement: Placement) -> dict[str, Any]:
    return {
        "type": placement.type,
        "capacity_type": placement.capacity_type,
        "zones": list(placement.zones),
        "usd_hour": placement.usd_hour,
        "cost": placement.cost,
        "decided_at": placement.decided_at,
        "attempt": placement.attempt,
        "options": [
            {name: one.get(name) for name in ("type", "capacity_type", "zones", "usd_hour", "cost")}
            for one in placement.options
        ],
        "considered": dict(placement.considered),
    }


def node_environment_view(environment: NodeEnvironment) -> dict[str, Any]:
    """``environment`` as a ``NodeEnvironmentView`` document."""
    return {
        **_named(environment, _ENVIRONMENT),
        "provider": environment.provider_name,
        "conditions": _conditions(environment.conditions),
    }
