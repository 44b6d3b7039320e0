"""A control plane's report: repeatable until the cluster is ready, and then the first one stays."""

from __future__ import annotations

from typing import Any

from stockyard.domain.records import Cluster, Fact
from stockyard.operations import cluster_secrets
from stockyard.operations.await_report import report_ready


def kept(world: Any, cluster: Cluster) -> tuple[str | None, str | None]:
    """Kubeconfig and certificate authority."""
    secrets = world.services.secrets
    return tuple(secrets.get(cluster_secrets.name(world.services, cluster, one)) for one in ("kubeconfig", "ca"))


def test_a_report_is_repeatable_until_the_cluster_is_ready(world: Any) -> None:
    cluster = world.create()
    report_ready(world.services, cluster, "first", "Q0E=")
    report_ready(world.services, cluster, "again", "Q0Ey")
    assert kept(world, cluster) == ("again", "Q0Ey")
    assert world.services.store.get(Fact, f"{cluster.id}/reported_ready")


def test_a_report_for_a_cluster_that_is_ready_changes_nothing(world: Any) -> None:
    cluster = world.create()
    world.drive(cluster, "provision_cluster")
    ready, before = world.cluster(cluster), kept(world, cluster)
    fact = world.services.store.get(Fact, f"{cluster.id}/reported_ready")
    assert ready.status == "ready"
    world.clock.advance(60)
    report_ready(world.services, ready, "another", "b3RoZXI=")
    assert kept(world, cluster) == before
    assert world.services.store.get(Fact, f"{cluster.id}/reported_ready") == fact
