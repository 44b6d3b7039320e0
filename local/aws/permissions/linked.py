"""Roles of services, which a service makes in its caller's name with the first use in an account."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from local.aws.permissions.policies import Ask, Wording

if TYPE_CHECKING:
    from local.aws.permissions.account import Account

BALANCING = "elasticloadbalancing.amazonaws.com"
EKS, NODE_GROUPS = "eks.amazonaws.com", "eks-nodegroup.amazonaws.com"
FILES, SCALING, SPOT = "elasticfilesystem.amazonaws.com", "autoscaling.amazonaws.com", "spot.amazonaws.com"
LINKED: Mapping[str, str] = {
    BALANCING: "AWSServiceRoleForElasticLoadBalancing",
    EKS: "AWSServiceRoleForAmazonEKS",
    NODE_GROUPS: "AWSServiceRoleForAmazonEKSNodegroup",
    FILES: "AWSServiceRoleForAmazonElasticFileSystem",
    SCALING: "AWSServiceRoleForAutoScaling",
    SPOT: "AWSServiceRoleForEC2Spot",
}
"""Service -> the name of its role."""
_OF_EKS = "Failed to create service linked role: {role} due to missing permissions for 'iam:CreateServiceLinkedRole'"
_WORDINGS: Mapping[str, Wording] = {
    **{
        service: Wording("InvalidRequestException", _OF_EKS.format(role=LINKED[service]))
        for service in (EKS, NODE_GROUPS, SCALING)
    },
    SPOT: Wording(
        "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
        "The provided credentials do not have permission to create the service-linked role for EC2 Spot Instances.",
        is_in_answer=True,
    ),
}
"""Service -> how it says that its caller may not make the role."""


def path(service: str) -> str:
    """The path of a service's role."""
    return f"/aws-service-role/{service}/"


def arn(account: str, service: str) -> str:
    """The ARN of a service's role."""
    return f"arn:aws:iam::{account}:role{path(service)}{LINKED[service]}"


def first_use(account: Account, service: str) -> Iterator[Ask]:
    """Permission check for making the service's role; nothing where the account has it."""
    if account.role(LINKED[service]) is None:
        context = {"iam:AWSServiceName": service}
        yield Ask("iam:CreateServiceLinkedRole", arn(account.number, service), context, _WORDINGS.get(service))
