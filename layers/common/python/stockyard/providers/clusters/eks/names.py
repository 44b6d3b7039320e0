"""Names of the parts of a cluster on EKS."""

from __future__ import annotations

from stockyard.domain.records import Cluster
from stockyard.providers.clouds.aws.resources.child_names import (
    LONGEST,
    LONGEST_ROLE,
    child_name,
    cluster_name,
    node_group_name,
    role_name,
)

__all__ = [
    "LONGEST",
    "LONGEST_ROLE",
    "child_name",
    "cluster_name",
    "node_group_name",
    "part",
    "role_name",
    "secret_name",
    "stem",
]


def stem(cluster: Cluster) -> str:
    """Beginning of the names of a cluster's parts: its own name where a manifest has made it."""
    return cluster.name if cluster.settings.get("namespace") else cluster.client_id


def part(cluster: Cluster, suffix: str) -> str:
    """The name of a part of the cluster."""
    return child_name(stem(cluster), suffix)


def secret_name(cluster: Cluster) -> str:
    """The Secret with the cluster's kubeconfig."""
    return child_name(cluster.name, "kubeconfig")
