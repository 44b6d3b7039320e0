"""``stockyard cluster`` against the fake API."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import yaml

ACCOUNT = {"id": 1, "provider": "aws", "name": "prod", "verification": "verified", "version": 1}
EXAMPLE = Path(__file__).parents[4] / "examples" / "aws-cluster.json"
SECRET = "canary-secret-0123456789abcd"
PLAN = {
    "creates": [{"kind": "vpc", "name": "vantage-demo-vpc"}],
    "changes": [],
    "deletes": [],
    "price": {
        "currency": "USD",
        "hour": None,
        "month": None,
        "known_hour": 0.2541,
        "known_month": 185.49,
        "complete": False,
        "items": [
            {"name": "NAT gateway", "quantity": 1, "hour": 0.045, "month": 32.85},
            {"name": "public IPv4 address", "quantity": 3, "hour": None, "month": None},
        ],
    },
    "rejected": [],
    "warnings": [{"pointer": "/settings/region_name", "detail": "is not the account's region"}],
}


@pytest.fixture
def accepted_creation(api, cluster_document):
    return api.answer("POST", "/v1/clusters", cluster_document(), status=202)


def test_create_sends_the_document_with_overrides(cli, accepted_creation):
    arguments = ("--name", "other", "--key-pair", "k2", "--region", "us-west-2", "--account", "2", "--tag", "a=b")
    result = cli("cluster", "create", "-f", str(EXAMPLE), *arguments)
    assert result.exit_code == 0, result.stderr
    (body,) = accepted_creation.bodies("POST")
    expected = json.loads(EXAMPLE.read_text())
    expected.update(name="other", cloud_account_id=2, tags={"a": "b"})
    expected["settings"].update(key_pair="k2", region_name="us-west-2")
    assert body == expected
    assert "op_01" in result.stderr


def test_a_document_may_leave_out_what_the_api_demands_and_a_user_of_the_sdk_has_to_ask_for_that(
    cli, api, accepted_creation, client
):
    text = '{"name": "demo", "cloud_account_id": 1, "cluster_type": "k8s"}'
    assert cli("cluster", "create", "-f", "-", stdin=text).exit_code == 0
    assert cli("cluster", "create", "-f", "-", "--dry-run", stdin=text).exit_code == 0
    client.clusters.create({"name": "demo"})
    client.clusters.create({"name": "demo"}, lenient=True)
    sent = [request.headers.get("Prefer") for request in api.requests if request.method == "POST"]
    assert sent == ["handling=lenient", "handling=lenient", None, "handling=lenient"]
    assert accepted_creation.bodies("POST")[0] == json.loads(text)


def test_a_cluster_that_is_there_already_is_said_to_be_so(cli, api, cluster_document):
    note = {"pointer": "/name", "detail": "There is this cluster already.", "note": True}
    api.answer("POST", "/v1/clusters", cluster_document(warnings=[note]), status=202)
    result = cli("cluster", "create", "-f", str(EXAMPLE))
    assert (result.exit_code, "There is this cluster already." in result.stderr) == (0, True)
    assert "being made" not in result.stderr


def test_an_account_goes_by_its_name(cli, accepted_creation):
    accepted_creation.answer("GET", "/v1/cloud-accounts/prod", {**ACCOUNT, "id": 7})
    for arguments in (("--account", "prod"), ("--account", "7")):
        assert cli("cluster", "create", "-f", str(EXAMPLE), *arguments).exit_code == 0
    document = json.dumps({"name": "demo", "cloud_account_id": "prod"})
    assert cli("cluster", "create", "-f", "-", stdin=document).exit_code == 0
    assert [body["cloud_account_id"] for body in accepted_creation.bodies("POST")] == [7, 7, 7]
    accepted_creation.problem("GET", "/v1/cloud-accounts/nobody", 404, "NotFound")
    assert cli("cluster", "create", "-f", str(EXAMPLE), "--account", "nobody").exit_code == 3


def test_a_cluster_is_shown_as_a_manifest(cli, api):
    document = {"kind": "EKSCluster", "metadata": {"name": "demo"}, "spec": {}}
    api.answer("GET", "/v1/clusters/demo", document)
    result = cli("cluster", "get", "demo", "--manifest")
    assert (result.exit_code, yaml.safe_load(result.stdout)) == (0, document)
    assert dict(api.requests[-1].url.params) == {"form": "manifest"}
    result = cli("cluster", "get", "demo", "--manifest", "-o", "json")
    assert json.loads(result.stdout) == document


def test_a_cluster_shows_where_its_bastion_is(cli, api, cluster_document):
    api.answer("GET", "/v1/clusters/demo", cluster_document(bastion="198.51.100.7"))
    table = cli("cluster", "get", "demo").stdout.splitlines()
    assert ["BASTION" in table[0], "198.51.100.7" in table[1]] == [True, True]
    api.answer("GET", "/v1/clusters/plain", cluster_document(bastion=""))
    assert "BASTION" not in cli("cluster", "get", "plain").stdout


@pytest.mark.parametrize("text", ['{"name": "demo", "n": 1}', "name: demo\nn: 1\n", "{name: demo, n: 1}"])
def test_create_reads_json_and_yaml_from_standard_input(cli, accepted_creation, text):
    assert cli("cluster", "create", "-f", "-", stdin=text).exit_code == 0
    assert accepted_creation.bodies("POST") == [{"name": "demo", "n": 1}]


def test_yaml_dates_stay_text(cli, accepted_creation):
    cli("cluster", "create", "-f", "-", stdin="name: demo\ndescription: 2026-01-31\n")
    assert accepted_creation.bodies("POST")[0]["description"] == "2026-01-31"


@pytest.mark.parametrize("text", [f'{{"secret": "{SECRET}", x]', f"secret: {SECRET}\n  x: [", "[1, 2]", "just text"])
def test_broken_documents_are_usage_errors_that_quote_nothing(cli, api, text):
    result = cli("cluster", "create", "-f", "-", stdin=text)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert SECRET not in result.output
    assert api.requests == []


def test_missing_file_is_a_usage_error(cli):
    result = cli("cluster", "create", "-f", "nowhere.json")
    assert result.exit_code == 2
    assert "cannot read nowhere.json" in result.stderr


def test_secret_of_the_document_is_never_printed(cli, api):
    errors = [{"pointer": "/secret", "detail": "must have 24 to 32 characters"}]
    api.problem("POST", "/v1/clusters", 422, "InvalidInput", errors=errors)
    result = cli("-v", "cluster", "create", "-f", "-", stdin=json.dumps({"name": "demo", "secret": SECRET}))
    assert result.exit_code == 2
    assert "standard input:1 cluster demo secret: must have 24 to 32 characters" in result.stderr
    assert "Request id: req-1" in result.stderr
    assert SECRET not in result.output
    assert cli.environment["STOCKYARD_TOKEN"] not in result.output


def test_dry_run_prints_the_plan_with_prices_and_makes_nothing(cli, api):
    api.answer("POST", "/v1/clusters", {"plan": PLAN})
    result = cli("cluster", "create", "-f", str(EXAMPLE), "--dry-run")
    assert result.exit_code == 0, result.stderr
    assert api.requests[0].url.params["dry_run"] == "true"
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines == [
        "Would make 1 thing, which costs at least 0.2541 USD/hour, at least 185.49 USD/month.",
        "+ vpc vantage-demo-vpc",
        "",
        "NAT gateway 0.0450 USD /hour 32.85 USD /month",
        "public IPv4 address x3 unknown /hour unknown /month",
        "total at least 0.2541 USD /hour at least 185.49 USD /month",
    ]
    assert "aws-cluster.json:7 cluster demo settings.region_name: is not the account's region" in result.stderr
    assert "Some prices are not known" in result.stderr


def test_dry_run_as_json_is_the_api_s_plan(cli, api):
    api.answer("DELETE", "/v1/clusters/demo", {"plan": PLAN})
    result = cli("cluster", "delete", "demo", "--dry-run", "-o", "json")
    assert json.loads(result.stdout) == PLAN
    assert [request.method for request in api.requests] == ["DELETE"]


def test_wait_prints_a_line_per_change_and_then_the_record(
    cli, accepted_creation, operation_document, cluster_document
):
    for states in (("running",), ("running",), ("succeeded", "running"), ("succeeded", "succeeded", "succeeded")):
        status = "succeeded" if len(states) == 3 else "running"
        accepted_creation.answer("GET", "/v1/operations/op_01", operation_document(status, *states))
    accepted_creation.answer("GET", "/v1/clusters/clu_01", cluster_document(status="ready", phase=None))
    accepted_creation.answer("GET", "/v1/clusters/clu_01/pools", {"items": []})
    result = cli("cluster", "create", "-f", str(EXAMPLE), "--wait")
    assert result.exit_code == 0, result.stderr
    assert result.stderr.splitlines()[1:] == [
        "[    0s] account        running",
        "[    1s] account        succeeded",
        "[    1s] network        running",
        "[    1s] network        succeeded",
        "[    1s] control_plane  succeeded",
        "create cluster succeeded in 1s",
        "Next: stockyard cluster kubeconfig demo",
    ]
    assert result.stdout.splitlines()[1].split()[:2] == ["demo", "ready"]


@pytest.fixture
def cluster_with_pools(accepted_creation, operation_document, cluster_document):
    """A cluster that is ready at once; its pools get their nodes one by one."""

    def pools_ready(status, message):
        conditions = [{"type": "PoolsReady", "status": status, "reason": "Scaling", "message": message}]
        return cluster_document(status="ready", phase=None, conditions=conditions)

    accepted_creation.answer("GET", "/v1/operations/op_01", operation_document("succeeded", *["succeeded"] * 3))
    accepted_creation.answer("GET", "/v1/clusters/clu_01/pools", {"items": [{"name": "workers", "kind": "dynamic"}]})
    accepted_creation.answer("GET", "/v1/clusters/clu_01", cluster_document(status="ready", phase=None, conditions=[]))
    accepted_creation.answer("GET", "/v1/clusters/clu_01", cluster_document(status="ready", phase=None, conditions=[]))
    accepted_creation.answer("GET", "/v1/clusters/clu_01", pools_ready("False", "workers: 1 of 2 nodes are available."))
    return accepted_creation, pools_ready


def test_wait_goes_on_until_the_pools_have_their_nodes(cli, cluster_with_pools):
    api, pools_ready = cluster_with_pools
    api.answer("GET", "/v1/clusters/clu_01", pools_ready("True", "1 pools have their nodes."))
    result = cli("cluster", "create", "-f", str(EXAMPLE), "--wait")
    assert result.exit_code == 0, result.stderr
    assert result.stderr.splitlines()[-4:-1] == [
        "[    0s] they were not looked at yet",
        "[    0s] workers: 1 of 2 nodes are available.",
        "[    0s] 1 pools have their nodes.",
    ]
    assert result.stdout.splitlines()[1].split()[:2] == ["demo", "ready"]


def test_an_applied_cluster_is_waited_for_with_its_pools(cli, cluster_with_pools, cluster_document):
    api, pools_ready = cluster_with_pools
    api.answer("GET", "/v1/clusters/clu_01", pools_ready("True", "1 pools have their nodes."))
    result_of_creation = {"index": 0, "action": "created", "warnings": []}
    results = [
        {**result_of_creation, "kind": "Cluster", "name": "demo", "id": "clu_01", "operation_id": "op_01"},
        {**result_of_creation, "kind": "Pool", "name": "web", "id": "clu_01/web", "operation_id": None},
    ]
    api.answer("POST", "/v1/apply", {"results": results, "warnings": []})
    document = "{apiVersion: stockyard/v1, kind: Cluster, metadata: {name: demo}, spec: {driver: ec2}}"
    result = cli("apply", "-f", "-", "--wait", stdin=document)
    assert result.exit_code == 0, result.stderr
    assert "create cluster succeeded" in result.stderr
    assert "1 pools have their nodes." in result.stderr


@pytest.mark.usefixtures("cluster_with_pools")
def test_pools_that_do_not_get_their_nodes_in_time_end_the_wait(cli):
    result = cli("cluster", "create", "-f", str(EXAMPLE), "--wait", "--timeout", "1m")
    assert (result.exit_code, result.stdout) == (124, "")
    headline = "Error: the pools of cluster demo after 60 s: workers: 1 of 2 nodes are available."
    assert headline in result.stderr
    assert cli.clock.time == 60


def test_wait_that_times_out_says_how_to_go_on(cli, accepted_creation, operation_document):
    accepted_creation.answer("GET", "/v1/operations/op_01", operation_document("running", "running"))
    result = cli("cluster", "create", "-f", str(EXAMPLE), "--wait", "--timeout", "1m30s")
    assert result.exit_code == 124
    assert "still running after 90 s" in result.stderr
    assert "stockyard operation wait op_01" in result.stderr
    assert result.stdout == ""


def test_failed_operation_shows_phase_cause_hint_and_resume(cli, accepted_creation, operation_document):
    error = {"error_type": "ClusterCouldNotBeDeployed", "phase": "network", "cause": "denied", "hint": "mend the role"}
    accepted_creation.answer(
        "GET", "/v1/operations/op_01", operation_document("failed", "succeeded", "failed", error=error)
    )
    result = cli("cluster", "create", "-f", str(EXAMPLE), "--wait")
    assert result.exit_code == 1
    assert "Error: ClusterCouldNotBeDeployed in phase network: denied" in result.stderr
    assert "Hint: mend the role" in result.stderr
    assert "stockyard cluster resume clu_01 --wait" in result.stderr


@pytest.mark.parametrize("text", ["soon", "", "5x", "-1"])
def test_bad_timeout_is_a_usage_error(cli, text):
    result = cli("cluster", "delete", "demo", "--timeout", text)
    assert result.exit_code == 2
    assert "no duration" in result.stderr


def test_delete_waits_for_its_operation(cli, api, operation_document):
    document = operation_document("succeeded", kind="delete_cluster")
    api.answer("DELETE", "/v1/clusters/demo", {}, status=202, Location="/v1/operations/op_01")
    api.answer("GET", "/v1/operations/op_01", document)
    result = cli("cluster", "delete", "demo", "--wait", "-o", "json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout) == document


def test_a_failed_creation_is_resumed_with_other_settings(cli, api, operation_document, tmp_path):
    api.answer("POST", "/v1/clusters/demo/resume", operation_document(), status=202)
    patch = {"settings": {"control_plane_instance_type": "m5.large"}}
    (tmp_path / "other.json").write_text(json.dumps(patch))
    assert cli("cluster", "resume", "demo", "--with", str(tmp_path / "other.json"), "-o", "name").stdout == "op_01\n"
    assert json.loads(api.requests[0].content) == patch


@pytest.mark.parametrize(
    ("arguments", "body"),
    [((), None), (("--set", "settings.key_pair=other"), {"settings": {"key_pair": "other"}})],
)
def test_a_dry_run_of_a_resume_says_what_would_run_and_begins_nothing(cli, api, cluster_document, arguments, body):
    api.answer("GET", "/v1/clusters/demo", cluster_document(status="failed"))
    plan = {"plan": {"verdict": "Operation op_01 would go on.", "steps": ["Phase network", "Phase agent"]}}
    api.answer("POST", "/v1/clusters/demo/resume", plan)
    result = cli("cluster", "resume", "demo", *arguments, "--dry-run")
    assert result.stdout == "Operation op_01 would go on.\n1. Phase network\n2. Phase agent\n"
    sent = api.requests[-1]
    assert sent.url.params["dry_run"] == "true"
    assert (json.loads(sent.content) if sent.content else None) == body


def test_resume_prints_its_operation(cli, api, operation_document):
    api.answer("POST", "/v1/clusters/demo/resume", operation_document(), status=202)
    assert cli("cluster", "resume", "demo", "-o", "name").stdout == "op_01\n"


def test_create_asks_for_a_failed_machine_to_be_kept(cli, accepted_creation):
    assert cli("cluster", "create", "-f", str(EXAMPLE), "--keep-failed", "60").exit_code == 0
    assert accepted_creation.bodies("POST")[0]["keep_failed"] == 60


def test_describe_as_yaml_is_the_api_s_tree(cli, api):
    api.answer("GET", "/v1/clusters/demo/tree", {"kind": "cluster", "children": []})
    assert yaml.safe_load(cli("cluster", "describe", "demo", "-o", "yaml").stdout) == {
        "kind": "cluster",
        "children": [],
    }


def test_events_look_the_name_up(cli, api, cluster_document):
    event = {"id": "evt_1", "subject": "clu_01", "time": "t", "reason": "Accepted", "message": "It was\naccepted."}
    api.answer("GET", "/v1/clusters/demo", cluster_document())
    api.answer("GET", "/v1/events", {"items": [event], "next_page_token": None})
    result = cli("cluster", "events", "demo")
    assert api.requests[-1].url.params["subject"] == "clu_01"
    assert result.stdout.splitlines()[1].split() == ["-", "Accepted", "It", "was", "accepted."]


def test_events_of_an_id_need_no_cluster(cli, api):
    api.answer("GET", "/v1/events", {"items": []})
    result = cli("cluster", "events", "clu_gone", "--after", "evt_1")
    assert (result.exit_code, result.stdout) == (0, "")
    assert dict(api.requests[0].url.params) == {"subject": "clu_gone", "after": "evt_1"}


@pytest.fixture
def three_members(accepted_creation, operation_document, cluster_document):
    """A cluster of three members, ready with the first; what follows is answered with the status of its members."""

    def answer(status, degraded="False"):
        message = "3 of 3 members are there." if status == "True" else "1 of 3 members are there."
        conditions = [
            {"type": "ControlPlaneComplete", "status": status, "reason": "Members", "message": message},
            {"type": "Degraded", "status": degraded, "reason": "Changed", "message": ""},
        ]
        settings = {"control_plane_size": 3}
        document = cluster_document(status="ready", settings=settings, conditions=conditions, operation_id="op_02")
        accepted_creation.answer("GET", "/v1/clusters/clu_01", document)

    accepted_creation.answer("GET", "/v1/operations/op_01", operation_document("succeeded", *["succeeded"] * 3))
    accepted_creation.answer("GET", "/v1/clusters/clu_01/pools", {"items": []})
    answer("Unknown")
    answer("Unknown")
    return accepted_creation, answer


def test_wait_goes_on_until_the_control_plane_has_its_members(cli, three_members):
    _, answer = three_members
    answer("True")
    result = cli("cluster", "create", "-f", str(EXAMPLE), "--wait")
    assert result.exit_code == 0, result.stderr
    lines = [line.partition("] ")[2] for line in result.stderr.splitlines()]
    assert lines[-3:-1] == ["1 of 3 members are there.", "3 of 3 members are there."]


def test_wait_ends_where_the_members_could_not_be_made(cli, three_members, operation_document):
    api, answer = three_members
    answer("False", degraded="True")
    api.answer("GET", "/v1/operations/op_02", operation_document("failed", "failed", id="op_02"))
    result = cli("cluster", "create", "-f", str(EXAMPLE), "--wait")
    assert (result.exit_code, result.stdout) != (0, "")
    assert "failed" in result.stderr


def test_a_cluster_gets_an_end_and_more_time(cli, api, cluster_document):
    api.answer("POST", "/v1/clusters", cluster_document(), status=202)
    body = json.dumps({"name": "demo", "cloud_account_id": 1, "cluster_type": "k8s"})
    assert cli("cluster", "create", "-f", "-", "--expires", "1h", stdin=body).exit_code == 0
    renewed = {**cluster_document(), "expires_at": "2027-01-01T00:00:00.000Z"}
    api.answer("GET", "/v1/clusters/demo", renewed).answer("PATCH", f"/v1/clusters/{renewed['id']}", renewed)
    assert "begins at 2027-01-01T00:00:00.000Z" in cli("cluster", "expire", "demo", "2027-01-01T00:00:00Z").stderr
    api.answer("PATCH", f"/v1/clusters/{renewed['id']}", cluster_document())
    for when in ("2d", "never"):
        cli("cluster", "expire", "demo", when)
    first, moment, days, never = (sent["expires_at"] for sent in (*api.bodies("POST"), *api.bodies("PATCH")))
    assert (moment, never) == ("2027-01-01T00:00:00Z", None)
    hour, two_days = (datetime.fromisoformat(text) for text in (first, days))
    assert timedelta(hours=46) < two_days - hour < timedelta(hours=48)
    assert cli("cluster", "expire", "demo", "soon").exit_code == 2
