"""Message to a cluster's vdeployer: the published body of ``POST /deploy``, and nothing else."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

from stockyard.domain.records import Cluster, Fact
from stockyard.operations.services import Services
from stockyard.ports import Put

ORGANIZATION = "tenant/organization"
"""The tenant's fact of its organization's id in the realm, as a person's token has said it."""
JUPYTERHUB = "jupyterhub"


def remember_organization(services: Services, organization_id: str) -> None:
    """Keep what the caller's token says; who has no such token (a machine, an event, the platform) is served by it."""
    fact = services.store.get(Fact, ORGANIZATION) if organization_id else None
    if organization_id and (fact is None or fact.value != organization_id):
        services.store.commit(Put(Fact(ORGANIZATION, organization_id, services.now())))


def deploy_settings(services: Services, cluster: Cluster) -> dict[str, Any]:
    """The ``settings`` of the body. Before any person's token has told the organization's id its alias stands for it.

    The two secrets that vdeployer needs besides are derived from the client's own: they are the same in every try,
    nobody but those who have that one can make them, and nothing is stored.
    """
    secret = services.identity.client_secret(cluster.client_id)
    fact = services.store.get(Fact, ORGANIZATION)
    settings = {
        **cluster.settings,
        "provider": cluster.provider,
        "cluster_name": cluster.name,
        "keycloak_client_id": cluster.client_id,
        "keycloak_client_secret": secret,
        "keycloak_organization_id": fact.value if fact else services.tenant,
        "sssd_binder_password": _derived(secret, "sssd binder"),
        "vantage_url": services.settings.api_url,
    }
    if JUPYTERHUB in cluster.settings.get("integrations", ()):
        settings["jupyterhub_service_token"] = _derived(secret, "jupyterhub service")
    return settings


def _derived(secret: str, purpose: str) -> str:
    digest = hmac.new(secret.encode(), purpose.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
