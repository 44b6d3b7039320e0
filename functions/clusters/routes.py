"""Clusters over HTTP."""

from __future__ import annotations

from typing import Any

from stockyard import wiring
from stockyard.domain import ids
from stockyard.domain.records import UNSEEN, Cluster, Operation
from stockyard.domain.views import cluster_view, operation_view
from stockyard.edge.contract import Answer, Request
from stockyard.edge.identity import Roles
from stockyard.edge.paging import filtered
from stockyard.edge.query import TAG, Query, tagged
from stockyard.errors import Forbidden, UnexpectedBehavior, VendorError
from stockyard.lifecycle.operation import progress
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.services import Services

http = wiring.http("clusters")

STATUSES = ("preparing", "ready", "failed", "deleting")


def _cluster_answer(cluster: Cluster, status: int, **settings: Any) -> Answer:
    return Answer(status, cluster_view(cluster), version=cluster.version, **settings)


def _operation(services: Services, cluster: Cluster) -> Answer:
    operation = services.store.get(Operation, cluster.operation_id or "")
    if operation is None:
        raise UnexpectedBehavior("The operation is not readable just now; the cluster names it.")
    return Answer.accepted(operation_view(operation, progress(operation)), operation.id, subject=cluster.id)


@http.route(
    "POST /v1/clusters",
    summary="Create a cluster",
    action="CreateCluster",
    roles=Roles.CHANGERS,
    body="clusters:ClusterCreate",
    answers={202: "cluster_views:ClusterView", 200: "plan:PlanView"},
    idempotent=True,
    dry_run=True,
)
def create(request: Request) -> Answer:
    """Validate, make the Keycloak client, start the background work."""
    from stockyard.operations.clusters.create import NewCluster, create_cluster, plan_creation

    body = request.body
    new_cluster = NewCluster(
        name=body.name,
        description=body.description,
        cloud_account_id=body.cloud_account_id,
        cluster_type=body.cluster_type,
        settings=body.settings,
        secret=body.secret.get_secret_value() if body.secret else None,
        tags=dict(body.tags),
    )
    services = wiring.services(request.caller.tenant)
    if request.dry_run:
        return Answer.plan(plan_creation(services, new_cluster))
    cluster, _ = create_cluster(services, new_cluster, request.caller.actor, request.stable_id(ids.CLUSTER))
    return _cluster_answer(cluster, 202, location=f"/v1/operations/{cluster.operation_id}")


@http.route(
    "GET /v1/clusters",
    summary="List clusters",
    action="ListClusters",
    roles=Roles.READERS,
    answers={200: "cluster_views:ClusterView"},
    query=(Query("status", "Only clusters in this status.", values=STATUSES), TAG),
    paged=True,
)
def list_clusters(request: Request) -> Answer:
    """The tenant's clusters in order of id; those that are only being accepted are not shown."""
    store = wiring.store(request.caller.tenant)
    status, tag = request.query.get("status"), request.query.get("tag")
    attributes = {"status": status} if status else None
    page, following = filtered(
        lambda after, limit: store.list(Cluster, after=after, limit=limit, where=attributes),
        lambda cluster: cluster.status not in UNSEEN and tagged(cluster.tags, tag),
        after=request.page.after,
        size=request.page.size,
    )
    return Answer.listing([cluster_view(cluster) for cluster in page], following)


@http.route(
    "GET /v1/clusters/{id}",
    summary="Get a cluster",
    action="GetCluster",
    roles=Roles.READERS,
    answers={200: "cluster_views:ClusterView"},
)
def get(request: Request) -> Answer:
    """One cluster, by id or name."""
    return _cluster_answer(find_cluster(wiring.services(request.caller.tenant), request.params["id"]), 200)


@http.route(
    "PATCH /v1/clusters/{id}",
    summary="Change a cluster",
    action="ChangeCluster",
    roles=Roles.CHANGERS,
    body="cluster_patch:ClusterPatch",
    answers={200: "cluster_views:ClusterView"},
    if_match=True,
    dry_run=True,
    description="With `dry_run` the answer is a plan.",
)
def change(request: Request) -> Answer:
    """A JSON merge patch of description and tags."""
    from stockyard.operations.clusters.change import change_cluster

    services = wiring.services(request.caller.tenant)
    cluster = find_cluster(services, request.params["id"])
    fields = request.body.model_fields_set
    description = request.body.description if "description" in fields else None
    tags = request.body.tags_after(cluster.tags)
    if request.dry_run:
        request.check_version("cluster", cluster.version)
        changes = {"description": description, "tags": tags}
        return Answer.change_plan(cluster, {name: value for name, value in changes.items() if value is not None})
    changed = change_cluster(
        services,
        cluster.id,
        request.version,
        description=description,
        tags=tags,
        actor=request.caller.actor,
        request_id=request.request_id,
    )
    return _cluster_answer(changed, 200, audited=True)


@http.route(
    "DELETE /v1/clusters/{id}",
    summary="Delete a cluster",
    action="DeleteCluster",
    roles=Roles.CHANGERS,
    answers={202: "operations:OperationView", 200: "plan:PlanView"},
    dry_run=True,
)
def delete(request: Request) -> Answer:
    """In every state; a second request names the same operation."""
    from stockyard.operations.clusters.delete import delete_cluster, plan_deletion

    services = wiring.services(request.caller.tenant)
    if request.dry_run:
        return Answer.plan(plan_deletion(services, request.params["id"]))
    return _operation(services, delete_cluster(services, request.params["id"], request.caller.actor))


@http.route(
    "POST /v1/clusters/{id}/resume",
    summary="Continue a failed operation",
    action="ResumeCluster",
    roles=Roles.CHANGERS,
    answers={202: "operations:OperationView"},
    idempotent=True,
)
def resume(request: Request) -> Answer:
    """From the phase that failed, with the next attempt."""
    from stockyard.operations.clusters.resume import resume_cluster

    services = wiring.services(request.caller.tenant)
    return _operation(services, resume_cluster(services, request.params["id"], request.caller.actor))


@http.route(
    "GET /v1/clusters/{id}/kubeconfig",
    summary="Get a kubeconfig",
    action="ReadKubeconfig",
    roles=Roles.READERS,
    answers={200: "cluster_views:KubeconfigView"},
    query=(Query("static", "The stored one, with a client certificate; admins only.", "boolean"),),
    audited=True,
)
def kubeconfig(request: Request) -> Answer:
    """With an ``exec`` user by default."""
    import json

    from stockyard.operations.clusters.kubeconfig import exec_kubeconfig, static_kubeconfig

    services = wiring.services(request.caller.tenant)
    cluster = find_cluster(services, request.params["id"])
    if request.query.get("static"):
        if not request.caller.roles & (Roles.ADMIN | Roles.PLATFORM):
            raise Forbidden("The stored kubeconfig is for the role stockyard-admin.")
        return Answer(200, {"kubeconfig": static_kubeconfig(services, cluster)})
    # JSON is YAML; no YAML library is needed to write it.
    return Answer(200, {"kubeconfig": json.dumps(exec_kubeconfig(services, cluster), indent=2) + "\n"})


@http.route(
    "GET /v1/clusters/{id}/client-secret",
    summary="Read the Keycloak client's secret",
    action="ReadClientSecret",
    roles=Roles.CHANGERS,
    answers={200: "cluster_views:ClientSecretView"},
    audited=True,
)
def client_secret(request: Request) -> Answer:
    """From Keycloak; audited."""
    services = wiring.services(request.caller.tenant)
    cluster = find_cluster(services, request.params["id"])
    try:
        secret = services.identity.client_secret(cluster.client_id)
    except VendorError as error:
        raise UnexpectedBehavior(f"Keycloak could not be asked ({error.error_type}).") from error
    return Answer(200, {"client_id": cluster.client_id, "client_secret": secret}, subject=cluster.id)


@http.route(
    "GET /v1/clusters/{id}/tree",
    summary="The cluster with everything below it",
    action="GetClusterTree",
    roles=Roles.READERS,
    answers={200: "cluster_views:TreeNode"},
)
def tree(request: Request) -> Answer:
    """Operation, cloud resources, pools."""
    from stockyard.operations.clusters.tree import cluster_tree

    services = wiring.services(request.caller.tenant)
    return Answer(200, cluster_tree(services, find_cluster(services, request.params["id"])))
