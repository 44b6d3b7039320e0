"""The boundary of the roles of clusters on EKS: what they may change carries our tag, and so does what they make.

It has what AWS's policies for these roles allow and our clusters use, so that a role can do no more when AWS widens
one. Whoever may hand such a role to a service, or start a pod under it, gains nothing over what is not ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stockyard.providers.clouds.aws.policies.statements import Statement, in_request, on_thing

Arn = Callable[[str, str], Any]
Narrow = Callable[[dict[str, Any]], Any]
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
_CHANGE_NETWORK = (
    "AssignPrivateIpAddresses",
    "AttachNetworkInterface",
    "AuthorizeSecurityGroupIngress",
    "CreateRoute",
    "CreateTags",
    "DeleteNetworkInterface",
    "DeleteRoute",
    "DeleteSecurityGroup",
    "DetachNetworkInterface",
    "ModifyNetworkInterfaceAttribute",
    "RevokeSecurityGroupIngress",
    "UnassignPrivateIpAddresses",
)
_MAKE_BALANCERS = ("CreateLoadBalancer", "CreateTargetGroup")
_CHANGE_BALANCERS = (
    "AddTags",
    "ApplySecurityGroupsToLoadBalancer",
    "AttachLoadBalancerToSubnets",
    "ConfigureHealthCheck",
    "CreateListener",
    "CreateLoadBalancerListeners",
    "CreateLoadBalancerPolicy",
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


def boundary(arn: Arn, installation: str, narrow: Narrow) -> list[Statement]:
    """The statements. ``arn(service, resource)`` is in the account; ``narrow`` gives a condition as the account has it:
    one with clusters of an earlier release goes without."""
    linked = arn("iam", f"role/aws-service-role/{BALANCING_SERVICE}/AWSServiceRoleForElasticLoadBalancing")
    first = {"StringEquals": {"iam:AWSServiceName": BALANCING_SERVICE}}
    return [
        _allow("Read", _READS, "*"),
        _allow("PullImages", _of("ecr", _IMAGES), "*"),
        *_network(arn, installation, narrow),
        *_balancers(arn, installation, narrow),
        *_files(arn, installation, narrow),
        _allow("OwnCluster", ["eks:DescribeCluster", "eks-auth:AssumeRoleForPodIdentity"], arn("eks", "cluster/*")),
        _allow("FirstBalancer", ["iam:CreateServiceLinkedRole"], linked, first),
    ]


def _network(arn: Arn, installation: str, narrow: Narrow) -> list[Statement]:
    """The network's driver tags interfaces as it makes them; machines and their first interface have our tag by their
    launch template. A security group is one of a balancer."""
    tagged, thing_tagged = in_request(installation), on_thing(installation)
    new = [arn("ec2", "network-interface/*"), arn("ec2", "security-group/*")]
    made_by = {"ec2:CreateAction": ["CreateNetworkInterface", "CreateSecurityGroup"]}
    use = ["ec2:CreateNetworkInterface", "ec2:ModifyNetworkInterfaceAttribute"]
    make = ["ec2:CreateNetworkInterface", "ec2:CreateSecurityGroup"]
    return [
        _allow("UseGroups", use, [arn("ec2", "security-group/*"), arn("ec2", "subnet/*")]),
        _allow("UseNetworks", ["ec2:CreateSecurityGroup"], arn("ec2", "vpc/*")),
        _allow("MakeTagged", make, new, narrow(tagged)),
        _allow("TagNew", ["ec2:CreateTags"], new, narrow({"StringEquals": {**tagged["StringEquals"], **made_by}})),
        _allow("Network", _of("ec2", _CHANGE_NETWORK), arn("ec2", "*"), narrow(thing_tagged)),
    ]


def _balancers(arn: Arn, installation: str, narrow: Narrow) -> list[Statement]:
    """Bounds of the right to balancers, of which those of Services carry our tag by an annotation."""
    tagged, thing_tagged = in_request(installation), on_thing(installation)
    every = arn("elasticloadbalancing", "*")
    made_by = {"elasticloadbalancing:CreateAction": ["CreateListener", "CreateLoadBalancer", "CreateTargetGroup"]}
    tag_new = {"StringEquals": {**tagged["StringEquals"], **made_by}}
    return [
        _allow("MakeBalancers", _of("elasticloadbalancing", _MAKE_BALANCERS), every, narrow(tagged)),
        _allow("TagNewBalancers", ["elasticloadbalancing:AddTags"], every, narrow(tag_new)),
        _allow("Balancers", _of("elasticloadbalancing", _CHANGE_BALANCERS), every, narrow(thing_tagged)),
    ]


def _files(arn: Arn, installation: str, narrow: Narrow) -> list[Statement]:
    """Access points carry no tag that the driver was not built with: see decision 371."""
    point, made_by = arn("elasticfilesystem", "access-point/*"), {"elasticfilesystem:CreateAction": "CreateAccessPoint"}
    create, delete = ["elasticfilesystem:CreateAccessPoint"], ["elasticfilesystem:DeleteAccessPoint"]
    of_driver = {"Null": {"aws:ResourceTag/efs.csi.aws.com/cluster": "false"}}
    return [
        _allow("MakeAccessPoints", create, arn("elasticfilesystem", "file-system/*"), narrow(on_thing(installation))),
        _allow("TagAccessPoints", ["elasticfilesystem:TagResource"], point, {"StringEquals": made_by}),
        _allow("RemoveAccessPoints", delete, point, of_driver),
    ]


def _of(service: str, names: tuple[str, ...]) -> list[str]:
    return [f"{service}:{name}" for name in names]


def _allow(sid: str, actions: Any, resource: Any, condition: Any = None) -> Statement:
    statement: Statement = {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": resource}
    return statement | ({"Condition": condition} if condition else {})
