"""Manifests over HTTP."""

from __future__ import annotations

from stockyard import wiring
from stockyard.domain import cloud_kinds
from stockyard.edge.contract import Answer, Request
from stockyard.edge.http.query import Query
from stockyard.edge.identity import Roles
from stockyard.operations.services import Services

CREATE_ONLY = Query(
    "create_only", "Refuse with a 409 whatever is there already, the same or not; nothing is written then.", "boolean"
)
PRUNE = Query(
    "prune",
    "Delete the pools that came by a vcluster.yaml and that those of these documents do not name: they are all. Their"
    " nodes are drained and given back.",
    "boolean",
)
http = wiring.http("apply")
lambda_handler = http.lambda_handler


@http.route(
    "POST /v1/apply",
    roles=Roles.CHANGERS,
    platform=True,
    body="manifests.manifest_list:Manifests",
    answers={200: "manifests.views:AppliedListView"},
    idempotent=True,
    dry_run=True,
    query=(CREATE_ONLY, PRUNE),
    yaml=True,
    description="NodeProvider and NodeClaim of `management.loft.sh/v1` and `stockyard/v1`, Pool, ClusterProfile and"
    " OSImage of `stockyard/v1`, NodePool and NodeClaim of `karpenter.sh/v1`, the pools of a vcluster.yaml,"
    " EKSCluster of `infrastructure.modelplane.ai/v1alpha1`, and SpectroAwsCluster of `spectrocloud.com/v1`. Lists are"
    " taken apart. A document of a foreign kind beside others is left out with a warning. All are checked before one is"
    " stored; pointers begin with the number of the document. NodeProviders and OSImages need the role stockyard-admin"
    " or stockyard-platform. With `dry_run` the answer is a plan. Each error names its document by `index`, `kind` and"
    " `name`.",
)
def apply_manifests(request: Request, services: Services) -> Answer:
    """Apply manifests. Makes what is not there, changes what differs, and leaves the rest alone, unless `prune` says
    that the pools of a vcluster.yaml are all."""
    from stockyard.operations.manifests import apply
    from stockyard.operations.manifests.desired import read_desired

    admin = bool(request.caller.roles & (Roles.ADMIN | Roles.PLATFORM))
    create_only = bool(request.query.get(CREATE_ONLY.name))
    actor, prune = request.caller.actor, bool(request.query.get(PRUNE.name))
    desired = read_desired(services, request.body.root, actor, admin=admin, create_only=create_only, prune=prune)
    if request.dry_run:
        return Answer.plan(apply.plan_manifests(services, desired))
    results = apply.apply_manifests(
        services, desired, request.caller.actor, request.request_id, request.caller.organization_id
    )
    cluster_kinds = {kind for _, kind in cloud_kinds.manifest_kinds()}
    # As if each document had come alone; changes are audited where they are written.
    for result in results:
        if result["action"] in ("created", "deleted"):
            kind = result["kind"].replace("OSImage", "OsImage")
            action = "CreateCluster" if kind in cluster_kinds else f"Create{kind}"
            action = "DeletePool" if result["action"] == "deleted" else action
            record = services.audit_record(request.caller.actor, action, result["id"], request.request_id, "apply")
            wiring.audit(request.caller.tenant, record)
    return Answer(
        200, {"results": results, "warnings": apply.document_warnings(desired)}, subject="apply", audited=True
    )
