"""``stockyard profile`` and ``stockyard cluster profiles`` against the fake API."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

PATH = "/v1/cluster-profiles"
OF_CLUSTER = "/v1/clusters/demo/profiles"
PACKS = [{"layer": "k8s", "name": "kubernetes", "tag": "1.34"}]
SPEC: dict[str, Any] = {"version": "1.1.0", "cloud": "any", "packs": PACKS}
MANIFEST = {"apiVersion": "stockyard/v1", "kind": "ClusterProfile", "metadata": {"name": "base"}, "spec": SPEC}
PROFILE = {"id": "cpr_01", "name": "base", "version": "1.1.0", "cloud": "any", "packs": PACKS}
CHOICES = [{"name": "base", "variables": {"env": "prod"}}]


@pytest.fixture
def written(tmp_path):
    def write(document: Any) -> str:
        file = tmp_path / "document.yaml"
        file.write_text(yaml.safe_dump(document))
        return str(file)

    return write


def page(*profiles):
    return {"items": list(profiles), "next_page_token": None}


def test_a_profile_is_made_from_a_document_of_its_kind(cli, api, written):
    api.answer("GET", PATH, page()).answer("POST", PATH, PROFILE, status=201)
    result = cli("profile", "create", "-f", written(MANIFEST))
    assert result.exit_code == 0, result.stderr
    assert api.bodies("POST") == [{**SPEC, "name": "base"}]
    assert result.stdout.splitlines()[1].split()[:3] == ["base", "1.1.0", "any"]


def test_a_request_is_sent_as_it_is(cli, api, written):
    api.answer("GET", PATH, page()).answer("POST", PATH, PROFILE, status=201)
    assert cli("profile", "create", "-f", written({**SPEC, "name": "base"})).exit_code == 0
    assert api.bodies("POST") == [{**SPEC, "name": "base"}]


def test_a_profile_that_is_there_gets_a_version(cli, api, written):
    api.answer("GET", PATH, page({**PROFILE, "id": "cpr_02", "name": "other"}, PROFILE))
    api.answer("GET", f"{PATH}/cpr_01", PROFILE, ETag='"4"').answer("PUT", f"{PATH}/cpr_01", PROFILE)
    result = cli("profile", "create", "-f", written(MANIFEST))
    assert result.exit_code == 0, result.stderr
    assert api.requests[-1].headers["If-Match"] == '"4"'
    assert api.bodies("PUT") == [{"version": "1.1.0", "packs": PACKS}], "its name and cloud stay"
    assert api.bodies("POST") == []


@pytest.mark.parametrize(("existing", "method"), [([], "POST"), ([PROFILE], "PUT")])
def test_a_dry_run_asks_for_a_plan_and_writes_nothing(cli, api, written, existing, method):
    plan = {"plan": {"creates": [{"kind": "cluster-profile", "name": "base 1.1.0"}]}}
    api.answer("GET", PATH, page(*existing)).answer("GET", f"{PATH}/cpr_01", PROFILE, ETag='"4"')
    api.answer("POST", PATH, plan).answer("PUT", f"{PATH}/cpr_01", plan)
    result = cli("profile", "create", "--dry-run", "-f", written(MANIFEST))
    assert result.exit_code == 0, result.stderr
    writes = [request for request in api.requests if request.method != "GET"]
    assert [(request.method, request.url.params["dry_run"]) for request in writes] == [(method, "true")]
    assert "base 1.1.0" in result.stdout


def test_a_document_of_another_kind_is_refused_before_anything_is_sent(cli, api, written):
    result = cli("profile", "create", "-f", written({**MANIFEST, "kind": "NodePool"}))
    assert result.exit_code != 0
    assert "this is a manifest of kind NodePool: use `stockyard apply -f" in result.stderr
    assert api.requests == []


def test_profiles_are_listed_shown_and_removed(cli, api, operation_document):
    first = {"items": [PROFILE], "next_page_token": "p2"}
    api.answer("GET", PATH, first).answer("GET", PATH, page({**PROFILE, "name": "other"}))
    assert [line.split()[0] for line in cli("profile", "list").stdout.splitlines()] == ["NAME", "base", "other"]
    assert api.requests[1].url.params["page_token"] == "p2"
    api.answer("GET", f"{PATH}/base", PROFILE)
    assert yaml.safe_load(cli("profile", "get", "base", "--version", "1.1.0", "-o", "yaml").stdout) == PROFILE
    assert dict(api.requests[-1].url.params) == {"version": "1.1.0"}
    plan = {"plan": {"deletes": [{"kind": "cluster-profile", "name": "old"}]}}
    api.answer("DELETE", f"{PATH}/old", plan)
    assert "- cluster profile  old" in cli("profile", "delete", "old", "--dry-run").stdout
    api.answer("DELETE", f"{PATH}/base", operation_document("succeeded"), status=202)
    assert "Profile base is removed." in cli("profile", "delete", "base").stderr


def test_a_profile_in_use_is_not_said_to_be_removed(cli, api):
    api.problem("DELETE", f"{PATH}/base", 409, "InUse")
    result = cli("profile", "delete", "base")
    assert result.exit_code != 0
    assert "removed" not in result.stderr


def test_the_profiles_of_a_cluster_are_planned_and_set(cli, api, written, cluster_document, operation_document):
    api.answer("GET", "/v1/clusters/demo", cluster_document(), ETag='"3"')
    plan = {"deletes": [{"kind": "Deployment", "name": "tools/server"}], "steps": ["Apply the packs."]}
    api.answer("PUT", OF_CLUSTER, {"plan": plan}).answer("PUT", OF_CLUSTER, operation_document(), status=202)
    file = written({"profiles": CHOICES})
    lines = cli("profile", "diff", "demo", "-f", file).stdout.splitlines()
    assert lines == ["- Deployment  tools/server", "1. Apply the packs."]
    result = cli("cluster", "profiles", "demo", "-f", file)
    assert "Operation op_01 changes the profiles." in result.stderr
    puts = [request for request in api.requests if request.method == "PUT"]
    assert [dict(request.url.params) for request in puts] == [{"dry_run": "true"}, {}]
    assert {request.headers["If-Match"] for request in puts} == {'"3"'}
    assert [json.loads(request.content) for request in puts] == [{"profiles": CHOICES}] * 2


def test_a_file_without_a_list_of_profiles_removes_no_packs(cli, api, written):
    for command in (("cluster", "profiles"), ("profile", "diff")):
        result = cli(*command, "demo", "-f", written({"profile": CHOICES}))
        assert result.exit_code == 2
        assert "has no list profiles" in result.stderr
    assert api.requests == []


@pytest.mark.parametrize(("flag", "query"), [((), {}), (("--refresh",), {"refresh": "true"})])
def test_the_profiles_of_a_cluster_are_shown(cli, api, flag, query):
    pack = {"profile": "base", "layer": "cni", "name": "net", "tag": "2.0", "condition": "Applying", "message": "late"}
    view = {"profiles": CHOICES, "packs": [pack], "objects": 3, "drift": ["net: DaemonSet agent is not there"]}
    view["compared_at"] = "2026-01-31T12:00:00.000Z"
    api.answer("GET", OF_CLUSTER, view)
    assert yaml.safe_load(cli("cluster", "profiles", "demo", "-o", "yaml", *flag).stdout) == view
    assert dict(api.requests[0].url.params) == query
    result = cli("cluster", "profiles", "demo")
    assert result.stdout.splitlines()[1].split() == ["cni", "net", "2.0", "Applying", "base", "late"]
    assert "Drift: net: DaemonSet agent is not there" in result.stderr


def test_a_cluster_is_created_with_profiles_by_name_and_version(cli, api, written, cluster_document):
    api.answer("POST", "/v1/clusters", cluster_document(), status=202)
    document = {"name": "demo", "settings": {}, "profiles": [{"name": "old"}]}
    result = cli("cluster", "create", "-f", written(document), "--profile", "base@1.1.0", "--profile", "other")
    assert result.exit_code == 0, result.stderr
    assert api.bodies("POST")[0]["profiles"] == [{"name": "base", "version": "1.1.0"}, {"name": "other"}]


def test_a_profile_is_drawn_with_its_packs_and_variables(cli, api):
    variables = [{"name": "env", "type": "string", "default": "dev", "required": False, "description": "Where"}]
    versions = [{"version": "1.0.0"}, {"version": "1.1.0"}]
    api.answer("GET", f"{PATH}/base", {**PROFILE, "variables": variables, "versions": versions})
    assert cli("profile", "describe", "base").stdout.splitlines() == [
        "profile base  1.1.0",
        "├── id  cpr_01",
        "├── cloud  any",
        "├── versions  1.0.0, 1.1.0",
        "├── variables",
        "│   └── env  string = dev  Where",
        "└── packs",
        "    └── k8s kubernetes  1.34",
    ]


def test_a_profile_is_shown_as_a_document_to_apply(cli, api):
    api.answer("GET", f"{PATH}/base", MANIFEST)
    assert yaml.safe_load(cli("profile", "get", "base", "--manifest").stdout) == MANIFEST
    assert dict(api.requests[0].url.params) == {"form": "manifest"}
