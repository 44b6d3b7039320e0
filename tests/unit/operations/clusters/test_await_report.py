"""A control plane may repeat its report until the cluster is ready; after that a report changes nothing.

People trust the kubeconfig and the authority that they get from it, so it counts only after a machine has proven
itself, and only for the endpoint that Stockyard made.
"""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from typing import Any

import pytest

from stockyard.domain.records import Cluster, Fact
from stockyard.domain.values import times
from stockyard.errors import Forbidden, InvalidInput, Unauthorized
from stockyard.operations import cluster_secrets
from stockyard.operations.clusters.await_report import report_ready
from tests.harness.crash.machine_report import certificate, machine_report


def stored_secrets(world: Any, cluster: Cluster) -> tuple[str | None, str | None]:
    """The stored kubeconfig and certificate authority of the cluster."""
    secrets = world.services.secrets
    return tuple(secrets.get(cluster_secrets.name(world.services, cluster, secret)) for secret in ("kubeconfig", "ca"))


def with_endpoint(world: Any) -> Cluster:
    """A cluster whose load balancer is made."""
    cluster = world.create()
    world.drive(cluster, "provision_cluster", report=False)
    current = world.cluster(cluster)
    assert current.endpoint
    return current


def test_report_replaces_earlier_one_until_cluster_is_ready(world: Any) -> None:
    cluster = with_endpoint(world)
    world.report(cluster, "Q0E=")
    again = world.report(cluster, "Q0Ey")
    assert stored_secrets(world, cluster) == (again["kubeconfig"], "Q0Ey")
    assert world.services.store.get(Fact, f"{cluster.id}/reported_ready")


def test_report_for_ready_cluster_changes_nothing(world: Any) -> None:
    cluster = world.create()
    world.drive(cluster, "provision_cluster")
    ready, before = world.cluster(cluster), stored_secrets(world, cluster)
    fact = world.services.store.get(Fact, f"{cluster.id}/reported_ready")
    assert ready.status == "ready"
    world.clock.advance(60)
    report_ready(world.services, ready, "another", "b3RoZXI=")
    assert stored_secrets(world, cluster) == before
    assert world.services.store.get(Fact, f"{cluster.id}/reported_ready") == fact


def test_report_before_a_machine_has_proven_itself_is_refused(world: Any) -> None:
    cluster = with_endpoint(world)
    with pytest.raises(Forbidden, match="has proven itself"):
        report_ready(world.services, cluster, **machine_report(cluster.endpoint))
    assert stored_secrets(world, cluster) == (None, None)
    assert world.services.store.get(Fact, f"{cluster.id}/reported_ready") is None


@pytest.mark.parametrize(
    "foreign",
    [
        {"kubeconfig": machine_report("https://evil.example:6443")["kubeconfig"], "certificate_authority": "Q0E="},
        {**machine_report("https://evil.example:6443")},
        {"certificate_authority": "b3RoZXI="},
    ],
    ids=["endpoint of a stranger", "report of a stranger", "authority of a stranger"],
)
def test_report_of_another_endpoint_or_authority_is_refused(world: Any, foreign: dict[str, str]) -> None:
    cluster = with_endpoint(world)
    before = world.report(cluster)
    with pytest.raises(InvalidInput) as refused:
        report_ready(world.services, cluster, **{**machine_report(cluster.endpoint), **foreign})
    assert [problem.pointer for problem in refused.value.errors] == ["/kubeconfig"]
    assert stored_secrets(world, cluster) == (before["kubeconfig"], before["certificate_authority"])


def certified(world: Any, cluster: Cluster, days: int, authority: str = "Q0E=") -> dict[str, str]:
    """A report whose user has a certificate that ends after so many days."""
    report = machine_report(cluster.endpoint, authority)
    document = json.loads(report["kubeconfig"])
    pem = certificate(world.clock.now() + timedelta(days=days))
    document["users"][0]["user"] = {"client-certificate-data": base64.b64encode(pem).decode()}
    return {**report, "kubeconfig": json.dumps(document)}


def ready_cluster(world: Any) -> Cluster:
    cluster = world.create()
    world.drive(cluster, "provision_cluster")
    ready: Cluster = world.cluster(cluster)
    assert ready.status == "ready"
    return ready


def test_the_recorded_machine_may_renew_the_kubeconfig_of_a_ready_cluster(world: Any) -> None:
    ready = ready_cluster(world)
    authority = stored_secrets(world, ready)[1] or ""
    report = certified(world, ready, 365, authority)
    report_ready(world.services, ready, **report, proof=world.proof(ready))
    assert stored_secrets(world, ready) == (report["kubeconfig"], authority)
    ends = (world.clock.now() + timedelta(days=365)).replace(microsecond=0)
    assert world.cluster(ready).certificates_expire_at == times.to_text(ends)


@pytest.mark.parametrize("fault", ["machine", "authority", "certificate"])
def test_no_other_report_changes_a_ready_cluster(world: Any, fault: str) -> None:
    ready = ready_cluster(world)
    before = stored_secrets(world, ready)
    report = certified(world, ready, 365, "b3RoZXI=" if fault == "authority" else before[1] or "")
    if fault == "certificate":
        document = json.loads(report["kubeconfig"])
        document["users"][0]["user"]["client-certificate-data"] = base64.b64encode(b"no certificate").decode()
        report["kubeconfig"] = json.dumps(document)
    proof = world.proof(ready, "i-other") if fault == "machine" else world.proof(ready)
    with pytest.raises((InvalidInput, Unauthorized)):
        report_ready(world.services, ready, **report, proof=proof)
    assert stored_secrets(world, ready) == before
    assert world.cluster(ready).certificates_expire_at is None
