"""Apply manifests: make what is not there and change what differs, providers first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stockyard.domain.manifests import Warnings
from stockyard.domain.node_views import remarks
from stockyard.domain.pointers import pointer
from stockyard.domain.records import NodeClaim, NodeProvider
from stockyard.errors import IllegalTransition, PreconditionFailed
from stockyard.lifecycle.claim import AVAILABLE
from stockyard.operations.claims import change_claim
from stockyard.operations.create_claim import create_claim
from stockyard.operations.explain_claim import plan_claim
from stockyard.operations.manifest_wishes import ClaimWish, ProviderWish, Wish
from stockyard.operations.node_providers import change_provider, create_provider
from stockyard.operations.power_claim import power_claim
from stockyard.operations.services import Services


def apply_manifests(services: Services, wishes: Sequence[Wish], actor: str, request_id: str) -> list[dict[str, Any]]:
    """What became of each, in their order. A second call finds everything unchanged.

    Raises ``IllegalTransition`` when something was changed by someone else since it was read.
    """
    results: dict[int, dict[str, Any]] = {}
    for wish in sorted(wishes, key=lambda one: (isinstance(one, ClaimWish), one.place)):
        try:
            results[wish.place] = _applied(services, wish, actor, request_id)
        except PreconditionFailed as stale:
            raise IllegalTransition(f"{stale.detail} Apply the manifests again.") from stale
    return [results[place] for place in sorted(results)]


def plan_manifests(services: Services, wishes: Sequence[Wish]) -> dict[str, Any]:
    """The dry run: what would be made and changed, and what the new claims' nodes would cost."""
    plan: dict[str, Any] = {"creates": [], "changes": [], "deletes": [], "rejected": [], "warnings": []}
    items: list[dict[str, Any]] = []
    planned = {one.provider.name for one in wishes if isinstance(one, ProviderWish) and one.current is None}
    for wish in wishes:
        if isinstance(wish, ProviderWish):
            plan["warnings"] += remarks(wish.warnings)
        if wish.current is not None:
            plan["changes"] += [
                {"pointer": pointer(wish.place, name), "before": getattr(wish.current, name), "after": value}
                for name, value in wish.fields.items()
            ]
        elif isinstance(wish, ProviderWish):
            plan["creates"].append({"kind": "node-provider", "name": wish.provider.name})
        else:
            plan["creates"].append({"kind": "node-claim", "name": wish.document.name})
            if wish.document.provider_ref not in planned:
                part = plan_claim(services, wish.wanted)
                items += part["price"]["items"]
                for name in ("rejected", "warnings"):
                    plan[name] += [{**one, "pointer": pointer(wish.place) + one["pointer"]} for one in part[name]]
    return {**plan, "price": _total(items)}


def _total(items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    sums = {name: sum(one[name] or 0 for one in items) for name in ("hour", "month")}
    complete = all(one["hour"] is not None for one in items)
    hour, month = round(sums["hour"], 6), round(sums["month"], 2)
    return {"currency": "USD", "hour": hour, "month": month, "complete": complete, "items": list(items)}


def _applied(services: Services, wish: Wish, actor: str, request_id: str) -> dict[str, Any]:
    if isinstance(wish, ProviderWish):
        return _applied_provider(services, wish, actor, request_id)
    claim, operation_id = wish.current, None
    if claim is None:
        claim = create_claim(services, wish.wanted, actor)
        operation_id = claim.operation_id
    elif wish.fields:
        claim, operation_id = _changed_claim(services, claim, dict(wish.fields), actor, request_id)
    return _result("NodeClaim", claim, wish, [], operation_id)


def _changed_claim(
    services: Services, claim: NodeClaim, changes: dict[str, Any], actor: str, request_id: str
) -> tuple[NodeClaim, str | None]:
    """The changed claim, and the operation that switches the machine of one that has a node."""
    power = changes.pop("power", None) if claim.phase == AVAILABLE else None
    if changes:
        claim = change_claim(services, claim.id, claim.version, changes, actor, request_id)
    if power is None:
        return claim, None
    claim = power_claim(services, claim.id, power, actor)
    return claim, claim.operation_id


def _applied_provider(services: Services, wish: ProviderWish, actor: str, request_id: str) -> dict[str, Any]:
    provider = wish.current
    if provider is None:
        provider = create_provider(services, wish.document, actor)
    elif wish.fields:
        provider = change_provider(services, provider.id, provider.version, dict(wish.fields), actor, request_id)
    return _result("NodeProvider", provider, wish, wish.warnings, None)


def _result(
    kind: str, record: NodeProvider | NodeClaim, wish: Wish, warnings: Warnings, operation_id: str | None
) -> dict[str, Any]:
    return {
        "kind": kind,
        "name": record.name,
        "id": record.id,
        "action": "created" if wish.current is None else "changed" if wish.fields else "unchanged",
        "warnings": remarks(warnings),
        "operation_id": operation_id,
    }
