"""The identity phase: the role of the cluster's machines and the instance profile that carries it."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from stockyard.domain.records import Resource
from stockyard.ports import Outcome
from stockyard.providers.clouds.aws import iam_kinds, tags
from stockyard.providers.clouds.aws.boundary import NODE_ACTIONS, boundary_arn
from stockyard.providers.clouds.aws.errors import accepting
from stockyard.providers.clouds.aws.statements import policy, trust
from stockyard.providers.clusters.ec2.building import Builder, Wish

POLICY_NAME = "node"

_TRUST = policy([trust("ec2.amazonaws.com")])


def node_policy() -> dict[str, Any]:
    """The inline policy of the role."""
    return policy([{"Sid": "ReadTheMachine", "Effect": "Allow", "Action": list(NODE_ACTIONS), "Resource": "*"}])


def profile_name(builder: Builder) -> str:
    """``{prefix}-{client_id}-instance-profile``."""
    return builder.name("instance-profile")


def ensure(builder: Builder) -> Outcome:
    """The role with its policy, and the profile with the role."""
    role, profile = builder.name("node-role"), profile_name(builder)

    def create_role(_line: Resource, marks: dict[str, str]) -> str:
        builder.calls.call(
            "iam",
            "create_role",
            RoleName=role,
            Path=iam_kinds.PATH,
            AssumeRolePolicyDocument=json.dumps(_TRUST),
            PermissionsBoundary=boundary_arn(builder.work.account, builder.config.name_prefix),
            Tags=tags.pairs(marks),
        )
        return role

    def create_profile(_line: Resource, marks: dict[str, str]) -> str:
        builder.calls.call(
            "iam", "create_instance_profile", InstanceProfileName=profile, Path=iam_kinds.PATH, Tags=tags.pairs(marks)
        )
        return profile

    def put_policy(_role: str) -> None:
        document = json.dumps(node_policy())
        builder.calls.call("iam", "put_role_policy", RoleName=role, PolicyName=POLICY_NAME, PolicyDocument=document)

    builder.want(Wish(iam_kinds.ROLE, "node", role, create_role, put_policy, identity=True))
    carry = partial(_carry, builder, role)
    builder.want(Wish(iam_kinds.INSTANCE_PROFILE, "node", profile, create_profile, carry, identity=True))
    return Outcome(True, f"{role} and {profile}")


def _carry(builder: Builder, role: str, profile: str) -> None:
    if role in iam_kinds.profile_roles(builder.calls, profile):
        return
    # A profile holds one role: with that answer it is there, and the listing was not up to date.
    with accepting("LimitExceeded"):
        builder.calls.call("iam", "add_role_to_instance_profile", InstanceProfileName=profile, RoleName=role)
