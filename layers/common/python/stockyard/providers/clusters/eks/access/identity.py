"""The identity phase: the roles of the control plane, the nodes, the EFS driver, and of people by what they may do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from stockyard.domain.records import Cluster
from stockyard.errors import VendorNotFound
from stockyard.ports import Outcome
from stockyard.ports.clusters import ADMIN, OPERATOR, VIEWER
from stockyard.providers.clouds.aws.kinds import iam as iam_kinds
from stockyard.providers.clouds.aws.policies import controller
from stockyard.providers.clouds.aws.policies.boundary import boundary_arn
from stockyard.providers.clouds.aws.policies.eks_roles import ATTACHED, managed_boundary_arn, policy_arn
from stockyard.providers.clouds.aws.policies.statements import policy, trust
from stockyard.providers.clouds.aws.resources import roles
from stockyard.providers.clouds.aws.sessions import principal_arn
from stockyard.providers.clusters.eks import names
from stockyard.providers.clusters.eks.building import Builder
from stockyard.providers.clusters.eks.configuration import has_block_storage, has_storage

CONTROL_PLANE, NODE, FILES, VOLUMES = "cluster", "node", "efs-csi", "ebs-csi"
PEOPLE = (VIEWER, OPERATOR, ADMIN)
_OF_PODS = {**trust("pods.eks.amazonaws.com"), "Action": ["sts:AssumeRole", "sts:TagSession"]}


@dataclass(frozen=True, slots=True)
class _Role:
    key: str
    trust: Mapping[str, Any]


def ensure(builder: Builder) -> Outcome:
    """The roles with their policies. Those of people have none: what they may do, the cluster says."""
    cluster = builder.work.cluster
    if has_block_storage(cluster):
        _driver_of_volumes(builder)
    boundary = managed_boundary_arn(builder.work.account, builder.config.name_prefix)
    for role in _roles(builder):
        waiting = _without_former_trust(builder, role)
        if waiting:
            return Outcome(False, waiting)
        name = role_name(builder, role.key)
        roles.bounded_role(builder, role.key, name, role.trust, boundary, partial(_attach, builder, role.key, name))
    return Outcome(True, f"roles of {cluster.client_id}")


def _driver_of_volumes(builder: Builder) -> None:
    """The role of the driver of EBS: as on clusters of kubeadm it may change volumes of its cluster alone, within the
    boundary that the template has for those."""
    name, account = role_name(builder, VOLUMES), builder.work.account
    document = controller.of_cluster(account, builder.owner, names.cluster_name(builder.work.cluster))

    def put_policy(_role: str) -> None:
        text = json.dumps(document)
        builder.calls.call("iam", "put_role_policy", RoleName=name, PolicyName=VOLUMES, PolicyDocument=text)

    boundary = boundary_arn(account, builder.config.name_prefix)
    roles.bounded_role(builder, VOLUMES, name, policy([_OF_PODS]), boundary, put_policy)


def _without_former_trust(builder: Builder, role: _Role) -> str | None:
    """Remove a role of people that trusts somebody else than us: IAM keeps the id of whom a role trusts, and shows it
    once the principal is gone, also where one of the name was made again. What is waited for."""
    line = builder.ledger.find(iam_kinds.ROLE.name, role.key)
    if role.key not in PEOPLE or line is None or line.state != "made":
        return None
    try:
        described = iam_kinds.ROLE.describe(builder.calls, line.vendor_id) or {}
    except VendorNotFound:
        return None
    trusted = [statement.get("Principal") for statement in described["AssumeRolePolicyDocument"]["Statement"]]
    expected = [statement["Principal"] for statement in role.trust["Statement"]]
    return None if trusted == expected else builder.remove(line)


def role_name(builder: Builder, key: str) -> str:
    """Name of the role."""
    return names.role_name(builder.config.name_prefix, builder.work.cluster.client_id, f"{key}-role")


def arn(builder: Builder, key: str) -> str:
    """The ARN of one of the roles."""
    return roles.arn(builder.work.account, role_name(builder, key))


def keys(cluster: Cluster) -> tuple[str, ...]:
    """The roles of a cluster."""
    drivers = ((VOLUMES, has_block_storage(cluster)), (FILES, has_storage(cluster)))
    return (CONTROL_PLANE, NODE, *(key for key, is_there in drivers if is_there), *PEOPLE)


def _roles(builder: Builder) -> list[_Role]:
    own = {"Effect": "Allow", "Principal": {"AWS": principal_arn(builder.work.account)}, "Action": "sts:AssumeRole"}
    statements = {CONTROL_PLANE: trust("eks.amazonaws.com"), NODE: trust("ec2.amazonaws.com"), FILES: _OF_PODS}
    of_policies = (key for key in keys(builder.work.cluster) if key != VOLUMES)
    return [_Role(key, policy([statements.get(key, own)])) for key in of_policies]


def _attach(builder: Builder, key: str, name: str, _role: str) -> None:
    for attached in ATTACHED.get(key, ()):
        builder.calls.call(
            "iam", "attach_role_policy", RoleName=name, PolicyArn=policy_arn(builder.work.account, attached)
        )
