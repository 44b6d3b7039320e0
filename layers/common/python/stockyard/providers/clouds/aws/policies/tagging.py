"""Rights of Stockyard to the tags of things that it has made: change those that a cluster's owner has chosen, and no
others.

That a thing is ours is known by its tags, so that who may change these could make anything ours, or lose it.
"""

from __future__ import annotations

from typing import Any

from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.kinds import iam as iam_kinds
from stockyard.providers.clouds.aws.policies import eks as eks_statements
from stockyard.providers.clouds.aws.policies.statements import ArnScope, Statement, allow, on_thing

RETAGGED = (
    "elastic-ip",
    "instance",
    "internet-gateway",
    "launch-template",
    "natgateway",
    "network-interface",
    "placement-group",
    "route-table",
    "security-group",
    "snapshot",
    "spot-instances-request",
    "subnet",
    "volume",
    "vpc",
    "vpc-endpoint",
)
"""Types of EC2's resources that carry a cluster's tags."""
RETAG = (
    "dlm:TagResource",
    "dlm:UntagResource",
    "ec2:CreateTags",
    "ec2:DeleteTags",
    "eks:TagResource",
    "eks:UntagResource",
    "elasticfilesystem:TagResource",
    "elasticfilesystem:UntagResource",
    "elasticloadbalancing:AddTags",
    "elasticloadbalancing:RemoveTags",
    "iam:TagInstanceProfile",
    "iam:TagRole",
    "iam:UntagInstanceProfile",
    "iam:UntagRole",
)
"""Actions that give and take tags of things that are there."""
FIXED = ("Name", tags.CLUSTER_OF_MEMBER, "aws:*", "kubernetes.io/*", "stockyard:*")
"""Keys of tags that no change of a cluster's tags may touch."""
NAMES_CLUSTER = "NameClusterOfMembers"
"""The statement that came with a version of its own: see ``template_versions``."""


def changed_tags(here: ArnScope, installation: str, prefix: str) -> list[Statement]:
    """Tags of things that carry our installation's tag; each call names its keys, and none of those that are fixed."""
    condition: dict[str, Any] = {
        **on_thing(installation),
        "ForAllValues:StringNotLike": {"aws:TagKeys": [*FIXED, f"{prefix}-cluster"]},
        # EC2 takes a call without keys for one that means all tags.
        "Null": {"aws:TagKeys": "false"},
    }
    policies = [here.arn("dlm", "policy/*")]
    things = [
        *(here.arn("ec2", f"{kind}/*") for kind in RETAGGED),
        *(here.arn("elasticloadbalancing", name) for name in ("loadbalancer/net/*", "targetgroup/*")),
        here.arn("iam", f"role{iam_kinds.PATH}{prefix}-*-role"),
        here.arn("iam", f"instance-profile{iam_kinds.PATH}{prefix}-*-instance-profile"),
        *(here.arn("eks", f"{kind}/*") for kind in eks_statements.THINGS),
        here.arn("elasticfilesystem", "file-system/*"),
        *policies,
    ]
    return [
        # One statement for all services: each of the actions knows only the things of its own.
        allow("Retag", list(RETAG), things, condition),
        allow(
            "ChangeSnapshotPolicies",
            ["dlm:GetLifecyclePolicy", "dlm:UpdateLifecyclePolicy"],
            policies,
            on_thing(installation),
        ),
    ]


def named_clusters(here: ArnScope, installation: str, prefix: str) -> list[Statement]:
    """A machine of ours may get the one tag by which the cloud controller knows the cluster that the machine's own tag
    names: that of no other cluster, and no tag besides. Members that are older than the tag get it so."""
    condition: dict[str, Any] = {
        "StringEquals": {
            **on_thing(installation)["StringEquals"],
            f"aws:RequestTag/{tags.CLUSTER_OF_MEMBER}": f"${{aws:ResourceTag/{prefix}-cluster}}",
        },
        "ForAllValues:StringEquals": {"aws:TagKeys": [tags.CLUSTER_OF_MEMBER]},
    }
    return [allow(NAMES_CLUSTER, ["ec2:CreateTags"], [here.arn("ec2", "instance/*")], condition)]
