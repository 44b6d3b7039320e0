"""A tenant's template as CloudFormation deploys it: which of its resources there are, and what its role has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from local.aws.tenant_role import resources

__all__ = ["attached", "every_statement", "handed_to_iam", "resources", "role_tags", "statements"]


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
    deployed = resources(template, **(parameters or {}))
    names = deployed["Role"]["ManagedPolicyArns"]
    assert len(names) <= 7, "IAM attaches ten to a role, and organizations attach some of their own"
    statements: list[dict[str, Any]] = []
    for name in names:
        if name not in without:
            sids = {statement["Sid"] for statement in deployed[name]["PolicyDocument"]["Statement"]}
            statements += [statement for statement in _written(template["Resources"][name]) if statement["Sid"] in sids]
    return statements


def every_statement(template: Mapping[str, Any], *, without: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The statements of all managed policies, whatever is chosen, except those in ``without``."""
    policies = {n: r for n, r in template["Resources"].items() if r["Type"] == "AWS::IAM::ManagedPolicy"}
    return [s for name, resource in policies.items() if name not in without for s in _written(resource)]


def _written(resource: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The statements of a policy; some are there with a part of the template alone."""
    entries = resource["Properties"]["PolicyDocument"]["Statement"]
    return [entry["Fn::If"][1] if "Fn::If" in entry else entry for entry in entries]


def handed_to_iam(value: Any) -> Any:
    """A part of the template as CloudFormation hands it to IAM, in the partition with the longest name."""
    if isinstance(value, dict):
        inner = value.get("Fn::Sub")
        if "Fn::If" in value:  # an account without earlier clusters
            return handed_to_iam(value["Fn::If"][2])
        return handed_to_iam(inner) if inner else {name: handed_to_iam(item) for name, item in value.items()}
    if isinstance(value, list):
        return [handed_to_iam(item) for item in value]
    return value.replace("${AWS::Partition}", "aws-us-gov") if isinstance(value, str) else value
