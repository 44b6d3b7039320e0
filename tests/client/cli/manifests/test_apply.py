"""``stockyard apply`` and ``diff``."""

from __future__ import annotations

import json

import pytest

from tests.client.cli.test_nodes import APPLIED, MANIFEST


def test_what_is_said_of_the_whole_has_no_pointer(cli, api):
    rejected = [{"pointer": "", "detail": "sim.small: too small"}, {"pointer": "/1", "detail": "sim.large: full"}]
    api.answer("POST", "/v1/node-claims", {"plan": {"rejected": rejected}})
    output = cli("claim", "create", "--cluster", "demo", "--dry-run").stdout
    assert output == "! sim.small: too small\n! [1]: sim.large: full\n"


def test_apply_names_the_cluster_of_pools_that_name_none(cli, api, tmp_path):
    warning = {"pointer": "/0/sync", "detail": "not looked at"}
    api.answer("POST", "/v1/apply", {"results": [{**APPLIED, "kind": "Pool"}], "warnings": [warning]})
    label = "stockyard.dev/cluster"
    documents = [
        {"privateNodes": {"enabled": True}},
        {"kind": "NodePool", "metadata": {"name": "a", "labels": {label: "own"}}},
        {"kind": "NodePool", "metadata": {"name": "b", "labels": {"team": "x"}}},
        {"kind": "NodeProvider", "metadata": {"name": "c"}},
        {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "d"}},
        {"apiVersion": "stockyard/v1", "kind": "NodeClaim", "metadata": {"name": "e"}},
    ]
    file = tmp_path / "pools.json"
    file.write_text(json.dumps(documents), encoding="utf-8")
    result = cli("apply", "-f", str(file), "--cluster", "demo")
    assert "pools.json:1 sync: not looked at" in result.stderr
    (body,) = api.bodies("POST")
    assert [document.get("metadata", {}).get("labels") for document in body] == [
        {label: "demo"},
        {label: "own"},
        {label: "demo", "team": "x"},
        None,
        {label: "demo"},
        None,
    ]


def test_apply_asks_before_it_prunes_pools(cli, api):
    text = json.dumps({"privateNodes": {"enabled": True}})
    api.answer("POST", "/v1/apply", {"plan": {"deletes": [{"kind": "pool", "name": "old"}]}})
    api.answer("POST", "/v1/apply", {"results": [{**APPLIED, "action": "deleted", "name": "old"}]})
    # whoever is no person at a terminal is not asked
    result = cli("apply", "-f", "-", "--prune", "--dry-run", stdin=text)
    assert (result.exit_code, "- pool  old" in result.stdout) == (0, True)
    result = cli("apply", "-f", "-", "--prune", stdin=text)
    assert result.stdout.splitlines()[1].split() == ["NodeClaim", "old", "deleted"]
    queries = [dict(request.url.params) for request in api.requests]
    assert queries == [{"prune": "true", "dry_run": "true"}, {"prune": "true"}]


def test_apply_takes_several_files_documents_and_lists(cli, api, tmp_path):
    api.answer("POST", "/v1/apply", {"results": [{**APPLIED, "warnings": [{"pointer": "/0", "detail": "W"}]}]})
    yaml_file, json_file = tmp_path / "one.yaml", tmp_path / "two.json"
    yaml_file.write_text("kind: A\nspec: {power: {state: On}, at: 2026-01-01}\n---\n---\nkind: B\n")
    json_file.write_text('[{"kind": "C"}, {"kind": "D"}]')
    result = cli("apply", "-f", str(yaml_file), "-f", str(json_file), "-f", "-", "-o", "name", stdin="kind: E\n")
    assert (result.exit_code, result.stdout) == (0, "nodeclaim/one\n")
    sent = api.bodies("POST")[0]
    assert [document["kind"] for document in sent] == ["A", "B", "C", "D", "E"]
    assert sent[0]["spec"] == {"power": {"state": "On"}, "at": "2026-01-01"}
    assert "one.yaml:1: W" in result.stderr


@pytest.mark.parametrize("command", ["apply", "diff"])
def test_a_list_of_kubernetes_is_sent_as_its_items(cli, api, command):
    api.problem(
        "POST", "/v1/apply", 422, "InvalidInput", errors=[{"pointer": "/1/spec/quantity", "detail": "No number."}]
    )
    items = [
        {"apiVersion": "stockyard/v1", "kind": "NodeProvider", "metadata": {"name": "lab"}},
        {"apiVersion": "stockyard/v1", "kind": "Pool", "metadata": {"name": "web"}, "spec": {"quantity": "x"}},
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=1)
    result = cli(command, "-f", "-", stdin=text)
    assert result.exit_code == 2
    assert api.bodies("POST") == [items]
    line = next(number for number, row in enumerate(text.splitlines(), 1) if '"quantity"' in row)
    assert f"standard input:{line} Pool web spec.quantity: No number." in result.stderr


@pytest.mark.parametrize("text", ["", "[]", "1", "- 1\n", "a: [\n"])
def test_what_holds_no_manifest_is_a_usage_error(cli, api, text):
    assert cli("apply", "-f", "-", stdin=text).exit_code == 2
    assert api.requests == []


def test_dry_runs_send_nothing_for_good(cli, api):
    plan = {"plan": {"creates": [{"kind": "node-claim", "name": "one"}]}}
    for path in ("/v1/apply", "/v1/node-claims", "/v1/node-providers"):
        api.answer("POST", path, plan)
    document = json.dumps(MANIFEST)
    assert cli("apply", "-f", "-", "--dry-run", stdin=document).stdout == "+ node claim  one\n"
    assert cli("claim", "create", "-f", "-", "--dry-run", stdin=document).stdout == "+ node claim  one\n"
    provider = json.dumps({**MANIFEST, "kind": "NodeProvider"})
    assert cli("provider", "create", "-f", "-", "--dry-run", stdin=provider).stdout == "+ node claim  one\n"
    assert cli("provider", "create", "-f", "-", "--dry-run", stdin="{}").exit_code == 0
    assert cli("claim", "create", "--cluster", "demo", "--dry-run").exit_code == 0
    assert {request.url.params.get("dry_run") for request in api.requests if request.method == "POST"} == {"true"}


def test_a_plan_of_a_change_names_each_field(cli, api, tmp_path):
    change = {
        "kind": "node-provider",
        "name": "lab",
        "pointer": "/0/spec/simulated/nodeTypes/0/usdPerHour",
        "field": "nodeTypes[small].usdPerHour",
        "before": 0.05,
        "after": 0.07,
    }
    api.answer("POST", "/v1/apply", {"plan": {"changes": [change]}})
    file = tmp_path / "lab.json"
    file.write_text(json.dumps({"kind": "NodeProvider"}), encoding="utf-8")
    result = cli("apply", "-f", str(file), "--dry-run")
    assert result.stdout == "~ node provider lab\n  ~ nodeTypes[small].usdPerHour: 0.05 -> 0.07\n"


def test_a_warning_that_is_the_verdict_is_said_once(cli, api):
    text = "No node type fits now, so it will wait: 3 without enough cpu."
    group = {"rule": "Resource", "message": "without enough cpu", "count": 3, "types": ["lab.a", "lab.b", "lab.c"]}
    plan = {"verdict": text, "groups": [group], "warnings": [{"pointer": "", "detail": text}]}
    api.answer("POST", "/v1/node-claims", {"plan": plan})
    result = cli("claim", "create", "--cluster", "demo", "--cpu", "99", "--dry-run")
    assert result.stdout.splitlines() == [text, "! 3 without enough cpu: lab.a, lab.b, lab.c"]
    assert "Warning" not in result.stderr


def test_a_cluster_in_a_namespace_is_deleted_and_no_other_of_its_name(cli, api, cluster_document, operation_document):
    """A manifest's name is one in its namespace: the other cluster of that name stays."""
    first = {**cluster_document(name="west"), "settings": {"namespace": "platform"}}
    second = {**cluster_document(name="team-west"), "settings": {"namespace": "team"}}
    api.answer("GET", "/v1/clusters", {"items": [first, second], "next_page_token": None})
    api.answer("GET", "/v1/clusters/team-west", {"metadata": {"name": "west", "namespace": "team"}})
    for name in ("west", "team-west"):
        api.answer("DELETE", f"/v1/clusters/{name}", operation_document(), status=202)
    manifest = {"apiVersion": "infrastructure.modelplane.ai/v1alpha1", "kind": "EKSCluster", "spec": {}}
    for namespace, name in (("platform", "west"), ("team", "team-west"), ("ops", "ops-west")):
        document = {**manifest, "metadata": {"name": "west", "namespace": namespace}}
        cli("delete", "-f", "-", "--yes", stdin=json.dumps(document))
        assert [r.url.path for r in api.requests if r.method == "DELETE"][-1] == f"/v1/clusters/{name}"
