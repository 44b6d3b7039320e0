"""What a cluster's own machines say: prove who they are, report ready."""

from __future__ import annotations

from stockyard import wiring
from stockyard.domain import ids
from stockyard.domain.records import AuditRecord, Cluster
from stockyard.edge.contract import Answer, Request
from stockyard.edge.route import Door
from stockyard.errors import IllegalTransition, NotFound
from stockyard.operations.advance import find

door = Door("machines", audit=lambda caller, record: wiring.audit(caller.tenant, record))


@door.route(
    "POST",
    "/v1/clusters/{id}/ready",
    summary="A control plane reports ready",
    action="ReportReady",
    machine=True,
    body="machines:ReadyReport",
    answers={202: "machines:Accepted"},
    description="Only by the cluster's own client. Repeatable.",
)
def ready(request: Request) -> Answer:
    """Keep kubeconfig and CA, write the fact, wake the workflow."""
    from stockyard.operations.await_report import report_ready

    services = wiring.services(request.caller.tenant)
    cluster = find(services, request.params["id"])
    if cluster.client_id != request.caller.client_id:
        raise NotFound(f"There is no cluster {request.params['id']}.")
    if cluster.status not in ("preparing", "ready"):
        raise IllegalTransition(f"The cluster is {cluster.status}; it waits for no report.")
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
