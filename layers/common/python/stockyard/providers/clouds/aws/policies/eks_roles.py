"""Rights of the roles of clusters on EKS: AWS's own policies, within the boundary of ``eks_bounds``."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from stockyard.domain.records import CloudAccount
from stockyard.providers.clouds.aws.sessions import account_number, partition

ATTACHED: Mapping[str, tuple[str, ...]] = {
    "cluster": ("AmazonEKSClusterPolicy",),
    "node": ("AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryReadOnly"),
    "efs-csi": ("service-role/AmazonEFSCSIDriverPolicy",),
}
"""Role -> names of AWS's policies, with their paths."""


def policy_arn(account: CloudAccount, name: str) -> str:
    """The ARN of one of AWS's own policies."""
    return f"arn:{partition(account)}:iam::aws:policy/{name}"


def managed_boundary_name(account: CloudAccount, prefix: str) -> str:
    """The policy of the tenant's template that bounds the roles of clusters on EKS; each registration has its own."""
    return f"{prefix}-eks-boundary-{hashlib.sha256(account.external_id.encode()).hexdigest()[:8]}"


def managed_boundary_arn(account: CloudAccount, prefix: str) -> str:
    """The account's own ``permissions_boundary`` if it names one, else the template's."""
    named = account.attributes.get("permissions_boundary")
    name = managed_boundary_name(account, prefix)
    return str(named or f"arn:{partition(account)}:iam::{account_number(account)}:policy/{name}")
