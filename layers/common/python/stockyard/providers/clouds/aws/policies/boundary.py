"""Bound of the rights of a tenant's machines: the boundary that a tenant's template puts on every role we make."""

from __future__ import annotations

import hashlib

from stockyard.domain.records import CloudAccount
from stockyard.providers.clouds.aws.sessions import account_number, partition

NODE_ACTIONS = ("ec2:DescribeInstances", "ec2:DescribeInstanceTypes", "ec2:DescribeAvailabilityZones")
"""What a kubelet and the cloud's node controller read about the machine they run on; AWS offers no narrower resource.
That a machine says who it is (``sts:GetCallerIdentity``) needs no permission."""


def boundary_name(account: CloudAccount, prefix: str) -> str:
    """The managed policy of the tenant's template that bounds every role we make. An AWS account may be registered
    more than once: each registration has a template, and so a boundary, of its own."""
    return f"{prefix}-node-boundary-{hashlib.sha256(account.external_id.encode()).hexdigest()[:8]}"


def boundary_arn(account: CloudAccount, prefix: str) -> str:
    """The account's own ``permissions_boundary`` if it names one, else the template's."""
    named = account.attributes.get("permissions_boundary")
    return str(
        named or f"arn:{partition(account)}:iam::{account_number(account)}:policy/{boundary_name(account, prefix)}"
    )
