"""The meeting of the waiting workflow and the machine's report: whichever comes first leaves word for the other."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from stockyard.domain.clusters import kubeconfigs
from stockyard.domain.records import Cluster, Fact
from stockyard.errors import Conflict, Fenced, Forbidden, InvalidInput, StoreUnavailable
from stockyard.lifecycle.clusters.cluster import MOVES
from stockyard.lifecycle.phases import CREATE_CLUSTER
from stockyard.lifecycle.procedure import Phase
from stockyard.operations import cluster_secrets
from stockyard.operations.engine.advance import TRIES, Fence, advance, load
from stockyard.operations.engine.step import Step
from stockyard.operations.machines.bootstrap import recorded_machine
from stockyard.operations.services import Services
from stockyard.ports import Put, Replace

PHASE = "report"
AUTHORITY = "authority"
"""The fact that keeps the digest of the certificate authority: who takes a report may seal secrets and open none."""


def await_report(services: Services, fence: Fence[Cluster], task_token: str) -> Step:
    """Store the task token, then look at the fact again: whichever came second wakes the workflow."""
    cluster = advance(services, fence, lambda c, o: MOVES.begin_phase(c, o, _row(services, c), services.now()))
    if load(services, fence)[1].status != "running":
        raise Fenced("The operation is over.")
    services.store.commit(Put(Fact(f"{cluster.id}/task_token", task_token, services.now())))
    wake(services, cluster)
    return Step(True, 0)


def report_ready(
    services: Services,
    cluster: Cluster,
    kubeconfig: str,
    certificate_authority: str,
    proof: Mapping[str, Any] | None = None,
) -> None:
    """Keep what the control plane sent, write the fact, wake the workflow if it waits. Repeatable.

    Once the cluster is ready people trust what they get from it: then a kubeconfig is only taken from the recorded
    machine, with its ``proof``, for the same authority; any other report changes nothing. Before, ``Forbidden`` until
    a machine has proven itself, and ``InvalidInput`` for the kubeconfig of another endpoint or authority.
    """
    if cluster.status == "ready" and proof is None:
        return
    if services.store.get(Fact, f"{cluster.id}/bootstrapped") is None:
        raise Forbidden("No machine of the cluster has proven itself yet.")
    expiry = _checked(cluster, kubeconfig, certificate_authority)
    if cluster.status == "ready" and proof is not None:
        recorded_machine(services, cluster, proof)
        renew_kubeconfig(services, cluster, kubeconfig, certificate_authority)
        return
    services.secrets.put(cluster_secrets.name(services, cluster, "kubeconfig"), kubeconfig)
    services.secrets.put(cluster_secrets.name(services, cluster, "ca"), certificate_authority)
    now = services.now()
    services.store.commit(
        Put(Fact(f"{cluster.id}/{AUTHORITY}", _digest(certificate_authority), now)),
        Put(Fact(f"{cluster.id}/reported_ready", cluster.instance_id or "unknown", now)),
    )
    _remember_expiry(services, cluster, expiry)
    wake(services, services.store.get(Cluster, cluster.id) or cluster)


def renew_kubeconfig(services: Services, cluster: Cluster, kubeconfig: str, certificate_authority: str) -> None:
    """Take a kubeconfig of a machine of the control plane that has proven itself, for the authority that the cluster
    has. ``InvalidInput`` for one of another endpoint or authority."""
    expiry = _checked(cluster, kubeconfig, certificate_authority)
    known_authority = services.store.get(Fact, f"{cluster.id}/{AUTHORITY}")
    if known_authority is None or known_authority.value != _digest(certificate_authority):
        raise InvalidInput.at("/certificate_authority", "must be the one that the cluster has")
    services.secrets.put(cluster_secrets.name(services, cluster, "kubeconfig"), kubeconfig)
    _remember_expiry(services, cluster, expiry)


def _checked(cluster: Cluster, kubeconfig: str, certificate_authority: str) -> str | None:
    """Moment when the kubeconfig ends. ``InvalidInput`` for one of another endpoint or authority."""
    fields = kubeconfigs.check(kubeconfig)
    if (fields.get("server"), fields.get("certificate-authority-data")) != (cluster.endpoint, certificate_authority):
        raise InvalidInput.at("/kubeconfig", "must name the cluster's endpoint and its certificate authority")
    try:
        return kubeconfigs.expires_at(fields)
    except ValueError:
        raise InvalidInput.at("/kubeconfig", "must hold a certificate as PEM in base 64") from None


def _digest(authority: str) -> str:
    return hashlib.sha256(authority.encode()).hexdigest()


def _remember_expiry(services: Services, cluster: Cluster, expiry: str | None) -> None:
    """Write it on the record, whatever else changes that just now."""
    for _ in range(TRIES):
        current = services.store.get(Cluster, cluster.id)
        if current is None or current.certificates_expire_at == expiry:
            return
        changed = replace(current, certificates_expire_at=expiry, version=current.version + 1)
        with suppress(Conflict):
            services.store.commit(Replace(changed))
            return
    raise StoreUnavailable("The cluster's record changes too often just now.")


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
