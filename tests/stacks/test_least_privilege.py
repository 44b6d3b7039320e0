"""Least privilege on both sides: each AWS call of our functions, our workflows and in a tenant's account is allowed by
the synthesized policies, and nothing is granted that nobody uses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from local.aws import ACME_ACCOUNT, OWN_ACCOUNT, REGION
from local.calls import Account, has_no_resource, own_asks, workflow_asks
from local.policies import Ask, Asks, Policies, allowed_by, refused, used, without
from local.template import Made, Stack
from stacks.functions import FUNCTIONS
from stacks.names import DELETE, PROVISION, Names
from stacks.permissions import BY_THE_PLATFORM, WIDE
from stockyard.providers.clusters.ec2 import iam_kinds
from stockyard.providers.clusters.ec2.identity import node_policy

if TYPE_CHECKING:
    from local.serving import Served

pytestmark = pytest.mark.timeout(1200)

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "aws-cluster.json"
NAMES = [spec.name for spec in FUNCTIONS]
WORKFLOWS = "workflows"
TENANT = "tenant"
WORKFLOW = f"arn:aws:states:{REGION}:{OWN_ACCOUNT}:stateMachine:{Names('dev').workflow(PROVISION)}"

UNDO = "resumes, and takes back an acceptance whose Keycloak client could not be made; the crash matrix does both"
SWEEP = "the sweep of what a crash left; tests of the sweep do it, here nothing is left"
NO_PRICING = "the local cloud has no Pricing API, so the run ends before it; the catalogue's own tests do it"
UNUSED: Mapping[tuple[str, str], str] = {
    ("clusters", "Table dynamodb:DeleteItem"): UNDO,
    ("requests", "Table dynamodb:DeleteItem"): UNDO,
    ("requests", "Table dynamodb:Query"): "pages through a ledger when a deletion is planned",
    ("reaper", "ClusterSecrets secretsmanager:DeleteSecret"): SWEEP,
    ("reaper", "DeleteCluster states:DescribeExecution"): SWEEP,
    ("reaper", "ProvisionCluster states:DescribeExecution"): SWEEP,
    ("reaper", "Table dynamodb:DeleteItem"): SWEEP,
    ("reaper", "Table dynamodb:PutItem"): SWEEP,
    ("reaper", "Table dynamodb:UpdateItem"): SWEEP,
    ("catalog", "Table dynamodb:PutItem"): NO_PRICING,
}
"""(function, granted action that this run need not use) -> when it is used."""
LEFT = "removes what the cluster's own controllers made; here no cluster really runs, the provider's tests do it"
NODES = "nodes of EC2; no claim is placed there in this run, the tests of the source of nodes hold it against its calls"
UNUSED_BY_TENANT: Mapping[str, str] = {
    "ChangeOurs ec2:DeleteVolume": "a volume outlives its instance when the call to end it was cut off",
    "ChangeOurNodes ec2:DeleteLaunchTemplate": NODES,
    "ChangeOurNodes ec2:RebootInstances": NODES,
    "ChangeOurNodes ec2:StartInstances": NODES,
    "ChangeOurNodes ec2:StopInstances": NODES,
    "ChangeOurs ec2:RevokeSecurityGroupIngress": LEFT,
    "CreateFleets ec2:CreateFleet": NODES,
    "CreateFleetsWithin ec2:CreateFleet": NODES,
    "CreateSpotRequests ec2:RunInstances": NODES,
    "CreateTemplates ec2:CreateLaunchTemplate": NODES,
    "FirstSpot iam:CreateServiceLinkedRole": NODES,
    "TagNewNodes ec2:CreateTags": NODES,
    "TagSpotRequests ec2:CreateTags": NODES,
    "UseOurTemplates ec2:CreateFleet": NODES,
    "UseOurTemplates ec2:RunInstances": NODES,
    "RemoveLeftoversBalancers ec2:DeleteSecurityGroup": LEFT,
    "RemoveLeftoversBalancers elasticloadbalancing:DeleteLoadBalancer": LEFT,
    "RemoveLeftoversBalancers elasticloadbalancing:DeleteTargetGroup": LEFT,
    "RemoveLeftoversEbs ec2:DeleteVolume": LEFT,
    "RemoveLeftoversServices ec2:DeleteSecurityGroup": LEFT,
    "RemoveLeftoversServices elasticloadbalancing:DeleteLoadBalancer": LEFT,
    "RemoveLeftoversServices elasticloadbalancing:DeleteTargetGroup": LEFT,
    "Roles iam:DetachRolePolicy": "a person or a tool of the tenant has attached a policy to the node role",
}
"""Granted action of the tenant's role that this run need not use -> when it is used."""
WIDE_FOR_TENANTS: Mapping[str, str] = {
    "Read": "The Describe actions and IAM's lists know no resource; they are what the sweep finds our things by",
    "NodesMayRead": "The boundary of the node role: the Describe actions that its policy has",
    "ReadTheMachine": "The node role: a kubelet reads the machine that it runs on by Describe actions",
}
"""Statement in a tenant's account -> why its resource is ``*``."""


@pytest.fixture(scope="module")
def calls(served: Served) -> list[dict[str, Any]]:
    """The calls of a run that lets every function do all its kinds of work."""
    body = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    first = served.call("POST", "/v1/clusters", {**body, "name": "privilege"})
    assert first.status == 202, first.text
    assert served.operation(first.body["operation_id"])["status"] == "succeeded"
    one = f"/v1/clusters/{first.body['id']}"
    second = _second_account(served)
    etag = {"If-Match": served.call("GET", one).headers["etag"]}
    assert served.call("PATCH", one, {"description": "changed"}, headers=etag).status == 200
    for path in ("", "/tree", "/kubeconfig", "/kubeconfig?static=true", "/client-secret"):
        assert served.call("GET", one + path).status == 200, path
    for path in ("operations", "events", "audit", "quotas", "prices", "clusters", "cloud-accounts"):
        answer = served.call("GET", f"/v1/{path}?page_size=1")
        assert answer.status == 200, path
        if answer.body["next_page_token"]:
            more = f"/v1/{path}?page_size=1&page_token={answer.body['next_page_token']}"
            assert served.call("GET", more).status == 200, path
    assert served.call("POST", "/v1/cloud-accounts/1/verify").status == 200
    assert served.call("DELETE", second).status in (202, 204)
    _quota_and_report(served, one)
    _nodes(served, "privilege")
    _events(served, body)
    for function in ("relay", "reaper", "catalog"):
        answer = served.aws("lambda").invoke(FunctionName=Names("dev").function(function), Payload=b"{}")
        text = answer["Payload"].read().decode()
        assert "FunctionError" not in answer or function == "catalog", text  # no Pricing API: see NO_PRICING
    deletion = served.call("DELETE", one)
    assert served.operation(deletion.body["id"])["status"] == "succeeded"
    return served.calls


def _second_account(served: Served) -> str:
    """Registered and changed; its path."""
    role = f"arn:aws:iam::{ACME_ACCOUNT}:role/nobody"
    document = {"provider": "aws", "name": "second", "attributes": {"role_arn": role}}
    made = served.call("POST", "/v1/cloud-accounts", document)
    assert made.status == 201, made.text
    path = f"/v1/cloud-accounts/{made.body['id']}"
    etag = {"If-Match": made.headers["etag"]}
    assert served.call("PATCH", path, {"description": "changed"}, headers=etag).status == 200
    return str(path)


def _nodes(served: Served, cluster: str) -> None:
    """A provider, its types, a claim that becomes a node and is given back, and the same by manifests."""

    def good(method: str, path: str, body: Any = None, **headers: str) -> Any:
        answer = served.call(method, f"/v1/{path}", body, headers={k.replace("_", "-"): v for k, v in headers.items()})
        assert answer.status in (200, 201, 202), (path, answer.text)
        return answer.body

    kind = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "maxCapacity": 3}
    good("POST", "node-providers", {"name": "lab", "kind": "simulated", "spec": {"nodeTypes": [kind]}})
    good("PATCH", "node-providers/lab", {"properties": {"team": "a"}}, If_Match='"1"')
    claim = good("POST", "node-claims", {"name": "one", "cluster": cluster})
    assert served.operation(claim["operation_id"])["status"] == "succeeded"
    claim = good("GET", "node-claims/one")
    good("PATCH", "node-claims/one", {"labels": {"a": "b"}}, If_Match=f'"{claim["version"]}"')
    manifest = good("GET", "node-claims/one?form=manifest")
    for path in ("node-claims/one/explanation", "node-providers/lab", "node-types/small", "allowed-node-types"):
        good("GET", path)
    # one that nothing was ever made for, and a provider that nobody uses
    spare = {"name": "spare", "kind": "simulated", "spec": {"nodeTypes": [kind]}}
    good("POST", "node-providers", spare)
    good("POST", "node-claims", {"name": "big", "cluster": cluster, "resources": {"cpu": "64"}})
    for path in ("node-claims", "node-types", "node-providers"):
        more = good("GET", f"{path}?page_size=1")["next_page_token"]
        good("GET", f"{path}?page_size=1&page_token={more}")
    for path in ("node-claims/big", "node-providers/spare"):
        good("DELETE", path)
    provider = good("GET", "node-providers/lab?form=manifest")
    for labels in ({}, {"a": "c"}):
        manifest["metadata"]["labels"] = labels
        second = {**manifest, "metadata": {"name": "two"}, "spec": {**manifest["spec"], "type": "lab.small"}}
        good("POST", "apply", [provider, manifest, second])
        provider["metadata"]["labels"] = {"d": "e"}
    environments = good("GET", "node-environments")["items"]
    for environment in environments[:1]:
        good("GET", f"node-environments/{environment['id']}")
    for name in ("two", "one"):
        assert served.operation(good("DELETE", f"node-claims/{name}")["id"])["status"] == "succeeded"
    assert good("GET", "node-claims")["items"] == []


def _quota_and_report(served: Served, cluster: str) -> None:
    """A quota of its own, and the machine's report a second time."""
    quota = served.call("GET", "/v1/quotas").body["items"][0]
    headers = {"If-Match": f'"{quota["version"]}"', "X-Stockyard-Tenant": "acme"}
    path, limit = f"/v1/quotas/{quota['name']}", {"limit": quota["limit"]}
    answer = served.call("PUT", path, limit, headers=headers, token="STOCKYARD_TOKEN_PLATFORM")
    assert answer.status == 200, answer.text
    client = served.call("GET", f"{cluster}/client-secret").body
    token = served.client_token(client["client_id"], client["client_secret"])
    report = {"kubeconfig": "again", "certificate_authority": "again"}
    assert served.call("POST", f"{cluster}/ready", report, token=token).status == 202


def _events(served: Served, body: dict[str, Any]) -> None:
    """A creation by an event, and a deletion by another while it runs."""
    client = served.aws("events", ACME_ACCOUNT)
    bus = f"arn:aws:events:{REGION}:{OWN_ACCOUNT}:event-bus/{Names('dev').bus}"

    def send(kind: str, detail: dict[str, Any]) -> None:
        entry = {"Source": "stockyard.request", "DetailType": kind, "Detail": json.dumps(detail), "EventBusName": bus}
        assert client.put_events(Entries=[entry])["FailedEntryCount"] == 0

    def named() -> dict[str, Any] | None:
        items = served.call("GET", "/v1/clusters").body["items"]
        return next((one for one in items if one["name"] == "by-event"), None)

    send("CreateCluster", {"body": {**body, "name": "by-event"}})
    made = served.wait("the cluster of the event", named)
    send("DeleteCluster", {"cluster": made["id"]})
    served.wait("its deletion", lambda: named() is None)


# --- the policies, as they are synthesized ---------------------------------------------------------------------------


class _Attributes(dict[str, str]):
    """Every attribute of a resource; which value it has does not matter here."""

    def __init__(self, logical: str) -> None:
        super().__init__()
        self._logical = logical

    def __contains__(self, name: object) -> bool:
        return True

    def __getitem__(self, name: str) -> str:
        return f"{self._logical}.{name}"


@pytest.fixture(scope="module")
def own_policies(assembly: Any) -> Policies:
    """From the templates: each function's statements, and those of the state machines."""
    owners: dict[str, str] = {}
    roles: dict[str, list[dict[str, Any]]] = {}

    def make(type_: str, logical: str, given: Mapping[str, Any]) -> Made:
        if type_ == "AWS::IAM::Role":
            assert "ManagedPolicyArns" not in given, logical
            roles[f"{logical}.Arn"] = [s for policy in given["Policies"] for s in policy["PolicyDocument"]["Statement"]]
        if type_ == "AWS::Lambda::Function":
            owners[given["Handler"].split(".")[1]] = given["Role"]
        if type_ == "AWS::StepFunctions::StateMachine":
            assert owners.setdefault(WORKFLOWS, given["RoleArn"]) == given["RoleArn"]
        return Made(given.get("FunctionName", logical), _Attributes(logical))

    pseudo = {"AWS::Partition": "aws", "AWS::Region": REGION, "AWS::AccountId": OWN_ACCOUNT, "AWS::URLSuffix": "aws"}
    exports = Stack(assembly.data, pseudo, {}, make).create()
    Stack(assembly.service, pseudo, exports, make).create()
    assert set(owners.values()) == set(roles), "a role that nobody looks at"
    assert set(owners) == {*NAMES, WORKFLOWS}
    return {name: _listed(roles[arn]) for name, arn in owners.items()}


@pytest.fixture(scope="module")
def tenant_template(served: Served) -> dict[str, Any]:
    found: dict[str, Any] = served.call("GET", "/v1/cloud-accounts/1/template").body["Resources"]
    return found


@pytest.fixture(scope="module")
def tenant_policies(tenant_template: dict[str, Any]) -> Policies:
    """What the template of the API gives the role, as CloudFormation hands it to IAM."""
    attached = [item["Ref"] for item in tenant_template["Role"]["Properties"]["ManagedPolicyArns"]]
    assert "Policies" not in tenant_template["Role"]["Properties"]
    found = [s for name in attached for s in tenant_template[name]["Properties"]["PolicyDocument"]["Statement"]]
    return {TENANT: _listed([_resolved(one) for one in found])}


def _resolved(value: Any) -> Any:
    if isinstance(value, dict):
        return _resolved(value["Fn::Sub"]) if "Fn::Sub" in value else {k: _resolved(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_resolved(one) for one in value]
    return value.replace("${AWS::Partition}", "aws") if isinstance(value, str) else value


def _listed(statements: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each statement with lists, where a policy may spell a single value without one."""

    def many(value: Any) -> list[Any]:
        return value if isinstance(value, list) else [value]

    return [{**one, "Action": many(one["Action"]), "Resource": many(one["Resource"])} for one in statements]


# --- what was asked of AWS -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own(calls: list[dict[str, Any]], served: Served) -> Asks:
    """By function; and what the tasks of the deployed workflow documents ask."""
    asks: dict[str, dict[str, Ask]] = {name: {} for name in (*NAMES, WORKFLOWS)}
    for call in calls:
        if call["side"] == "own":
            asks[call["function"]].update({str(ask): ask for ask in own_asks(call, OWN_ACCOUNT, WORKFLOW)})
    client = served.aws("stepfunctions")
    for name in (PROVISION, DELETE):
        arn = f"arn:aws:states:{REGION}:{OWN_ACCOUNT}:stateMachine:{Names('dev').workflow(name)}"
        document = json.loads(client.describe_state_machine(stateMachineArn=arn)["definition"])
        asks[WORKFLOWS].update({str(ask): ask for ask in workflow_asks(document)})
    return asks


@pytest.fixture(scope="module")
def tenant(calls: list[dict[str, Any]]) -> Asks:
    account = Account(ACME_ACCOUNT, iam_kinds.PATH)
    return {TENANT: {str(ask): ask for call in calls if call["side"] == "tenant" for ask in account.asks(call)}}


def grants(statements: Iterable[Mapping[str, Any]]) -> set[str]:
    """``statement action`` of each that is allowed to our own code."""
    return {
        f"{one['Sid']} {action}"
        for one in statements
        if one["Effect"] == "Allow" and one["Sid"] not in BY_THE_PLATFORM
        for action in one["Action"]
    }


# --- our own side ----------------------------------------------------------------------------------------------------


def test_what_our_functions_and_workflows_ask_is_allowed(own: Asks, own_policies: Policies) -> None:
    assert {who for who, asks in own.items() if not asks} == set(), "not seen at all"
    assert refused(own, own_policies) == []


@pytest.mark.parametrize("who", [*NAMES, WORKFLOWS])
def test_what_a_role_may_do_it_does(own: Asks, own_policies: Policies, who: str) -> None:
    may = grants(own_policies[who])
    excused = {action for name, action in UNUSED if name == who}
    assert sorted(may - used(own, own_policies)[who] - excused) == []
    assert sorted(excused - may) == [], "a reason for what is not granted"


def test_an_action_less_is_noticed_on_our_side(own: Asks, own_policies: Policies) -> None:
    _each_is_missed(own, own_policies)


def _each_is_missed(asks: Asks, policies: Policies) -> None:
    """Every grant that is used, taken away alone, makes :func:`refused` name who needs which action."""
    for who, them in used(asks, policies).items():
        for grant in them:
            sid, action = grant.split(" ")
            found = refused({who: asks[who]}, {who: without(policies[who], sid, action)})
            assert found, f"{who} may {action} without {sid} too"
            assert all(line.startswith(f"{who}: {action} on ") for line in found), found


# --- the tenant's side -----------------------------------------------------------------------------------------------


def test_what_is_done_in_the_tenants_account_is_allowed(tenant: Asks, tenant_policies: Policies) -> None:
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


def test_what_the_tenants_role_may_do_is_needed(tenant: Asks, tenant_policies: Policies) -> None:
    may = grants(tenant_policies[TENANT])
    assert sorted(may - used(tenant, tenant_policies)[TENANT] - set(UNUSED_BY_TENANT)) == []
    assert sorted(set(UNUSED_BY_TENANT) - may) == [], "a reason for what is not granted"


def test_an_action_less_is_noticed_on_the_tenants_side(tenant: Asks, tenant_policies: Policies) -> None:
    _each_is_missed(tenant, tenant_policies)


# --- both ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def everyone(own_policies: Policies, tenant_policies: Policies, tenant_template: dict[str, Any]) -> Policies:
    """All policies of both sides, those of a cluster's machines too."""
    boundary = tenant_template["Boundary"]["Properties"]["PolicyDocument"]["Statement"]
    machines = {"boundary": _listed(boundary), "node": _listed(node_policy()["Statement"])}
    return {**own_policies, **tenant_policies, **machines}


def test_no_action_is_a_wildcard(everyone: Policies) -> None:
    for who, statements in everyone.items():
        for one in statements:
            assert not {"NotAction", "NotResource"} & set(one), (who, one["Sid"])
            assert [name for name in one["Action"] if "*" in name or "?" in name] == [], (who, one["Sid"])


def test_a_resource_is_a_star_only_where_nothing_is_narrower(
    own_policies: Policies,
    tenant_policies: Policies,
    everyone: Policies,
    calls: list[dict[str, Any]],
    own: Asks,
    tenant: Asks,
    record_property: Callable[[str, object], None],
) -> None:
    wide = [(who, one) for who, them in everyone.items() for one in them if "*" in one["Resource"]]
    for who, one in wide:
        assert one["Resource"] == ["*"]
        listed = WIDE if who in own_policies else WIDE_FOR_TENANTS
        assert listed.get(one["Sid"]), f"{who}: {one['Sid']} has no reason"
        assert [name for name in one["Action"] if not has_no_resource(name)] == [], (who, one["Sid"])
    assert {one["Sid"] for who, one in wide if who not in own_policies} == set(WIDE_FOR_TENANTS)
    sides = [call["side"] for call in calls]
    figure = {
        "functions": len(NAMES),
        "own": {"calls": sides.count("own"), "asks": sum(len(asks) for asks in own.values())},
        "tenant": {"calls": sides.count("tenant"), "asks": len(tenant[TENANT])},
        "refused": len(refused(own, own_policies)) + len(refused(tenant, tenant_policies)),
        "granted": {who: len(grants(them)) for who, them in {**own_policies, **tenant_policies}.items()},
        "unused": {**{f"{who}: {grant}": why for (who, grant), why in UNUSED.items()}, **UNUSED_BY_TENANT},
        "wildcard_actions": sum("*" in name for them in everyone.values() for one in them for name in one["Action"]),
        "resource_star": {
            "statements": len(wide),
            "actions": len({name for _, one in wide for name in one["Action"]}),
            "reasons": {**{sid: WIDE[sid] for sid in {one["Sid"] for _, one in wide} & set(WIDE)}, **WIDE_FOR_TENANTS},
        },
    }
    record_property("figure:least_privilege", figure)


def test_the_evaluator_refuses_what_is_not_granted(own_policies: Policies, tenant_policies: Policies) -> None:
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
    other = {"iam:AWSServiceName": "ops.apigateway.amazonaws.com"}
    assert not allowed_by(statements, Ask("iam:CreateServiceLinkedRole", linked, other))
    assert not allowed_by(own_policies["records"], Ask("secretsmanager:GetSecretValue", "arn:aws:secretsmanager:x"))
    ours = Ask("sts:AssumeRole", f"arn:aws:iam::{OWN_ACCOUNT}:role/admin", {"sts:ExternalId": "x"})
    assert not allowed_by(own_policies["clusters"], ours)
