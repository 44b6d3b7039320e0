"""The roles that we make in a tenant's account: under our path, and bounded by a policy of the tenant's template."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from stockyard.domain.records import CloudAccount, Resource
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.kinds import iam as iam_kinds
from stockyard.providers.clouds.aws.resources.cluster_building import ClusterBuilder
from stockyard.providers.clouds.aws.resources.making import DesiredResource
from stockyard.providers.clouds.aws.sessions import account_number, partition


def arn(account: CloudAccount, name: str) -> str:
    """The ARN of a role of ours in the account."""
    return f"arn:{partition(account)}:iam::{account_number(account)}:role{iam_kinds.PATH}{name}"


def bounded_role(
    builder: ClusterBuilder[Any],
    key: str,
    name: str,
    trust: Mapping[str, Any],
    boundary: str,
    configure: Callable[[str], None] | None = None,
) -> str:
    """The role, by its name; ``configure`` gives it what it may do."""

    def create(_line: Resource, marks: dict[str, str]) -> str:
        builder.calls.call(
            "iam",
            "create_role",
            RoleName=name,
            Path=iam_kinds.PATH,
            AssumeRolePolicyDocument=json.dumps(trust),
            PermissionsBoundary=boundary,
            Tags=tags.pairs(marks),
        )
        return name

    return builder.want(DesiredResource(iam_kinds.ROLE, key, name, create, configure, identity=True)).vendor_id
