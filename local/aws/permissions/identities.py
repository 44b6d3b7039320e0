"""The calls of IAM and STS as the permission checks that AWS does."""

from __future__ import annotations

from collections.abc import Iterator

from local.aws.permissions.account import Account
from local.aws.permissions.calls import Call, pass_role, request_tags, resource_tags, tag_keys, tags_of
from local.aws.permissions.policies import Ask, Context


def everything(call: Call, _account: Account) -> Iterator[Ask]:
    """The check of a list of all."""
    yield Ask(call.action, "*")


def asks(call: Call, account: Account) -> Iterator[Ask]:
    """The checks of a call on a role or an instance profile that there is; the ARN of an absent one has no path."""
    parameters = call.parameters
    profile = parameters.get("InstanceProfileName")
    kind = "instance-profile" if profile else "role"
    arn, tags, boundary = account.identity(kind, str(profile or parameters["RoleName"]))
    context: Context = {**resource_tags(tags), **tag_keys(parameters)}
    context |= request_tags(tags_of(parameters.get("Tags")))
    if boundary:
        context["iam:PermissionsBoundary"] = boundary
    if "PolicyArn" in parameters:
        context["iam:PolicyARN"] = parameters["PolicyArn"]
    yield Ask(call.action, arn, context)
    if call.operation == "AddRoleToInstanceProfile":
        yield pass_role(account.identity("role", parameters["RoleName"])[0])


def created(call: Call, account: Account) -> Iterator[Ask]:
    """The checks of a call that makes a role or an instance profile."""
    parameters = call.parameters
    is_role = call.operation == "CreateRole"
    thing, name = ("role", "RoleName") if is_role else ("instance-profile", "InstanceProfileName")
    arn = f"arn:aws:iam::{account.number}:{thing}{parameters.get('Path') or '/'}{parameters[name]}"
    tags = tags_of(parameters.get("Tags"))
    context: Context = request_tags(tags)
    if parameters.get("PermissionsBoundary"):
        context["iam:PermissionsBoundary"] = parameters["PermissionsBoundary"]
    yield Ask(call.action, arn, context)
    if tags:
        tagging = "iam:TagRole" if is_role else "iam:TagInstanceProfile"
        yield Ask(tagging, arn, {**request_tags(tags), "aws:TagKeys": tuple(tags)})


def assumed(call: Call, account: Account) -> Iterator[Ask]:
    """The check of who takes another role."""
    arn = call.parameters["RoleArn"]
    _, tags, _ = account.identity("role", arn.rpartition("/")[2])
    yield Ask(call.action, arn, resource_tags(tags))
