"""The kubeconfig of a cluster: with an ``exec`` user for people, the stored one for admins, or one in a Secret with a
token of the cloud."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any

from stockyard.domain.records import Cluster
from stockyard.domain.values import ids, times
from stockyard.errors import IllegalTransition, NotFound
from stockyard.operations import cluster_secrets
from stockyard.operations.clusters.access import tokens
from stockyard.operations.clusters.kept_secrets import minter
from stockyard.operations.services import Services
from stockyard.ports.clusters import ClusterToken

CREDENTIAL_VERSION = "client.authentication.k8s.io/v1"
EXPIRY = "stockyard.dev/expires-at"
"""The annotation of a Secret that says when the token in it ends."""
SECRET_KEY = "kubeconfig"  # noqa: S105 - the name of an entry


def exec_kubeconfig(services: Services, cluster: Cluster) -> dict[str, Any]:
    """A kubeconfig whose user asks the command line for a token: one of the realm for this cluster, or one that the
    cloud admits. Holds no secret."""
    if minter(services, cluster) is not None:
        endpoint, authority = tokens.require_endpoint(cluster)
        return _kubeconfig(cluster, endpoint, authority, _exec_user(["token", "--cluster", cluster.id]))
    certificate = services.secrets.get(cluster_secrets.name(services, cluster, "ca"))
    if cluster.status != "ready" or certificate is None or cluster.endpoint is None:
        raise IllegalTransition(f"The cluster is {cluster.status}; it has a kubeconfig while it is ready.")
    login = ["token", "--issuer", services.settings.issuer, "--client-id", ids.login_client(cluster.client_id)]
    return _kubeconfig(cluster, cluster.endpoint, certificate, _exec_user(login))


def static_kubeconfig(services: Services, cluster: Cluster) -> str:
    """The kubeconfig that the control plane sent, YAML text with a client certificate. ``NotFound`` before that, and
    for a cluster that the cloud admits people to."""
    if minter(services, cluster) is not None:
        raise NotFound(
            "No kubeconfig of this cluster is stored: ask for one without static (--static), or for a Secret with one"
            " (form=secret, --secret)."
        )
    text = services.secrets.get(cluster_secrets.name(services, cluster, "kubeconfig"))
    if text is None:
        raise NotFound("The cluster has not sent a kubeconfig yet.")
    return text


def kubeconfig_secret(services: Services, cluster: Cluster, role: str, actor: str) -> dict[str, Any]:
    """A Secret with a kubeconfig whose token was made for this answer; it is kept nowhere. In the namespace of the
    cluster's manifest, if it has one. Raises as ``tokens.mint``."""
    token = tokens.mint(services, cluster, role, actor)
    endpoint, authority = tokens.require_endpoint(cluster)
    text = json.dumps(_kubeconfig(cluster, endpoint, authority, {"token": token.token}))  # JSON is YAML
    namespace = str(cluster.settings.get("namespace") or "")
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": tokens.require_minter(services, cluster).secret_name(cluster),
            **({"namespace": namespace} if namespace else {}),
            "annotations": {EXPIRY: times.to_text(token.expires_at)},
        },
        "type": "Opaque",
        "data": {SECRET_KEY: base64.b64encode(text.encode()).decode()},
    }


def exec_credential(token: ClusterToken) -> dict[str, Any]:
    """Credential that ``kubectl`` takes from an ``exec`` user."""
    ends_at = token.expires_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # as Kubernetes writes times
    status = {"token": token.token, "expirationTimestamp": ends_at}
    return {"apiVersion": CREDENTIAL_VERSION, "kind": "ExecCredential", "status": status}


def _exec_user(arguments: Sequence[str]) -> dict[str, Any]:
    return {
        "exec": {
            "apiVersion": CREDENTIAL_VERSION,
            "command": "stockyard",
            "args": list(arguments),
            "interactiveMode": "IfAvailable",
            "provideClusterInfo": False,
        }
    }


def _kubeconfig(cluster: Cluster, endpoint: str, authority: str, user: Mapping[str, Any]) -> dict[str, Any]:
    name = cluster.name
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": endpoint, "certificate-authority-data": authority}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
        "users": [{"name": name, "user": dict(user)}],
    }
