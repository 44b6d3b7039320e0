"""The kubeconfig of a cluster: with an ``exec`` user for people, or the stored one for admins."""

from __future__ import annotations

from typing import Any

from stockyard.domain import ids
from stockyard.domain.records import Cluster
from stockyard.errors import IllegalTransition, NotFound
from stockyard.operations.clusters import secrets as cluster_secrets
from stockyard.operations.services import Services


def exec_kubeconfig(services: Services, cluster: Cluster) -> dict[str, Any]:
    """A kubeconfig whose user asks the command line for a token of the realm for this cluster. Holds no secret."""
    certificate = services.secrets.get(cluster_secrets.name(services, cluster, "ca"))
    if cluster.status != "ready" or certificate is None or cluster.endpoint is None:
        raise IllegalTransition(f"The cluster is {cluster.status}; it has no kubeconfig yet.")
    issuer = services.settings.issuer
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": cluster.name,
                "cluster": {"server": cluster.endpoint, "certificate-authority-data": certificate},
            }
        ],
        "contexts": [{"name": cluster.name, "context": {"cluster": cluster.name, "user": cluster.name}}],
        "current-context": cluster.name,
        "users": [
            {
                "name": cluster.name,
                "user": {
                    "exec": {
                        "apiVersion": "client.authentication.k8s.io/v1",
                        "command": "stockyard",
                        "args": ["token", "--issuer", issuer, "--client-id", ids.login_client(cluster.client_id)],
                        "interactiveMode": "IfAvailable",
                        "provideClusterInfo": False,
                    }
                },
            }
        ],
    }


def static_kubeconfig(services: Services, cluster: Cluster) -> str:
    """The kubeconfig that the control plane sent, YAML text with a client certificate. ``NotFound`` before that."""
    text = services.secrets.get(cluster_secrets.name(services, cluster, "kubeconfig"))
    if text is None:
        raise NotFound("The cluster has not sent a kubeconfig yet.")
    return text
