"""The commands of request events, by detail type. Each loads its own use case, because an event needs one of them."""

from __future__ import annotations

from collections.abc import Mapping

from functions.requests import clusters, nodes, pools, profiles
from stockyard.domain.values.rights import ADMIN
from stockyard.edge.requests import EventCommand

_CLUSTER, _POOL, _CLAIM = ("cluster",), ("cluster", "pool"), ("claim",)
_PROVIDER, _PROFILE = ("provider",), ("profile",)

COMMANDS: Mapping[str, EventCommand] = {
    "CreateCluster": EventCommand("clusters.clusters:ClusterCreate", (), clusters.create),
    "ChangeCluster": EventCommand("clusters.patch:ClusterPatch", _CLUSTER, clusters.change),
    "DeleteCluster": EventCommand(None, _CLUSTER, clusters.delete),
    "CreatePool": EventCommand("pools.pools:PoolCreate", _CLUSTER, pools.create),
    "ChangePool": EventCommand("pools.pools:PoolPatch", _POOL, pools.change),
    "DeletePool": EventCommand(None, _POOL, pools.delete),
    "CreateNodeClaim": EventCommand("nodes.node_claims:NodeClaimCreate", (), nodes.create_claim),
    "ChangeNodeClaim": EventCommand("nodes.node_claims:NodeClaimPatch", _CLAIM, nodes.change_claim),
    "DeleteNodeClaim": EventCommand(None, _CLAIM, nodes.delete_claim),
    "CreateNodeProvider": EventCommand("nodes.node_providers:NodeProviderCreate", (), nodes.create_provider, ADMIN),
    "ChangeNodeProvider": EventCommand(
        "nodes.node_providers:NodeProviderPatch", _PROVIDER, nodes.change_provider, ADMIN
    ),
    "DeleteNodeProvider": EventCommand(None, _PROVIDER, nodes.delete_provider, ADMIN),
    "CreateClusterProfile": EventCommand("clusters.profiles:ClusterProfileCreate", (), profiles.create),
    "AddClusterProfileVersion": EventCommand("clusters.profiles:ClusterProfilePut", _PROFILE, profiles.add_version),
    "DeleteClusterProfile": EventCommand(None, _PROFILE, profiles.delete),
}
"""Detail types are the names of the API's operations, and bodies those of their routes."""
