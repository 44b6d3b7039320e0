"""Tokens for people, and the pool of a node: what others ask of a cluster on EKS that stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockyard.domain.records import Cluster
from stockyard.ports.clusters import ClusterToken
from stockyard.providers.clouds.aws import cluster_tokens
from stockyard.providers.clusters.eks import names
from stockyard.providers.clusters.eks.access import identity
from stockyard.providers.clusters.eks.building import Builder
from stockyard.providers.clusters.eks.configuration import node_groups, region
from stockyard.providers.clusters.eks.groups import POOL_LABEL

MANAGED_GROUP = "eks.amazonaws.com/nodegroup"
"""The label by which EKS says of a node which group it is of."""


def mint(builder: Builder, role: str, role_keys: cluster_tokens.RoleKeys) -> ClusterToken:
    """See ``ports.clusters.MintsTokens.mint``: by a session of the cluster's role, from one of the tenant's, which
    ``role_keys`` keeps for a few minutes."""
    work, cluster, role_arn = builder.work, builder.work.cluster, identity.arn(builder, role)
    # Whose session it is, and by which way into the account: another role or external id begins anew.
    role_and_id = (str(work.account.attributes.get("role_arn")), work.account.external_id)
    keys = role_keys.of(
        (work.tenant, cluster.id, role_arn, work.session, *role_and_id),
        builder.now,
        lambda: cluster_tokens.role_keys(builder.calls, role_arn, work.session),
    )
    token = cluster_tokens.presign(keys, names.cluster_name(cluster), region(cluster), builder.now)
    return ClusterToken(token, cluster_tokens.expires_at(keys, builder.now))


def group_of_node(cluster: Cluster, node: Mapping[str, Any]) -> tuple[str, str] | None:
    """See ``ports.clusters.AdoptsNodes.group_of_node``. Our label names the pool whatever EKS calls its group: a former
    generation has another name."""
    labels: Mapping[str, str] = node.get("labels") or node.get("metadata", {}).get("labels") or {}
    provider_id = str(node.get("provider_id") or node.get("providerID") or node.get("spec", {}).get("providerID") or "")
    machine = provider_id.rpartition("/")[2]
    pool = labels.get(POOL_LABEL, "")
    if not machine or MANAGED_GROUP not in labels or pool not in {str(g["name"]) for g in node_groups(cluster)}:
        return None
    return pool, machine
