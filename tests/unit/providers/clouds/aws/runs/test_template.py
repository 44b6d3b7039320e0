"""The template for runs: what it opens, to whom, what bounds it, and that nothing else is a way out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local.aws.permissions import builds
from local.aws.permissions.account import Account as PermissionAccount
from local.aws.permissions.account import Settings
from local.aws.permissions.calls import Call
from local.aws.permissions.policies import allowed_by
from local.aws.tenant_role import resources
from stockyard.domain.records import CloudAccount
from stockyard.providers.clouds.aws.policies import tenant_template
from stockyard.providers.clouds.aws.runs import names, template
from tests.harness.closure.changes import CHANGED, MAKES, READS
from tests.harness.closure.foreign import PREFIX
from tests.harness.closure.rights import closure
from tests.harness.worlds.stage import Stage

NUMBER = "222222222222"
ACCOUNT = CloudAccount(
    "1", "aws", "a", "", {"role_arn": f"arn:aws:iam::{NUMBER}:role/stockyard"}, "ext-1", "verified", "", "t", "t"
)
KEYS = CloudAccount(
    "2",
    "aws",
    "a",
    "",
    {"user_arn": f"arn:aws:iam::{NUMBER}:user/teams/stockyard", "access_key_id": "AKIA0"},
    "ext-2",
    "verified",
    "",
    "t",
    "t",
)
BOUNDARY = f"arn:aws:iam::{NUMBER}:policy/of-the-tenant"
GRANT = f"arn:aws:iam::{NUMBER}:policy/of-the-programs"
ANYTHING_OF: dict[str, Any] = {
    service: {"Sid": "All", "Effect": "Allow", "Action": [f"{service}:*"], "Resource": "*"}
    for service in ("ec2", "elasticloadbalancing")
}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    text = json.dumps(template.render(ACCOUNT, PREFIX))
    assert len(text) < 51_200
    return dict(json.loads(text))


@pytest.fixture(scope="module")
def both(document: dict[str, Any]) -> dict[str, Any]:
    other = json.loads(json.dumps(tenant_template.render(ACCOUNT, "inst-1", Stage())))
    sections = ("Parameters", "Conditions", "Resources")
    return {**other, **{name: {**other[name], **document[name]} for name in sections}}


def test_stockyard_starts_builds_of_the_project_as_it_is_and_reads_their_log(document: dict[str, Any]) -> None:
    properties = resources(document)
    statements = properties["StartRuns"]["PolicyDocument"]["Statement"]
    name = names.project_name(ACCOUNT, PREFIX)
    permission_account = PermissionAccount(NUMBER, "us-east-1", Settings(None))

    def allowed(operation: str, **parameters: Any) -> bool:
        asks = list(builds.projects(Call("codebuild", operation, parameters, NUMBER, "us-east-1"), permission_account))
        return all(allowed_by(statements, ask) for ask in asks)

    assert allowed("StartBuild", projectName=name, buildspecOverride="{}", timeoutInMinutesOverride=60)
    assert allowed("BatchGetBuilds", ids=[f"{name}:1"])
    assert allowed("StopBuild", id=f"{name}:1")
    assert not allowed("StartBuild", projectName="of-somebody-else", buildspecOverride="{}")
    assert not allowed("StopBuild", id="of-somebody-else:1")
    for override in ("serviceRoleOverride", "imageOverride", "computeTypeOverride", "privilegedModeOverride"):
        assert not allowed("StartBuild", projectName=name, **{override: "other"})
    assert not [action for statement in statements for action in statement["Action"] if "*" in action]
    granted = {action for statement in statements for action in statement["Action"]}
    changing = {action for action in granted if not action.split(":")[1].startswith(READS)}
    assert changing <= CHANGED.keys() | MAKES.keys()


def test_role_of_builds_can_be_taken_by_builds_of_its_project_alone_and_writes_their_log(
    document: dict[str, Any],
) -> None:
    role = resources(document)["RunnerRole"]
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    name = names.project_name(ACCOUNT, PREFIX)
    assert trust["Principal"] == {"Service": "codebuild.amazonaws.com"}
    assert trust["Condition"] == {
        "StringEquals": {"aws:SourceAccount": NUMBER},
        "ArnEquals": {"aws:SourceArn": f"arn:aws:codebuild:us-east-1:{NUMBER}:project/{name}"},
    }
    (own,) = role["Policies"]
    assert [(s["Action"], s["Resource"]) for s in own["PolicyDocument"]["Statement"]] == [
        (
            ["logs:CreateLogStream", "logs:PutLogEvents"],
            [f"arn:aws:logs:us-east-1:{NUMBER}:log-group:/stockyard/{name}:log-stream:*"],
        ),
        (["secretsmanager:GetSecretValue"], [f"arn:aws:secretsmanager:us-east-1:{NUMBER}:secret:stockyard-runs/*"]),
    ]
    assert {"ManagedPolicyArns", "PermissionsBoundary"} & role.keys() == set()
    deployed = resources(document, Policies=f"{BOUNDARY},arn:aws:iam::aws:policy/ReadOnlyAccess", Boundary=BOUNDARY)
    assert len(deployed["RunnerRole"]["ManagedPolicyArns"]) == 2
    assert deployed["RunnerRole"]["PermissionsBoundary"] == BOUNDARY


def test_template_says_what_it_opens(document: dict[str, Any]) -> None:
    assert "it can use every right of the role RunnerRole" in document["Description"]
    assert len(document["Description"]) <= 1024
    assert "Stockyard can use all of them" in document["Parameters"]["Policies"]["Description"]
    project = resources(document, Proxy="http://proxy.example:3128")["Project"]
    assert project["Environment"]["EnvironmentVariables"] == [
        {"Name": "HTTPS_PROXY", "Value": "http://proxy.example:3128"}
    ]
    assert "EnvironmentVariables" not in resources(document)["Project"]["Environment"]
    assert "privilegedMode" not in json.dumps(project)
    # what somebody else starts there does nothing
    assert "false" in json.loads(project["Source"]["BuildSpec"])["phases"]["build"]["commands"][0]


def test_user_of_an_access_key_has_the_rights_too() -> None:
    rights = template.render(KEYS, PREFIX)["Resources"]["StartRuns"]
    assert (rights["Type"], rights["Properties"]["UserName"]) == ("AWS::IAM::UserPolicy", "stockyard")


def test_roles_of_runs_are_the_only_way_out(both: dict[str, Any], document: dict[str, Any]) -> None:
    other = {**both, "Resources": {k: v for k, v in both["Resources"].items() if k not in document["Resources"]}}
    before = closure(other)
    assert closure(both) == before
    policies = {GRANT: [ANYTHING_OF["ec2"], ANYTHING_OF["elasticloadbalancing"]], BOUNDARY: [ANYTHING_OF["ec2"]]}
    wide = closure(both, policies, Policies=GRANT)
    added = {change: holder for change, holder in wide.items() if change not in before}
    assert len(added) > 100
    assert set(added.values()) == {"our role by RunnerRole"}
    bounded = closure(both, policies, Policies=GRANT, Boundary=BOUNDARY)
    assert {change.partition(":")[0] for change in wide if change not in bounded} == {"elasticloadbalancing"}
    assert {change.partition(":")[0] for change in bounded if change not in before} == {"ec2"}
