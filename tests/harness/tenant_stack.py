"""A tenant's template as CloudFormation deploys it: which of its resources there are, and what its role has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local.template import CreatedResource, Stack


def resources(template: Mapping[str, Any], **parameters: str) -> dict[str, Any]:
    """Logical id -> resolved properties of what is made with these parameters; the others have their defaults. A
    reference is resolved to the logical id."""
    properties_by_id: dict[str, Any] = {}

    def make(_kind: str, logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        properties_by_id[logical] = properties
        return CreatedResource(logical, {"Arn": logical})

    Stack(template, {"AWS::Partition": "aws"}, {}, make, parameters).create()
    return properties_by_id


def attached(template: Mapping[str, Any], **parameters: str) -> list[str]:
    """The policies of the role, by their logical ids."""
    names: list[str] = resources(template, **parameters)["Role"]["ManagedPolicyArns"]
    return names


def role_tags(template: Mapping[str, Any], **parameters: str) -> dict[str, str]:
    """The tags of the role."""
    return {pair["Key"]: pair["Value"] for pair in resources(template, **parameters)["Role"]["Tags"]}
