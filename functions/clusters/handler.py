"""Clusters over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from functions.clusters import access, day_two
from functions.clusters.routes import cluster_answer, http, operation_answer
from stockyard import wiring
from stockyard.domain.records import UNSEEN, Cluster
from stockyard.domain.values import ids
from stockyard.domain.views import cluster_view
from stockyard.edge.contract import Answer, Request
from stockyard.edge.http.etag import digest_of
from stockyard.edge.http.paging import MOST_FILTERED
from stockyard.edge.http.query import ORDER, TAG, Query, tagged
from stockyard.edge.identity import Roles
from stockyard.lifecycle.phases import phase_names
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.services import Services

__all__ = ["access", "day_two", "http", "lambda_handler"]
lambda_handler = http.lambda_handler

FORM = Query(
    "form",
    "With `manifest` the answer is the document that the cluster came as, or else a `Cluster` of `stockyard/v1`; with"
    " `published` it is the other product's document that the driver reads.",
    values=("manifest", "published"),
)
STATUSES = ("preparing", "ready", "failed", "deleting")


@http.route(
    "POST /v1/clusters",
    roles=Roles.CHANGERS,
    body="clusters.clusters:ClusterCreate",
    lenient_body="clusters.clusters:LenientClusterCreate",
    answers={202: "clusters.views:ClusterView", 200: "plan:PlanView"},
    idempotent=True,
    dry_run=True,
)
def create_cluster(request: Request, services: Services) -> Answer:
    """Create a cluster. The answer comes at once; the operation makes the cluster in the background.

    With `Prefer: handling=lenient`, as the command line sends it, `description`, `settings` and on EC2 `key_pair` may
    be absent: the description is empty then, each setting has its default, and nobody can log in to the machines. A
    cluster of the name that is as the body asks is the answer then, with a note at `/name`; one that differs is
    refused at each field that does.
    """
    from stockyard.operations.clusters.creation import create
    from stockyard.operations.clusters.creation.plan import answer_of

    body = request.body
    secret = body.secret.get_secret_value() if body.secret else None
    organization_id = request.caller.organization_id
    profiles = tuple(choice.model_dump() for choice in body.profiles)
    fields = {**dict(body), "secret": secret, "organization_id": organization_id, "profiles": profiles}
    fields["kubeconfig_secret"] = body.kubeconfig_secret and body.kubeconfig_secret.choice()
    rights, lenient = request.caller.rights, request.lenient
    new_cluster = create.NewCluster(**fields, lenient=lenient, accepts_existing=lenient, rights=rights)
    if request.dry_run:
        return Answer.plan(create.plan_creation(services, new_cluster))
    cluster, findings = create.create_cluster(
        services, new_cluster, request.caller.actor, request.stable_id(ids.CLUSTER)
    )
    created_view = {**cluster_view(cluster), **answer_of(services, cluster, findings)}
    return Answer(202, created_view, version=cluster.version, location=f"/v1/operations/{cluster.operation_id}")


def _no_costs(_: str) -> dict[str, Any] | None:
    return None


@http.route(
    "GET /v1/clusters",
    roles=Roles.READERS,
    answers={200: "clusters.views:ClusterView"},
    query=(
        Query("status", "Only clusters in this status.", values=STATUSES),
        Query("phase", "Only clusters whose operation is in this phase.", values=phase_names("cluster")),
        TAG,
        ORDER,
        Query("costs", "Also nodes and costs of each, at most a minute old.", "boolean"),
    ),
    paged=True,
    counted=True,
)
def list_clusters(request: Request, services: Services) -> Answer:
    """List clusters. The tenant's clusters in order of id; those that are only being accepted are not shown."""
    store = wiring.store(request.caller.tenant)
    costs_of: Callable[[str], dict[str, Any] | None] = _no_costs
    if request.query.get("costs"):
        from stockyard.operations.costs.kept_report import costs_by_cluster

        costs_of = costs_by_cluster(services)
    tag, newest_first = request.query.get("tag"), request.query.get("order") == "desc"
    where = {name: request.query[name] for name in ("status", "phase") if name in request.query} or None
    return Answer.matching(
        request.page,
        lambda after, limit, **how: store.list(
            Cluster,
            after=after,
            limit=limit,
            newest_first=newest_first,
            where=where,
            most=MOST_FILTERED if where else None,
            **how,
        ),
        lambda cluster: cluster.status not in UNSEEN and tagged(cluster.tags, tag),
        lambda cluster: {**cluster_view(cluster), "costs": costs_of(cluster.id)},
    )


@http.route(
    "GET /v1/clusters/{id}",
    roles=Roles.READERS,
    answers={200: "clusters.views:ClusterDocument"},
    query=(FORM,),
    waits=True,
    description="By id or name. A `Cluster` of `stockyard/v1` has the pools of the cluster.",
)
def get_cluster(request: Request, services: Services, cluster: Cluster) -> Answer:
    """Get a cluster."""
    if request.query.get("form"):
        from stockyard.operations.manifests.clusters import cluster_manifest, published_manifest
        from stockyard.operations.profiles.clusters import packs_record

        profiles = packs_record(services, cluster).profiles
        is_published = request.query["form"] == "published"
        manifest = (
            published_manifest(cluster, profiles) if is_published else cluster_manifest(services, cluster, profiles)
        )
        return Answer(200, manifest, version=cluster.version, digest=digest_of(manifest))
    return cluster_answer(cluster, 200)


@http.route(
    "PATCH /v1/clusters/{id}",
    roles=Roles.CHANGERS,
    body="clusters.patch:ClusterPatch",
    answers={200: "clusters.views:ClusterView", 202: "clusters.views:ClusterView"},
    if_match=True,
    dry_run=True,
    description="Description, tags, `expires_at` and the setting `mirror` are on the record at once; tags reach what is"
    " there in the background. `kubernetes_version`, one minor at a time, `profiles` and the settings that its driver"
    " lets change are changed by an operation on the ready cluster, which goes on serving: the answer is 202, and"
    " `Location` names"
    " the operation. Of a cluster whose creation has failed at its packs `profiles` are on the record at once, and a"
    " resume applies them. Another operation that works on the cluster is named by a 409; with `queue` the change"
    " stands behind it: `Location` names an operation in status `queued`, and `If-Match` is not compared. With"
    " `dry_run` the answer is a plan.",
)
def change_cluster(request: Request, services: Services, cluster: Cluster) -> Answer:
    """Change a cluster. A JSON merge patch."""
    from stockyard.operations.clusters.changes import change, queue, reconfigure
    from stockyard.operations.clusters.changes.alignment import aligned
    from stockyard.operations.clusters.changes.prices import limits_remarks
    from stockyard.operations.clusters.creation.expiry import check_expiry_change
    from stockyard.operations.clusters.kept_secrets import changed_secret
    from stockyard.operations.profiles.clusters import difference, profile_change

    body, cluster = request.body, aligned(services, cluster)
    wanted_change = replace(body.change_of(cluster), rights=request.caller.rights)
    target, profiles = wanted_change.target(cluster), wanted_change.profiles
    if body.queue and not request.dry_run and queue.is_busy(services, cluster):
        document, actor = body.document(), request.caller.actor
        operation = queue.enqueue(
            services, cluster.id, document, actor, request.request_id, rights=wanted_change.rights
        )
        waiting = find_cluster(services, cluster.id)
        return cluster_answer(waiting, 202, audited=True, location=f"/v1/operations/{operation.id}")
    if request.dry_run:
        kind = reconfigure.operation_kind(services, cluster, target, profiles=profiles is not None)
        request.check_version("cluster", cluster.version)
        check_expiry_change(services, cluster, wanted_change)
        fields = wanted_change.fields()
        recorded = ("description", "tags", "expires_at", "limits")
        changes = {name: value for name, value in fields.items() if name in recorded}
        packs = None if profiles is None else profile_change(services, cluster, target, profiles, wanted_change.rights)
        if kind:
            return Answer.plan(reconfigure.plan_change(services, cluster, target, changes, packs))
        if packs is not None:
            return Answer.free_plan(**difference(packs.before, packs.after))
        changes |= {"settings": target.settings} if "settings" in fields else {}
        changes |= changed_secret(services, cluster, wanted_change)
        warnings = limits_remarks(services, cluster, wanted_change.limits)
        return Answer.change_plan(cluster, changes, "cluster", cluster.name, warnings=warnings)
    changed, warnings = change.change_cluster(
        services,
        cluster.id,
        request.version,
        wanted_change,
        actor=request.caller.actor,
        request_id=request.request_id,
    )
    has_begun = changed.operation_id != cluster.operation_id
    if not has_begun or (target is cluster and profiles is None):
        return cluster_answer(changed, 200, audited=True)
    view = {**cluster_view(changed), "warnings": warnings}
    return Answer(202, view, version=changed.version, audited=True, location=f"/v1/operations/{changed.operation_id}")


@http.route(
    "DELETE /v1/clusters/{id}",
    roles=Roles.CHANGERS,
    answers={202: "operations:OperationView", 200: "clusters.views:DeletionDocument"},
    query=(Query("force", "Forget a cluster whose deletion does not end, and say what may be left.", "boolean"),),
    dry_run=True,
    description="With `force` a cluster is forgotten whose deletion has been running or blocked for 15 minutes. Nothing"
    " is removed from a cloud then: the answer, an event and the audit record name what may be left, and the sweep goes"
    " on to report it.",
)
def delete_cluster(request: Request, services: Services) -> Answer:
    """Delete a cluster. In every state; a second request names the same operation."""
    from stockyard.operations.clusters.removal import delete

    if request.query.get("force") and not request.dry_run:
        from stockyard.operations.clusters.removal.forced_deletion import force_deletion

        name, actor = request.params["id"], request.caller.actor
        forced = force_deletion(services, name, actor, request.request_id)
        return Answer(200, forced, subject=forced["id"], audited=True)
    if request.dry_run:
        return Answer.plan(delete.plan_deletion(services, request.params["id"]))
    return operation_answer(services, delete.delete_cluster(services, request.params["id"], request.caller.actor))


@http.route("GET /v1/clusters/{id}/tree", roles=Roles.READERS, answers={200: "clusters.views:TreeNode"})
def get_cluster_tree(request: Request, services: Services, cluster: Cluster) -> Answer:
    """The cluster with everything below it. Operation, cloud resources, pools."""
    from stockyard.operations.clusters.tree import cluster_tree

    return Answer(200, cluster_tree(services, cluster))
