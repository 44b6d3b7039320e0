"""Typed properties of the constructs, written of the contract by ``local.cloudformation.properties``."""

from stockyard_cdk.properties.cloud_account import CloudAccountProperties
from stockyard_cdk.properties.cluster import ClusterProperties
from stockyard_cdk.properties.cluster_profile import ClusterProfileProperties
from stockyard_cdk.properties.node_pool import NodePoolProperties
from stockyard_cdk.properties.node_provider import NodeProviderProperties

__all__ = [
    "CloudAccountProperties",
    "ClusterProfileProperties",
    "ClusterProperties",
    "NodePoolProperties",
    "NodeProviderProperties",
]
