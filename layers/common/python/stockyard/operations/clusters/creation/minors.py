"""Minors of Kubernetes that the project has stopped to mend: refused for new clusters, with a way out for others."""

from __future__ import annotations

from collections.abc import Iterator

from stockyard import kubernetes_versions
from stockyard.domain import cloud_kinds
from stockyard.domain.clusters.kubernetes_minors import following
from stockyard.domain.records import Cluster
from stockyard.domain.values.notes import remark
from stockyard.errors import InvalidInput
from stockyard.lifecycle.clusters.cluster_changes import VERSION
from stockyard.operations.services import Services


def end_day(cluster: Cluster) -> str:
    """The day on which the cluster's minor ended; empty before, and where the cloud runs the control planes: such a
    cloud has rules of its own."""
    tested = kubernetes_versions.TESTED.get(cluster.kubernetes_version)
    return "" if tested is None or cloud_kinds.default_version(cluster.driver) else tested.end_day


def check_new_minor(services: Services, draft: Cluster) -> None:
    """Raises ``InvalidInput`` for a minor that only clusters may have which are there."""
    if (day := end_day(draft)) and not services.settings.ended_minors:
        minors, minor = " or ".join(kubernetes_versions.NEW), draft.kubernetes_version
        text = f"must be {minors}: only clusters that have {minor} keep it, which has had no fixes since {day}"
        raise InvalidInput.at("/kubernetes_version", text)


def needed_upgrade(cluster: Cluster) -> Iterator[dict[str, str]]:
    """A remark with the upgrade that the cluster needs; none where its minor is mended."""
    if day := end_day(cluster):
        text = f"Kubernetes {cluster.kubernetes_version} has had no fixes since {day}; the way out is an upgrade to"
        yield remark(VERSION, f"{text} {following(cluster.kubernetes_version)}.")
