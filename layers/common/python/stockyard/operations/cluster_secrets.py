"""Places of a cluster's secrets in Secrets Manager."""

from __future__ import annotations

from stockyard.domain.records import Cluster
from stockyard.operations.services import Services


def name(services: Services, cluster: Cluster | str, suffix: str = "") -> str:
    """``{tenant}/{cluster id}/{what}``; without ``suffix`` the prefix of all of them."""
    cluster_id = cluster if isinstance(cluster, str) else cluster.id
    return f"{services.tenant}/{cluster_id}/{suffix}"


def delete_all(services: Services, cluster: Cluster | str) -> None:
    """Delete every secret of a cluster."""
    for secret_name in services.secrets.names(name(services, cluster)):
        services.secrets.delete(secret_name)
