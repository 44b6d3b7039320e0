"""What the parts of a cluster on EKS are called."""

from __future__ import annotations

from stockyard.domain.records import Cluster
from stockyard.providers.clouds.aws.child_names import LONGEST, child_name, cluster_name, node_group_name

__all__ = ["LONGEST", "child_name", "cluster_name", "node_group_name", "part", "role_name", "secret_name", "stem"]

LONGEST_ROLE = 64
_UNIQUE = 13
"""Characters at the end of a client id that make it unique, the hyphen before them included."""


def stem(cluster: Cluster) -> str:
    """What the names of a cluster's parts begin with: its own name where a manifest has made it."""
    return cluster.name if cluster.settings.get("namespace") else cluster.client_id


def part(cluster: Cluster, suffix: str) -> str:
    """The name of a part of the cluster."""
    return child_name(stem(cluster), suffix)


def secret_name(cluster: Cluster) -> str:
    """The Secret with the cluster's kubeconfig."""
    return child_name(cluster.name, "kubeconfig")


def role_name(prefix: str, client_id: str, suffix: str) -> str:
    """``{prefix}-{client_id}-{suffix}``. Where IAM takes no name so long, the readable part of the client id is cut."""
    surplus = max(0, len(f"{prefix}-{client_id}-{suffix}") - LONGEST_ROLE)
    return f"{prefix}-{client_id[: len(client_id) - _UNIQUE - surplus]}{client_id[-_UNIQUE:]}-{suffix}"
