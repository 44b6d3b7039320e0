"""The account that applies packs of cluster profiles: what it is, and how its tokens are had.

It may do everything in the cluster, since packs bring roles, and an API server lets nobody give rights away that they
have not. So it is there only where a cluster has a profile, no pod runs as it, and its tokens end within minutes. The
cluster's agent has none of these rights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from stockyard.providers.kubernetes.client import KubernetesApi

NAMESPACE, ACCOUNT = "stockyard-packs", "stockyard-packs"
BINDING = "stockyard-packs"
TOKEN_SECONDS = 600
"""The least that Kubernetes gives."""


def documents() -> Iterator[dict[str, Any]]:
    """The account and its rights, in a namespace of its own, in which nobody else has to be let."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    yield {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": ACCOUNT, "namespace": NAMESPACE},
        "automountServiceAccountToken": False,
    }
    yield {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": BINDING},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
    }


def account_api(admin: KubernetesApi, connect: Callable[[Callable[[], str]], KubernetesApi]) -> KubernetesApi:
    """The API as the account, which is made by ``admin`` where it is missing. ``connect`` makes a client of a token."""
    try:
        for document in documents():
            admin.apply(document)
        token = admin.account_token(NAMESPACE, ACCOUNT, TOKEN_SECONDS)
    finally:
        admin.close()
    return connect(lambda: token)


def forget(admin: KubernetesApi) -> None:
    """Remove the rights, then the account."""
    try:
        admin.delete("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", BINDING)
        admin.delete("v1", "Namespace", NAMESPACE)
    finally:
        admin.close()
