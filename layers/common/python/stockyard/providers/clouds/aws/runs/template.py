"""The CloudFormation template for runs: the project that carries them out in one region of a tenant's account, the role
of its builds, and the rights by which Stockyard starts them.

It is a template of its own: the tenant's other one has no room, IAM has no regions and CodeBuild has, and whoever
deploys it should read what it opens. Without it nothing that is not Stockyard's can be run in the account.
"""

from __future__ import annotations

from typing import Any

from stockyard.domain.records import CloudAccount
from stockyard.errors import PermissionDenied
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.policies.statements import Statement, allow, policy, resolved
from stockyard.providers.clouds.aws.policies.template_versions import TAG
from stockyard.providers.clouds.aws.runs import names
from stockyard.providers.clouds.aws.sessions import account_number, has_access_key, principal_arn

VERSION = 1
"""Version of the template, on the project's tag."""
IMAGE = "aws/codebuild/amazonlinux-aarch64-standard:3.0"
LOG_DAYS = 30
MINUTES = 180
"""Time-out of a build that names none; runs name their own."""
OVERRIDES = ("environment.computeType", "environment.image", "environment.privilegedMode", "serviceRole")
"""Settings of the project that no build of ours may have otherwise."""
BUILD_ACTIONS = ("codebuild:BatchGetBuilds", "codebuild:BatchGetProjects", "codebuild:StopBuild")
_REFUSING = '{"version":0.2,"phases":{"build":{"commands":["echo Stockyard starts builds of this project; false"]}}}'
_DESCRIPTION = (
    "Lets Stockyard run programs of node providers (OpenTofu) in this account, in the region of the stack. Stockyard"
    " decides what they do, so it can use every right of the role RunnerRole: what Policies gives it, within Boundary."
)
_PARAMETERS: dict[str, dict[str, str]] = {
    "Policies": {
        "Type": "CommaDelimitedList",
        "Default": "",
        "Description": "ARNs of the managed policies that programs need, at most nine. Stockyard can use all of them."
        " Without any they may write their log, and read secrets whose names begin with stockyard-runs/.",
    },
    "Boundary": {
        "Type": "String",
        "Default": "",
        "Description": "ARN of a managed policy of yours that bounds the programs' role, whatever Policies gives.",
    },
    "Image": {"Type": "String", "Default": IMAGE, "Description": "Image of the builds: 64-bit ARM, with Python 3."},
    "Proxy": {"Type": "String", "Default": "", "Description": "URL of a proxy that programs reach the internet by."},
}


def render(account: CloudAccount, prefix: str) -> dict[str, Any]:
    """The template as a document. It makes the same in each region where it is deployed."""
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": _DESCRIPTION,
        "Parameters": _PARAMETERS,
        "Conditions": {
            "NoPolicies": {"Fn::Equals": [{"Fn::Join": ["", {"Ref": "Policies"}]}, ""]},
            "NoBoundary": {"Fn::Equals": [{"Ref": "Boundary"}, ""]},
            "NoProxy": {"Fn::Equals": [{"Ref": "Proxy"}, ""]},
        },
        "Resources": {
            "Log": {
                "Type": "AWS::Logs::LogGroup",
                "Properties": {"LogGroupName": names.log_group(account, prefix), "RetentionInDays": LOG_DAYS},
            },
            "RunnerRole": _role(account, prefix),
            "Project": _project(account, prefix),
            "StartRuns": _rights(account, prefix),
        },
        "Outputs": {"RunnerRoleArn": {"Value": {"Fn::GetAtt": ["RunnerRole", "Arn"]}}},
    }


def missing(calls: Calls, account: CloudAccount, prefix: str) -> str:
    """Lack of the account in the region of the calls, in a sentence; empty when programs can run there."""
    name = names.project_name(account, prefix)
    try:
        projects = calls.call("codebuild", "batch_get_projects", names=[name]).get("projects", [])
    except PermissionDenied:
        projects = []
    if not projects:
        return (
            f"The template for runs is not deployed in {calls.region}: only node providers with programs that run there"
            " need it."
        )
    version = {tag["key"]: tag["value"] for tag in projects[0].get("tags", ())}.get(TAG, "")
    if version.isdecimal() and int(version) >= VERSION:
        return ""
    return (
        f"The template for runs in {calls.region} is version {version or 'unknown'}, the current one is {VERSION}:"
        " deploy it again."
    )


def _unless(condition: str, value: Any) -> dict[str, Any]:
    return {"Fn::If": [condition, {"Ref": "AWS::NoValue"}, value]}


def _here(account: CloudAccount, service: str, resource: str) -> str:
    """An ARN in the region of the stack."""
    return f"arn:${{AWS::Partition}}:{service}:${{AWS::Region}}:{account_number(account)}:{resource}"


def _role(account: CloudAccount, prefix: str) -> dict[str, Any]:
    """The role of the builds. Only builds of this project can take it."""
    project = _here(account, "codebuild", f"project/{names.project_name(account, prefix)}")
    group = _here(account, "logs", f"log-group:{names.log_group(account, prefix)}:log-stream:*")
    trusted = {
        "Effect": "Allow",
        "Principal": {"Service": "codebuild.amazonaws.com"},
        "Action": "sts:AssumeRole",
        "Condition": {
            "StringEquals": {"aws:SourceAccount": account_number(account)},
            "ArnEquals": {"aws:SourceArn": resolved(project)},
        },
    }
    statements = [
        allow("WriteLog", ["logs:CreateLogStream", "logs:PutLogEvents"], [group]),
        allow(
            "ReadSecrets",
            ["secretsmanager:GetSecretValue"],
            [_here(account, "secretsmanager", f"secret:{names.SECRETS}*")],
        ),
    ]
    return {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "RoleName": resolved(names.role_name(account, prefix, "${AWS::Region}")),
            "AssumeRolePolicyDocument": policy([trusted]),
            "ManagedPolicyArns": _unless("NoPolicies", {"Ref": "Policies"}),
            "PermissionsBoundary": _unless("NoBoundary", {"Ref": "Boundary"}),
            "Policies": [{"PolicyName": "runs", "PolicyDocument": policy(statements)}],
        },
    }


def _project(account: CloudAccount, prefix: str) -> dict[str, Any]:
    """The project. Its own buildspec refuses to do anything."""
    proxy = [{"Name": "HTTPS_PROXY", "Value": {"Ref": "Proxy"}}]
    return {
        "Type": "AWS::CodeBuild::Project",
        "Properties": {
            "Name": names.project_name(account, prefix),
            "Description": "Programs of node providers that Stockyard runs",
            "ServiceRole": {"Fn::GetAtt": ["RunnerRole", "Arn"]},
            "Source": {"Type": "NO_SOURCE", "BuildSpec": _REFUSING},
            "Artifacts": {"Type": "NO_ARTIFACTS"},
            "Environment": {
                "Type": "ARM_CONTAINER",
                "ComputeType": "BUILD_GENERAL1_SMALL",
                "Image": {"Ref": "Image"},
                "EnvironmentVariables": _unless("NoProxy", proxy),
            },
            "TimeoutInMinutes": MINUTES,
            "LogsConfig": {"CloudWatchLogs": {"Status": "ENABLED", "GroupName": {"Ref": "Log"}}},
            "Tags": [{"Key": TAG, "Value": str(VERSION)}],
        },
    }


def _rights(account: CloudAccount, prefix: str) -> dict[str, Any]:
    """Rights of Stockyard, within the principal of the account and not among its managed policies, of which IAM takes
    few."""
    name = principal_arn(account).rsplit("/", 1)[-1]
    kind, holder = ("UserPolicy", "UserName") if has_access_key(account) else ("RolePolicy", "RoleName")
    return {
        "Type": f"AWS::IAM::{kind}",
        "Properties": {
            "PolicyName": resolved(names.role_name(account, prefix, "${AWS::Region}")),
            holder: name,
            "PolicyDocument": policy(statements(account, prefix)),
        },
    }


def statements(account: CloudAccount, prefix: str) -> list[Statement]:
    """Rights of Stockyard: start builds of the project as it is, follow and stop them, and read their log."""
    project = [_here(account, "codebuild", f"project/{names.project_name(account, prefix)}")]
    stream = [_here(account, "logs", f"log-group:{names.log_group(account, prefix)}:log-stream:*")]
    as_it_is = {"Null": {f"codebuild:{setting}": "true" for setting in OVERRIDES}}
    return [
        allow("StartRuns", ["codebuild:StartBuild"], project, as_it_is),
        allow("FollowRuns", list(BUILD_ACTIONS), project),
        allow("ReadLogsOfRuns", ["logs:GetLogEvents"], stream),
    ]
