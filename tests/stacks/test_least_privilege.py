"""Least privilege on both sides: each AWS call of our functions, our workflows and in a tenant's account is allowed by
the synthesized policies, and nothing is granted that nobody uses."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from local.aws.accounts import ACME_ACCOUNT, OWN_ACCOUNT, REGION
from local.aws.permissions.policies import Ask, allowed_by
from local.seeds import TENANT_ROLE
from local.template import CreatedResource, Stack
from stacks.functions import FUNCTIONS
from stacks.names import CREATIONS, RUNNERS, Names
from stacks.statements import WIDE
from stockyard.domain.records import CloudAccount
from stockyard.providers.clouds.aws.tags import Owner
from stockyard.providers.clusters.ec2.members.identity import control_plane_policy, node_policy
from tests.harness import tenant_stack
from tests.harness.asks import served_asks
from tests.harness.own_calls import own_asks, workflow_asks
from tests.harness.policies import Asks, Policies, refused, used, without
from tests.stacks.privilege import (
    UNUSED,
    UNUSED_BY_TENANT,
    WIDE_FOR_TENANTS,
    Attributes,
    grants,
    has_no_resource,
    listed,
    resolved,
)
from tests.stacks.privilege_run import everything_once

if TYPE_CHECKING:
    from local.testing.serving import Served

pytestmark = pytest.mark.timeout(1200)

NAMES = [spec.name for spec in FUNCTIONS]
WORKFLOWS = "workflows"
TENANT = "tenant"
ROLE = f"arn:aws:iam::{ACME_ACCOUNT}:role/stockyard"
WORKFLOW = f"arn:aws:states:{REGION}:{OWN_ACCOUNT}:stateMachine:{Names('dev').workflow(CREATIONS[0])}"


@pytest.fixture(scope="module")
def calls(served: Served) -> list[dict[str, Any]]:
    """The calls of a run that lets every function do all its kinds of work."""
    return everything_once(served)


# --- the policies, as they are synthesized ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own_policies(assembly: Any) -> Policies:
    """From the templates: each function's statements, and those of the state machines."""
    owners: dict[str, str] = {}
    roles: dict[str, list[dict[str, Any]]] = {}

    def make(type_: str, logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        if type_ == "AWS::IAM::Role":
            assert "ManagedPolicyArns" not in properties, logical
            roles[f"{logical}.Arn"] = [
                s for policy in properties["Policies"] for s in policy["PolicyDocument"]["Statement"]
            ]
        if type_ == "AWS::Lambda::Function":
            owners[properties["Handler"].split(".")[1]] = properties["Role"]
        if type_ == "AWS::StepFunctions::StateMachine":
            assert owners.setdefault(WORKFLOWS, properties["RoleArn"]) == properties["RoleArn"]
        return CreatedResource(properties.get("FunctionName", logical), Attributes(logical))

    pseudo = {"AWS::Partition": "aws", "AWS::Region": REGION, "AWS::AccountId": OWN_ACCOUNT, "AWS::URLSuffix": "aws"}
    exports = Stack(assembly.data, pseudo, {}, make).create()
    Stack(assembly.service, pseudo, exports, make).create()
    assert set(owners.values()) == set(roles), "a role that nobody looks at"
    assert set(owners) == {*NAMES, WORKFLOWS}
    return {name: listed(roles[arn]) for name, arn in owners.items()}


@pytest.fixture(scope="module")
def tenant_template(served: Served) -> dict[str, Any]:
    template: dict[str, Any] = served.call("GET", "/v1/cloud-accounts/1/template").body
    return template


@pytest.fixture(scope="module")
def tenant_policies(served: Served, tenant_template: dict[str, Any]) -> Policies:
    """Policies that the templates of the API give the role, as CloudFormation hands them to IAM."""
    assert "Policies" not in tenant_template["Resources"]["Role"]["Properties"]
    of_role = [resolved(statement) for statement in tenant_stack.statements(tenant_template)]
    for_runs = tenant_stack.resources(served.call("GET", "/v1/cloud-accounts/1/template?runs=true").body)["StartRuns"]
    return {TENANT: listed([*of_role, *for_runs["PolicyDocument"]["Statement"]])}


# --- what was asked of AWS -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own(calls: list[dict[str, Any]], served: Served) -> Asks:
    """Permission checks by function; and those of the tasks of the deployed workflow documents."""
    asks: dict[str, dict[str, Ask]] = {name: {} for name in (*NAMES, WORKFLOWS)}
    for call in calls:
        if call["side"] == "own":
            asks[call["function"]].update({str(ask): ask for ask in own_asks(call, OWN_ACCOUNT, WORKFLOW)})
    client = served.aws("stepfunctions")
    for name in RUNNERS:
        arn = f"arn:aws:states:{REGION}:{OWN_ACCOUNT}:stateMachine:{Names('dev').workflow(name)}"
        document = json.loads(client.describe_state_machine(stateMachineArn=arn)["definition"])
        asks[WORKFLOWS].update({str(ask): ask for ask in workflow_asks(document)})
    return asks


@pytest.fixture(scope="module")
def tenant(calls: list[dict[str, Any]], served: Served) -> Asks:
    """Permission checks of the local cloud for each call."""
    assert calls
    asks = served_asks(served.home, TENANT_ROLE)
    assert [str(ask) for ask, is_refused in asks if is_refused] == []
    return {TENANT: {str(ask): ask for ask, _ in asks}}


# --- our own side ----------------------------------------------------------------------------------------------------


def test_calls_of_functions_and_workflows_are_allowed(own: Asks, own_policies: Policies) -> None:
    assert {role for role, asks in own.items() if not asks} == set(), "not seen at all"
    assert refused(own, own_policies) == []


def test_logs_of_runs_are_written_and_read_by_the_functions_that_may(own_policies: Policies) -> None:
    bucket = Names("dev").bucket.format(account=OWN_ACCOUNT, region=REGION)
    call = {"service": "S3", "region": REGION, "parameters": {"Bucket": bucket, "Key": "logs/acme/op_1/0001/console/1"}}
    other = {**call, "parameters": {**call["parameters"], "Key": "others/acme/1"}}
    writers, readers = ("cluster_phases", "node_phases", "runs"), ("records",)
    for operation, roles in (("PutObject", writers), ("GetObject", readers), ("DeleteObject", ())):
        for role in NAMES:
            [ask] = own_asks({**call, "operation": operation}, OWN_ACCOUNT, WORKFLOW)
            assert bool(allowed_by(own_policies[role], ask)) == (role in roles), (role, operation)
            [ask] = own_asks({**other, "operation": operation}, OWN_ACCOUNT, WORKFLOW)
            assert not allowed_by(own_policies[role], ask), (role, operation)


@pytest.mark.parametrize("role", [*NAMES, WORKFLOWS])
def test_every_grant_of_a_role_is_used(own: Asks, own_policies: Policies, role: str) -> None:
    may = grants(own_policies[role])
    excused = {action for name, action in UNUSED if name == role}
    assert sorted(may - used(own, own_policies)[role] - excused) == []
    assert sorted(excused - may) == [], "a reason for what is not granted"


def test_removing_any_grant_of_own_roles_is_noticed(own: Asks, own_policies: Policies) -> None:
    _each_is_missed(own, own_policies)


def _each_is_missed(asks: Asks, policies: Policies) -> None:
    """Every grant that is used, taken away alone, makes :func:`refused` name who needs which action.

    Only the checks of that action are asked again: a statement decides by the action's own name, as another test shows.
    """
    for role, role_grants in used(asks, policies).items():
        by_action: dict[str, dict[str, Ask]] = defaultdict(dict)
        for text, ask in asks[role].items():
            by_action[ask.action][text] = ask
        for grant in role_grants:
            sid, action = grant.split(" ")
            refusals = refused({role: by_action[action]}, {role: without(policies[role], sid, action)})
            assert refusals, f"{role} may {action} without {sid} too"


# --- the tenant's side -----------------------------------------------------------------------------------------------


def test_calls_in_tenant_account_are_allowed(tenant: Asks, tenant_policies: Policies) -> None:
    assert refused(tenant, tenant_policies) == []
    actions = {ask.action for ask in tenant[TENANT].values()}
    implied = {
        "ec2:CreateTags",
        "iam:PassRole",
        "iam:TagRole",
        "iam:TagInstanceProfile",
        "elasticloadbalancing:AddTags",
    }
    assert implied | {"iam:CreateServiceLinkedRole"} <= actions


def test_every_grant_of_tenant_role_is_needed(tenant: Asks, tenant_policies: Policies) -> None:
    may = grants(tenant_policies[TENANT])
    assert sorted(may - used(tenant, tenant_policies)[TENANT] - set(UNUSED_BY_TENANT)) == []
    assert sorted(set(UNUSED_BY_TENANT) - may) == [], "a reason for what is not granted"


def test_removing_any_grant_of_tenant_role_is_noticed(tenant: Asks, tenant_policies: Policies) -> None:
    _each_is_missed(tenant, tenant_policies)


# --- both ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def everyone(own_policies: Policies, tenant_policies: Policies, tenant_template: dict[str, Any]) -> Policies:
    """All policies of both sides, those of a cluster's machines too."""
    boundary = tenant_template["Resources"]["Boundary"]["Properties"]["PolicyDocument"]["Statement"]
    account = CloudAccount("1", "aws", "a", "", {"role_arn": ROLE}, "ext", "verified", "", "t", "t")
    controllers = control_plane_policy(account, Owner("inst", "acme", "clu_1", "1", "acme-c-0123456789ab", "vantage"))
    machines = {
        "boundary": listed(boundary),
        "node": listed(node_policy()["Statement"]),
        "control-plane": listed(controllers["Statement"]),
    }
    return {**own_policies, **tenant_policies, **machines}


def test_no_action_is_a_wildcard(everyone: Policies) -> None:
    for role, statements in everyone.items():
        for statement in statements:
            assert not {"NotAction", "NotResource"} & set(statement), (role, statement["Sid"])
            assert [name for name in statement["Action"] if "*" in name or "?" in name] == [], (role, statement["Sid"])


def test_wildcard_resource_only_where_no_narrower_one_exists(
    own_policies: Policies,
    tenant_policies: Policies,
    everyone: Policies,
    calls: list[dict[str, Any]],
    own: Asks,
    tenant: Asks,
    record_property: Callable[[str, object], None],
) -> None:
    wide = [
        (role, statement)
        for role, statements in everyone.items()
        for statement in statements
        if "*" in statement["Resource"]
    ]
    for role, statement in wide:
        assert statement["Resource"] == ["*"]
        listed = WIDE if role in own_policies else WIDE_FOR_TENANTS
        assert listed.get(statement["Sid"]), f"{role}: {statement['Sid']} has no reason"
        assert [name for name in statement["Action"] if not has_no_resource(name)] == [], (role, statement["Sid"])
    assert {statement["Sid"] for role, statement in wide if role not in own_policies} == set(WIDE_FOR_TENANTS)
    sides = [call["side"] for call in calls]
    figure = {
        "functions": len(NAMES),
        "own": {"calls": sides.count("own"), "asks": sum(len(asks) for asks in own.values())},
        "tenant": {"calls": sides.count("tenant"), "asks": len(tenant[TENANT])},
        "refused": len(refused(own, own_policies)) + len(refused(tenant, tenant_policies)),
        "granted": {role: len(grants(statements)) for role, statements in {**own_policies, **tenant_policies}.items()},
        "unused": {**{f"{role}: {grant}": why for (role, grant), why in UNUSED.items()}, **UNUSED_BY_TENANT},
        "wildcard_actions": sum(
            "*" in name for statements in everyone.values() for statement in statements for name in statement["Action"]
        ),
        "resource_star": {
            "statements": len(wide),
            "actions": len({name for _, statement in wide for name in statement["Action"]}),
            "reasons": {
                **{sid: WIDE[sid] for sid in {statement["Sid"] for _, statement in wide} & set(WIDE)},
                **WIDE_FOR_TENANTS,
            },
        },
    }
    record_property("figure:least_privilege", figure)


def test_policy_evaluator_refuses_missing_grant(own_policies: Policies, tenant_policies: Policies) -> None:
    statements = tenant_policies[TENANT]
    arn = f"arn:aws:ec2:{REGION}:{ACME_ACCOUNT}:vpc/vpc-1"
    assert not allowed_by(statements, Ask("ec2:DeleteVpc", arn))
    assert not allowed_by(statements, Ask("ec2:DeleteVpc", arn, {"aws:ResourceTag/stockyard:installation": "x"}))
    assert not allowed_by(statements, Ask("ec2:CreateVpc", arn))
    for kind, action in (("security-group", "CreateSecurityGroup"), ("subnet", "CreateSubnet")):
        new = f"arn:aws:ec2:{REGION}:{ACME_ACCOUNT}:{kind}/new"
        assert not allowed_by(statements, Ask(f"ec2:{action}", new)), "made without our tag"
    admin = f"arn:aws:iam::{ACME_ACCOUNT}:role/admin"
    assert not allowed_by(statements, Ask("iam:PassRole", admin, {"iam:PassedToService": "ec2.amazonaws.com"}))
    linked = (
        f"arn:aws:iam::{ACME_ACCOUNT}:role/aws-service-role/ops.apigateway.amazonaws.com/AWSServiceRoleForAPIGateway"
    )
    other_context = {"iam:AWSServiceName": "ops.apigateway.amazonaws.com"}
    assert not allowed_by(statements, Ask("iam:CreateServiceLinkedRole", linked, other_context))
    assert not allowed_by(own_policies["records"], Ask("secretsmanager:GetSecretValue", "arn:aws:secretsmanager:x"))
    own_role = Ask("sts:AssumeRole", f"arn:aws:iam::{OWN_ACCOUNT}:role/admin", {"sts:ExternalId": "x"})
    assert not allowed_by(own_policies["clusters"], own_role)
