"""A tenant's template as CloudFormation deploys it: which of its resources there are, and what its role has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from local.aws.tenant_role import resources


def attached(template: Mapping[str, Any], **parameters: str) -> list[str]:
    """The policies of the role, by their logical ids."""
    names: list[str] = resources(template, **parameters)["Role"]["ManagedPolicyArns"]
    return names


def role_tags(template: Mapping[str, Any], **parameters: str) -> dict[str, str]:
    """The tags of the role."""
    return {pair["Key"]: pair["Value"] for pair in resources(template, **parameters)["Role"]["Tags"]}


def statements(
    template: Mapping[str, Any], *, without: Sequence[str] = (), parameters: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """The statements of the role's policies, except those of the policies in ``without``. A parameter that is not named
    has its default."""
    names = attached(template, **(parameters or {}))
    assert len(names) <= 10, "IAM attaches no more to a role"
    policies = [template["Resources"][name]["Properties"]["PolicyDocument"] for name in names if name not in without]
    return [statement for policy in policies for statement in policy["Statement"]]


def handed_to_iam(value: Any) -> Any:
    """A part of the template as CloudFormation hands it to IAM, in the partition with the longest name."""
    if isinstance(value, dict):
        inner = value.get("Fn::Sub")
        return handed_to_iam(inner) if inner else {name: handed_to_iam(item) for name, item in value.items()}
    if isinstance(value, list):
        return [handed_to_iam(item) for item in value]
    return value.replace("${AWS::Partition}", "aws-us-gov") if isinstance(value, str) else value
