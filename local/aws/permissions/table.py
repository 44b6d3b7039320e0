"""The table: what AWS asks for each operation that may be called in a tenant's account, its own actions and those that
it asks for in the caller's name. An operation is in it, or among those that ask nothing.

It repeats AWS's Service Authorization Reference and is independent of the policies that the product writes, so that it
can judge them. Who lets a provider call one more operation gives it a row; a test looks for those that have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from local.aws.permissions import balancing, buckets, builds, ec2, eks, identities, managed
from local.aws.permissions.account import Account
from local.aws.permissions.calls import Call
from local.aws.permissions.ec2_types import USED
from local.aws.permissions.policies import Ask

Row = Callable[[Call, Account], Iterator[Ask]]


def _rows(row: Row, *operations: str) -> dict[str, Row]:
    return dict.fromkeys(operations, row)


TABLE: Mapping[str, Mapping[str, Row]] = {
    "autoscaling": {
        **_rows(managed.everything, "DescribeAutoScalingGroups", "DescribeScalingActivities"),
        **_rows(
            managed.scaling,
            "CreateOrUpdateTags",
            "ResumeProcesses",
            "SetDesiredCapacity",
            "SuspendProcesses",
            "TerminateInstanceInAutoScalingGroup",
        ),
    },
    "codebuild": _rows(builds.projects, "BatchGetBuilds", "BatchGetProjects", "StartBuild", "StopBuild"),
    "dlm": {
        **_rows(managed.everything, "GetLifecyclePolicies"),
        **_rows(
            managed.lifecycle,
            "CreateLifecyclePolicy",
            "DeleteLifecyclePolicy",
            "GetLifecyclePolicy",
            "TagResource",
            "UntagResource",
            "UpdateLifecyclePolicy",
        ),
    },
    "ec2": {
        **_rows(
            ec2.everything,
            "DescribeAddresses",
            "DescribeAvailabilityZones",
            "DescribeCapacityReservations",
            "DescribeImages",
            "DescribeInstanceTypeOfferings",
            "DescribeInstanceTypes",
            "DescribeInstances",
            "DescribeInternetGateways",
            "DescribeKeyPairs",
            "DescribeLaunchTemplates",
            "DescribeNatGateways",
            "DescribeNetworkInterfaces",
            "DescribePlacementGroups",
            "DescribeRouteTables",
            "DescribeSecurityGroups",
            "DescribeSnapshots",
            "DescribeSpotInstanceRequests",
            "DescribeSubnets",
            "DescribeVolumes",
            "DescribeVpcEndpoints",
            "DescribeVpcs",
            "GetEbsDefaultKmsKeyId",
        ),
        **_rows(ec2.asks, *USED),
        **_rows(ec2.fleet, "CreateFleet"),
    },
    "eks": {
        **_rows(eks.everything, "DescribeAddonVersions", "ListClusters"),
        **_rows(
            eks.asks,
            "AssociateAccessPolicy",
            "DeleteAccessEntry",
            "DeleteAddon",
            "DeleteCluster",
            "DeleteNodegroup",
            "DeletePodIdentityAssociation",
            "DescribeAccessEntry",
            "DescribeAddon",
            "DescribeCluster",
            "DescribeNodegroup",
            "DescribePodIdentityAssociation",
            "DescribeUpdate",
            "DisassociateAccessPolicy",
            "ListAccessEntries",
            "ListAddons",
            "ListAssociatedAccessPolicies",
            "ListInsights",
            "ListNodegroups",
            "ListPodIdentityAssociations",
            "UpdateClusterConfig",
            "UpdateClusterVersion",
            "UpdateNodegroupConfig",
        ),
        **_rows(eks.retagged, "TagResource", "UntagResource"),
        **_rows(eks.cluster, "CreateCluster"),
        **_rows(eks.part, *eks.CREATED),
        **_rows(eks.addon, "UpdateAddon"),
        **_rows(eks.group_version, "UpdateNodegroupVersion"),
    },
    "elasticfilesystem": {
        **_rows(managed.file_system, "CreateFileSystem"),
        **_rows(
            managed.files,
            "CreateMountTarget",
            "DeleteFileSystem",
            "DeleteMountTarget",
            "DescribeFileSystems",
            "DescribeMountTargets",
            "TagResource",
            "UntagResource",
        ),
    },
    "elasticloadbalancing": {
        **_rows(
            balancing.everything,
            "DescribeListeners",
            "DescribeLoadBalancers",
            "DescribeTags",
            "DescribeTargetGroups",
            "DescribeTargetHealth",
        ),
        **_rows(
            balancing.asks,
            "AddTags",
            "DeleteLoadBalancer",
            "DeleteTargetGroup",
            "DeregisterTargets",
            "ModifyLoadBalancerAttributes",
            "RegisterTargets",
            "RemoveTags",
            "SetSubnets",
        ),
        **_rows(balancing.created, "CreateListener", "CreateLoadBalancer", "CreateTargetGroup"),
    },
    "iam": {
        **_rows(identities.everything, "ListInstanceProfiles", "ListRoles"),
        **_rows(
            identities.asks,
            "AddRoleToInstanceProfile",
            "AttachRolePolicy",
            "DeleteInstanceProfile",
            "DeleteRole",
            "DeleteRolePolicy",
            "DetachRolePolicy",
            "GetInstanceProfile",
            "GetRole",
            "ListAttachedRolePolicies",
            "ListRolePolicies",
            "ListRoleTags",
            "PutRolePolicy",
            "RemoveRoleFromInstanceProfile",
            "TagInstanceProfile",
            "TagRole",
            "UntagInstanceProfile",
            "UntagRole",
        ),
        **_rows(identities.created, "CreateInstanceProfile", "CreateRole"),
    },
    "logs": _rows(builds.streams, "GetLogEvents"),
    "s3": _rows(
        buckets.asks,
        "CreateBucket",
        "DeleteBucket",
        "DeleteObjects",
        "GetBucketEncryption",
        "GetBucketLocation",
        "GetBucketTagging",
        "GetObject",
        "HeadObject",
        "ListBuckets",
        "ListObjectVersions",
        "ListObjectsV2",
        "PutBucketEncryption",
        "PutBucketLifecycleConfiguration",
        "PutBucketTagging",
        "PutBucketVersioning",
        "PutObject",
        "PutPublicAccessBlock",
    ),
    "servicequotas": _rows(managed.everything, "GetAWSDefaultServiceQuota", "GetServiceQuota"),
    "ssm": _rows(managed.parameter, "GetParameter"),
    "sts": _rows(identities.assumed, "AssumeRole"),
}
"""Prefix of a service's actions -> operation -> its row."""
OF_CLUSTERS = frozenset(
    {"ec2:AttachVolume", "ec2:CreateVolume", "ec2:DeleteVolume", "ec2:DetachVolume", "ec2:ModifyVolume"}
)
"""What programs that run under a machine's role are asked for too: the calls by which a cluster's driver of volumes
changes anything. All else that machines call is more than the table has."""
NOTHING: Mapping[str, str] = {"sts:GetCallerIdentity": "AWS answers it to everybody who has keys"}
"""Operation that asks nothing -> why."""
PREFIXES: Mapping[str, str] = {
    "efs": "elasticfilesystem",
    "elb": "elasticloadbalancing",
    "elbv2": "elasticloadbalancing",
    "service-quotas": "servicequotas",
}
"""Service of boto3, or of moto -> the prefix of its actions, where that is another."""


class NoRow(Exception):
    """The table does not know the operation."""


def prefix(service: str) -> str:
    """The prefix of the actions of a service of boto3."""
    return PREFIXES.get(service, service)


def asks(call: Call, account: Account) -> list[Ask]:
    """The permission checks that AWS does for a call, the caller's own first. Raises ``NoRow``."""
    if call.action in NOTHING:
        return []
    row = TABLE.get(call.service, {}).get(call.operation)
    if row is None:
        raise NoRow(f"The local cloud does not know what AWS asks for {call.action}: it has no row in its table.")
    return list(row(call, account))
