"""What the roles of clusters on EKS may do: AWS's own policies, and the boundary that a tenant's template puts on them.

The boundary names what these policies allow and our clusters use, so that a role can do no more when AWS widens one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from stockyard.domain.records import CloudAccount
from stockyard.providers.clouds.aws.policies.statements import Statement
from stockyard.providers.clouds.aws.sessions import account_number, partition

ATTACHED: Mapping[str, tuple[str, ...]] = {
    "cluster": ("AmazonEKSClusterPolicy",),
    "node": ("AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryReadOnly"),
    "efs-csi": ("service-role/AmazonEFSCSIDriverPolicy",),
}
"""Role -> names of AWS's policies, with their paths."""
BALANCING_SERVICE = "elasticloadbalancing.amazonaws.com"
_READS = (
    "autoscaling:DescribeAutoScalingGroups",
    "ec2:DescribeAccountAttributes",
    "ec2:DescribeAddresses",
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeInstanceTopology",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeInternetGateways",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeRouteTables",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeTags",
    "ec2:DescribeVolumes",
    "ec2:DescribeVolumesModifications",
    "ec2:DescribeVpcs",
    "ec2:GetSecurityGroupsForVpc",
    "ecr:GetAuthorizationToken",
    "elasticfilesystem:DescribeAccessPoints",
    "elasticfilesystem:DescribeFileSystems",
    "elasticfilesystem:DescribeMountTargets",
    "elasticloadbalancing:DescribeListeners",
    "elasticloadbalancing:DescribeLoadBalancerAttributes",
    "elasticloadbalancing:DescribeLoadBalancerPolicies",
    "elasticloadbalancing:DescribeLoadBalancers",
    "elasticloadbalancing:DescribeTargetGroupAttributes",
    "elasticloadbalancing:DescribeTargetGroups",
    "elasticloadbalancing:DescribeTargetHealth",
)
"""AWS offers no resource narrower than ``*`` for most of these."""
_IMAGES = ("BatchCheckLayerAvailability", "BatchGetImage", "DescribeImages", "GetDownloadUrlForLayer")
_NETWORK = (
    "AssignPrivateIpAddresses",
    "AttachNetworkInterface",
    "AuthorizeSecurityGroupIngress",
    "CreateNetworkInterface",
    "CreateRoute",
    "CreateSecurityGroup",
    "CreateTags",
    "DeleteNetworkInterface",
    "DeleteRoute",
    "DeleteSecurityGroup",
    "DetachNetworkInterface",
    "ModifyNetworkInterfaceAttribute",
    "RevokeSecurityGroupIngress",
    "UnassignPrivateIpAddresses",
)
_BALANCING = (
    "AddTags",
    "ApplySecurityGroupsToLoadBalancer",
    "AttachLoadBalancerToSubnets",
    "ConfigureHealthCheck",
    "CreateListener",
    "CreateLoadBalancer",
    "CreateLoadBalancerListeners",
    "CreateLoadBalancerPolicy",
    "CreateTargetGroup",
    "DeleteListener",
    "DeleteLoadBalancer",
    "DeleteLoadBalancerListeners",
    "DeleteTargetGroup",
    "DeregisterInstancesFromLoadBalancer",
    "DeregisterTargets",
    "DetachLoadBalancerFromSubnets",
    "ModifyListener",
    "ModifyLoadBalancerAttributes",
    "ModifyTargetGroup",
    "ModifyTargetGroupAttributes",
    "RegisterInstancesWithLoadBalancer",
    "RegisterTargets",
    "SetLoadBalancerPoliciesForBackendServer",
    "SetLoadBalancerPoliciesOfListener",
)
_FILES = ("CreateAccessPoint", "DeleteAccessPoint", "TagResource")


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


def boundary(arn: Callable[[str, str], Any]) -> list[Statement]:
    """The statements of the boundary. ``arn(service, resource)`` is in the account."""
    linked = arn("iam", f"role/aws-service-role/{BALANCING_SERVICE}/AWSServiceRoleForElasticLoadBalancing")
    return [
        _allow("Read", _READS, "*"),
        _allow("PullImages", _of("ecr", _IMAGES), "*"),
        _allow("Network", _of("ec2", _NETWORK), arn("ec2", "*")),
        _allow("Balancers", _of("elasticloadbalancing", _BALANCING), arn("elasticloadbalancing", "*")),
        _allow("Files", _of("elasticfilesystem", _FILES), arn("elasticfilesystem", "*")),
        _allow("OwnCluster", ["eks:DescribeCluster", "eks-auth:AssumeRoleForPodIdentity"], arn("eks", "cluster/*")),
        {
            **_allow("FirstBalancer", ["iam:CreateServiceLinkedRole"], linked),
            "Condition": {"StringEquals": {"iam:AWSServiceName": BALANCING_SERVICE}},
        },
    ]


def _of(service: str, names: tuple[str, ...]) -> list[str]:
    return [f"{service}:{name}" for name in names]


def _allow(sid: str, actions: Any, resource: Any) -> Statement:
    return {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": resource}
