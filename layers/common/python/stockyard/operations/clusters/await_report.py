"""The meeting of the waiting workflow and the machine's report: whichever comes first leaves word for the other."""

from __future__ import annotations

from stockyard.domain import kubeconfigs
from stockyard.domain.records import Cluster, Fact
from stockyard.errors import Fenced, Forbidden, InvalidInput
from stockyard.lifecycle.cluster import MOVES
from stockyard.lifecycle.phases import CREATE_CLUSTER, Phase
from stockyard.operations.clusters import secrets as cluster_secrets
from stockyard.operations.engine.advance import Fence, advance, load
from stockyard.operations.engine.step import Step
from stockyard.operations.services import Services
from stockyard.ports import Put

PHASE = "report"


def await_report(services: Services, fence: Fence[Cluster], task_token: str) -> Step:
    """Store the task token, then look at the fact again: whichever came second wakes the workflow."""
    cluster = advance(services, fence, lambda c, o: MOVES.begin_phase(c, o, _row(services, c), services.now()))
    if load(services, fence)[1].status != "running":
        raise Fenced("The operation is over.")
    services.store.commit(Put(Fact(f"{cluster.id}/task_token", task_token, services.now())))
    wake(services, cluster)
    return Step(True, 0)


def report_ready(services: Services, cluster: Cluster, kubeconfig: str, certificate_authority: str) -> None:
    """Keep what the control plane sent, write the fact, wake the workflow if it waits. Repeatable.

    Once the cluster is ready nothing is changed any more: people trust what they get from it. Before, ``Forbidden``
    until a machine has proven itself, and ``InvalidInput`` for the kubeconfig of another endpoint or authority.
    """
    if cluster.status == "ready":
        return
    if services.store.get(Fact, f"{cluster.id}/bootstrapped") is None:
        raise Forbidden("No machine of the cluster has proven itself yet.")
    api = kubeconfigs.check(kubeconfig)
    if (api.get("server"), api.get("certificate-authority-data")) != (cluster.endpoint, certificate_authority):
        raise InvalidInput.at("/kubeconfig", "must name the cluster's endpoint and its certificate authority")
    services.secrets.put(cluster_secrets.name(services, cluster, "kubeconfig"), kubeconfig)
    services.secrets.put(cluster_secrets.name(services, cluster, "ca"), certificate_authority)
    fact = Fact(f"{cluster.id}/reported_ready", cluster.instance_id or "unknown", services.now())
    services.store.commit(Put(fact))
    wake(services, cluster)


def wake(services: Services, cluster: Cluster) -> bool:
    """End the waiting phase when both the report and the token are there. A token that is gone is no error."""
    report = services.store.get(Fact, f"{cluster.id}/reported_ready")
    token = services.store.get(Fact, f"{cluster.id}/task_token")
    if report is None or token is None or cluster.operation_id is None:
        return False
    fence = Fence.of(cluster)
    if cluster.status == "preparing":
        text = "The control plane has reported."
        try:
            advance(services, fence, lambda c, o: MOVES.end_phase(c, o, _row(services, c), text, services.now()))
        except Fenced:
            return False
    return services.workflows.succeed(token.value, {"done": True})


def _row(services: Services, cluster: Cluster) -> Phase:
    return services.procedure(CREATE_CLUSTER, cluster.driver).phase(PHASE)
