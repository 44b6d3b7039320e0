"""What a cluster's own machines say: prove who they are, report ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stockyard import wiring
from stockyard.domain import ids
from stockyard.domain.records import AuditRecord, Cluster
from stockyard.edge.contract import Answer, Request
from stockyard.edge.route import Door
from stockyard.errors import IllegalTransition, NotFound
from stockyard.operations.advance import find

if TYPE_CHECKING:
    from stockyard.operations.services import Services

door = Door("machines", audit=lambda caller, record: wiring.audit(caller.tenant, record))


def _own(services: Services, request: Request, otherwise: str) -> Cluster:
    """The caller's own cluster, ``NotFound`` for any other; ``IllegalTransition`` when it is not there to stay."""
    cluster = find(services, request.params["id"])
    if cluster.client_id != request.caller.client_id:
        raise NotFound(f"There is no cluster {request.params['id']}.")
    if cluster.status not in ("preparing", "ready"):
        raise IllegalTransition(f"The cluster is {cluster.status}; {otherwise}.")
    return cluster


@door.route(
    "POST",
    "/v1/clusters/{id}/ready",
    summary="A control plane reports ready",
    action="ReportReady",
    machine=True,
    body="machines:ReadyReport",
    answers={202: "machines:Accepted"},
    description="Only by the cluster's own client. Repeatable; once the cluster is ready a report changes nothing.",
)
def ready(request: Request) -> Answer:
    """Keep kubeconfig and CA, write the fact, wake the workflow."""
    from stockyard.operations.await_report import report_ready

    services = wiring.services(request.caller.tenant)
    cluster = _own(services, request, "it waits for no report")
    body = request.body
    report_ready(services, cluster, body.kubeconfig.get_secret_value(), body.certificate_authority)
    return Answer(202, {"status": "accepted"}, subject=cluster.id)


@door.route(
    "POST",
    "/v1/clusters/{id}/bootstrap",
    summary="A machine without a token proves itself",
    action="BootstrapMachine",
    token=False,
    body="machines:BootstrapProof",
    answers={200: "machines:BootstrapAnswer"},
    description="By a presigned sts:GetCallerIdentity request of the control plane's instance.",
)
def bootstrap(request: Request) -> Answer:
    """The recorded machine gets its client's secret, nobody else gets anything."""
    from stockyard.operations.bootstrap_machine import bootstrap_machine

    cluster_id = request.params["id"]
    tenant = wiring.registry().tenant_of(Cluster, cluster_id) if ids.is_id(cluster_id) else None
    if tenant is None:
        raise NotFound("There is no cluster of that id that waits for its machine.")
    services = wiring.services(tenant)
    given = bootstrap_machine(services, cluster_id, request.body.model_dump())
    # The caller has no token and so no tenant: the edge cannot write this record.
    audit = AuditRecord(
        services.new_id(ids.AUDIT),
        services.now(),
        f"client:{given.client_id}",
        "BootstrapMachine",
        cluster_id,
        "done",
        request.request_id,
    )
    wiring.audit(tenant, audit)
    body = {
        "client_id": given.client_id,
        "client_secret": given.client_secret,
        "token_url": given.token_url,
        "endpoint": given.endpoint,
    }
    return Answer(200, body, subject=cluster_id, audited=True)


@door.route(
    "GET",
    "/v1/clusters/{id}/agent",
    summary="The manifest that installs a cluster's agent",
    action="GetAgent",
    machine=True,
    answers={200: "machines:AgentManifest"},
    description="Only by the cluster's own client. The Secret with that client's credentials is made by the installer.",
)
def agent(request: Request) -> Answer:
    """The objects in the order in which they have to be made."""
    from agent import manifest

    services = wiring.services(request.caller.tenant)
    cluster = _own(services, request, "it needs no agent")
    told = manifest.Settings(services.rules.api_url, cluster.id, services.rules.token_url)
    body = {"apiVersion": "v1", "kind": "List", "items": manifest.documents(told)}
    return Answer(200, body, subject=cluster.id)


@door.route(
    "POST",
    "/v1/clusters/{id}/observations",
    summary="A cluster's agent says what it sees",
    action="PostObservations",
    machine=True,
    body="observations:Observation",
    answers={200: "observations:ObservationAnswer"},
    audited=False,
    large=True,
    description="Only by the cluster's own client. The answer carries commands until their results are known.",
)
def observations(request: Request) -> Answer:
    """Keep what is new, answer with what is to be done."""
    from stockyard.operations.observe_cluster import observe

    services = wiring.services(request.caller.tenant)
    cluster = _own(services, request, "its agent has nothing to say")
    seen = request.body.model_dump()
    asked = observe(services, wiring.registry().in_hand, wiring.page_key(), cluster, seen)
    commands = [command.document() for command in asked.commands]
    return Answer(200, {"commands": commands, "interval_seconds": asked.interval_seconds}, subject=cluster.id)


@door.route(
    "POST",
    "/v1/node-claims/{id}/join",
    summary="A claim's machine asks how to join its cluster",
    action="JoinMachine",
    token=False,
    body="observations:JoinProof",
    answers={200: "observations:JoinAnswer"},
    description="By a presigned sts:GetCallerIdentity request of the claim's instance. 409 until the token is made.",
)
def join(request: Request) -> Answer:
    """The recorded machine gets its own token, nobody else gets anything."""
    from stockyard.operations.join_machine import join_machine

    claim_id, proof = request.params["id"], request.body.model_dump()
    tenant = wiring.registry().tenant_of(Cluster, proof.pop("cluster_id"))
    if tenant is None or not ids.is_id(claim_id):
        raise NotFound("There is no claim of that id that waits for its machine.")
    services = wiring.services(tenant)
    given = join_machine(services, wiring.page_key(), claim_id, proof)
    actor = f"node:{given.node_name}"
    audit = AuditRecord(
        services.new_id(ids.AUDIT), services.now(), actor, "JoinMachine", claim_id, "done", request.request_id
    )
    wiring.audit(tenant, audit)
    body = {
        "endpoint": given.endpoint,
        "token": given.token,
        "ca_hash": given.ca_hash,
        "node_name": given.node_name,
        "labels": given.labels,
        "taints": given.taints,
        "kubelet_args": given.kubelet_args,
    }
    return Answer(200, body, subject=claim_id, audited=True)
