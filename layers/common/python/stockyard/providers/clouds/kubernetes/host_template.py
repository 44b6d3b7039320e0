"""Objects that the owner of a host applies, so that Stockyard may work in some of its namespaces and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from stockyard.providers.clouds.kubernetes.features import FEATURES, kinds_of

NAME = "stockyard"
"""Name of the service account, its roles and its quotas."""
_RBAC = "rbac.authorization.k8s.io"


def documents(namespaces: Sequence[str], features: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The objects in an order in which they can be applied: namespaces, the service account in the first of them, and
    in each a Role, its RoleBinding and a ResourceQuota."""
    for namespace in namespaces:
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    home = namespaces[0]
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": home}}
    for namespace in namespaces:
        meta = {"name": NAME, "namespace": namespace}
        yield {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": meta, "rules": list(_rules(features))}
        yield {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": NAME},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": home}],
        }
        hard = {key: value for name in features for key, value in FEATURES[name].quota.items()}
        yield {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": hard}}


def _rules(features: Sequence[str]) -> Iterator[dict[str, Any]]:
    for kind in kinds_of(features):
        yield {"apiGroups": [kind.group], "resources": [kind.resource], "verbs": list(kind.verbs)}
