"""Least privilege, gate by gate: what the data says, and that the template says the same."""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import re
from typing import Any

import pytest

from stacks.config import Network, StageConfig
from stacks.functions import FUNCTIONS
from stacks.permissions import Permissions
from stacks.statements import WIDE, Statement

CONFIG = StageConfig(
    stage="dev", issuer="https://id.example.com/r", network=Network(("subnet-1",), ("sg-1",)), log_retention_days=14
)
NAMES = [spec.name for spec in FUNCTIONS]
PLACES = {"partition": "aws", "region": "us-east-1", "account": "111111111111", "stream": "STREAM"}


def statements(name: str, config: StageConfig = CONFIG) -> tuple[Statement, ...]:
    permissions = Permissions(config)
    return permissions.of_workflows() if name == "workflows" else permissions.of_function(name)


def allowed(name: str, action: str, resource: str, config: StageConfig = CONFIG) -> bool:
    """Whether the statements let the role do it; conditions are taken as met."""
    effects = {
        statement.effect
        for statement in statements(name, config)
        if action in statement.actions
        and any(fnmatch.fnmatchcase(resource, pattern.format(**PLACES)) for pattern in statement.resources)
    }
    return effects == {"Allow"}


@pytest.mark.parametrize("name", [*NAMES, "workflows"])
def test_no_action_is_a_wildcard_and_every_wide_resource_is_listed(name: str) -> None:
    for statement in statements(name):
        for action in statement.actions:
            assert re.fullmatch(r"[a-z0-9-]+:[A-Za-z]+", action), action
        if "*" in statement.resources:
            assert statement.resources == ("*",)
            assert statement.reason == WIDE[statement.sid]
        elif any("*" in resource or "?" in resource for resource in statement.resources):
            assert statement.reason, f"{statement.sid} has a wildcard and no reason"


def test_every_listed_wide_statement_is_used() -> None:
    used = {
        statement.sid
        for name in [*NAMES, "workflows"]
        for statement in statements(name)
        if statement.resources == ("*",)
    }
    assert used == set(WIDE)


@pytest.mark.parametrize("name", [*NAMES, "workflows"])
def test_statement_ids_are_unique_and_valid(name: str) -> None:
    sids = [statement.sid for statement in statements(name)]
    assert len(set(sids)) == len(sids)
    assert all(sid.isalnum() for sid in sids)


def test_what_goes_to_sites_and_runs_is_sealed_for_them_alone() -> None:
    writers = {"machines", "cloud_accounts"}
    """Functions that seal secrets of clusters and accounts."""
    for name in set(NAMES) - writers:
        for statement in statements(name):
            if "kms:GenerateDataKey" in statement.actions:
                [sealed] = [value for key, value in statement.conditions["StringLike"].items()]
                assert sealed == {"SiteSeals": "sit_*", "RunSeals": "run_*"}[statement.sid]


def test_permissions_of_unknown_function_raise_key_error() -> None:
    with pytest.raises(KeyError):
        Permissions(CONFIG).of_function("nobody")


SECRET = "arn:aws:secretsmanager:us-east-1:111111111111:secret:stockyard/dev/"
KEY = "arn:aws:kms:us-east-1:111111111111:key/0a1b"
TABLE = "arn:aws:dynamodb:us-east-1:111111111111:table/stockyard-dev"
TENANT_ROLE = "arn:aws:iam::222222222222:role/stockyard-access"
OWN_ROLE = "arn:aws:iam::111111111111:role/cdk-deploy"
PROVISION = "arn:aws:states:us-east-1:111111111111:stateMachine:stockyard-dev-provision-cluster"
STANDALONE = PROVISION.replace("provision-cluster", "provision-standalone-cluster")
EXECUTION = "arn:aws:states:us-east-1:111111111111:execution:stockyard-dev-"


@pytest.mark.parametrize(
    ("name", "action", "resource"),
    [
        ("cluster_phases", "states:SendTaskSuccess", PROVISION),
        *(
            ("reaper", "states:DescribeExecution", f"{EXECUTION}{name}:op_1-1")
            for name in (
                "provision-cluster",
                "delete-cluster",
                "retag-cluster",
                "provision-node",
                "delete-node",
                "power-node",
            )
        ),
        ("clusters", "secretsmanager:GetSecretValue", SECRET + "identity-admin-AbCdEf"),
        ("clusters", "sts:AssumeRole", TENANT_ROLE),
        ("node_providers", "dynamodb:DeleteItem", TABLE),
        ("node_claims", "dynamodb:UpdateItem", TABLE),
        ("apply", "dynamodb:PutItem", TABLE),
        ("apply", "dynamodb:DeleteItem", TABLE),
        ("apply", "sts:AssumeRole", TENANT_ROLE),
        ("apply", "kms:Decrypt", KEY),
        ("apply", "secretsmanager:GetSecretValue", SECRET + "identity-admin-AbCdEf"),
        ("machines", "states:SendTaskSuccess", PROVISION),
        ("machines", "secretsmanager:GetSecretValue", SECRET + "machine-key-AbCdEf"),
        ("relay", "states:StartExecution", PROVISION),
        ("relay", "dynamodb:Query", "arn:aws:dynamodb:us-east-1:111111111111:table/stockyard-dev/index/due"),
        ("relay", "dynamodb:PutItem", TABLE),
        ("relay", "dynamodb:ListStreams", "arn:aws:dynamodb:us-east-1:111111111111:table/stockyard-dev/stream/2026"),
        ("reaper", "dynamodb:Query", "arn:aws:dynamodb:us-east-1:111111111111:table/stockyard-dev/index/everything"),
        ("cluster_phases", "states:StopExecution", PROVISION.replace("stateMachine", "execution") + ":op_1"),
        ("node_phases", "sts:AssumeRole", TENANT_ROLE),
        ("node_phases", "secretsmanager:GetSecretValue", SECRET + "machine-key-AbCdEf"),
        ("cluster_phases", "secretsmanager:GetSecretValue", SECRET + "machine-key-AbCdEf"),
        ("cluster_phases", "kms:Decrypt", KEY),
        ("cluster_phases", "states:StopExecution", STANDALONE.replace("stateMachine", "execution") + ":op_1"),
        ("machines", "states:SendTaskSuccess", STANDALONE),
        ("scheduler", "dynamodb:Query", "arn:aws:dynamodb:us-east-1:111111111111:table/stockyard-dev/index/due"),
        ("scheduler", "dynamodb:UpdateItem", TABLE),
        ("relay", "states:StartExecution", PROVISION.replace("provision-cluster", "provision-node")),
        ("relay", "states:StartExecution", PROVISION.replace("provision-cluster", "delete-node")),
        (
            "node_phases",
            "states:StopExecution",
            PROVISION.replace("stateMachine", "execution").replace("-cluster", "-node") + ":op_1",
        ),
        ("requests", "events:PutEvents", "arn:aws:events:us-east-1:111111111111:event-bus/stockyard-dev"),
        ("catalog", "pricing:GetProducts", "*"),
        ("catalog", "eks:DescribeClusterVersions", "*"),
        (
            "workflows",
            "lambda:InvokeFunction",
            "arn:aws:lambda:us-east-1:111111111111:function:stockyard-dev-cluster-phases",
        ),
    ],
)
def test_function_permissions_allow_needed_calls(name: str, action: str, resource: str) -> None:
    assert allowed(name, action, resource)


@pytest.mark.parametrize(
    ("name", "action", "resource"),
    [
        ("records", "sts:AssumeRole", TENANT_ROLE),
        ("node_providers", "sts:AssumeRole", TENANT_ROLE),
        ("node_claims", "sts:AssumeRole", TENANT_ROLE),
        ("node_claims", "states:StartExecution", PROVISION),
        ("node_claims", "kms:GenerateDataKey", KEY),
        ("apply", "states:StartExecution", PROVISION),
        ("apply", "sts:AssumeRole", OWN_ROLE),
        ("apply", "secretsmanager:GetSecretValue", SECRET + "page-key-AbCdEf"),
        ("machines", "sts:AssumeRole", TENANT_ROLE),
        # Whoever has this key can make the token of any machine.
        *(
            (name, "secretsmanager:GetSecretValue", SECRET + "machine-key-AbCdEf")
            for name in sorted({*NAMES} - {"machines", "node_phases", "cluster_phases", "reaper", "runs"})
        ),
        ("machines", "secretsmanager:GetSecretValue", SECRET + "page-key-AbCdEf"),
        ("node_phases", "secretsmanager:GetSecretValue", SECRET + "page-key-AbCdEf"),
        ("clusters", "sts:AssumeRole", OWN_ROLE),
        ("cloud_accounts", "sts:AssumeRole", OWN_ROLE),
        ("node_phases", "sts:AssumeRole", OWN_ROLE),
        ("cloud_accounts", "secretsmanager:GetSecretValue", SECRET + "identity-admin-AbCdEf"),
        ("machines", "kms:Decrypt", KEY),
        ("records", "kms:Decrypt", KEY),
        ("clusters", "kms:GenerateDataKey", KEY),
        ("clusters", "secretsmanager:GetSecretValue", SECRET.replace("/dev/", "/prod/") + "identity-admin-AbCdEf"),
        ("clusters", "states:StartExecution", PROVISION),
        ("reaper", "states:StopExecution", PROVISION.replace("stateMachine", "execution") + ":op_1"),
        ("clusters", "dynamodb:Query", "arn:aws:dynamodb:us-east-1:111111111111:table/stockyard-dev/index/everything"),
        ("records", "dynamodb:Query", "arn:aws:dynamodb:us-east-1:111111111111:table/stockyard-prod"),
    ],
)
def test_function_permissions_refuse_other_calls(name: str, action: str, resource: str) -> None:
    assert not allowed(name, action, resource)


def test_stage_pattern_narrows_tenant_roles() -> None:
    narrow = dataclasses.replace(CONFIG, tenant_role_pattern="stockyard-*")
    assert allowed("clusters", "sts:AssumeRole", TENANT_ROLE, narrow)
    assert not allowed("clusters", "sts:AssumeRole", "arn:aws:iam::222222222222:role/admin", narrow)


def test_stage_can_allow_roles_of_own_account() -> None:
    assert allowed("clusters", "sts:AssumeRole", OWN_ROLE, dataclasses.replace(CONFIG, allow_own_account=True))


def test_only_account_verification_may_omit_external_id() -> None:
    for name in NAMES:
        for statement in statements(name):
            if statement.sid == "TenantRoles":
                demanded = statement.conditions == {"Null": {"sts:ExternalId": "false"}}
                assert demanded is (name != "cloud_accounts"), name


def _plain(value: Any) -> str:
    """An ARN of the template with its parameters filled in."""
    if isinstance(value, str):
        return value
    if "Fn::ImportValue" in value:
        return "STREAM"
    names = {"AWS::Partition": "partition", "AWS::Region": "region", "AWS::AccountId": "account"}
    return "".join(part if isinstance(part, str) else PLACES[names[part["Ref"]]] for part in value["Fn::Join"][1])


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize("name", [*NAMES, "workflows"])
def test_template_grants_exactly_the_permission_statements(assembly: Any, name: str) -> None:
    if name == "workflows":
        owner = next(iter(assembly.of_type("AWS::StepFunctions::StateMachine").values()))["Properties"]["RoleArn"]
    else:
        owner = assembly.function(name)[1]["Role"]
    role = assembly.service["Resources"][owner["Fn::GetAtt"][0]]["Properties"]
    assert "ManagedPolicyArns" not in role
    (policy,) = role["Policies"]
    granted = [
        (
            statement["Sid"],
            statement["Effect"],
            sorted(_list(statement["Action"])),
            sorted(_plain(resource) for resource in _list(statement["Resource"])),
            statement.get("Condition", {}),
        )
        for statement in policy["PolicyDocument"]["Statement"]
    ]
    expected = [
        (
            statement.sid,
            statement.effect,
            sorted(statement.actions),
            sorted(resource.format(**PLACES) for resource in statement.resources),
            dict(statement.conditions),
        )
        for statement in statements(name, dataclasses.replace(CONFIG, network=None))
    ]
    assert granted == expected


def test_policies_exist_only_inline_in_roles(assembly: Any) -> None:
    types = {resource["Type"] for resource in assembly.service["Resources"].values()}
    assert not {"AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::User"} & types
    assert "arn:aws:iam::aws:policy" not in json.dumps(assembly.service)
