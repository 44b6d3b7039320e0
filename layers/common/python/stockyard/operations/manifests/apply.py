"""Apply manifests: make what is not there and change what differs, first images, providers and profiles, then clusters,
pools, claims."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Any

from stockyard.domain.nodes.manifests import FieldPath
from stockyard.domain.nodes.views import remarks
from stockyard.domain.records import NodeClaim, NodeProvider
from stockyard.domain.values.field_changes import FieldChange, change_views, field_changes
from stockyard.domain.values.pointers import pointer
from stockyard.domain.values.prices import PriceItem
from stockyard.errors import IllegalTransition, PreconditionFailed
from stockyard.lifecycle.nodes.node_claim import AVAILABLE
from stockyard.operations.fleet.explain import plan_claim
from stockyard.operations.manifests.clusters import DesiredCluster, apply_cluster, plan_cluster
from stockyard.operations.manifests.desired import Desired, DesiredClaim, DesiredProvider, LeftOut
from stockyard.operations.manifests.os_images import DesiredOSImage, apply_os_image, plan_os_image
from stockyard.operations.manifests.pools import DesiredPools, apply_pools, plan_pools, warnings_of_pools
from stockyard.operations.manifests.profiles import DesiredProfile, apply_profile, plan_profile
from stockyard.operations.node_claims.change import change_claim
from stockyard.operations.node_claims.create import create_claim
from stockyard.operations.node_claims.power import power_claim
from stockyard.operations.node_providers.providers import (
    change_provider,
    create_provider,
    finding_remarks,
    plan_remarks,
)
from stockyard.operations.pricing import price, sums
from stockyard.operations.services import Services


def apply_manifests(
    services: Services,
    desired: Sequence[Desired],
    actor: str,
    request_id: str,
    organization_id: str = "",
    on_applied: Callable[[Desired, Sequence[Mapping[str, Any]]], None] | None = None,
) -> list[dict[str, Any]]:
    """Bring the resources to the documents, and tell the result for each, in the order of the documents. A second call
    finds everything unchanged. ``organization_id`` is that of the caller's organization in the realm. ``on_applied`` is
    called after each document with its results.

    Raises ``IllegalTransition`` when something was changed by someone else since it was read.
    """
    results: dict[FieldPath, list[dict[str, Any]]] = {}
    # All of them before the first is made: what is made takes from what the others could have.
    warnings = _warnings(services, desired)
    own_manifests = [manifest for manifest in desired if not isinstance(manifest, LeftOut)]
    for manifest in sorted(own_manifests, key=lambda manifest: (_ORDER.index(type(manifest)), manifest.path)):
        try:
            if isinstance(manifest, DesiredCluster):
                results[manifest.path] = [apply_cluster(services, manifest, actor, request_id, organization_id)]
            elif isinstance(manifest, DesiredOSImage):
                results[manifest.path] = [apply_os_image(services, manifest, actor, request_id)]
            elif isinstance(manifest, DesiredProfile):
                results[manifest.path] = [apply_profile(services, manifest, actor, request_id)]
            else:
                results[manifest.path] = _applied(services, manifest, warnings, actor, request_id)
        except PreconditionFailed as stale:
            raise IllegalTransition(f"{stale.detail} Apply the manifests again.") from stale
        if on_applied is not None:
            on_applied(manifest, results[manifest.path])
    return [{**result, "index": path[0]} for path in sorted(results) for result in results[path]]


_ORDER = (DesiredOSImage, DesiredProvider, DesiredProfile, DesiredCluster, DesiredPools, DesiredClaim)


def document_warnings(desired: Sequence[Desired]) -> list[dict[str, str]]:
    """Warnings about documents as a whole, and about none of the resources that they ask for; what is left out."""
    return [
        remark
        for manifest in desired
        if isinstance(manifest, DesiredPools | LeftOut)
        for remark in remarks(manifest.warnings)
    ]


def plan_manifests(services: Services, desired: Sequence[Desired]) -> dict[str, Any]:
    """The dry run: what would be made and changed, what all that is new or changed would cost, and what of it is paid
    for now."""
    plan: dict[str, Any] = {name: [] for name in ("creates", "changes", "deletes", "rejected", "warnings", "groups")}
    verdicts: list[tuple[str, str]] = []
    items: list[dict[str, Any]] = []
    items_before: list[dict[str, Any]] = []
    planned = _new_providers(desired)
    for manifest in desired:
        if isinstance(manifest, DesiredPools | DesiredCluster | DesiredProfile | DesiredOSImage):
            plan_part = _plan_part(services, manifest, planned)
            items += plan_part.pop("items", [])
            items_before += plan_part.pop("items_before", [])
            verdicts += plan_part.pop("verdicts", [])
            for name, entries in plan_part.items():
                plan[name] += entries
            continue
        plan["warnings"] += remarks(manifest.warnings)
        if isinstance(manifest, LeftOut):
            continue
        if isinstance(manifest, DesiredProvider):
            block = (*manifest.path, "spec", manifest.provider.kind)
            plan["warnings"] += plan_remarks(services, manifest.provider, block)
        if manifest.current is not None:
            plan["changes"] += manifest_changes(manifest)
        elif isinstance(manifest, DesiredProvider):
            plan["creates"].append({"kind": "node-provider", "name": manifest.provider.name})
        else:
            plan["creates"].append({"kind": "node-claim", "name": manifest.document.name})
            if manifest.provider_name in planned:
                # Which types it will have, and at which prices, nobody knows before it is there.
                items += price([PriceItem(f"node of {manifest.document.name}", 1, None)])["items"]
            else:
                part = plan_claim(services, manifest.plannable)
                items += part["price"]["items"]
                verdicts.append((manifest.document.name, part["verdict"]))
                plan["groups"] += part["groups"]
                for name in ("rejected", "warnings"):
                    plan[name] += _moved(part[name], manifest.path)
    before = {"price_before": _total(items_before)} if items_before else {}
    return {**plan, "verdict": _verdict(verdicts), "price": _total(items), **before}


def _new_providers(desired: Sequence[Desired]) -> set[str]:
    """Providers that come with the documents: what they have is not known before they are there."""
    return {m.provider.name for m in desired if isinstance(m, DesiredProvider) and m.current is None}


def _warnings(services: Services, desired: Sequence[Desired]) -> dict[FieldPath, list[list[dict[str, str]]]]:
    """Warnings for the pools and claims of each document: as in ``plan_manifests``."""
    new_providers = _new_providers(desired)
    return {
        manifest.path: warnings_of_pools(services, manifest, new_providers)
        if isinstance(manifest, DesiredPools)
        else [_claim_warnings(services, manifest, new_providers)]
        for manifest in desired
        if isinstance(manifest, DesiredPools | DesiredClaim)
    }


def _claim_warnings(services: Services, manifest: DesiredClaim, new_providers: Set[str]) -> list[dict[str, str]]:
    warnings = remarks(manifest.warnings)
    if manifest.current is None and manifest.provider_name not in new_providers:
        warnings += _moved(plan_claim(services, manifest.plannable)["warnings"], manifest.path)
    return warnings


def _verdict(verdicts: Sequence[tuple[str, str]]) -> str:
    """The sentences of all that is placed; of several each in a line, with its name."""
    if len(verdicts) == 1:
        return verdicts[0][1]
    return "\n".join(f"{name}: {text}" for name, text in verdicts)


_METADATA = ("labels", "annotations")
_RENAMED = {"display_name": "displayName", "price_per_cost_unit": "pricePerCostUnit"}
"""Fields of records that manifests call otherwise."""


def manifest_changes(manifest: DesiredProvider | DesiredClaim) -> list[dict[str, Any]]:
    """Each field of the manifest that differs from what is there."""
    if isinstance(manifest, DesiredProvider):
        kind, name = "node-provider", manifest.provider.name
    else:
        kind, name = "node-claim", manifest.document.name
    changes: list[FieldChange] = []
    for field, value in manifest.fields.items():
        before, written = getattr(manifest.current, field), _RENAMED.get(field, field)
        if field != "spec":
            changes += field_changes(before, value, ("metadata" if field in _METADATA else "spec", written), written)
            continue
        ((block, after),) = value.items()
        changes += field_changes(before.get(block), after, ("spec", block))
    return change_views(changes, *manifest.path, kind=kind, name=name)


def _plan_part(
    services: Services,
    manifest: DesiredPools | DesiredCluster | DesiredProfile | DesiredOSImage,
    planned: Collection[str],
) -> dict[str, list[Any]]:
    if isinstance(manifest, DesiredCluster):
        return plan_cluster(manifest)
    if isinstance(manifest, DesiredOSImage):
        return plan_os_image(manifest)
    return plan_profile(manifest) if isinstance(manifest, DesiredProfile) else plan_pools(services, manifest, planned)


def _total(items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"currency": "USD", **sums([item["hour"] for item in items]), "items": list(items)}


def _applied(
    services: Services,
    manifest: DesiredProvider | DesiredPools | DesiredClaim,
    warnings: Mapping[FieldPath, list[list[dict[str, str]]]],
    actor: str,
    request_id: str,
) -> list[dict[str, Any]]:
    if isinstance(manifest, DesiredPools):
        return apply_pools(services, manifest, warnings[manifest.path], actor, request_id)
    if isinstance(manifest, DesiredProvider):
        return [_applied_provider(services, manifest, actor, request_id)]
    (of_claim,) = warnings[manifest.path]
    return [{**_applied_claim(services, manifest, actor, request_id), "warnings": of_claim}]


def _applied_claim(services: Services, manifest: DesiredClaim, actor: str, request_id: str) -> dict[str, Any]:
    claim, operation_id = manifest.current, None
    if claim is None:
        claim = create_claim(services, manifest.document, actor)
        operation_id = claim.operation_id
    elif manifest.fields:
        claim, operation_id = _changed_claim(services, claim, dict(manifest.fields), actor, request_id)
    return _result("NodeClaim", claim, manifest, operation_id)


def _moved(remarks_of: Sequence[Mapping[str, str]], path: FieldPath) -> list[dict[str, str]]:
    """Remarks about one document, as remarks about all of them."""
    return [{**remark, "pointer": pointer(*path) + remark["pointer"]} for remark in remarks_of]


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


def _applied_provider(services: Services, manifest: DesiredProvider, actor: str, request_id: str) -> dict[str, Any]:
    provider = manifest.current
    if provider is None:
        provider = create_provider(services, manifest.document, actor, tried=True)
    elif manifest.fields:
        fields = dict(manifest.fields)
        provider = change_provider(services, provider.id, provider.version, fields, actor, request_id, tried=True)
    block = (*manifest.path, "spec", manifest.provider.kind)
    result = _result("NodeProvider", provider, manifest, None)
    return {**result, "warnings": [*result["warnings"], *finding_remarks(services, manifest.provider, block)]}


def _result(
    kind: str,
    record: NodeProvider | NodeClaim,
    manifest: DesiredProvider | DesiredClaim,
    operation_id: str | None,
) -> dict[str, Any]:
    return {
        "kind": kind,
        "name": record.name,
        "id": record.id,
        "action": "created" if manifest.current is None else "changed" if manifest.fields else "unchanged",
        "warnings": remarks(manifest.warnings),
        "operation_id": operation_id,
    }
