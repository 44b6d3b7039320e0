"""``apply``, ``diff`` and ``delete`` of files, and documents that another command takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"
PROVIDER = """\
apiVersion: management.loft.sh/v1
kind: NodeProvider
metadata:
  name: lab
spec:
  terraform:
    nodeTypes:
      - name: a
        maxCapactiy: 3
"""
CLAIM = "apiVersion: stockyard/v1\nkind: NodeClaim\nmetadata: {name: c1}\nspec: {cluster: demo}\n"
POOL = "apiVersion: stockyard/v1\nkind: Pool\nmetadata: {name: base}\nspec: {cluster: demo, quantity: 1}\n"
FAULT = {"pointer": "/0/spec/terraform/nodeTypes/0/maxCapactiy", "detail": "unknown field; did you mean maxCapacity?"}


@pytest.fixture
def file(tmp_path):
    def write(text: str, name: str = "labt.yaml") -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def test_one_fault_is_one_line_with_file_line_kind_and_name(cli, api, file):
    api.problem("POST", "/v1/apply", 422, "InvalidInput", errors=[FAULT])
    result = cli("apply", "-f", file(PROVIDER))
    location = "labt.yaml:9 NodeProvider lab spec.terraform.nodeTypes[0].maxCapactiy"
    assert result.exit_code == 2
    (line, request) = result.stderr.splitlines()
    assert line.endswith(f"{location}: unknown field; did you mean maxCapacity? (InvalidInput, 422)")
    assert request == "Request id: req-1"


def test_several_faults_are_counted_and_listed_once(cli, api, file):
    missing = {"pointer": "/1/spec", "detail": "this field is required"}
    api.problem("POST", "/v1/apply", 422, "InvalidInput", errors=[FAULT, missing, missing])
    result = cli("apply", "-f", file(PROVIDER), "-f", "-", stdin=CLAIM)
    lines = result.stderr.splitlines()
    assert lines[0] == "Error: 2 fields are not valid (InvalidInput, 422)"
    assert lines[2] == "  standard input:4 NodeClaim c1 spec: this field is required"
    assert len(lines) == 4


def test_a_conflict_keeps_its_own_words(cli, api, file):
    api.problem("POST", "/v1/apply", 409, "InUse", errors=[{"pointer": "/0", "detail": "node type a has nodes"}])
    lines = cli("apply", "-f", file(PROVIDER)).stderr.splitlines()
    assert lines[0] == "Error: It is InUse. (InUse, 409)"
    assert lines[1].endswith("labt.yaml:1 NodeProvider lab: node type a has nodes")


@pytest.mark.parametrize(
    ("arguments", "text", "right"),
    [
        (("apply",), (EXAMPLES / "aws-cluster.json").read_text(), "cluster create"),
        (("apply",), '{"name": "a", "attributes": {}}', "account create"),
        (("apply",), '{"cluster": "demo"}', "claim create"),
        (("apply",), '{"name": "base", "quantity": 2}', "pool create --cluster CLUSTER"),
        (("apply",), '{"name": "base", "packs": []}', "profile create"),
        (("apply",), '{"name": "lab", "kind": "simulated"}', "provider create"),
        (("diff",), '{"name": "lab", "kind": "simulated"}', "provider create"),
        (("cluster", "create"), PROVIDER, "apply"),
        (("cluster", "update", "demo"), PROVIDER, "apply"),
        (("account", "create"), PROVIDER, "apply"),
        (("account", "create"), (EXAMPLES / "aws-cluster.json").read_text(), "cluster create"),
        (("claim", "create"), PROVIDER, "apply"),
        (("provider", "create"), CLAIM, "apply"),
        (("pool", "create", "--cluster", "demo"), CLAIM, "apply"),
        (("profile", "create"), CLAIM, "apply"),
    ],
)
def test_a_document_of_another_command_names_that_one(cli, api, file, arguments, text, right):
    path = file(text)
    result = cli(*arguments, "-f", path)
    assert result.exit_code == 2
    assert f"use `stockyard {right} -f {path}`" in result.stderr
    assert api.requests == []


def test_an_empty_standard_input_is_said(cli, api):
    for arguments in (("apply",), ("cluster", "create"), ("plan",)):
        assert cli(*arguments, "-f", "-", stdin="").stderr == "Error: standard input is empty\n"
    assert api.requests == []


def test_apply_takes_folders(cli, api, file, tmp_path):
    api.answer("POST", "/v1/apply", {"results": []})
    file(PROVIDER, "a.yaml")
    file(CLAIM, "b.yml")
    assert cli("apply", "-f", str(tmp_path)).exit_code == 0
    assert [document["kind"] for document in api.bodies("POST")[0]] == ["NodeProvider", "NodeClaim"]
    assert cli("cluster", "create", "-f", str(tmp_path)).exit_code == 2


def test_create_refuses_a_provider_that_exists(cli, api, file):
    text = "There is a node provider called lab."
    fault = {"pointer": "/0/metadata/name", "detail": text}
    api.problem("POST", "/v1/apply", 409, "InUse", detail=text, errors=[fault])
    result = cli("provider", "create", "-f", file(PROVIDER))
    assert result.exit_code == 5
    assert result.stderr.count(text) == 1
    assert f"labt.yaml:4 NodeProvider lab metadata.name: {text} (InUse, 409)" in result.stderr
    assert api.requests[-1].url.params["create_only"] == "true"


def test_diff_shows_fields_and_exits_with_one(cli, api, file):
    types = [{"name": "small", "usdPerHour": 0.05, "launchSeconds": 2}]
    change = {"before": {"nodeTypes": types}, "after": {"nodeTypes": [{**types[0], "usdPerHour": 0.07}]}}
    named = {"kind": "node-claim", "name": "c1", "pointer": "/1/metadata/labels", "before": {}, "after": {"a": "b"}}
    plan = {"creates": [{"kind": "pool", "name": "base"}], "changes": [{"pointer": "/0/spec", **change}, named]}
    api.answer("POST", "/v1/apply", {"plan": plan})
    path = file(PROVIDER)
    result = cli("diff", "-f", path, "-f", "-", stdin=CLAIM)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "+ pool base",
        f"~ {path}:1 NodeProvider lab",
        "  ~ spec.nodeTypes[small].usdPerHour: 0.05 -> 0.07",
        "~ node claim c1",
        '  + metadata.labels.a: "b"',
    ]
    assert json.loads(cli("diff", "-f", path, "-o", "json").stdout) == plan


def test_diff_of_nothing_exits_with_zero_and_a_failure_with_more_than_one(cli, api, file):
    path = file(PROVIDER)
    api.answer("POST", "/v1/apply", {"plan": {}}).problem("POST", "/v1/apply", 500, "Internal")
    result = cli("diff", "-f", path)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "Nothing differs.\n")
    assert cli("diff", "-f", path).exit_code == 2
    assert cli("diff", "-f", "nowhere.yaml").exit_code == 2


def deleted(api) -> list[str]:
    return [request.url.path for request in api.requests if request.method == "DELETE"]


@pytest.fixture
def deletable(api, operation_document):
    operation = operation_document("succeeded")
    for path in ("/v1/node-claims/c1", "/v1/node-providers/lab", "/v1/clusters/demo"):
        api.answer("DELETE", path, operation, status=202)
    api.answer("DELETE", "/v1/clusters/demo/pools/base", {"name": "base", "kind": "static"}, status=202)
    return api


def test_delete_goes_in_reverse_order(cli, deletable, file):
    path = file(f"{PROVIDER}---\n{POOL}---\n{CLAIM}")
    result = cli("delete", "-f", path, "-f", str(EXAMPLES / "aws-cluster.json"))
    assert result.exit_code == 0, result.stderr
    assert deleted(deletable) == [
        "/v1/node-claims/c1",
        "/v1/clusters/demo/pools/base",
        "/v1/clusters/demo",
        "/v1/node-providers/lab",
    ]
    assert result.stdout.splitlines() == [
        "claim c1 is going",
        "pool base of cluster demo is going",
        "cluster demo is going",
        "provider lab deleted",
    ]
    assert cli("delete", "-f", path, "-o", "name").stdout == "c1\nbase\nlab\n"


def test_delete_waits_for_each(cli, deletable, file, operation_document):
    deletable.answer("GET", "/v1/operations/op_01", operation_document("succeeded", *["succeeded"] * 3))
    result = cli("delete", "-f", file(CLAIM), "--wait")
    assert (result.exit_code, result.stdout) == (0, "claim c1 deleted\n")
    assert [request.url.path for request in deletable.requests][-1] == "/v1/operations/op_01"


def test_a_deletion_that_fails_does_not_stop_the_others(cli, deletable, file):
    deletable.problem("DELETE", "/v1/node-claims/c2", 409, "IllegalTransition")
    path = file(f"{CLAIM}---\n{CLAIM.replace('c1', 'c2')}---\n{CLAIM.replace('c1', 'c3')}")
    result = cli("delete", "-f", path)
    assert result.exit_code == 3  # of the first one that failed, which is the last of the file
    assert deleted(deletable) == ["/v1/node-claims/c3", "/v1/node-claims/c2", "/v1/node-claims/c1"]
    assert "claim c2:\nError: It is IllegalTransition." in result.stderr
    assert "--wait waits for each" in result.stderr
    assert cli("delete", "-f", file(CLAIM.replace("c1", "c3")), "--ignore-not-found").exit_code == 0


def test_pools_of_a_vcluster_are_deleted_by_name(cli, deletable, file):
    text = "privateNodes: {autoNodes: [{provider: lab, dynamic: [{name: base}], static: []}]}\n"
    assert cli("delete", "-f", file(text)).exit_code == 2
    assert cli("delete", "-f", file(text), "--cluster", "demo").exit_code == 0
    assert deleted(deletable) == ["/v1/clusters/demo/pools/base"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("kind: Project\napiVersion: v1\nmetadata: {name: p}\n", "labt.yaml:1 Project p: this kind is not deleted"),
        ("cluster: demo\nresources: {}\n", "labt.yaml:1: it has no name"),
        ("name: a\nattributes: {}\n", "labt.yaml:1 a: this kind is not deleted"),
    ],
)
def test_what_a_document_cannot_delete_is_refused_before_anything_goes(cli, api, file, text, reason):
    result = cli("delete", "-f", "-", "-f", file(text), stdin=CLAIM)
    assert result.exit_code == 2
    assert reason in result.stderr
    assert api.requests == []


def test_a_dry_run_of_a_deletion_asks_the_api_what_would_go(cli, api, file):
    api.answer(
        "DELETE", "/v1/node-claims/c1", {"plan": {"deletes": [], "warnings": [{"pointer": "", "detail": "It drains."}]}}
    )
    api.problem("DELETE", "/v1/node-providers/lab", 409, "InUse")
    result = cli("delete", "-f", file(f"{PROVIDER}---\n{CLAIM}"), "--dry-run")
    assert (result.exit_code, result.stdout) == (0, "claim c1\nprovider lab\n")
    warnings = ["Warning: It drains.", "Warning: provider lab: It is InUse."]
    assert result.stderr.splitlines() == [*warnings, "This was a dry run; nothing was changed."]
    assert [request.url.params["dry_run"] for request in api.requests] == ["true"] * 2


def test_a_dry_run_of_a_deletion_says_what_is_not_there(cli, api, file):
    api.answer("DELETE", "/v1/node-providers/lab", {"plan": {}})
    result = cli("delete", "-f", file(f"{PROVIDER}---\n{CLAIM}"), "--dry-run")
    assert (result.exit_code, result.stdout) == (3, "provider lab\n")
    assert "claim c1:\nError: There is no such thing." in result.stderr
    result = cli("delete", "-f", file(f"{PROVIDER}---\n{CLAIM}"), "--dry-run", "--ignore-not-found")
    assert (result.exit_code, result.stdout) == (0, "provider lab\n")


def test_files_of_a_folder_that_hold_nothing_are_passed_over(cli, api, tmp_path):
    (tmp_path / "a.yaml").write_text("# nothing yet\n")
    (tmp_path / "b.yaml").write_text("")
    (tmp_path / "c.yaml").write_text("---\n")
    result = cli("apply", "-f", str(tmp_path))
    assert result.exit_code == 2
    assert f"{tmp_path}/a.yaml, {tmp_path}/b.yaml, {tmp_path}/c.yaml hold no document" in result.stderr
    (tmp_path / "d.yaml").write_text(PROVIDER)
    api.answer("POST", "/v1/apply", {"items": []})
    assert cli("apply", "-f", str(tmp_path)).exit_code == 0
    (tmp_path / "e.yaml").write_text("a: [")
    assert f"{tmp_path}/e.yaml" in cli("apply", "-f", str(tmp_path)).stderr


@pytest.mark.parametrize("noun", ["cluster", "provider", "claim", "pool", "account"])
def test_a_record_is_no_request(cli, tmp_path, noun):
    record = tmp_path / "record.json"
    day = "2026-01-01"
    record.write_text(json.dumps({"name": "a", "version": 3, "created_at": day, "updated_at": day, "limits": {}}))
    more = ("--cluster", "demo") if noun == "pool" else ()
    result = cli(noun, "create", "-f", str(record), *more)
    assert result.exit_code == 2
    assert "this is a record, as `get` writes it" in result.stderr
    assert (f"`stockyard {noun} get NAME --manifest`" in result.stderr) == (noun != "account")
