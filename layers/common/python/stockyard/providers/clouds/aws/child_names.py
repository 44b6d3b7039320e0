"""What the parts of a cluster on EKS are called, for all that make or look for them."""

from __future__ import annotations

import hashlib

from stockyard.domain.records import Cluster

LONGEST = 63
_DIGITS = 5


def child_name(*parts: str) -> str:
    """The parts joined by hyphens, with the beginning of the SHA-256 of that text, in at most 63 characters: a name
    that is the same each time, and another one for other parts, however long they are.

    Modelplane names what belongs to a resource by this rule.
    """
    text = "-".join(parts)
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    return f"{text[: LONGEST - _DIGITS - 1]}-{digest}"


def cluster_name(cluster: Cluster) -> str:
    """What EKS calls the cluster: as Modelplane would where a manifest made it, else by its own client."""
    namespace = str(cluster.settings.get("namespace") or "")
    return child_name(namespace, cluster.name, "eks") if namespace else child_name(cluster.client_id, "eks")


def node_group_name(pool: str) -> str:
    """What EKS calls the managed node group of a pool; the name is unique within the cluster."""
    return pool
