"""Warning that a cluster's own cloud account has no node provider: nothing gives nodes to its pools."""

from __future__ import annotations

from collections.abc import Mapping

from stockyard.domain.records import Cluster, NodeProvider
from stockyard.operations.cloud_accounts.of_provider import account_number
from stockyard.operations.services import Services


def missing_provider(services: Services, cluster: Cluster | None, providers: Mapping[str, NodeProvider]) -> str:
    """A sentence with the command that registers a provider of the cluster's account; empty where one of
    ``providers`` is, and for clusters whose nodes come from groups alone."""
    driver = services.cluster_drivers.get(cluster.driver) if cluster is not None else None
    if cluster is None or driver is None or driver.provider_example is None:
        return ""
    number = str(cluster.cloud_account_id)
    if any(account_number(services, provider) == number for provider in providers.values()):
        return ""
    return f"No provider of this account: stockyard provider create -f {driver.provider_example}."
