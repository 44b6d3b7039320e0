"""Clusters over HTTP."""

from __future__ import annotations

from typing import Any

from stockyard import wiring
from stockyard.domain import ids
from stockyard.domain.records import UNSEEN, Cluster, Operation
from stockyard.domain.views import cluster_view, operation_view
from stockyard.edge.contract import Answer, Request
from stockyard.edge.etag import digest_of
from stockyard.edge.identity import Roles
from stockyard.edge.query import FORM, ORDER, TAG, Query, tagged
from stockyard.errors import Forbidden, InvalidInput, UnexpectedBehavior, VendorError
from stockyard.lifecycle.operation import progress
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.services import Services

http = wiring.http("clusters")
lambda_handler = http.lambda_handler

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
    roles=Roles.CHANGERS,
    body="clusters:ClusterCreate",
    answers={202: "cluster_views:ClusterView", 200: "plan:PlanView"},
    idempotent=True,
    dry_run=True,
)
def create_cluster(request: Request) -> Answer:
    """Create a cluster. The answer comes at once; the operation makes the cluster in the background."""
    from stockyard.operations.clusters import create
    from stockyard.operations.clusters.plan import warnings_of

    body = request.body
    secret = body.secret.get_secret_value() if body.secret else None
    organization_id = request.caller.organization_id
    profiles = tuple(choice.model_dump() for choice in body.profiles)
    fields = {**dict(body), "secret": secret, "organization_id": organization_id, "profiles": profiles}
    new_cluster = create.NewCluster(**fields)
    services = wiring.services(request.caller.tenant)
    if request.dry_run:
        return Answer.plan(create.plan_creation(services, new_cluster))
    cluster, findings = create.create_cluster(
        services, new_cluster, request.caller.actor, request.stable_id(ids.CLUSTER)
    )
    created_view = {**cluster_view(cluster), "warnings": warnings_of(services, cluster, findings)}
    return Answer(202, created_view, version=cluster.version, location=f"/v1/operations/{cluster.operation_id}")


@http.route(
    "GET /v1/clusters",
    roles=Roles.READERS,
    answers={200: "cluster_views:ClusterView"},
    query=(
        Query("status", "Only clusters in this status.", values=STATUSES),
        Query("phase", "Only clusters whose operation is in this phase, such as `network`.", pattern="^[a-z_]+$"),
        TAG,
        ORDER,
    ),
    paged=True,
)
def list_clusters(request: Request) -> Answer:
    """List clusters. The tenant's clusters in order of id; those that are only being accepted are not shown."""
    store = wiring.store(request.caller.tenant)
    tag, newest_first = request.query.get("tag"), request.query.get("order") == "desc"
    where = {name: request.query[name] for name in ("status", "phase") if name in request.query} or None
    return Answer.matching(
        request.page,
        lambda after, limit: store.list(Cluster, after=after, limit=limit, newest_first=newest_first, where=where),
        lambda cluster: cluster.status not in UNSEEN and tagged(cluster.tags, tag),
        cluster_view,
    )


@http.route(
    "GET /v1/clusters/{id}",
    roles=Roles.READERS,
    answers={200: "cluster_views:ClusterDocument"},
    query=(FORM,),
    waits=True,
    description="By id or name. With `form=manifest` the answer is the cluster as a manifest, where its driver has a"
    " form of manifests.",
)
def get_cluster(request: Request) -> Answer:
    """Get a cluster."""
    services = wiring.services(request.caller.tenant)
    cluster = find_cluster(services, request.params["id"])
    if request.query.get("form"):
        from stockyard.operations.manifests.clusters import cluster_manifest
        from stockyard.operations.profiles.clusters import packs_record

        manifest = cluster_manifest(cluster, packs_record(services, cluster).profiles)
        return Answer(200, manifest, version=cluster.version, digest=digest_of(manifest))
    return _cluster_answer(cluster, 200)


@http.route(
    "PATCH /v1/clusters/{id}",
    roles=Roles.CHANGERS,
    body="cluster_patch:ClusterPatch",
    answers={200: "cluster_views:ClusterView", 202: "cluster_views:ClusterView"},
    if_match=True,
    dry_run=True,
    description="Description, tags and the setting `mirror` are on the record at once; tags reach what is there in the"
    " background. `kubernetes_version`, one minor at a time, `profiles` and the settings that its driver lets change"
    " are changed by an operation on the ready cluster, which goes on serving: the answer is 202, and `Location` names"
    " the operation. Of a cluster whose creation has failed at its packs `profiles` are on the record at once, and a"
    " resume applies them. Another operation that works on the cluster is named by a 409; with `queue` the change"
    " stands behind it: `Location` names an operation in status `queued`, and `If-Match` is not compared. With"
    " `dry_run` the answer is a plan.",
)
def change_cluster(request: Request) -> Answer:
    """Change a cluster. A JSON merge patch."""
    from stockyard.operations.clusters import change, queue, reconfigure
    from stockyard.operations.clusters.alignment import aligned
    from stockyard.operations.profiles.clusters import difference, profile_change

    services, body = wiring.services(request.caller.tenant), request.body
    cluster = aligned(services, find_cluster(services, request.params["id"]))
    description = body.description if "description" in body.model_fields_set else None
    fields: dict[str, Any] = {"description": description, "tags": body.tags_after(cluster.tags)}
    settings = body.settings_after(cluster)
    version = body.kubernetes_version if "kubernetes_version" in body.model_fields_set else None
    profiles = body.profile_choices()
    target = reconfigure.target_of(cluster, settings, version)
    if body.queue and not request.dry_run and queue.is_busy(services, cluster):
        document, actor = body.document(), request.caller.actor
        operation = queue.enqueue(services, cluster.id, document, actor, request.request_id)
        waiting = find_cluster(services, cluster.id)
        return _cluster_answer(waiting, 202, audited=True, location=f"/v1/operations/{operation.id}")
    if request.dry_run:
        kind = reconfigure.operation_kind(services, cluster, target, profiles=profiles is not None)
        request.check_version("cluster", cluster.version)
        changes = {name: value for name, value in fields.items() if value is not None}
        packs = None if profiles is None else profile_change(services, cluster, target, profiles)
        if kind:
            return Answer.plan(reconfigure.plan_change(services, cluster, target, changes, packs))
        if packs is not None:
            return Answer.free_plan(**difference(packs.before, packs.after))
        changes |= {} if settings is None else {"settings": settings}
        return Answer.change_plan(cluster, changes, "cluster", cluster.name)
    changed, warnings = change.change_cluster(
        services,
        cluster.id,
        request.version,
        **fields,
        settings=settings,
        kubernetes_version=version,
        profiles=profiles,
        actor=request.caller.actor,
        request_id=request.request_id,
    )
    has_begun = changed.operation_id != cluster.operation_id
    if not has_begun or (settings is None and version is None and profiles is None):
        return _cluster_answer(changed, 200, audited=True)
    view = {**cluster_view(changed), "warnings": warnings}
    return Answer(202, view, version=changed.version, audited=True, location=f"/v1/operations/{changed.operation_id}")


@http.route(
    "DELETE /v1/clusters/{id}",
    roles=Roles.CHANGERS,
    answers={202: "operations:OperationView", 200: "cluster_views:DeletionDocument"},
    query=(Query("force", "Forget a cluster whose deletion does not end, and say what may be left.", "boolean"),),
    dry_run=True,
    description="With `force` a cluster is forgotten whose deletion has been running or blocked for 15 minutes. Nothing"
    " is removed from a cloud then: the answer, an event and the audit record name what may be left, and the sweep goes"
    " on to report it.",
)
def delete_cluster(request: Request) -> Answer:
    """Delete a cluster. In every state; a second request names the same operation."""
    from stockyard.operations.clusters import delete

    services = wiring.services(request.caller.tenant)
    if request.query.get("force") and not request.dry_run:
        from stockyard.operations.clusters.forced_deletion import force_deletion

        name, actor = request.params["id"], request.caller.actor
        forced = force_deletion(services, name, actor, request.request_id)
        return Answer(200, forced, subject=forced["id"], audited=True)
    if request.dry_run:
        return Answer.plan(delete.plan_deletion(services, request.params["id"]))
    return _operation(services, delete.delete_cluster(services, request.params["id"], request.caller.actor))


@http.route(
    "POST /v1/clusters/{id}/resume",
    roles=Roles.CHANGERS,
    body="cluster_resume:ClusterResume",
    optional=True,
    answers={202: "operations:OperationView", 200: "plan:PlanView"},
    idempotent=True,
    dry_run=True,
    description="A creation that has failed takes other settings with it, a JSON merge patch, and goes through all of"
    " its phases again. A setting by which something has been made that is still there is refused by its name. With"
    " `dry_run` the answer is a plan: the phases that would run, and what would be other settings and pools.",
)
def resume_cluster(request: Request) -> Answer:
    """Continue a failed operation. From the phase that failed, with the next attempt."""
    from stockyard.operations.clusters import resume

    services, name, actor = wiring.services(request.caller.tenant), request.params["id"], request.caller.actor
    has_changes = bool(request.body.settings or request.body.kubernetes_version)
    if request.dry_run:
        from stockyard.operations.clusters.resume_with import plan_resume_with

        cluster = find_cluster(services, name)
        if not has_changes:
            return Answer.free_plan(**resume.plan_resume(services, cluster))
        fields, parts = plan_resume_with(services, cluster, request.body, actor)
        return Answer.change_plan(cluster, fields, "cluster", cluster.name, **parts)
    if has_changes:
        from stockyard.operations.clusters.resume_with import resume_with

        return _operation(services, resume_with(services, name, request.body, actor))
    return _operation(services, resume.resume_cluster(services, name, actor))


@http.route(
    "POST /v1/clusters/{id}/cancel",
    roles=Roles.CHANGERS,
    answers={202: "operations:OperationView"},
    query=(Query("operation", "The id of a queued operation that is not to begin."),),
    description="The step that is being done is finished, and none follows. What the operation has done so far stands:"
    " the cluster is ready and `Degraded`. `POST /v1/clusters/{id}/resume` goes on, and a further change begins anew.",
)
def cancel_change(request: Request) -> Answer:
    """Stop an operation that changes a ready cluster."""
    from stockyard.operations.clusters import cancel

    services, actor = wiring.services(request.caller.tenant), request.caller.actor
    if request.query.get("operation"):
        stopped = cancel.cancel_queued(services, request.params["id"], request.query["operation"], actor)
        return Answer.accepted(operation_view(stopped, 0), stopped.id, subject=stopped.subject)
    return _operation(services, cancel.cancel_change(services, request.params["id"], actor))


@http.route("GET /v1/clusters/{id}/repave", roles=Roles.READERS, answers={200: "cluster_views:RepaveView"})
def get_repave(request: Request) -> Answer:
    """Get whether the last change of a cluster replaces nodes. State, reasons, and the nodes of before."""
    from stockyard.operations.clusters.approval import repave_view

    services = wiring.services(request.caller.tenant)
    return Answer(200, repave_view(services, find_cluster(services, request.params["id"])))


@http.route(
    "PATCH /v1/clusters/{id}/repave",
    roles=Roles.CHANGERS,
    body="repave:RepavePatch",
    answers={200: "cluster_views:RepaveView"},
    description="Of a change that waits because `repave_approval` is `required`. Approved, it goes on within a minute."
    " Not approved, the settings and the version become what they were, and the operation ends as `reverted`.",
)
def decide_repave(request: Request) -> Answer:
    """Approve of a change that replaces nodes, or take it back."""
    from stockyard.operations.clusters import approval

    services, actor = wiring.services(request.caller.tenant), request.caller.actor
    cluster = approval.decide_repave(services, request.params["id"], approved=request.body.approved, actor=actor)
    return Answer(200, approval.repave_view(services, cluster), subject=cluster.id)


@http.route(
    "POST /v1/clusters/{id}/repave",
    roles=Roles.CHANGERS,
    answers={202: "operations:OperationView", 200: "plan:PlanView"},
    idempotent=True,
    dry_run=True,
)
def start_repave(request: Request) -> Answer:
    """Replace every node of a cluster. Members of the control plane first, then pools, one by one."""
    from stockyard.operations.clusters import repaves

    services, name = wiring.services(request.caller.tenant), request.params["id"]
    if request.dry_run:
        return Answer.plan(repaves.plan_repave(services, name))
    return _operation(services, repaves.start_repave(services, name, request.caller.actor, request.request_id))


@http.route("GET /v1/clusters/{id}/certificates", roles=Roles.READERS, answers={200: "cluster_views:CertificatesView"})
def get_certificates(request: Request) -> Answer:
    """Get when the certificates of a cluster's control plane end. And whether they are being renewed."""
    from stockyard.operations.clusters.repaves import certificates_view

    services = wiring.services(request.caller.tenant)
    return Answer(200, certificates_view(services, find_cluster(services, request.params["id"])))


@http.route(
    "POST /v1/clusters/{id}/certificates/renew",
    roles=Roles.CHANGERS,
    answers={202: "operations:OperationView", 200: "plan:PlanView"},
    idempotent=True,
    dry_run=True,
)
def renew_certificates(request: Request) -> Answer:
    """Renew the certificates of a control plane. Its members are replaced one after the other."""
    from stockyard.operations.clusters import repaves

    services, name = wiring.services(request.caller.tenant), request.params["id"]
    if request.dry_run:
        return Answer.plan(repaves.plan_renewal(services, name))
    return _operation(services, repaves.renew_certificates(services, name, request.caller.actor, request.request_id))


@http.route("GET /v1/clusters/{id}/snapshots", roles=Roles.READERS, answers={200: "cluster_views:SnapshotsView"})
def list_snapshots(request: Request) -> Answer:
    """List the snapshots of a cluster's etcd. As its cloud has them now, the newest first."""
    from stockyard.operations.clusters.snapshots import snapshots_view

    services = wiring.services(request.caller.tenant)
    return Answer(200, snapshots_view(services, find_cluster(services, request.params["id"])))


@http.route(
    "POST /v1/clusters/{id}/restore",
    roles=Roles.CHANGERS,
    body="restore:RestoreRequest",
    answers={202: "operations:OperationView", 200: "plan:PlanView"},
    idempotent=True,
    dry_run=True,
    description="Also when no member is left. A new member begins from the snapshot, those of before end, and others"
    " follow it until there are as many as wanted. What was written after the snapshot is forgotten; the dry run says"
    " how much that is.",
)
def restore_cluster(request: Request) -> Answer:
    """Restore a cluster's etcd from a snapshot. An operation on the ready cluster."""
    from stockyard.operations.clusters import restores

    services, name, snapshot = wiring.services(request.caller.tenant), request.params["id"], request.body.snapshot
    if request.dry_run:
        return Answer.plan(restores.plan_restore(services, name, snapshot))
    actor = request.caller.actor
    return _operation(services, restores.start_restore(services, name, snapshot, actor, request.request_id))


@http.route(
    "GET /v1/clusters/{id}/kubeconfig",
    roles=Roles.READERS,
    answers={200: "cluster_views:KubeconfigDocument"},
    query=(
        Query("static", "The stored one, with a client certificate; admins only.", "boolean"),
        Query("form", "With `secret` a Secret with a kubeconfig and a token of now.", values=("secret",)),
    ),
    audited=True,
    description="With an `exec` user by default. `form=secret` is for clusters that their cloud admits people to: the "
    "token in it is made for this answer, has the caller's role, and ends in 15 minutes at most. It is stored nowhere.",
)
def read_kubeconfig(request: Request) -> Answer:
    """Get a kubeconfig."""
    import json

    from stockyard.operations.clusters.kubeconfig import exec_kubeconfig, kubeconfig_secret, static_kubeconfig

    services = wiring.services(request.caller.tenant)
    cluster = find_cluster(services, request.params["id"])
    if request.query.get("form"):
        if request.query.get("static"):
            raise InvalidInput.at("/form", "Ask for static or for form, not for both.")
        role = _role_in_cluster(request.caller.roles)
        secret = kubeconfig_secret(services, cluster, role, request.caller.actor)
        return Answer(200, secret, subject=cluster.id)
    if request.query.get("static"):
        if not request.caller.roles & (Roles.ADMIN | Roles.PLATFORM):
            raise Forbidden("The stored kubeconfig is for the role stockyard-admin.")
        return Answer(200, {"kubeconfig": static_kubeconfig(services, cluster)})
    # JSON is YAML; no YAML library is needed to write it.
    return Answer(200, {"kubeconfig": json.dumps(exec_kubeconfig(services, cluster), indent=2) + "\n"})


@http.route(
    "POST /v1/clusters/{id}/token",
    roles=Roles.READERS,
    answers={200: "cluster_views:ExecCredentialView"},
    description="For clusters that their cloud admits people to; people log in to others. The token has the caller's "
    "role: viewer, operator or admin. It ends in 15 minutes at most, and is stored nowhere.",
)
def make_cluster_token(request: Request) -> Answer:
    """Make a token for a cluster. As `kubectl` takes it from a plugin."""
    from stockyard.operations.clusters.kubeconfig import exec_credential
    from stockyard.operations.clusters.tokens import mint

    services = wiring.services(request.caller.tenant)
    cluster = find_cluster(services, request.params["id"])
    token = mint(services, cluster, _role_in_cluster(request.caller.roles), request.caller.actor)
    return Answer(200, exec_credential(token), subject=cluster.id)


def _role_in_cluster(roles: Roles) -> str:
    """What the caller may be in a cluster that the cloud admits people to: the most that a role of theirs allows."""
    from stockyard.ports.clusters import ADMIN, OPERATOR, VIEWER

    if roles & Roles.ADMINISTRATORS:
        return ADMIN
    return OPERATOR if roles & Roles.OPERATOR else VIEWER


@http.route(
    "GET /v1/clusters/{id}/client-secret",
    roles=Roles.ADMINISTRATORS,
    answers={200: "cluster_views:ClientSecretView"},
    audited=True,
)
def read_client_secret(request: Request) -> Answer:
    """Read the Keycloak client's secret. It comes from Keycloak, and reading it is audited."""
    services = wiring.services(request.caller.tenant)
    cluster = find_cluster(services, request.params["id"])
    try:
        secret = services.identity.client_secret(cluster.client_id)
    except VendorError as error:
        raise UnexpectedBehavior(f"Keycloak could not be asked ({error.error_type}).") from error
    return Answer(200, {"client_id": cluster.client_id, "client_secret": secret}, subject=cluster.id)


@http.route("GET /v1/clusters/{id}/tree", roles=Roles.READERS, answers={200: "cluster_views:TreeNode"})
def get_cluster_tree(request: Request) -> Answer:
    """The cluster with everything below it. Operation, cloud resources, pools."""
    from stockyard.operations.clusters.tree import cluster_tree

    services = wiring.services(request.caller.tenant)
    return Answer(200, cluster_tree(services, find_cluster(services, request.params["id"])))
