"""The versions of the tenant's template: what came with each, and which one an account has.

Who adds an action to the template adds it here too, under a version above the last released one; a test holds the two
together. The first version had no tag, so an account without the tag has that one.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from stockyard.domain.records import CloudAccount
from stockyard.errors import PermissionDenied, VendorNotFound
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.sessions import role_arn

TAG = "stockyard:template"
"""The tag on the tenant's role that says the version."""
FIRST = 1


@dataclass(frozen=True, slots=True)
class Addition:
    """Actions that came with a version. ``purpose`` ends the sentence "without them Stockyard cannot"."""

    version: int
    purpose: str
    actions: tuple[str, ...]
    needed: bool = False
    """Whether no cluster can be made without them; of a feature, none that has it."""
    feature: str = ""
    """What alone needs them; empty: every cluster may."""


EKS, FILES, BLOCKS = "eks", "files", "capacity-blocks"
"""Features: clusters on EKS, their shared files, and groups of capacity blocks."""

ADDITIONS = (
    Addition(2, "read which version of the template an account has", ("iam:ListRoleTags",)),
    Addition(2, "show the console of a machine that did not come up", ("ec2:GetConsoleOutput",)),
    Addition(2, "keep the data of etcd on a volume of its own", ("ec2:AttachVolume", "ec2:CreateVolume"), needed=True),
    Addition(
        2,
        "take daily snapshots of that volume",
        (
            "dlm:CreateLifecyclePolicy",
            "dlm:DeleteLifecyclePolicy",
            "dlm:GetLifecyclePolicies",
            "dlm:TagResource",
            "ec2:DeleteSnapshot",
            "ec2:DescribeSnapshots",
        ),
        needed=True,
    ),
    Addition(
        2,
        "let a cluster's EBS driver make volumes for pods",
        (
            "ec2:DescribeInstanceTopology",
            "ec2:DescribeTags",
            "ec2:DescribeVolumeStatus",
            "ec2:DescribeVolumesModifications",
            "ec2:DetachVolume",
            "ec2:ModifyVolume",
        ),
    ),
    Addition(
        3,
        "give what is there other tags when a cluster's tags are changed",
        (
            "dlm:GetLifecyclePolicy",
            "dlm:UntagResource",
            "dlm:UpdateLifecyclePolicy",
            "ec2:DeleteTags",
            "ec2:DescribeNetworkInterfaces",
            "ec2:DescribeSpotInstanceRequests",
            "elasticloadbalancing:RemoveTags",
            "iam:UntagInstanceProfile",
            "iam:UntagRole",
        ),
    ),
    Addition(
        4,
        "make clusters on EKS",
        (
            "ec2:AuthorizeSecurityGroupEgress",
            "ec2:DeleteNetworkInterface",
            "ec2:ModifySubnetAttribute",
            "eks:AssociateAccessPolicy",
            "eks:CreateAccessEntry",
            "eks:CreateAddon",
            "eks:CreateCluster",
            "eks:CreateNodegroup",
            "eks:CreatePodIdentityAssociation",
            "eks:DeleteAccessEntry",
            "eks:DeleteAddon",
            "eks:DeleteCluster",
            "eks:DeleteNodegroup",
            "eks:DeletePodIdentityAssociation",
            "eks:DescribeAccessEntry",
            "eks:DescribeAddon",
            "eks:DescribeAddonVersions",
            "eks:DescribeCluster",
            "eks:DescribeNodegroup",
            "eks:DescribePodIdentityAssociation",
            "eks:DescribeUpdate",
            "eks:DisassociateAccessPolicy",
            "eks:ListAccessEntries",
            "eks:ListAddons",
            "eks:ListAssociatedAccessPolicies",
            "eks:ListClusters",
            "eks:ListInsights",
            "eks:ListNodegroups",
            "eks:ListPodIdentityAssociations",
            "eks:TagResource",
            "eks:UntagResource",
            "eks:UpdateAddon",
            "eks:UpdateClusterConfig",
            "eks:UpdateClusterVersion",
            "eks:UpdateNodegroupConfig",
            "eks:UpdateNodegroupVersion",
            "iam:AttachRolePolicy",
            "sts:AssumeRole",
        ),
        needed=True,
        feature=EKS,
    ),
    Addition(
        4,
        "scale the node groups of such clusters",
        (
            "autoscaling:CreateOrUpdateTags",
            "autoscaling:DescribeAutoScalingGroups",
            "autoscaling:DescribeScalingActivities",
            "autoscaling:ResumeProcesses",
            "autoscaling:SetDesiredCapacity",
            "autoscaling:SuspendProcesses",
            "autoscaling:TerminateInstanceInAutoScalingGroup",
        ),
        needed=True,
        feature=EKS,
    ),
    Addition(
        4,
        "give such clusters files that many pods write",
        (
            "ec2:CreateNetworkInterface",
            "elasticfilesystem:CreateFileSystem",
            "elasticfilesystem:CreateMountTarget",
            "elasticfilesystem:DeleteFileSystem",
            "elasticfilesystem:DeleteMountTarget",
            "elasticfilesystem:DescribeFileSystems",
            "elasticfilesystem:DescribeMountTargets",
            "elasticfilesystem:TagResource",
            "elasticfilesystem:UntagResource",
        ),
        needed=True,
        feature=FILES,
    ),
    Addition(
        4,
        "use capacity blocks",
        ("ec2:DescribeCapacityReservations",),
        needed=True,
        feature=BLOCKS,
    ),
)
CURRENT = max(addition.version for addition in ADDITIONS)


@dataclass(frozen=True, slots=True)
class Shortage:
    """What an account's template lacks, in words, and whether clusters can be made without it."""

    text: str
    refuses: bool


def role_name(account: CloudAccount) -> str:
    """The name of the tenant's role, without its path."""
    return role_arn(account).rsplit("/", 1)[-1]


def deployed(calls: Calls, account: CloudAccount) -> int:
    """The version that the account's role is tagged with; ``FIRST`` where it has no tag or may not be read."""
    try:
        pairs = calls.call("iam", "list_role_tags", RoleName=role_name(account))["Tags"]
    except (PermissionDenied, VendorNotFound):
        return FIRST
    version = tags.mapping(pairs).get(TAG, "")
    return int(version) if version.isdecimal() else FIRST


def shortage(version: int, features: Collection[str] = ()) -> Shortage | None:
    """What a template of that version lacks; None when it is the current one, or a later release's. With features,
    clusters are made that have these."""
    lacking = [addition for addition in ADDITIONS if addition.version > version]
    if not lacking:
        return None
    parts = "; ".join(f"{', '.join(addition.actions)} (to {addition.purpose})" for addition in lacking)
    text = (
        f"The template of the cloud account is version {version}, the current one is {CURRENT}. It lacks {parts}."
        " Deploy the account's current template again."
    )
    return Shortage(text, any(addition.needed and addition.feature in ("", *features) for addition in lacking))
