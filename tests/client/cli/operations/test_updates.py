"""``update`` and ``edit``: what is sent, what is asked, and what is kept when it is not sent."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ACCOUNT = {"id": 1, "provider": "aws", "name": "main", "description": "x", "tags": {"a": "1"}, "version": 4}
CLAIM = {"id": "ncl_1", "name": "c1", "phase": "Available", "power": "On", "labels": {}, "version": 2}


@pytest.fixture
def editor(cli, tmp_path):
    """Sets the editor to one that replaces a text, and gives what it was shown."""

    def use(old: str, new: str, code: int = 0) -> Path:
        script, seen_text = tmp_path / "editor", tmp_path / "shown"
        script.write_text(f'#!/bin/sh\ncp "$1" {seen_text}\nsed -i "s#{old}#{new}#" "$1"\nexit {code}\n')
        script.chmod(0o700)
        cli.environment["EDITOR"] = str(script)
        return seen_text

    return use


def kept_file(result) -> Path:
    match = re.search(r"What you wrote is kept in (\S+)\.\n", result.stderr)
    assert match, result.stderr
    return Path(match[1])


def answer_account(api) -> None:
    api.answer("GET", "/v1/cloud-accounts/1", ACCOUNT, ETag='"4"')
    api.answer("PATCH", "/v1/cloud-accounts/1", {**ACCOUNT, "description": "y"})


def test_update_sends_fields_over_a_merge_patch_with_the_version(cli, api):
    answer_account(api)
    arguments = ("account", "update", "1", "--set", "tags.b=2", "-f", "-")
    result = cli(*arguments, stdin="tags: {a: null}\ndescription: y\n")
    assert result.exit_code == 0, result.stderr
    assert api.bodies("PATCH") == [{"tags": {"a": None, "b": "2"}, "description": "y"}]
    assert api.requests[-1].headers["If-Match"] == '"4"'


def test_update_needs_something_to_change(cli, api):
    for noun in ("account", "cluster", "provider", "claim"):
        result = cli(noun, "update", "1")
        assert (result.exit_code, api.requests) == (2, [])
        assert "say what changes: --set PATH=VALUE, --file, or both" in result.stderr


def test_update_can_be_planned(cli, api):
    answer_account(api)
    plan = {"changes": [{"pointer": "/description", "before": "x", "after": "y"}]}
    api.answer("PATCH", "/v1/cloud-accounts/1", {"plan": plan})
    api.answer("GET", "/v1/node-claims/c1", CLAIM).answer("PATCH", "/v1/node-claims/ncl_1", {"plan": plan})
    api.answer("GET", "/v1/node-providers/lab", {**CLAIM, "id": "npr_1"})
    api.answer("PATCH", "/v1/node-providers/npr_1", {"plan": plan})
    for arguments in (("account", "update", "1"), ("claim", "update", "c1"), ("provider", "update", "lab")):
        result = cli(*arguments, "--set", "description=y", "--dry-run")
        assert result.exit_code == 0, result.stderr
        assert api.requests[-1].url.params["dry_run"] == "true"


def test_a_refused_field_is_named_by_its_option(cli, api):
    api.answer("GET", "/v1/cloud-accounts/1", ACCOUNT)
    fault = {"pointer": "/attributes/role_arn", "detail": "must be an ARN"}
    api.problem("PATCH", "/v1/cloud-accounts/1", 422, "InvalidInput", errors=[fault])
    result = cli("account", "update", "1", "--set", "attributes.role_arn=x")
    assert result.stderr.startswith("Error: --set attributes.role_arn: must be an ARN (InvalidInput, 422)")


def test_edit_sends_what_differs_and_shows_it(cli, api, editor):
    answer_account(api)
    shown_text = editor("description: x", "description: y")
    result = cli("account", "edit", "1")
    assert result.exit_code == 0, result.stderr
    assert '~ description: "x" -> "y"' in result.stdout
    assert api.bodies("PATCH") == [{"description": "y"}]
    text = shown_text.read_text()
    assert text.startswith("# Account 1, version 4.")
    assert "provider" not in text  # it cannot change


def test_edit_of_a_profile_adds_a_version(cli, api, editor):
    packs = [{"layer": "k8s", "name": "kubernetes", "tag": "1.34"}]
    profile = {"id": "cpr_01", "name": "base", "version": "1.0.0", "cloud": "all", "description": "d", "packs": packs}
    api.answer("GET", "/v1/cluster-profiles/base", profile, ETag='"4"')
    api.answer("PUT", "/v1/cluster-profiles/cpr_01", {**profile, "version": "1.1.0"})
    shown_text = editor("version: 1.0.0", "version: 1.1.0")
    result = cli("profile", "edit", "base")
    assert result.exit_code == 0, result.stderr
    assert "cloud" not in shown_text.read_text()
    assert '~ version: "1.0.0" -> "1.1.0"' in result.stdout
    assert api.bodies("PUT") == [{"version": "1.1.0", "description": "d", "packs": packs}]
    assert api.requests[-1].headers["If-Match"] == '"4"'


@pytest.mark.parametrize(
    ("status", "error_type", "code", "text"),
    [
        (422, "InvalidInput", 2, "version: Too low."),
        (412, "VersionConflict", 5, "Profile base was changed by someone else meanwhile."),
    ],
)
def test_edit_of_a_profile_that_is_refused_is_kept(cli, api, editor, status, error_type, code, text):
    profile = {"id": "cpr_01", "name": "base", "version": "1.0.0", "cloud": "all", "packs": []}
    api.answer("GET", "/v1/cluster-profiles/base", profile, ETag='"4"')
    api.answer("GET", "/v1/cluster-profiles/base", {**profile, "version": "1.0.5"}, ETag='"5"')
    errors = [{"pointer": "/version", "detail": "Too low."}] if status == 422 else []
    api.problem("PUT", "/v1/cluster-profiles/cpr_01", status, error_type, errors=errors)
    editor("version: 1.0.0", "version: 0.9.0")
    result = cli("profile", "edit", "base")
    assert result.exit_code == code
    assert text in result.stderr
    assert "What you wrote is kept in" in result.stderr
    assert len(api.bodies("PUT")) == 1


def test_edit_of_nothing_says_so(cli, api, editor):
    answer_account(api)
    editor("a", "a")
    result = cli("account", "edit", "1")
    assert (result.exit_code, api.bodies("PATCH")) == (0, [])
    assert result.stderr == "Nothing was changed in account 1.\n"


def test_edit_keeps_what_was_written_when_someone_else_was_first(cli, api, editor):
    api.answer("GET", "/v1/cloud-accounts/1", ACCOUNT)
    api.answer("GET", "/v1/cloud-accounts/1", {**ACCOUNT, "description": "theirs", "version": 5})
    api.problem("PATCH", "/v1/cloud-accounts/1", 412, "PreconditionFailed")
    editor("description: x", "description: y")
    result = cli("account", "edit", "1")
    assert result.exit_code == 5
    assert "Account 1 was changed by someone else meanwhile." in result.stderr
    assert len(api.bodies("PATCH")) == 1
    file = kept_file(result)
    assert "description: y" in file.read_text()
    file.unlink()


def test_edit_goes_on_when_only_other_fields_have_changed(cli, api, editor):
    api.answer("GET", "/v1/cloud-accounts/1", ACCOUNT).answer("GET", "/v1/cloud-accounts/1", {**ACCOUNT, "version": 5})
    api.problem("PATCH", "/v1/cloud-accounts/1", 412, "PreconditionFailed")
    api.answer("PATCH", "/v1/cloud-accounts/1", ACCOUNT)
    editor("description: x", "description: y")
    assert cli("account", "edit", "1").exit_code == 0
    assert api.requests[-1].headers["If-Match"] == '"5"'


def test_edit_names_the_line_of_a_refused_field(cli, api, editor):
    api.answer("GET", "/v1/cloud-accounts/1", ACCOUNT)
    fault = {"pointer": "/description", "detail": "is too long"}
    api.problem("PATCH", "/v1/cloud-accounts/1", 422, "InvalidInput", errors=[fault])
    editor("description: x", "description: y")
    result = cli("account", "edit", "1")
    file = kept_file(result)
    assert f"{file}:4 account main description: is too long" in result.stderr
    file.unlink()


@pytest.mark.parametrize(
    ("old", "new", "code", "reason"),
    [
        ("description: x", "description: [", 0, "neither JSON nor YAML"),
        ("description: x", "description: y", 3, "ended with 3, so nothing is sent"),
    ],
)
def test_edit_keeps_what_it_cannot_use(cli, api, editor, old, new, code, reason):
    answer_account(api)
    editor(old, new, code)
    result = cli("account", "edit", "1")
    assert (result.exit_code, api.bodies("PATCH")) == (2, [])
    assert reason in result.stderr
    kept_file(result).unlink()


def test_edit_asks_on_a_terminal(cli, api, editor):
    answer_account(api)
    editor("description: x", "description: y")
    cli.terminal = True
    result = cli("account", "edit", "1", stdin="n\n")
    assert (result.exit_code, api.bodies("PATCH")) == (1, [])
    kept_file(result).unlink()
    assert cli("account", "edit", "1", stdin="y\n").exit_code == 0
    assert cli("account", "edit", "1", "--yes").exit_code == 0
    assert len(api.bodies("PATCH")) == 2


def test_edit_needs_an_editor_that_starts(cli, api):
    answer_account(api)
    assert "there is no terminal for an editor" in cli("account", "edit", "1").stderr
    assert api.requests == []
    cli.environment["VISUAL"] = "/no/such/editor"
    result = cli("account", "edit", "1")
    assert (result.exit_code, "the editor /no/such/editor does not start" in result.stderr) == (2, True)
    kept_file(result).unlink()


def test_edit_of_each_kind_of_record(cli, api, editor, cluster_document, operation_document):
    editor("description: .*\\|floor: .*\\|display_name: .*", "display_name: y\\nfloor: 2\\ndescription: y")
    record = {"name": "x", "description": "", "display_name": "", "floor": 1, "kind": "dynamic", "phase": "Available"}
    operation = operation_document(kind="change_cluster")
    api.answer("GET", "/v1/operations/op_02", {**operation, "id": "op_02"})
    pool = "/v1/clusters/demo/pools/base"
    shown_fields = {pool: ("name", "kind", "floor")}
    for read, changed in (
        ("/v1/node-providers/x", "/v1/node-providers/npr_1"),
        ("/v1/node-claims/x", "/v1/node-claims/ncl_1"),
        (pool, pool),
    ):
        fields = {name: record[name] for name in shown_fields.get(read, record)}
        answer = {**fields, "id": changed.rpartition("/")[2], "name": read.rpartition("/")[2]}
        api.answer("GET", read, answer).answer("PATCH", changed, answer)
    api.answer("GET", "/v1/clusters/demo", cluster_document(status="ready"))
    api.answer("PATCH", "/v1/clusters/clu_01", cluster_document(operation_id="op_02"), status=202)
    for arguments in (("provider", "edit", "x"), ("claim", "edit", "x"), ("pool", "edit", "base", "--cluster", "demo")):
        result = cli(*arguments)
        assert result.exit_code == 0, result.stderr
    assert cli("cluster", "edit", "demo", "--queue").exit_code == 0
    assert api.bodies("PATCH")[0]["display_name"] == "y"
    assert api.bodies("PATCH")[2]["floor"] == 2
    assert api.bodies("PATCH")[3]["queue"] is True


def test_a_pool_is_updated_by_options_and_fields(cli, api):
    api.answer("GET", "/v1/clusters/demo/pools/base", {"name": "base", "kind": "dynamic", "limits": {"nodes": "3"}})
    api.answer("PATCH", "/v1/clusters/demo/pools/base", {"name": "base", "kind": "dynamic"})
    result = cli("pool", "update", "base", "--cluster", "demo", "--floor", "1", "--set", "disruption.paused=true")
    assert result.exit_code == 0, result.stderr
    assert api.bodies("PATCH") == [{"floor": 1, "disruption": {"paused": True}}]
    assert cli("pool", "update", "base", "--cluster", "demo").exit_code == 2


def test_power(cli, api, operation_document):
    api.answer("POST", "/v1/node-claims/c1/power", {**CLAIM, "operation_id": "op_01"}, status=202)
    api.answer("GET", "/v1/operations/op_01", operation_document("succeeded", *["succeeded"] * 3))
    api.answer("GET", "/v1/node-claims/ncl_1", CLAIM)
    result = cli("claim", "power", "c1", "reboot", "--wait")
    assert result.exit_code == 0, result.stderr
    assert api.bodies("POST") == [{"state": "Reboot"}]
    assert cli("claim", "power", "c1", "sleep").exit_code == 2


def test_resume_takes_fields(cli, api, cluster_document, operation_document):
    api.answer("GET", "/v1/clusters/demo", cluster_document(status="failed"))
    api.answer("POST", "/v1/clusters/clu_01/resume", operation_document(), status=202)
    api.answer("POST", "/v1/clusters/demo/resume", operation_document(), status=202)
    path = "settings.autoscaler_node_groups[workers].max_size=5"
    assert cli("cluster", "retry", "demo", "--set", path).exit_code == 0
    (group,) = json.loads(api.requests[-1].content)["settings"]["autoscaler_node_groups"]
    assert (group["name"], group["max_size"]) == ("workers", 5)
