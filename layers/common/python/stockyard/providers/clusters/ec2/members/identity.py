"""The identity phase: the roles of the cluster's machines, the instance profiles that carry them, and the bucket that
members of the control plane may write to."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from stockyard.domain.records import CloudAccount, Resource
from stockyard.ports import Outcome
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.errors import accepting
from stockyard.providers.clouds.aws.kinds import iam as iam_kinds
from stockyard.providers.clouds.aws.policies import controller as controller_statements
from stockyard.providers.clouds.aws.policies.boundary import NODE_ACTIONS, boundary_arn
from stockyard.providers.clouds.aws.policies.statements import policy, trust
from stockyard.providers.clouds.aws.resources import roles
from stockyard.providers.clusters.ec2.building import Builder, DesiredResource
from stockyard.providers.clusters.ec2.configuration import cloud_controllers
from stockyard.providers.clusters.ec2.members import etcd_backup

_TRUST = policy([trust("ec2.amazonaws.com")])


def node_policy() -> dict[str, Any]:
    """The inline policy of a node's role."""
    return policy([{"Sid": "ReadTheMachine", "Effect": "Allow", "Action": list(NODE_ACTIONS), "Resource": "*"}])


def control_plane_policy(account: CloudAccount, owner: tags.Owner) -> dict[str, Any]:
    """The inline policy of a control plane's role: what the cluster's controllers need, for this cluster alone."""
    return controller_statements.of_cluster(account, owner, owner.client_id)


def control_plane_profile(builder: Builder) -> str:
    """The instance profile of the control plane's machine: with controllers it has a role of its own."""
    return builder.name("ctrl-instance-profile" if cloud_controllers(builder.work.cluster) else "instance-profile")


def ensure(builder: Builder) -> Outcome:
    """The roles with their policies, and the profiles with the roles."""
    _identity(builder, "node", "node-role", "instance-profile", node_policy())
    if cloud_controllers(builder.work.cluster):
        document = control_plane_policy(builder.work.account, builder.owner)
        _identity(builder, "control-plane", "ctrl-role", "ctrl-instance-profile", document)
        etcd_backup.ensure(builder)
    return Outcome(True, f"roles and profiles of {builder.owner.client_id}")


def _identity(builder: Builder, key: str, role_suffix: str, profile_suffix: str, document: dict[str, Any]) -> None:
    role, profile = builder.name(role_suffix), builder.name(profile_suffix)

    def create_profile(_line: Resource, marks: dict[str, str]) -> str:
        builder.calls.call(
            "iam", "create_instance_profile", InstanceProfileName=profile, Path=iam_kinds.PATH, Tags=tags.pairs(marks)
        )
        return profile

    def put_policy(_role: str) -> None:
        text = json.dumps(document)
        builder.calls.call("iam", "put_role_policy", RoleName=role, PolicyName=key, PolicyDocument=text)

    boundary = boundary_arn(builder.work.account, builder.config.name_prefix)
    roles.bounded_role(builder, key, role, _TRUST, boundary, put_policy)
    carry = partial(_carry, builder, role)
    builder.want(DesiredResource(iam_kinds.INSTANCE_PROFILE, key, profile, create_profile, carry, identity=True))


def _carry(builder: Builder, role: str, profile: str) -> None:
    if role in iam_kinds.profile_roles(builder.calls, profile):
        return
    # A profile holds one role: with that answer it is there, and the listing was not up to date.
    with accepting("LimitExceeded"):
        builder.calls.call("iam", "add_role_to_instance_profile", InstanceProfileName=profile, RoleName=role)
