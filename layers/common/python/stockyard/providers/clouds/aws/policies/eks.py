"""Rights of Stockyard for clusters on EKS in a tenant's account: the clusters, their roles, their shared files, the
scaling groups behind their node groups, and capacity blocks. Each is a policy of its own."""

from __future__ import annotations

from typing import Any

from stockyard.domain.records import CloudAccount
from stockyard.providers.clouds.aws.kinds import iam as iam_kinds
from stockyard.providers.clouds.aws.policies.eks_roles import ATTACHED, managed_boundary_name
from stockyard.providers.clouds.aws.policies.statements import (
    ArnScope,
    Statement,
    allow,
    both,
    in_request,
    not_of_others,
    on_thing,
    resolved,
    shared,
)
from stockyard.providers.clouds.aws.policies.template_parts import with_earlier

THINGS = ("access-entry", "addon", "cluster", "nodegroup", "podidentityassociation")
"""Types of EKS's resources that we make; all carry tags."""
READ = (
    "eks:DescribeAddonVersions",
    "eks:ListClusters",
)
"""AWS offers no resource narrower than ``*`` for these."""
IMAGES = "arn:${AWS::Partition}:ssm:*::parameter/aws/service/eks/optimized-ami/*"
"""The publisher's current images, for nodes of clusters on EKS that are in no managed group."""
READ_ACTIONS = (
    "DescribeAccessEntry",
    "DescribeAddon",
    "DescribeCluster",
    "DescribeNodegroup",
    "DescribePodIdentityAssociation",
    "DescribeUpdate",
    "ListAccessEntries",
    "ListAddons",
    "ListAssociatedAccessPolicies",
    "ListInsights",
    "ListNodegroups",
    "ListPodIdentityAssociations",
)
"""Of absent things, which a deletion has to see, there is no tag to look at."""
CREATE_WITHIN = ("CreateAccessEntry", "CreateAddon", "CreateNodegroup", "CreatePodIdentityAssociation")
CHANGE = {
    "access-entry": ("AssociateAccessPolicy", "DeleteAccessEntry", "DisassociateAccessPolicy"),
    "addon": ("DeleteAddon", "UpdateAddon"),
    "cluster": ("DeleteCluster", "UpdateClusterConfig", "UpdateClusterVersion"),
    "nodegroup": ("DeleteNodegroup", "UpdateNodegroupConfig", "UpdateNodegroupVersion"),
    "podidentityassociation": ("DeletePodIdentityAssociation",),
}
LINKED = {
    "autoscaling.amazonaws.com": "AWSServiceRoleForAutoScaling",
    "eks-nodegroup.amazonaws.com": "AWSServiceRoleForAmazonEKSNodegroup",
    "eks.amazonaws.com": "AWSServiceRoleForAmazonEKS",
}
"""Roles of services, which the first cluster of an account makes in the caller's name."""
_LOOKED_AT = ("eks-nodegroup.amazonaws.com", "eks.amazonaws.com")
FILES = "elasticfilesystem.amazonaws.com"
PEOPLE = ("viewer", "operator", "admin")
VIA_SERVICE = {"Bool": {"aws:ViaAWSService": "true"}}
MADE_BY_EKS, GROUP_OF_EKS = "eks:cluster-name", "aws:eks:cluster-name"
"""Tags with the cluster's name that EKS gives: to machines and their scaling groups, and to its security group."""


def clusters(here: ArnScope, installation: str, prefix: str) -> list[Statement]:
    """Rights over clusters on EKS with all their parts, and over the parts of EC2 for them."""
    request_tagged, thing_tagged = in_request(installation), on_thing(installation)
    every = [here.arn("eks", f"{kind}/*") for kind in THINGS]
    # EKS has no condition that tells a new thing from one that is there: only ours have such a name.
    named = [with_earlier(resolved(arn), resolved(f"{arn[:-1]}{prefix}-*")) for arn in every]
    return [
        allow("ReadEks", list(READ), ["*"]),
        allow("LookAtClusters", _eks(*READ_ACTIONS), every),
        {
            **allow("CreateClusters", _eks("CreateCluster", "TagResource"), []),
            "Resource": named,
            "Condition": {**request_tagged, **not_of_others(installation)},
        },
        allow(
            "CreateInClusters", _eks(*CREATE_WITHIN), [here.arn("eks", "cluster/*")], both(request_tagged, thing_tagged)
        ),
        *(
            allow(f"Change{kind.capitalize().replace('-', '')}", _eks(*actions), [here.arn("eks", f"{kind}/*")], on)
            for kind, actions in CHANGE.items()
            for on in [thing_tagged]
        ),
        *_network(here, installation, prefix),
    ]


def placement(here: ArnScope, installation: str) -> list[Statement]:
    """Placement groups of ours, in which machines with EFA stand close to each other."""
    request_tagged, thing_tagged = in_request(installation), on_thing(installation)
    group = [here.arn("ec2", "placement-group/*")]
    made_by = {"StringEquals": {"ec2:CreateAction": "CreatePlacementGroup"}}
    return [
        allow("CreatePlacement", ["ec2:CreatePlacementGroup"], group, request_tagged),
        allow("TagNewPlacement", ["ec2:CreateTags"], group, both(request_tagged, made_by)),
        # EKS tries in the caller's name whether machines can be had by a launch template.
        allow("UseOurPlacement", ["ec2:DeletePlacementGroup", "ec2:RunInstances"], group, thing_tagged),
    ]


def marked(installation: str, prefix: str, tag: str) -> dict[str, Any]:
    """The condition of what EKS made for a cluster of ours, as its tag says, and what no other installation has."""
    named = {f"aws:ResourceTag/{tag}": with_earlier("?*", f"{prefix}-*")}
    return {**in_request(installation), "StringLike": named, **not_of_others(installation)}


def roles(here: ArnScope, installation: str, account: CloudAccount, prefix: str) -> list[Statement]:
    """Roles within the boundary of such clusters, with policies of AWS that are named; those of people; and those that
    services make for themselves."""
    role = here.arn("iam", f"role{iam_kinds.PATH}{prefix}-*-role")
    bound = here.arn("iam", f"policy/{managed_boundary_name(account, prefix)}")
    boundary = {"StringEquals": {"iam:PermissionsBoundary": resolved(bound)}}
    policies = [f"arn:${{AWS::Partition}}:iam::aws:policy/{name}" for names in ATTACHED.values() for name in names]
    attached = {"ArnEquals": {"iam:PolicyARN": [resolved(policy) for policy in policies]}}
    people = [here.arn("iam", f"role{iam_kinds.PATH}{prefix}-*-{name}-role") for name in PEOPLE]
    thing_tagged = on_thing(installation)
    return [
        allow("CreateEksRoles", ["iam:CreateRole"], [role], both(in_request(installation), boundary)),
        allow("AttachPolicies", ["iam:AttachRolePolicy"], [role], {**both(thing_tagged, boundary), **attached}),
        allow("ActAsPeople", ["sts:AssumeRole"], people, thing_tagged),
        allow(
            "PassPodRoles",
            ["iam:PassRole"],
            [role],
            {"StringEquals": {"iam:PassedToService": "pods.eks.amazonaws.com"}},
        ),
        *_linked(here),
    ]


def files(here: ArnScope, installation: str) -> list[Statement]:
    """File systems and their mount targets, whose interfaces EFS makes in the caller's name."""
    request_tagged, thing_tagged = in_request(installation), on_thing(installation)
    system, interface = [here.arn("elasticfilesystem", "file-system/*")], here.arn("ec2", "network-interface/*")
    create = {"StringEquals": {"elasticfilesystem:CreateAction": "CreateFileSystem"}}
    linked = here.arn("iam", f"role/aws-service-role/{FILES}/AWSServiceRoleForAmazonElasticFileSystem")
    change = ["CreateMountTarget", "DeleteFileSystem", "DeleteMountTarget"]
    return [
        allow("LookAtFiles", _efs("DescribeFileSystems", "DescribeMountTargets"), system),
        allow("CreateFiles", _efs("CreateFileSystem"), system, request_tagged),
        allow("TagNewFiles", _efs("TagResource"), system, both(request_tagged, create)),
        allow("ChangeOurFiles", _efs(*change), system, thing_tagged),
        # AWS does not say whether EFS's calls in the caller's name count as a service's: with a condition on it new
        # targets might be refused. They stand in our subnets with our groups alone.
        allow("InterfacesOfTargets", ["ec2:CreateNetworkInterface"], [interface]),
        allow("RemoveTargetInterfaces", ["ec2:DeleteNetworkInterface"], [interface], VIA_SERVICE),
        allow(
            "InterfacesWithin",
            ["ec2:CreateNetworkInterface"],
            [here.arn("ec2", "security-group/*"), here.arn("ec2", "subnet/*")],
            thing_tagged,
        ),
        allow("FirstFiles", ["iam:CreateServiceLinkedRole"], [linked], {"StringEquals": {"iam:AWSServiceName": FILES}}),
    ]


def groups(here: ArnScope, installation: str, prefix: str) -> list[Statement]:
    """The scaling groups behind our node groups: how many machines they have, whose each is, which of them goes; and
    what machines beside them start from."""
    group = [here.arn("autoscaling", "autoScalingGroup:*:autoScalingGroupName/*")]
    change = ["autoscaling:SetDesiredCapacity", "autoscaling:TerminateInstanceInAutoScalingGroup"]
    made_by_eks = marked(installation, prefix, MADE_BY_EKS)
    # EKS reads the version of a group's launch template in the caller's name, when it makes the group and when it gives
    # it another version.
    reads = [
        "autoscaling:DescribeAutoScalingGroups",
        "autoscaling:DescribeScalingActivities",
        "ec2:DescribeLaunchTemplateVersions",
    ]
    return [
        allow("ReadGroups", reads, ["*"]),
        allow("ReadEksImages", ["ssm:GetParameter"], [IMAGES]),
        # EKS makes them without our tags, so we give them.
        allow("MarkGroups", ["autoscaling:CreateOrUpdateTags"], group, made_by_eks),
        allow("ChangeOurGroups", change, group, on_thing(installation)),
        # The claim that takes a machine marks it; from then on it is one of ours.
        allow(
            "MarkMachines",
            ["ec2:CreateTags"],
            [here.arn("ec2", "instance/*")],
            made_by_eks,
        ),
    ]


def blocks() -> list[Statement]:
    """Capacity blocks that the account has reserved, or that another account shares with it."""
    return [
        allow("ReadReservations", ["ec2:DescribeCapacityReservations"], ["*"]),
        allow("UseReservations", ["ec2:RunInstances"], [shared("ec2", "capacity-reservation/*")]),
    ]


def _eks(*names: str) -> list[str]:
    return [f"eks:{name}" for name in names]


def _efs(*names: str) -> list[str]:
    return [f"elasticfilesystem:{name}" for name in names]


def _linked(here: ArnScope) -> list[Statement]:
    arns = {service: here.arn("iam", f"role/aws-service-role/{service}/{name}") for service, name in LINKED.items()}
    named = {"StringEquals": {"iam:AWSServiceName": sorted(LINKED)}}
    return [
        allow("FirstCluster", ["iam:CreateServiceLinkedRole"], sorted(arns.values()), named),
        # EKS looks in the caller's name whether it is there. IAM knows the path of a role that is there only: before
        # the first group of an account it asks for the bare name.
        allow(
            "LookAtLinkedRole", ["iam:GetRole"], [arn for name in _LOOKED_AT for arn in (arns[name], _bare(here, name))]
        ),
    ]


def _bare(here: ArnScope, service: str) -> str:
    """The ARN of a service's role without its path."""
    return here.arn("iam", f"role/{LINKED[service]}")


def _network(here: ArnScope, installation: str, prefix: str) -> list[Statement]:
    group, thing_tagged = here.arn("ec2", "security-group/*"), on_thing(installation)
    return [
        allow("ChangeOurSubnets", ["ec2:ModifySubnetAttribute"], [here.arn("ec2", "subnet/*")], thing_tagged),
        allow("OpenOurGroups", ["ec2:AuthorizeSecurityGroupEgress"], [group], thing_tagged),
        allow("MarkClusterGroups", ["ec2:CreateTags"], [group], marked(installation, prefix, GROUP_OF_EKS)),
        allow(
            "RemoveInterfaces", ["ec2:DeleteNetworkInterface"], [here.arn("ec2", "network-interface/*")], thing_tagged
        ),
    ]
