"""Clusters over HTTP."""

from __future__ import annotations

from typing import Any

from stockyard import wiring
from stockyard.domain import ids
from stockyard.domain.records import UNSEEN, Cluster, Operation
from stockyard.domain.views import cluster_view, operation_view
from stockyard.edge.contract import Answer, Request
from stockyard.edge.paging import filtered
from stockyard.edge.query import TAG, Query, tagged
from stockyard.edge.route import Door, Roles
from stockyard.errors import Forbidden, UnexpectedBehavior, VendorError
from stockyard.lifecycle.operation import progress
from stockyard.operations.advance import find
from stockyard.operations.services import Services

door = Door(
    "clusters",
    keys=lambda caller: wiring.keys_of(caller.tenant),
    audit=lambda caller, record: wiring.audit(caller.tenant, record),
    page_key=wiring.page_key,
)

STATUSES = ("preparing", "ready", "failed", "deleting")
CHANGERS = Roles.OPERATOR | Roles.ADMIN | Roles.PLATFORM


def _shown(cluster: Cluster, status: int, **more: Any) -> Answer:
    return Answer(status, cluster_view(cluster), version=cluster.version, **more)


def _operation(services: Services, cluster: Cluster) -> Answer:
    operation = services.store.get(Operation, cluster.operation_id or "")
    if operation is None:
        raise UnexpectedBehavior("The operation is not readable just now; the cluster names it.")
    return Answer.accepted(operation_view(operation, progress(operation)), operation.id, subject=cluster.id)


@door.route(
    "POST",
    "/v1/clusters",
    summary="Create a cluster",
    action="CreateCluster",
    roles=CHANGERS,
    body="clusters:ClusterCreate",
    answers={202: "cluster_views:ClusterView", 200: "plan:PlanView"},
    idempotent=True,
    dry_run=True,
)
def create(request: Request) -> Answer:
    """Validate, make the Keycloak client, start the background work."""
    from stockyard.operations.create_cluster import NewCluster, create_cluster, plan_creation

    body = request.body
    wanted = NewCluster(
        name=body.name,
        description=body.description,
        cloud_account_id=body.cloud_account_id,
        cluster_type=body.cluster_type,
        settings=body.settings.normal(),
        secret=body.secret.get_secret_value() if body.secret else None,
        tags=dict(body.tags),
    )
    services = wiring.services(request.caller.tenant)
    if request.dry_run:
        return Answer.plan(plan_creation(services, wanted))
    claim = request.claim
    given = ids.make(ids.CLUSTER, claim.moment, claim.randomness) if claim else None
    cluster, _ = create_cluster(services, wanted, request.caller.actor, given)
    return _shown(cluster, 202, location=f"/v1/operations/{cluster.operation_id}")


@door.route(
    "GET",
    "/v1/clusters",
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
    where = {"status": status} if status else None
    shown, following = filtered(
        lambda after, limit: store.list(Cluster, after=after, limit=limit, where=where),
        lambda cluster: cluster.status not in UNSEEN and tagged(cluster.tags, tag),
        after=request.page.after,
        size=request.page.size,
    )
    return Answer.listing([cluster_view(cluster) for cluster in shown], following)


@door.route(
    "GET",
    "/v1/clusters/{id}",
    summary="Get a cluster",
    action="GetCluster",
    roles=Roles.READERS,
    answers={200: "cluster_views:ClusterView"},
)
def get(request: Request) -> Answer:
    """One cluster, by id or name."""
    return _shown(find(wiring.services(request.caller.tenant), request.params["id"]), 200)


@door.route(
    "PATCH",
    "/v1/clusters/{id}",
    summary="Change a cluster",
    action="ChangeCluster",
    roles=CHANGERS,
    body="cluster_patch:ClusterPatch",
    answers={200: "cluster_views:ClusterView"},
    if_match=True,
    dry_run=True,
    description="With `dry_run` the answer is a plan.",
)
def change(request: Request) -> Answer:
    """A JSON merge patch of description and tags."""
    from stockyard.operations.change_cluster import change_cluster, plan_change

    services = wiring.services(request.caller.tenant)
    cluster = find(services, request.params["id"])
    given = request.body.model_fields_set
    description = request.body.description if "description" in given else None
    tags = request.body.tags_after(cluster.tags)
    if request.dry_run:
        return Answer.plan(plan_change(cluster, request.version, description=description, tags=tags))
    changed = change_cluster(
        services,
        cluster.id,
        request.version,
        description=description,
        tags=tags,
        actor=request.caller.actor,
        request_id=request.request_id,
    )
    return _shown(changed, 200, audited=True)


@door.route(
    "DELETE",
    "/v1/clusters/{id}",
    summary="Delete a cluster",
    action="DeleteCluster",
    roles=CHANGERS,
    answers={202: "operations:OperationView", 200: "plan:PlanView"},
    dry_run=True,
)
def delete(request: Request) -> Answer:
    """In every state; a second request names the same operation."""
    from stockyard.operations.delete_cluster import delete_cluster, plan_deletion

    services = wiring.services(request.caller.tenant)
    if request.dry_run:
        return Answer.plan(plan_deletion(services, request.params["id"]))
    return _operation(services, delete_cluster(services, request.params["id"], request.caller.actor))


@door.route(
    "POST",
    "/v1/clusters/{id}/resume",
    summary="Continue a failed operation",
    action="ResumeCluster",
    roles=CHANGERS,
    answers={202: "operations:OperationView"},
    idempotent=True,
)
def resume(request: Request) -> Answer:
    """From the phase that failed, with the next attempt."""
    from stockyard.operations.resume_cluster import resume_cluster

    services = wiring.services(request.caller.tenant)
    return _operation(services, resume_cluster(services, request.params["id"], request.caller.actor))


@door.route(
    "GET",
    "/v1/clusters/{id}/kubeconfig",
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

    from stockyard.operations.read_kubeconfig import exec_kubeconfig, static_kubeconfig

    services = wiring.services(request.caller.tenant)
    cluster = find(services, request.params["id"])
    if request.query.get("static"):
        if not request.caller.roles & (Roles.ADMIN | Roles.PLATFORM):
            raise Forbidden("The stored kubeconfig is for the role stockyard-admin.")
        return Answer(200, {"kubeconfig": static_kubeconfig(services, cluster)})
    # JSON is YAML; no YAML library is needed to write it.
    return Answer(200, {"kubeconfig": json.dumps(exec_kubeconfig(services, cluster), indent=2) + "\n"})


@door.route(
    "GET",
    "/v1/clusters/{id}/client-secret",
    summary="Read the Keycloak client's secret",
    action="ReadClientSecret",
    roles=CHANGERS,
    answers={200: "cluster_views:ClientSecretView"},
    audited=True,
)
def client_secret(request: Request) -> Answer:
    """From Keycloak; audited."""
    services = wiring.services(request.caller.tenant)
    cluster = find(services, request.params["id"])
    try:
        secret = services.identity.client_secret(cluster.client_id)
    except VendorError as error:
        raise UnexpectedBehavior(f"Keycloak could not be asked ({error.error_type}).") from error
    return Answer(200, {"client_id": cluster.client_id, "client_secret": secret}, subject=cluster.id)


@door.route(
    "GET",
    "/v1/clusters/{id}/tree",
    summary="The cluster with everything below it",
    action="GetClusterTree",
    roles=Roles.READERS,
    answers={200: "cluster_views:TreeNode"},
)
def tree(request: Request) -> Answer:
    """Operation, cloud resources, pools."""
    from stockyard.operations.cluster_tree import cluster_tree

    services = wiring.services(request.caller.tenant)
    return Answer(200, cluster_tree(services, find(services, request.params["id"])))
