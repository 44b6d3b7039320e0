"""What the parts of a cluster on EKS are called."""

from __future__ import annotations

from stockyard.providers.clouds.aws.child_names import LONGEST, child_name, cluster_name, node_group_name

__all__ = ["LONGEST", "child_name", "cluster_name", "node_group_name"]
