"""Manifests over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stockyard import wiring
from stockyard.domain import cloud_kinds
from stockyard.domain.manifest_sets import SetMember
from stockyard.edge.contract import Answer, Request
from stockyard.edge.http.query import Query
from stockyard.edge.identity import Roles
from stockyard.errors import InvalidInput
from stockyard.operations.services import Services

if TYPE_CHECKING:
    from stockyard.operations.manifests.sets import ManifestSet

CREATE_ONLY = Query(
    "create_only", "Refuse with a 409 whatever is there already, the same or not; nothing is written then.", "boolean"
)
PRUNE = Query(
    "prune",
    "Delete the pools that came by a vcluster.yaml and that those of these documents do not name: they are all. Their"
    " nodes are drained and given back.",
    "boolean",
)
SET = Query(
    "set",
    "The name of the set that the documents are of, such as `shop/production`. What they apply belongs to it from then"
    " on, and to no other; `GET /v1/set-members` lists it.",
    pattern="^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$",
)
TAKE = Query("take", "With `set`: also what belongs to another set; from then on it is of this one.", "boolean")
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
    query=(CREATE_ONLY, PRUNE, SET, TAKE),
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
    manifest_set = _set_of(request, services)
    desired = read_desired(
        services,
        request.body.root,
        actor,
        admin=admin,
        create_only=create_only,
        prune=prune,
        set_name=manifest_set.name if manifest_set else None,
    )
    unnamed: dict[str, Any] = {}
    if manifest_set is not None:
        manifest_set.check(desired)
        unnamed = {"unnamed": manifest_set.unnamed(desired)}
    if request.dry_run:
        return Answer.plan({**apply.plan_manifests(services, desired), **unnamed})
    results = apply.apply_manifests(
        services,
        desired,
        request.caller.actor,
        request.request_id,
        request.caller.organization_id,
        on_applied=manifest_set.note if manifest_set else None,
    )
    if manifest_set is not None:
        manifest_set.forget_gone()
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
        200,
        {"results": results, "warnings": apply.document_warnings(desired), **unnamed},
        subject="apply",
        audited=True,
    )


def _set_of(request: Request, services: Services) -> ManifestSet | None:
    """The set that the request names. ``InvalidInput`` for parameters that do not go together."""
    from stockyard.operations.manifests.sets import ManifestSet

    name, takes = request.query.get(SET.name), bool(request.query.get(TAKE.name))
    if name is None:
        if takes:
            raise InvalidInput.of_parameter(TAKE.name, "needs a set")
        return None
    if request.query.get(PRUNE.name):
        text = "is not for a set: delete the members that `GET /v1/set-members` lists and no document names"
        raise InvalidInput.of_parameter(PRUNE.name, text)
    return ManifestSet.of(services, name, request.body.root, takes=takes)


@http.route(
    "GET /v1/set-members",
    roles=Roles.READERS,
    answers={200: "manifests.set_members:SetMemberView"},
    paged=True,
    query=(Query("set", "Only members of the set of this name.", pattern=SET.pattern),),
)
def list_set_members(request: Request, services: Services) -> Answer:
    """List what sets of manifests have applied. Only what is there; a thing belongs to one set."""
    from stockyard.operations.manifests.sets import member_view, thing_of

    name = request.query.get("set")
    where = {"set_name": name} if name else None
    return Answer.matching(
        request.page,
        lambda after, limit: services.store.list(SetMember, after=after, limit=limit, where=where),
        lambda member: thing_of(services, member) is not None,
        member_view,
    )
