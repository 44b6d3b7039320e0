"""A control plane may repeat its report until the cluster is ready; after that a report changes nothing."""

from __future__ import annotations

from typing import Any

from stockyard.domain.records import Cluster, Fact
from stockyard.operations.clusters import secrets as cluster_secrets
from stockyard.operations.clusters.await_report import report_ready


def stored_secrets(world: Any, cluster: Cluster) -> tuple[str | None, str | None]:
    """The stored kubeconfig and certificate authority of the cluster."""
    secrets = world.services.secrets
    return tuple(secrets.get(cluster_secrets.name(world.services, cluster, secret)) for secret in ("kubeconfig", "ca"))


def test_report_replaces_earlier_one_until_cluster_is_ready(world: Any) -> None:
    cluster = world.create()
    report_ready(world.services, cluster, "first", "Q0E=")
    report_ready(world.services, cluster, "again", "Q0Ey")
    assert stored_secrets(world, cluster) == ("again", "Q0Ey")
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
