"""Stockyard's resources as constructs of the CDK."""

from stockyard_cdk.cluster import Cluster
from stockyard_cdk.connection import Stockyard
from stockyard_cdk.constructs import CloudAccount, ClusterProfile, NodePool, NodeProvider

__all__ = ["CloudAccount", "Cluster", "ClusterProfile", "NodePool", "NodeProvider", "Stockyard"]
