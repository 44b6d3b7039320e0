"""Roles and policies that a tenant's template makes in its account: the role that we assume, its policies and the
boundaries of others; in the template's current version or, as an account may have it, in an earlier one."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from local.aws.accounts import REGION
from local.template import CreatedResource, Stack, TemplateError
from stockyard.providers.clouds.aws.policies.template_parts import EARLIER, YES
from stockyard.providers.clouds.aws.policies.template_versions import ADDITIONS, CURRENT, NARROW, SHARED_NETWORKS, TAG

PSEUDO = {"AWS::Partition": "aws", "AWS::NoValue": "", "AWS::Region": REGION}
_ACCOUNT = re.compile(r":ec2:\*:([0-9]{12}):")
_PATHLESS = 7
"""The version with which services' roles may be looked at that are not there, whose ARN has no path."""


def deploy(iam: Any, template: Mapping[str, Any], account: str, trust: Mapping[str, Any], **parameters: str) -> None:
    """Make the resources of a template by a client of IAM. The role trusts whom ``trust`` says; parameters that are not
    named have their defaults. Raises ``TemplateError`` for a type that is not IAM's."""
    Stack(template, PSEUDO, {}, _factory(iam, account, trust), parameters).create()


def deploy_runs(client: Callable[[str], Any], template: Mapping[str, Any], account: str, **parameters: str) -> None:
    """Make the resources of a template for runs by clients of the services."""
    iam = _factory(client("iam"), account, {})

    def make(kind: str, logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        if kind == "AWS::Logs::LogGroup":
            client("logs").create_log_group(logGroupName=properties["LogGroupName"])
            return CreatedResource(properties["LogGroupName"])
        if kind == "AWS::CodeBuild::Project":
            client("codebuild").create_project(**_as_sent(properties))
            return CreatedResource(properties["Name"])
        if kind in _INLINE:
            put, holder = _INLINE[kind]
            names = {holder: properties[holder], "PolicyName": properties["PolicyName"]}
            getattr(client("iam"), put)(**names, PolicyDocument=json.dumps(properties["PolicyDocument"]))
            return CreatedResource(properties["PolicyName"])
        return iam(kind, logical, properties)

    Stack(template, PSEUDO, {}, make, parameters).create()


_INLINE = {
    "AWS::IAM::RolePolicy": ("put_role_policy", "RoleName"),
    "AWS::IAM::UserPolicy": ("put_user_policy", "UserName"),
}


def _as_sent(value: Any) -> Any:
    """Properties of a project as CodeBuild's API takes them, whose names begin small."""
    if isinstance(value, Mapping):
        return {_SENT.get(key, key[0].lower() + key[1:]): _as_sent(inner) for key, inner in value.items()}
    return [_as_sent(inner) for inner in value] if isinstance(value, list) else value


_SENT = {"BuildSpec": "buildspec"}


def resources(template: Mapping[str, Any], **parameters: str) -> dict[str, Any]:
    """Logical id -> the resolved properties of what a template makes; a reference is the logical id."""
    properties_by_id: dict[str, Any] = {}

    def make(_kind: str, logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        properties_by_id[logical] = properties
        return CreatedResource(logical, {"Arn": logical})

    Stack(template, PSEUDO, {}, make, parameters).create()
    return properties_by_id


def _factory(iam: Any, account: str, trust: Mapping[str, Any]) -> Callable[[str, str, Any], CreatedResource]:
    def make(kind: str, logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        if kind == "AWS::IAM::ManagedPolicy":
            name = properties.get("ManagedPolicyName") or f"tenant-{logical}"
            document = json.dumps(properties["PolicyDocument"])
            arn = iam.create_policy(PolicyName=name, PolicyDocument=document)["Policy"]["Arn"]
            return CreatedResource(arn)
        if kind != "AWS::IAM::Role":
            raise TemplateError(f"{logical} ({kind}) is not made here")
        name = properties.get("RoleName") or f"tenant-{logical}"
        trusted = trust if logical == "Role" else properties["AssumeRolePolicyDocument"]
        optional = {"Tags": properties["Tags"]} if "Tags" in properties else {}
        if "PermissionsBoundary" in properties:
            optional["PermissionsBoundary"] = properties["PermissionsBoundary"]
        iam.create_role(
            RoleName=name,
            Path=properties.get("Path", "/"),
            AssumeRolePolicyDocument=json.dumps(trusted),
            **optional,
        )
        for policy in properties.get("Policies", ()):
            document = json.dumps(policy["PolicyDocument"])
            iam.put_role_policy(RoleName=name, PolicyName=policy["PolicyName"], PolicyDocument=document)
        for arn in properties.get("ManagedPolicyArns", ()):
            iam.attach_role_policy(RoleName=name, PolicyArn=arn)
        return CreatedResource(name, {"Arn": f"arn:aws:iam::{account}:role{properties.get('Path', '/')}{name}"})

    return make


def of_version(template: Mapping[str, Any], version: int) -> dict[str, Any]:
    """The template as it was in that version: without the actions and statements that came later, and tagged
    so."""
    earlier = copy.deepcopy(dict(template))
    additions = [addition for addition in ADDITIONS if addition.version > version]
    later = {action for addition in additions if not addition.statement for action in addition.actions}
    account = next(iter(_ACCOUNT.findall(json.dumps(template))), "")
    statement_ids = {addition.statement for addition in additions if addition.statement}
    if version < NARROW:
        earlier["Parameters"][EARLIER]["Default"] = YES
    for resource in earlier["Resources"].values():
        properties = resource["Properties"]
        if resource["Type"] == "AWS::IAM::ManagedPolicy":
            document = properties["PolicyDocument"]
            statements = [(_earlier(_of_all(entry), later, version, account), entry) for entry in document["Statement"]]
            document["Statement"] = [
                _as_chosen(entry, statement)
                for statement, entry in statements
                if statement["Action"] and statement["Sid"] not in statement_ids
            ]
        for tag in properties.get("Tags", ()):
            if isinstance(tag, dict) and tag.get("Key") == TAG:
                tag["Value"] = str(min(version, CURRENT))
    return earlier


def _of_all(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """A statement, also one that is there with a part of the template alone."""
    statement: Mapping[str, Any] = entry["Fn::If"][1] if "Fn::If" in entry else entry
    return statement


def _as_chosen(entry: Mapping[str, Any], statement: dict[str, Any]) -> dict[str, Any]:
    if "Fn::If" not in entry:
        return statement
    name, _, otherwise = entry["Fn::If"]
    return {"Fn::If": [name, statement, otherwise]}


def _earlier(statement: Mapping[str, Any], later: set[str], version: int, account: str) -> dict[str, Any]:
    changed = {**statement, "Action": [action for action in statement["Action"] if action not in later]}
    if version < SHARED_NETWORKS:
        changed["Resource"] = json.loads(json.dumps(changed["Resource"]).replace(":*:*:", f":*:{account}:"))
    if version < _PATHLESS and statement["Sid"] == "LookAtLinkedRole":
        changed["Resource"] = [arn for arn in statement["Resource"] if "/aws-service-role/" in json.dumps(arn)]
    return changed
