"""Objects that the owner of a host applies, so that Stockyard may work in some of its namespaces and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from stockyard.providers.clouds.kubernetes.features import FEATURES, kinds_of, reads_of

NAME = "stockyard"
"""Name of the service account, its roles and its quotas."""
ALLOW_LIST = "stockyard-allowed"
"""Name of the object with the allow-list of a site's connector."""
_RBAC = "rbac.authorization.k8s.io"


def documents(namespaces: Sequence[str], features: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The objects in an order in which they can be applied: namespaces, the service account in the first of them, in
    each a Role, its RoleBinding and a ResourceQuota; and a ClusterRole with its binding where the whole host is looked
    at."""
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
    yield from _reads(home, features)


def _reads(home: str, features: Sequence[str]) -> Iterator[dict[str, Any]]:
    reads = reads_of(features)
    if not reads:
        return
    name = f"{NAME}-{home}"
    rules = [{"apiGroups": [each.group], "resources": [each.resource], "verbs": [each.verb]} for each in reads]
    about = {"apiVersion": f"{_RBAC}/v1", "metadata": {"name": name}}
    yield {**about, "kind": "ClusterRole", "rules": rules}
    yield {
        **about,
        "kind": "ClusterRoleBinding",
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": home}],
    }


def allow_list(namespaces: Sequence[str], features: Sequence[str]) -> list[str]:
    """Lines of the allow-list of a site's connector, for a host that is reached through it: what the Role grants, what
    the server serves, and the question which rights there are. A line is methods, and a path with its query's keys."""
    kinds = kinds_of(features)
    versions = dict.fromkeys(kind.api_version for kind in kinds)
    lines = [f"GET {_root(version)}" for version in versions]
    lines.append("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
    for namespace in namespaces:
        for kind in kinds:
            objects = f"{_root(kind.api_version)}/namespaces/{namespace}/{kind.resource}"
            lines += [
                f"GET {objects}?limit,labelSelector,continue",
                f"GET{',DELETE' if 'delete' in kind.verbs else ''} {objects}/*",
            ]
            lines += [f"PATCH {objects}/*?fieldManager,force,dryRun"] if "patch" in kind.verbs else []
    lines += [f"GET /api/v1/{read.resource}?limit,continue,fieldSelector" for read in reads_of(features)]
    return lines


def site_document(namespaces: Sequence[str], features: Sequence[str]) -> dict[str, Any]:
    """The allow-list as an object beside the connector, which reads it as a file."""
    text = "\n".join(allow_list(namespaces, features)) + "\n"
    meta = {"name": ALLOW_LIST, "namespace": namespaces[0]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"allowed": text}}


def _root(api_version: str) -> str:
    return f"/{'apis' if '/' in api_version else 'api'}/{api_version}"


def _rules(features: Sequence[str]) -> Iterator[dict[str, Any]]:
    for kind in kinds_of(features):
        yield {"apiGroups": [kind.group], "resources": [kind.resource], "verbs": list(kind.verbs)}
