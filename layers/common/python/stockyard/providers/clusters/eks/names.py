"""What the parts of a cluster on EKS are called."""

from __future__ import annotations

import hashlib

from stockyard.domain.records import Cluster

LONGEST = 63
_DIGITS = 5
LONGEST_ROLE = 64
_UNIQUE = 13
"""Characters at the end of a client id that make it unique, the hyphen before them included."""


def child_name(*parts: str) -> str:
    """The parts joined by hyphens, with the beginning of the SHA-256 of that text, in at most 63 characters: a name
    that is the same each time, and another one for other parts, however long they are.

    Modelplane names what belongs to a resource by this rule.
    """
    text = "-".join(parts)
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    return f"{text[: LONGEST - _DIGITS - 1]}-{digest}"


def stem(cluster: Cluster) -> str:
    """What the names of a cluster's parts begin with: its own name where a manifest has made it."""
    return cluster.name if cluster.settings.get("namespace") else cluster.client_id


def part(cluster: Cluster, suffix: str) -> str:
    """The name of a part of the cluster."""
    return child_name(stem(cluster), suffix)


def cluster_name(cluster: Cluster) -> str:
    """What EKS calls the cluster."""
    namespace = str(cluster.settings.get("namespace") or "")
    return child_name(namespace, cluster.name, "eks") if namespace else child_name(cluster.client_id, "eks")


def secret_name(cluster: Cluster) -> str:
    """The Secret with the cluster's kubeconfig."""
    return child_name(cluster.name, "kubeconfig")


def role_name(prefix: str, client_id: str, suffix: str) -> str:
    """``{prefix}-{client_id}-{suffix}``. Where IAM takes no name so long, the readable part of the client id is cut."""
    surplus = max(0, len(f"{prefix}-{client_id}-{suffix}") - LONGEST_ROLE)
    return f"{prefix}-{client_id[: len(client_id) - _UNIQUE - surplus]}{client_id[-_UNIQUE:]}-{suffix}"
