"""Routes of operations on a cluster that is there: resume, cancel, repave, renew, restore."""

from __future__ import annotations

from functions.clusters.routes import http, operation_answer
from stockyard.domain.records import Cluster
from stockyard.domain.views import operation_view
from stockyard.edge.contract import Answer, Request
from stockyard.edge.http.query import Query
from stockyard.edge.identity import Roles
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.services import Services


@http.route(
    "POST /v1/clusters/{id}/resume",
    roles=Roles.CHANGERS,
    body="clusters.resume:ClusterResume",
    optional=True,
    answers={202: "operations:OperationView", 200: "plan:PlanView"},
    idempotent=True,
    dry_run=True,
    description="A creation that has failed takes other settings with it, a JSON merge patch, and goes through all of"
    " its phases again. A setting by which something has been made that is still there is refused by its name. With"
    " `dry_run` the answer is a plan: the phases that would run, and what would be other settings and pools.",
)
def resume_cluster(request: Request, services: Services) -> Answer:
    """Continue a failed operation. From the phase that failed or an earlier one, with the next attempt."""
    from stockyard.operations.clusters.changes import resume

    name, actor = request.params["id"], request.caller.actor
    has_changes = bool(request.body.settings or request.body.kubernetes_version)
    if request.dry_run:
        from stockyard.operations.clusters.changes.resume_with import plan_resume_with

        cluster = find_cluster(services, name)
        if not has_changes:
            return Answer.free_plan(**resume.plan_resume(services, cluster))
        fields, parts = plan_resume_with(services, cluster, request.body, actor)
        return Answer.change_plan(cluster, fields, "cluster", cluster.name, **parts)
    if has_changes:
        from stockyard.operations.clusters.changes.resume_with import resume_with

        return operation_answer(services, resume_with(services, name, request.body, actor))
    return operation_answer(services, resume.resume_cluster(services, name, actor))


@http.route(
    "POST /v1/clusters/{id}/cancel",
    roles=Roles.CHANGERS,
    answers={202: "operations:OperationView"},
    query=(Query("operation", "The id of a queued operation that is not to begin."),),
    description="The step that is being done is finished, and none follows. What the operation has done so far stands:"
    " the cluster is ready and `Degraded`. `POST /v1/clusters/{id}/resume` goes on, and a further change begins anew.",
)
def cancel_change(request: Request, services: Services) -> Answer:
    """Stop an operation that changes a ready cluster."""
    from stockyard.operations.clusters.changes import cancel

    actor = request.caller.actor
    if request.query.get("operation"):
        stopped = cancel.cancel_queued(services, request.params["id"], request.query["operation"], actor)
        return Answer.accepted(operation_view(stopped, 0), stopped.id, subject=stopped.subject)
    return operation_answer(services, cancel.cancel_change(services, request.params["id"], actor))


@http.route("GET /v1/clusters/{id}/repave", roles=Roles.READERS, answers={200: "clusters.views:RepaveView"})
def get_repave(request: Request, services: Services, cluster: Cluster) -> Answer:
    """Get whether the last change of a cluster replaces nodes. State, reasons, and the nodes of before."""
    from stockyard.operations.clusters.changes.approval import repave_view

    return Answer(200, repave_view(services, cluster))


@http.route(
    "PATCH /v1/clusters/{id}/repave",
    roles=Roles.CHANGERS,
    body="clusters.repave:RepavePatch",
    answers={200: "clusters.views:RepaveView"},
    description="Of a change that waits because `repave_approval` is `required`. Approved, it goes on within a minute."
    " Not approved, the settings and the version become what they were, and the operation ends as `reverted`.",
)
def decide_repave(request: Request, services: Services) -> Answer:
    """Approve of a change that replaces nodes, or take it back."""
    from stockyard.operations.clusters.changes import approval

    actor = request.caller.actor
    cluster = approval.decide_repave(services, request.params["id"], approved=request.body.approved, actor=actor)
    return Answer(200, approval.repave_view(services, cluster), subject=cluster.id)


@http.route(
    "POST /v1/clusters/{id}/repave",
    roles=Roles.CHANGERS,
    answers={202: "operations:OperationView", 200: "plan:PlanView"},
    idempotent=True,
    dry_run=True,
)
def start_repave(request: Request, services: Services) -> Answer:
    """Replace every node of a cluster. Members of the control plane first, then pools, one by one."""
    from stockyard.operations.clusters.changes import repaves

    name = request.params["id"]
    if request.dry_run:
        return Answer.plan(repaves.plan_repave(services, name))
    return operation_answer(services, repaves.start_repave(services, name, request.caller.actor, request.request_id))


@http.route("GET /v1/clusters/{id}/network", roles=Roles.READERS, answers={200: "clusters.network:NetworkView"})
def get_network(request: Request, services: Services, cluster: Cluster) -> Answer:
    """Get the overlay of a cluster. Its machines, their addresses and paths, and what is down since when."""
    from stockyard.operations.clusters.network import network_view

    return Answer(200, network_view(services, cluster))


@http.route("GET /v1/clusters/{id}/certificates", roles=Roles.READERS, answers={200: "clusters.views:CertificatesView"})
def get_certificates(request: Request, services: Services, cluster: Cluster) -> Answer:
    """Get when the certificates of a cluster's control plane end. And whether they are being renewed."""
    from stockyard.operations.clusters.changes.repaves import certificates_view

    return Answer(200, certificates_view(services, cluster))


@http.route(
    "POST /v1/clusters/{id}/certificates/renew",
    roles=Roles.CHANGERS,
    answers={202: "operations:OperationView", 200: "plan:PlanView"},
    idempotent=True,
    dry_run=True,
)
def renew_certificates(request: Request, services: Services) -> Answer:
    """Renew the certificates of a control plane. Its members are replaced one after the other."""
    from stockyard.operations.clusters.changes import repaves

    name = request.params["id"]
    if request.dry_run:
        return Answer.plan(repaves.plan_renewal(services, name))
    return operation_answer(
        services, repaves.renew_certificates(services, name, request.caller.actor, request.request_id)
    )


@http.route("GET /v1/clusters/{id}/snapshots", roles=Roles.READERS, answers={200: "clusters.views:SnapshotsView"})
def list_snapshots(request: Request, services: Services, cluster: Cluster) -> Answer:
    """List the snapshots of a cluster's etcd. As its cloud has them now, the newest first."""
    from stockyard.operations.clusters.snapshots.snapshots import snapshots_view

    return Answer(200, snapshots_view(services, cluster))


@http.route(
    "POST /v1/clusters/{id}/restore",
    roles=Roles.CHANGERS,
    body="clusters.restore:RestoreRequest",
    answers={202: "operations:OperationView", 200: "plan:PlanView"},
    idempotent=True,
    dry_run=True,
    description="Also when no member is left. A new member begins from the snapshot, those of before end, and others"
    " follow it until there are as many as wanted. What was written after the snapshot is forgotten; the dry run says"
    " how much that is.",
)
def restore_cluster(request: Request, services: Services) -> Answer:
    """Restore a cluster's etcd from a snapshot. An operation on the ready cluster."""
    from stockyard.operations.clusters.snapshots import restores

    name, snapshot = request.params["id"], request.body.snapshot
    if request.dry_run:
        return Answer.plan(restores.plan_restore(services, name, snapshot))
    actor = request.caller.actor
    return operation_answer(services, restores.start_restore(services, name, snapshot, actor, request.request_id))
