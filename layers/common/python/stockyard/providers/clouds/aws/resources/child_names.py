"""Names of the parts of a cluster on EKS, for all that make or look for them."""

from __future__ import annotations

import hashlib
import re

from stockyard.domain.records import Cluster

LONGEST = 63
_DIGITS = 5
_LONGEST_POOL = 40
"""Characters of the name of a node group on EKS, as its source has it."""
LONGEST_ROLE = 64
UNIQUE = 13
"""Characters at the end of a client id that make it unique, the hyphen before them included."""
_TAKEN_BY_EKS = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]*")


def child_name(*parts: str) -> str:
    """The parts joined by hyphens, with the beginning of the SHA-256 of that text, in at most 63 characters: a name
    that is the same each time, and another one for other parts, however long they are.

    Modelplane names what belongs to a resource by this rule.
    """
    text = "-".join(parts)
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    return f"{text[: LONGEST - _DIGITS - 1]}-{digest}"


def cluster_name(cluster: Cluster) -> str:
    """Name of the cluster in EKS: the stage's prefix, by which the tenant's template knows it, then as Modelplane would
    where a manifest made it, else by its own client. A cluster of an earlier release has no prefix."""
    namespace = str(cluster.settings.get("namespace") or "")
    own = (namespace, cluster.name) if namespace else (cluster.client_id,)
    return child_name(*([cluster.cloud_prefix] if cluster.cloud_prefix else []), *own, "eks")


def node_group_name(cluster: Cluster, pool: str, generation: int = 1) -> str:
    """Name in EKS of the managed node group of a pool: the cluster's name, and the pool's as its suffix.

    A group that was replaced by another of the same pool has a name of its own, and so has one whose name is too long
    or none that EKS takes: then a digest stands between the two. Groups of a cluster of an earlier release are called
    by the pool alone.
    """
    prefix = cluster.group_prefix
    name = f"{prefix}-{pool}" if prefix else pool
    if generation == 1 and len(name) <= LONGEST and _TAKEN_BY_EKS.fullmatch(name):
        return name
    if not prefix:
        return child_name(pool, f"generation-{generation}").replace(".", "-")
    digest = hashlib.sha256(f"{prefix}/{pool}/{generation}".encode()).hexdigest()[:_DIGITS]
    suffix = f"-{digest}-{pool[:_LONGEST_POOL]}".replace(".", "-")
    return f"{prefix[: LONGEST - len(suffix)]}{suffix}"


def role_name(prefix: str, client_id: str, suffix: str) -> str:
    """``{prefix}-{client_id}-{suffix}``. Where IAM takes no name so long, the readable part of the client id is cut."""
    surplus = max(0, len(f"{prefix}-{client_id}-{suffix}") - LONGEST_ROLE)
    return f"{prefix}-{client_id[: len(client_id) - UNIQUE - surplus]}{client_id[-UNIQUE:]}-{suffix}"
