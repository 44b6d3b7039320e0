"""Making and unmaking what a cluster on EC2 consists of; see ``providers.clouds.aws.resources.making``."""

from __future__ import annotations

from stockyard.providers.clouds.aws.resources.cluster_building import ClusterBuilder
from stockyard.providers.clouds.aws.resources.making import DesiredResource
from stockyard.providers.clusters.ec2.configuration import Ec2Config

__all__ = ["Builder", "DesiredResource"]

Builder = ClusterBuilder[Ec2Config]
"""One phase of one cluster."""
