"""The versions of the tenant's template: what came with each, and which one an account has.

Who adds an action to the template adds it here too, under a version above the last released one; a test holds the two
together. The first version had no tag, so an account without the tag has that one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from stockyard.domain.records import CloudAccount
from stockyard.errors import PermissionDenied, VendorNotFound
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.policies import tagging as tag_statements
from stockyard.providers.clouds.aws.policies import template_parts
from stockyard.providers.clouds.aws.policies.template_parts import BLOCKS, BY_FEATURE, EKS, FILES, KUBEADM
from stockyard.providers.clouds.aws.sessions import has_access_key, role_arn

TAG = "stockyard:template"
"""The tag on the tenant's role that says the version."""
FIRST = 1


@dataclass(frozen=True, slots=True)
class Addition:
    """Actions that came with a version; none where actions that were there reach more. ``purpose`` ends the sentence
    "without them Stockyard cannot"."""

    version: int
    purpose: str
    actions: tuple[str, ...]
    needed: bool = False
    """Whether no cluster can be made without them; of a feature, none that has it."""
    feature: str = ""
    """What alone needs them; empty: every cluster may."""
    statement: str = ""
    """The one statement that came with it, where others have had the actions before; empty: the actions came."""
    narrows: str = ""
    """What an older version lets the role do beyond what Stockyard has made; empty: the version came with actions. It
    ends the sentence "by it Stockyard's role can"."""


ADDITIONS = (
    Addition(2, "read which version of the template an account has", ("iam:ListRoleTags",)),
    Addition(2, "show the console of a machine that did not come up", ("ec2:GetConsoleOutput",)),
    Addition(
        2,
        "keep the data of etcd on a volume of its own",
        ("ec2:AttachVolume", "ec2:CreateVolume"),
        needed=True,
        feature=KUBEADM,
    ),
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
        feature=KUBEADM,
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
    Addition(
        5,
        "let a cluster's load balancer stand in the zones that its network grows by",
        ("elasticloadbalancing:SetSubnets",),
        feature=KUBEADM,
    ),
    Addition(
        5,
        "replace a member of a control plane, and let several stand behind one load balancer",
        ("elasticloadbalancing:DeregisterTargets", "elasticloadbalancing:DescribeTargetHealth"),
        needed=True,
        feature=KUBEADM,
    ),
    Addition(
        6,
        "keep snapshots of etcd in S3",
        (
            "s3:CreateBucket",
            "s3:DeleteBucket",
            "s3:DeleteObject",
            "s3:DeleteObjectVersion",
            "s3:GetBucketLocation",
            "s3:GetBucketTagging",
            "s3:GetObject",
            "s3:ListAllMyBuckets",
            "s3:ListBucket",
            "s3:ListBucketVersions",
            "s3:PutBucketPublicAccessBlock",
            "s3:PutBucketTagging",
            "s3:PutBucketVersioning",
            "s3:PutEncryptionConfiguration",
            "s3:PutLifecycleConfiguration",
            "s3:PutObject",
        ),
        feature=KUBEADM,
    ),
    Addition(
        7,
        "make node groups with a launch template, as those with EFA or a capacity block",
        ("ec2:DescribeLaunchTemplateVersions",),
        feature=EKS,
    ),
    Addition(
        7,
        f"give members of a control plane that are older than the tag {tags.CLUSTER_OF_MEMBER} that tag, without which"
        " the cloud controller ends on them",
        ("ec2:CreateTags",),
        feature=KUBEADM,
        statement=tag_statements.NAMES_CLUSTER,
    ),
    Addition(
        8,
        "",
        (),
        feature=EKS,
        narrows="mark and change machines, scaling groups, security groups, clusters and whatever the roles of clusters"
        " on EKS reach, also where others made them",
    ),
    Addition(9, "know the quotas that nobody has raised", ("servicequotas:GetAWSDefaultServiceQuota",)),
    Addition(
        9,
        "use a VPC, subnets, capacity reservations and keys of another account, where that shares them",
        (),
    ),
    Addition(9, "say by which key EBS encrypts, and whom that key has to let in", ("ec2:GetEbsDefaultKmsKeyId",)),
    Addition(
        9,
        "say by which key a bucket for snapshots of etcd encrypts, and let the members use it",
        ("kms:GenerateDataKey", "s3:GetEncryptionConfiguration"),
        feature=KUBEADM,
    ),
    Addition(
        9,
        "let machines with EFA stand close to each other",
        ("ec2:CreatePlacementGroup", "ec2:DeletePlacementGroup", "ec2:DescribePlacementGroups"),
        feature=EKS,
    ),
    Addition(
        10,
        "let traffic with S3, as that of images of ECR, leave a cluster's own network without a NAT gateway",
        (
            "ec2:CreateVpcEndpoint",
            "ec2:DeleteVpcEndpoints",
            "ec2:DescribeVpcEndpoints",
            "ec2:ModifyVpcEndpoint",
        ),
    ),
)
SHARED_NETWORKS = 9
"""The version with which clusters can stand in a network of another account, and use keys of another account."""
SNAPSHOT_KEYS = 9
"""The version with which members of a control plane can use the key of a bucket."""
PLACEMENT = 9
"""The version with which node groups can have a placement group."""
NARROW = 8
"""The version whose role, and the roles that it makes, change nothing of others."""
BACKUPS = 6
"""The version with which an account can keep snapshots of etcd in S3."""
LAUNCH_TEMPLATES = 7
"""The version with which EKS can make a node group with a launch template."""
NAMED_MEMBERS = 7
"""The version with which members that are older than the tag with their cluster's name can be given it."""
CURRENT = max(addition.version for addition in ADDITIONS)


@dataclass(frozen=True, slots=True)
class Deployed:
    """Facts that the role of an account tells of its template."""

    version: int
    features: frozenset[str] | None = None
    """The parts that it has. None: it does not say, as templates before there were parts, and has all."""

    def has(self, feature: str) -> bool:
        """Whether the part for this feature was not left out."""
        return not feature or self.features is None or feature in self.features


@dataclass(frozen=True, slots=True)
class Shortage:
    """Shortage of an account's template, in words, and whether clusters can be made without the missing part."""

    text: str
    refuses: bool


def role_name(account: CloudAccount) -> str:
    """The name of the tenant's role, without its path."""
    return role_arn(account).rsplit("/", 1)[-1]


def deployed(calls: Calls, account: CloudAccount) -> Deployed:
    """Read the tags of the account's role; ``FIRST`` where it has no tag or may not be read. What the user of an access
    key may do no tag says: it is taken to be all."""
    if has_access_key(account):
        return Deployed(CURRENT)
    try:
        pairs = calls.call("iam", "list_role_tags", RoleName=role_name(account))["Tags"]
    except (PermissionDenied, VendorNotFound):
        return Deployed(FIRST)
    own_tags = tags.mapping(pairs)
    version, parts = own_tags.get(TAG, ""), own_tags.get(template_parts.TAG)
    return Deployed(
        int(version) if version.isdecimal() else FIRST, None if parts is None else template_parts.features(parts)
    )


def shortage(template: Deployed, features: Collection[str] = ()) -> Shortage | None:
    """Find what that template lacks; None when nothing. With features, clusters are made that have these: then a part
    for one of them that was left out is lacking. Without, an account that is meant for one kind of cluster is no
    fault."""
    # What came for a part that was left out on purpose is not missed.
    older = [
        addition for addition in ADDITIONS if addition.version > template.version and template.has(addition.feature)
    ]
    absent = [feature for feature in template_parts.listed(features) if not template.has(feature)]
    texts = [_of_version(template.version, older)] if older else []
    if absent:
        texts.append(_of_parts(absent))
    elif not features and not (template.has(KUBEADM) or template.has(EKS)):
        texts.append(_NO_CLUSTERS)
    if not texts:
        return None
    needed = any(addition.needed and addition.feature in ("", *features) for addition in older)
    return Shortage(" ".join(texts), needed or bool(absent))


_NO_CLUSTERS = (
    "The template of the cloud account was deployed without the parts for any kind of cluster. Deploy the account's"
    f" current template again with the parameter {BY_FEATURE[KUBEADM].setting} or {BY_FEATURE[EKS].setting}."
)


def _of_version(version: int, lacking: Sequence[Addition]) -> str:
    parts = "; ".join(
        f"{', '.join(added.actions)} (to {added.purpose})" if added.actions else f"rights to {added.purpose}"
        for added in lacking
        if added.purpose
    )
    wide = "; ".join(addition.narrows for addition in lacking if addition.narrows)
    texts = [
        f"The template of the cloud account is version {version}, the current one is {CURRENT}.",
        *([f"It lacks {parts}."] if parts else []),
        *([f"By it Stockyard's role can {wide}."] if wide else []),
        "Deploy the account's current template again.",
        *([_EARLIER] if wide else []),
    ]
    return " ".join(texts)


_EARLIER = (
    f"While the account has clusters on EKS that are older than version {NARROW}, add the parameter"
    f" {template_parts.EARLIER}={template_parts.YES}: without it their groups get no new nodes."
)


def _of_parts(absent: Sequence[str]) -> str:
    parts = [BY_FEATURE[feature] for feature in absent]
    word = "parameters" if len(parts) > 1 else "parameter"
    return (
        f"The template of the cloud account was deployed without the part for"
        f" {' and that for '.join(part.purpose for part in parts)}. Deploy the account's current template again with"
        f" the {word} {' '.join(part.setting for part in parts)}."
    )
