"""The phase that hands a cluster to its vdeployer, where the stage configures one."""

from __future__ import annotations

from typing import Any

from stockyard.domain.records import Cluster
from stockyard.operations.engine.advance import Fence
from stockyard.operations.services import Services
from stockyard.ports import Outcome


def deploy(services: Services, cluster: Cluster, _: Fence[Cluster]) -> Outcome:
    """POST /deploy with the settings of the reference. Skipped when the stage has no vdeployer."""
    if not services.deployer.configured:
        return Outcome(True, "This stage has no vdeployer.", facts={"skipped": "true"})
    settings: dict[str, Any] = {
        **cluster.settings,
        "provider": cluster.provider,
        "cluster_name": cluster.name,
        "keycloak_client_id": cluster.client_id,
        "keycloak_client_secret": services.identity.client_secret(cluster.client_id),
        "keycloak_organization_id": services.tenant,
        "vantage_url": services.settings.api_url,
    }
    services.deployer.deploy(cluster.client_id, settings, services.identity.service_token())
    return Outcome(True, "vdeployer has taken over.")
