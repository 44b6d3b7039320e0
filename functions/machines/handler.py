"""Routes that a cluster's own machines call: to prove who they are, and to report ready."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from stockyard import wiring
from stockyard.domain.records import Cluster
from stockyard.domain.values import ids
from stockyard.edge.contract import Answer, Request
from stockyard.edge.http.query import Query
from stockyard.errors import IllegalTransition, NotFound, Unauthorized
from stockyard.operations.engine.find import find_cluster
from stockyard.wiring import passes

if TYPE_CHECKING:
    from stockyard.operations.services import Services

http = wiring.http("machines")
lambda_handler = http.lambda_handler

BOOTING = "A machine that boots has no token of the realm; it proves itself by a presigned STS call or its user data"


REFUSED = {
    "token": "the proof of identity is not accepted",
    "": "The request was not signed by a machine of this cluster.",
}
"""What is answered to a proof by token, or by a signed request, of whoever is no machine of the cluster."""


@contextmanager
def _proving(cluster_id: str, proof: Mapping[str, Any], claim_id: str = "") -> Iterator[tuple[str, Services]]:
    """The tenant of the cluster, and its services, for work that begins with a check of the proof.

    ``Unauthorized`` also where there is no such cluster or claim: whoever proves nothing learns of no id.
    """
    refusal = Unauthorized(REFUSED["token" if proof.get("token") is not None else ""])
    is_possible = ids.is_id(cluster_id) and (not claim_id or ids.is_id(claim_id))
    tenant = wiring.registry().tenant_of(Cluster, cluster_id) if is_possible else None
    if tenant is None:
        if proof.get("token") is None:
            wiring.attestor().caller(proof)  # its own refusals come first for every id
        raise refusal
    try:
        yield tenant, wiring.services(tenant)
    except NotFound:
        raise refusal from None


def _own_cluster(services: Services, request: Request, otherwise: str) -> Cluster:
    """The caller's own cluster, ``NotFound`` for any other; ``IllegalTransition`` when it is not there to stay."""
    cluster = find_cluster(services, request.params["id"])
    if cluster.client_id != request.caller.client_id:
        raise NotFound(f"There is no cluster {request.params['id']}.")
    if cluster.status not in ("preparing", "ready"):
        raise IllegalTransition(f"The cluster is {cluster.status}; {otherwise}.")
    return cluster


@http.route(
    "POST /v1/clusters/{id}/ready",
    machine=True,
    body="clusters.machines:ReadyReport",
    answers={202: "clusters.machines:Accepted"},
    description="Only by the cluster's own client. Repeatable. Once the cluster is ready only the recorded machine's "
    "renewed kubeconfig is taken, with its proof.",
)
def report_ready(request: Request, services: Services) -> Answer:
    """A control plane reports ready. Kubeconfig and certificate authority are kept, and the creation goes on."""
    from stockyard.operations.clusters import await_report

    cluster = _own_cluster(services, request, "it waits for no report")
    body = request.body
    proof = body.proof.proof() if body.proof else None
    kubeconfig = body.kubeconfig.get_secret_value()
    await_report.report_ready(services, cluster, kubeconfig, body.certificate_authority, proof)
    return Answer(202, {"status": "accepted"}, subject=cluster.id)


@http.route(
    "POST /v1/clusters/{id}/bootstrap",
    open_because=BOOTING,
    body="clusters.machines:BootstrapRequest",
    answers={200: "clusters.machines:BootstrapAnswer"},
    description="By a presigned sts:GetCallerIdentity request of the control plane's instance, or by its user data's "
    "token, valid 30 minutes and until the machine has reported. 409 until the endpoint is known.",
)
def bootstrap_machine(request: Request) -> Answer:
    """A machine without a token proves itself. Only the recorded one gets its client's secret."""
    from stockyard.operations.machines import bootstrap

    cluster_id = request.params["id"]
    proof = request.body.proof()
    with _proving(cluster_id, proof) as (tenant, services):
        configuration = bootstrap.bootstrap_machine(services, cluster_id, proof, **_overlay(request))
    # The caller has no token and so no tenant: the edge cannot write this record.
    actor = f"client:{configuration.client_id}"
    wiring.audit(tenant, services.audit_record(actor, "BootstrapMachine", cluster_id, request.request_id))
    return Answer(200, _with_programs(asdict(configuration)), subject=cluster_id, audited=True)


def _overlay(request: Request) -> dict[str, str | None]:
    """Values of the machine's overlay in a request."""
    return {"overlay_key": request.body.overlay_key, "overlay_local": request.body.overlay_local}


def _with_programs(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer to a machine, with the programs of the overlay that it is in."""
    from stockyard.machines.control_plane import OVERLAY_PROGRAMS, given_programs

    if answer["overlay"] is not None:
        answer["overlay"]["programs"] = given_programs(OVERLAY_PROGRAMS)
    return answer


@http.route(
    "GET /v1/clusters/{id}/agent",
    machine=True,
    answers={200: "clusters.machines:AgentManifest"},
    description="Only by the cluster's own client. The Secret with that client's credentials is made by the installer.",
)
def get_agent(request: Request, services: Services) -> Answer:
    """The manifest that installs a cluster's agent. The objects in the order in which they have to be made."""
    from agent import manifest

    cluster = _own_cluster(services, request, "it needs no agent")
    chosen_image = services.settings.agent_image or manifest.IMAGE
    settings = manifest.Settings(services.settings.api_url, cluster.id, services.settings.token_url, chosen_image)
    body = {"apiVersion": "v1", "kind": "List", "items": manifest.documents(settings)}
    return Answer(200, body, subject=cluster.id)


@http.route(
    "POST /v1/clusters/{id}/observations",
    machine=True,
    body="clusters.observations:Observation",
    answers={200: "clusters.observations:ObservationAnswer"},
    audited=False,
    large=True,
    description="Only by the cluster's own client. The answer carries commands until their results are known.",
)
def post_observations(request: Request, services: Services) -> Answer:
    """A cluster's agent says what it sees. Keep what is new, answer with what is to be done."""
    from stockyard.domain.models.base import document_of
    from stockyard.operations.machines.observe import observe

    cluster = _own_cluster(services, request, "its agent has nothing to say")
    observation = document_of(request.body)
    reply = observe(services, wiring.registry().in_hand, wiring.machine_key(), cluster, observation)
    if reply.news_of:
        from stockyard.operations.node_claims.phases import go_on

        go_on(services, reply.news_of)
    commands = [command.document() for command in reply.commands]
    body = {
        "commands": commands,
        "interval_seconds": reply.interval_seconds,
        "mirror": reply.mirror,
        "pods_interval_seconds": reply.pods_interval_seconds,
        "kubeconfig_secrets": reply.kubeconfig_secrets,
        "overlay": asdict(reply.overlay) if reply.overlay is not None else None,
    }
    return Answer(200, body, subject=cluster.id)


@http.route(
    "GET /v1/clusters/{id}/mirror",
    machine=True,
    answers={200: "clusters.observations:MirrorView"},
    query=(Query("after", "The `after` of the part before."),),
    description="Only by the cluster's own client. The pools are in the first part. The answer to observations says "
    "when there is something new.",
)
def get_mirror(request: Request, services: Services) -> Answer:
    """The pools of a cluster and their claims for the mirror of its agent."""
    from stockyard.operations.machines.mirror import page_of

    cluster = _own_cluster(services, request, "nothing is mirrored")
    page = page_of(services, cluster, request.query.get("after", ""))
    return Answer(200, {"objects": page.objects, "after": page.after}, subject=cluster.id)


@http.route(
    "POST /v1/clusters/{id}/pending-pods",
    machine=True,
    body="pools.pending_pods:PendingPods",
    answers={200: "pools.pending_pods:PendingPodsAnswer"},
    audited=False,
    large=True,
    description="Only by the cluster's own client. All of it, or what changed since the report that was answered last; "
    "the answer says when all of it is needed again.",
)
def post_pending_pods(request: Request, services: Services) -> Answer:
    """A cluster's agent says which pods wait for a node, and what runs where."""
    from stockyard.domain.models.base import document_of
    from stockyard.operations.machines.pending_pods import receive

    cluster = _own_cluster(services, request, "its pods get no nodes")
    reply = receive(services, cluster, document_of(request.body))
    if reply.wake is not None:
        passes.relay().send_own(services.tenant, reply.wake)
    body = {"sequence": reply.sequence, "resync": reply.resync, "interval_seconds": reply.interval_seconds}
    return Answer(200, body, subject=cluster.id)


@http.route(
    "POST /v1/node-claims/{id}/join",
    open_because=BOOTING,
    body="clusters.observations:JoinRequest",
    answers={200: "clusters.observations:JoinAnswer"},
    description="By a presigned sts:GetCallerIdentity request of the claim's instance, or by its user data's token, "
    "valid 30 minutes and until its node has joined. 409 until the token to join with is made.",
)
def join_machine(request: Request) -> Answer:
    """A claim's machine asks how to join its cluster. Only the recorded one gets its own token."""
    from stockyard.machines.control_plane import RESTORE_PROGRAMS, given_programs
    from stockyard.operations.machines import join

    claim_id, proof = request.params["id"], request.body.proof()
    with _proving(request.body.cluster_id, proof, claim_id) as (tenant, services):
        configuration = join.join_machine(services, wiring.machine_key(), claim_id, proof, **_overlay(request))
    actor = f"node:{configuration.node_name}"
    wiring.audit(tenant, services.audit_record(actor, "JoinMachine", claim_id, request.request_id))
    answer = _with_programs(asdict(configuration))
    if configuration.control_plane is not None and configuration.control_plane.restore is not None:
        answer["control_plane"]["restore"]["programs"] = given_programs(RESTORE_PROGRAMS)
    return Answer(200, answer, subject=claim_id, audited=True)


@http.route(
    "POST /v1/node-claims/{id}/member-reports",
    open_because=BOOTING,
    body="clusters.observations:MemberReport",
    answers={200: "clusters.observations:MemberReportAnswer"},
    description="With the proof of join, by the machine of a control plane's claim alone. Repeatable. The answer says "
    "which members it takes out of etcd, and whether it is done.",
)
def report_member(request: Request) -> Answer:
    """A member of a control plane has joined: keep that, and say which members go."""
    from stockyard.operations.clusters import await_report
    from stockyard.operations.machines import member_reports

    claim_id, body = request.params["id"], request.body
    proof = body.proof()
    with _proving(body.cluster_id, proof, claim_id) as (tenant, services):
        reply = member_reports.report_member(services, claim_id, proof, body.state, body.removed)
    if body.kubeconfig is not None:
        kubeconfig = body.kubeconfig.get_secret_value()
        await_report.renew_kubeconfig(services, reply.cluster, kubeconfig, body.certificate_authority)
    if reply.news or body.kubeconfig is not None:
        actor = f"node:{reply.claim.name}"
        wiring.audit(tenant, services.audit_record(actor, "ReportMember", reply.claim.id, request.request_id))
    answer = {"remove": reply.remove, "done": reply.done, "retry_after": reply.retry_after}
    return Answer(200, answer, subject=reply.claim.id, audited=True)


@http.route(
    "POST /v1/clusters/{id}/boot-reports",
    open_because=BOOTING,
    body="clusters.machines:ControlPlaneBootReport",
    answers={202: "clusters.machines:Accepted"},
    audited=False,
    description="With the proof of bootstrap. The last report is part of the operation's error when the machine never "
    "reports ready.",
)
def report_boot_of_control_plane(request: Request) -> Answer:
    """A control plane's machine says how its first boot goes."""
    from stockyard.operations.machines import boot

    cluster_id, body = request.params["id"], request.body
    proof = body.proof()
    with _proving(cluster_id, proof) as (_, services):
        boot.report_of_control_plane(services, cluster_id, proof, body.model_dump())
    return Answer(202, {"status": "accepted"}, subject=cluster_id)


@http.route(
    "POST /v1/clusters/{id}/snapshot-reports",
    open_because=BOOTING,
    body="clusters.machines:SnapshotReport",
    answers={200: "clusters.machines:SnapshotAnswer"},
    description="With the proof of bootstrap, by any recorded machine of the control plane. Without a report the answer"
    " names the snapshot of etcd that is due, and has the programs that take it.",
)
def report_snapshot(request: Request) -> Answer:
    """A member of a control plane asks whether a snapshot is due, or says how one went."""
    from stockyard.machines.control_plane import BACKUP_PROGRAMS, given_programs
    from stockyard.operations.machines import snapshot_reports

    cluster_id, body = request.params["id"], request.body
    proof, report = body.proof(), body.report.model_dump() if body.report is not None else None
    with _proving(cluster_id, proof) as (tenant, services):
        due = snapshot_reports.answer_member(services, cluster_id, proof, report)
    if report is not None:
        outcome = f"{report['id']}: {'failed' if report['failure'] else 'stored'}"
        record = services.audit_record("control-plane", "ReportSnapshot", cluster_id, request.request_id, outcome)
        wiring.audit(tenant, record)
    answer = {**due.document(), "programs": given_programs(BACKUP_PROGRAMS)} if due is not None else None
    return Answer(200, {"due": answer}, subject=cluster_id, audited=True)


@http.route(
    "POST /v1/node-claims/{id}/boot-reports",
    open_because=BOOTING,
    body="clusters.observations:NodeBootReport",
    answers={202: "clusters.machines:Accepted"},
    audited=False,
    description="With the proof of join. The last report is part of the operation's error when the node never joins.",
)
def report_boot_of_node(request: Request) -> Answer:
    """A claim's machine says how its first boot goes."""
    from stockyard.operations.machines import boot

    claim_id, body = request.params["id"], request.body
    proof = body.proof()
    with _proving(body.cluster_id, proof, claim_id) as (_, services):
        boot.report_of_node(services, claim_id, proof, body.model_dump())
    return Answer(202, {"status": "accepted"}, subject=claim_id)


@http.route(
    "POST /v1/node-claims/{id}/interruptions",
    open_because=BOOTING,
    body="clusters.observations:Interruption",
    answers={202: "clusters.machines:Accepted"},
    description="With the proof of join by a signed request. An interruption gives the node back at once: its drain "
    "ends before the machine does. Repeatable.",
)
def report_interruption(request: Request) -> Answer:
    """A claim's machine tells that its cloud takes it back."""
    from stockyard.operations.node_claims import interruption

    claim_id, body = request.params["id"], request.body
    proof = body.model_dump(include={"method", "url", "headers"})
    with _proving(body.cluster_id, proof, claim_id) as (tenant, services):
        claim, news = interruption.report_interruption(services, claim_id, proof, body.kind, body.time)
    if news:
        actor, action = f"node:{claim.name}", "ReportInterruption"
        wiring.audit(tenant, services.audit_record(actor, action, claim.id, request.request_id, body.kind))
    return Answer(202, {"status": "accepted"}, subject=claim.id, audited=True)
