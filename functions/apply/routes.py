"""Manifests over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockyard import wiring
from stockyard.domain import ids
from stockyard.domain.records import AuditRecord
from stockyard.edge.contract import Answer, Request
from stockyard.edge.route import Door, Roles
from stockyard.operations.services import Services

door = Door(
    "apply",
    keys=lambda caller: wiring.keys_of(caller.tenant),
    audit=lambda caller, record: wiring.audit(caller.tenant, record),
)


@door.route(
    "POST",
    "/v1/apply",
    summary="Apply manifests",
    action="ApplyManifests",
    roles=Roles.OPERATOR | Roles.ADMIN | Roles.PLATFORM,
    platform=True,
    body="manifests:Manifests",
    answers={200: "manifest_views:AppliedListView"},
    idempotent=True,
    dry_run=True,
    yaml=True,
    description="NodeProvider and NodeClaim of `management.loft.sh/v1` and `stockyard/v1`, NodeClaim of"
    " `karpenter.sh/v1`. All are checked before one is stored; pointers begin with the number of the document."
    " NodeProviders need the role stockyard-admin or stockyard-platform. With `dry_run` the answer is a plan.",
)
def apply(request: Request) -> Answer:
    """Makes what is not there, changes what differs, and leaves the rest alone."""
    from stockyard.operations.apply_manifests import apply_manifests, plan_manifests
    from stockyard.operations.manifest_wishes import read_wishes

    services = wiring.services(request.caller.tenant)
    admin = bool(request.caller.roles & (Roles.ADMIN | Roles.PLATFORM))
    wishes = read_wishes(services, request.body.root, request.caller.actor, admin=admin)
    if request.dry_run:
        return Answer.plan(plan_manifests(services, wishes))
    results = apply_manifests(services, wishes, request.caller.actor, request.request_id)
    for one in results:
        if one["action"] == "created":
            wiring.audit(request.caller.tenant, _creation(services, request, one))
    return Answer(200, {"results": results, "warnings": []}, subject="apply", audited=True)


def _creation(services: Services, request: Request, result: Mapping[str, Any]) -> AuditRecord:
    """As if each document had come alone; changes are audited where they are written."""
    return AuditRecord(
        services.new_id(ids.AUDIT),
        services.now(),
        request.caller.actor,
        f"Create{result['kind']}",
        result["id"],
        "done",
        request.request_id,
        "apply",
    )
