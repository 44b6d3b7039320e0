"""``stockyard provider``, ``type``, ``claim`` and ``price``."""

from __future__ import annotations

import json

import pytest

PROVIDER = {
    "id": "npr_01",
    "name": "sim",
    "kind": "simulated",
    "phase": "Available",
    "node_types": ["small", "large"],
    "warnings": [],
    "version": 1,
}
TYPE = {
    "id": "ntp_01",
    "name": "sim.small",
    "type": "small",
    "provider": "sim",
    "phase": "Available",
    "properties": {"team": "a,b", "arch": "*"},
    "resources": {"cpu": "2", "memory": "4Gi"},
    "cost": 28,
    "usd_hour": 0.05,
    "capacity": {"total": 5, "claimed": 6, "available": -1},
    "version": 1,
}
CLAIM = {
    "id": "ncl_01",
    "name": "one",
    "cluster": "demo",
    "provider": "",
    "type": "sim.small",
    "phase": "Pending",
    "deleting": False,
    "reason": "",
    "node_name": "",
    "placement": {"usd_hour": 0.05},
    "operation_id": "op_01",
    "version": 2,
}
MANIFEST = {"apiVersion": "stockyard/v1", "kind": "NodeClaim", "metadata": {"name": "one"}, "spec": {"cluster": "demo"}}
APPLIED = {"kind": "NodeClaim", "name": "one", "id": "ncl_01", "action": "created", "warnings": [], "operation_id": "o"}


def listed(*items):
    return {"items": list(items), "next_page_token": None}


def test_provider_from_a_document(cli, api):
    warned = {**PROVIDER, "warnings": [{"pointer": "/spec", "detail": "It has no node types."}], "message": "Later."}
    api.answer("POST", "/v1/node-providers", warned, status=201)
    result = cli("provider", "create", "-f", "-", "--name", "sim", stdin='{"kind": "simulated", "spec": {}}')
    assert (result.exit_code, api.bodies("POST")) == (0, [{"kind": "simulated", "spec": {}, "name": "sim"}])
    assert result.stdout.splitlines()[1].split()[:4] == ["sim", "simulated", "Available", "2"]
    assert "Warning: standard input:1 provider spec: It has no node types." in result.stderr
    assert "Later." in result.stderr


def test_provider_from_a_manifest(cli, api):
    api.answer("POST", "/v1/apply", {"results": [{**APPLIED, "id": "npr_01", "kind": "NodeProvider"}], "warnings": []})
    api.answer("GET", "/v1/node-providers/npr_01", PROVIDER)
    manifest = "apiVersion: stockyard/v1\nkind: NodeProvider\nmetadata: {name: old}\nspec: {simulated: {}}\n"
    result = cli("provider", "create", "-f", "-", "--name", "sim", "-o", "name", stdin=manifest)
    assert (result.exit_code, result.stdout) == (0, "sim\n")
    assert api.bodies("POST")[0][0]["metadata"] == {"name": "sim"}


def test_provider_list_get_and_delete(cli, api):
    api.answer("GET", "/v1/node-providers", listed(PROVIDER))
    api.answer("GET", "/v1/node-providers/sim", PROVIDER)
    api.answer(
        "DELETE", "/v1/node-providers/sim", {"operation_id": "op_01"}, status=202, Location="/v1/operations/op_01"
    )
    api.answer("GET", "/v1/operations/op_01", {"id": "op_01", "kind": "k", "subject": "s", "status": "succeeded"})
    assert cli("provider", "list", "-o", "name").stdout == "sim\n"
    api.answer("GET", "/v1/node-providers/aws", {**PROVIDER, "name": "aws", "kind": "ec2"})
    assert cli("provider", "get", "aws").stdout.splitlines()[1].split() == ["aws", "ec2", "Available", "all", "-", "-"]
    assert json.loads(cli("provider", "get", "sim", "-o", "json").stdout) == PROVIDER
    result = cli("provider", "delete", "sim")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "removed" in result.stderr


def test_types_show_cost_price_and_capacity(cli, api):
    unlimited = {**TYPE, "name": "sim.large", "cost": 2.5, "usd_hour": None, "capacity": {"total": None}}
    api.answer("GET", "/v1/node-types", listed(TYPE, unlimited))
    lines = cli("type", "list", "--provider", "sim").stdout.splitlines()
    assert lines[0].split() == ["NAME", "CPU", "MEMORY", "USD/HOUR", "SPOT", "CAPACITY", "PHASE", "WHY"]
    assert lines[1].split() == ["sim.small", "2", "4Gi", "0.0500", "-", "-1/5", "Available", "-"]
    assert lines[2].split() == ["sim.large", "2", "4Gi", "-", "-", "-", "Available", "-"]
    assert dict(api.requests[0].url.params) == {"provider": "sim", "page_size": "200"}
    assert "arch=* team=a,b" in cli("type", "list", "-o", "wide").stdout


def test_claim_from_options(cli, api):
    api.answer("POST", "/v1/node-claims", CLAIM, status=202)
    options = [
        "--cluster",
        "demo",
        "--provider",
        "sim",
        "--cpu",
        "2",
        "--memory",
        "4Gi",
        "--resource",
        "nvidia.com/gpu=1",
    ]
    wishes = ["--require", "zone=a,b", "--require", "family!=t3", "--require", "gen>5", "--require", "gen<8"]
    more = ["--require", "gpu", "--require", "!spot", "--label", "team=a"]
    result = cli("claim", "create", *options, *wishes, *more)
    assert result.exit_code == 0, result.stderr
    assert api.bodies("POST") == [
        {
            "cluster": "demo",
            "provider": "sim",
            "resources": {"nvidia.com/gpu": "1", "cpu": "2", "memory": "4Gi"},
            "labels": {"team": "a"},
            "requirements": [
                {"key": "zone", "operator": "In", "values": ["a", "b"]},
                {"key": "family", "operator": "NotIn", "values": ["t3"]},
                {"key": "gen", "operator": "Gt", "values": ["5"]},
                {"key": "gen", "operator": "Lt", "values": ["8"]},
                {"key": "gpu", "operator": "Exists"},
                {"key": "spot", "operator": "DoesNotExist"},
            ],
        }
    ]
    assert "op_01" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--cluster", "demo", "--require", "=a"),
        ("--cluster", "demo", "--require", "a="),
        ("--cluster", "demo", "--require", "!"),
        ("--cluster", "demo", "--resource", "cpu"),
    ],
)
def test_claims_that_cannot_be_asked_for(cli, api, arguments):
    assert cli("claim", "create", *arguments).exit_code == 2
    assert api.requests == []


def test_options_win_over_the_file_and_a_manifest_stands_alone(cli, api):
    api.answer("POST", "/v1/node-claims", CLAIM, status=202)
    document = {"cluster": "old", "requirements": [{"key": "a"}], "resources": {"cpu": "1", "memory": "1Gi"}}
    cli("claim", "create", "-f", "-", "--cluster", "new", "--cpu", "2", "--require", "b", stdin=json.dumps(document))
    assert api.bodies("POST") == [
        {
            "cluster": "new",
            "requirements": [{"key": "a"}, {"key": "b", "operator": "Exists"}],
            "resources": {"cpu": "2", "memory": "1Gi"},
        }
    ]
    assert cli("claim", "create", "-f", "-", "--cpu", "2", stdin=json.dumps(MANIFEST)).exit_code == 2
    api.answer("POST", "/v1/apply", {"results": [APPLIED], "warnings": []})
    api.answer("GET", "/v1/node-claims/ncl_01", CLAIM)
    assert cli("claim", "create", "-f", "-", "-o", "name", stdin=json.dumps(MANIFEST)).stdout == "one\n"
    assert api.bodies("POST")[-1] == [MANIFEST]
    assert [request.url.params.get("create_only") for request in api.requests if "apply" in request.url.path] == [
        "true"
    ]


def test_claim_waits_for_its_operation(cli, api, operation_document):
    api.answer("POST", "/v1/node-claims", CLAIM, status=202)
    api.answer("GET", "/v1/operations/op_01", operation_document("running"))
    api.answer("GET", "/v1/operations/op_01", operation_document("succeeded", progress=100))
    api.answer("GET", "/v1/node-claims/ncl_01", {**CLAIM, "phase": "Available", "node_name": "node-1"})
    result = cli("claim", "create", "--cluster", "demo", "--wait")
    assert result.stdout.splitlines()[1].split()[:2] == ["one", "Available"]


def test_claim_list_shows_drift_reason(cli, api):
    drift = {"type": "NotDrifted", "status": "False", "reason": "TypeChanged", "message": "Changed: type."}
    there = {**CLAIM, "phase": "Available", "reason": "", "message": "", "conditions": [drift]}
    as_launched = {**drift, "status": "True", "reason": "AsLaunched"}
    not_drifted = {**there, "name": "two", "conditions": [as_launched, {**drift, "type": "Joined"}]}
    failed = {**there, "name": "three", "phase": "Failed", "reason": "Broken"}
    api.answer("GET", "/v1/node-claims", listed(there, not_drifted, failed))
    lines = cli("claim", "list", "-o", "wide").stdout.splitlines()
    assert "TypeChanged" in lines[1]
    assert "Changed: type." in lines[1]
    assert "AsLaunched" not in lines[2]
    assert "TypeChanged" not in lines[2]
    assert "Broken" in lines[3]
    assert "TypeChanged" not in lines[3]


def test_amounts_without_a_unit_and_refused_options_are_named(cli, api):
    assert (
        "--memory 4 would be 4 bytes: write 4Gi, or 4Mi"
        in cli("claim", "create", "--cluster", "d", "--memory", "4").stderr
    )
    assert api.requests == []
    errors = [{"pointer": f"/resources/{name}", "detail": "is wrong"} for name in ("memory", "x.y~1z")]
    api.problem("POST", "/v1/node-claims", 422, "InvalidInput", errors=errors)
    options = ("--cluster", "d", "--memory", "4Gb", "--resource", "x.y/z=1")
    stderr = cli("claim", "create", *options).stderr
    assert "--memory: is wrong" in stderr
    assert "--resource x.y/z: is wrong" in stderr


def test_claims_are_listed_and_shown(cli, api):
    api.answer("GET", "/v1/node-claims", listed(CLAIM, {**CLAIM, "name": "two", "deleting": True}))
    lines = cli("claim", "list", "--cluster", "demo", "--phase", "Pending").stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["one", "Pending"], ["two", "Deleting"]]
    assert dict(api.requests[0].url.params) == {"cluster": "demo", "phase": "Pending"}
    api.answer("GET", "/v1/node-claims/one", CLAIM)
    assert json.loads(cli("claim", "get", "one", "-o", "json").stdout) == CLAIM


def test_delete_and_its_dry_run(cli, api, operation_document):
    api.answer("DELETE", "/v1/node-claims/one", operation_document("running"), status=202)
    assert cli("claim", "delete", "one", "-o", "name").stdout == "op_01\n"
    assert "grace_seconds" not in api.requests[-1].url.params
    cli("claim", "delete", "one", "--grace-seconds", "0", "-o", "name")
    assert api.requests[-1].url.params["grace_seconds"] == "0"
    api.answer("DELETE", "/v1/node-claims/two", {"plan": {"deletes": [{"kind": "node-claim", "name": "two"}]}})
    assert cli("claim", "delete", "two", "--dry-run").stdout == "- node claim  two\n"


def test_a_dry_run_of_power_says_what_would_happen(cli, api):
    verdict = "The machine of node claim c1 would be switched off."
    changes = [{"kind": "node-claim", "name": "c1", "pointer": "/power", "field": "power"}]
    plan = {"verdict": verdict, "changes": [{**changes[0], "before": "On", "after": "Off"}]}
    api.answer("POST", "/v1/node-claims/c1/power", {"plan": plan})
    result = cli("claim", "power", "c1", "off", "--dry-run")
    assert result.exit_code == 0
    assert result.stdout.startswith(verdict)
    assert "power" in result.stdout.partition("\n")[2]
    assert api.requests[0].url.params["dry_run"] == "true"
    assert api.bodies("POST") == [{"state": "Off"}]


def test_prices(cli, api):
    money = {"unit": "hour", "currency": "USD", "price": 0.096}
    item = {"region": "us-east-1", "kind": "instance", "name": "m6i.large", **money}
    api.answer("GET", "/v1/prices", listed(item, {**item, "name": "x9.huge", "price": None}))
    lines = cli("price", "list", "--region", "us-east-1", "--type", "m6i.*", "--kind", "instance").stdout.splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["m6i.large", "instance", "0.096", "USD", "hour", "us-east-1"],
        ["x9.huge", "instance", "-", "USD", "hour", "us-east-1"],
    ]
    sent = {"region": "us-east-1", "name": "m6i.*", "kind": "instance", "page_size": "200"}
    assert dict(api.requests[0].url.params) == sent


@pytest.mark.parametrize(
    ("command", "path"),
    [
        (("claim", "get", "x"), "/v1/node-claims/x"),
        (("provider", "get", "x"), "/v1/node-providers/x"),
        (("pool", "get", "x", "--cluster", "c"), "/v1/clusters/c/pools/x"),
    ],
)
def test_a_record_as_its_manifest(cli, api, command, path):
    document = {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}}
    api.answer("GET", path, document)
    assert cli(*command, "--manifest").stdout == "apiVersion: v1\nkind: X\nmetadata:\n  name: x\n"
    assert json.loads(cli(*command, "--manifest", "-o", "json").stdout) == document
    assert [request.url.params["form"] for request in api.requests] == ["manifest"] * 2


def test_create_asks_for_a_failed_machine_of_a_claim_to_be_kept(cli, api):
    accepted = api.answer("POST", "/v1/node-claims", CLAIM, status=202)
    assert cli("claim", "create", "--cluster", "demo", "--keep-failed", "30").exit_code == 0
    assert accepted.bodies("POST")[0]["keep_failed"] == 30


def test_claims_of_a_cluster_that_is_not_there_are_no_empty_list(cli, api, cluster_document):
    api.answer("GET", "/v1/node-claims", listed())
    assert cli("claim", "list", "--cluster", "demo").exit_code == 3
    api.answer("GET", "/v1/clusters/demo", cluster_document())
    result = cli("claim", "list", "--cluster", "demo")
    assert (result.exit_code, result.stderr) == (0, "Nothing found.\n")
