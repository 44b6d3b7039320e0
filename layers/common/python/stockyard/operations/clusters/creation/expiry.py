"""Check of the moment at which a cluster's deletion is to begin by itself."""

from __future__ import annotations

from stockyard.domain.clusters.change import ClusterChange
from stockyard.domain.records import Cluster
from stockyard.domain.values import times
from stockyard.errors import InvalidInput
from stockyard.operations.services import Services


def check_expiry(services: Services, expires_at: str | None) -> None:
    """``InvalidInput`` for a time that is over: a slip must not delete a cluster at once."""
    if expires_at is not None and times.from_text(expires_at) <= services.clock.now():
        raise InvalidInput.at("/expires_at", "must be later than now; to delete a cluster now, delete it")


def check_expiry_change(services: Services, cluster: Cluster, change: ClusterChange) -> None:
    """The same of a change: the time that the cluster has may stay, even when it is over."""
    if change.expiry is not None and change.expiry.at != cluster.expires_at:
        check_expiry(services, change.expiry.at)
