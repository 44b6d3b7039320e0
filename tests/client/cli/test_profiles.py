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
    assert yaml.safe_load(result.stdout) == {"id": "cpr_01", "name": "base", "version": "1.1.0"}


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
    assert "not of kind ClusterProfile" in result.stderr
    assert api.requests == []


def test_profiles_are_listed_shown_and_removed(cli, api, operation_document):
    first = {"items": [PROFILE], "next_page_token": "p2"}
    api.answer("GET", PATH, first).answer("GET", PATH, page({**PROFILE, "name": "other"}))
    assert [line["name"] for line in yaml.safe_load(cli("profile", "list").stdout)] == ["base", "other"]
    assert api.requests[1].url.params["page_token"] == "p2"
    api.answer("GET", f"{PATH}/base", PROFILE)
    assert yaml.safe_load(cli("profile", "get", "base").stdout) == PROFILE
    api.answer("DELETE", f"{PATH}/base", operation_document("succeeded"), status=202)
    assert "Profile base is removed." in cli("profile", "delete", "base").stderr


def test_a_profile_in_use_is_not_said_to_be_removed(cli, api):
    api.problem("DELETE", f"{PATH}/base", 409, "InUse")
    result = cli("profile", "delete", "base")
    assert result.exit_code != 0
    assert "removed" not in result.stderr


def test_the_profiles_of_a_cluster_are_planned_and_set(cli, api, written, cluster_document, operation_document):
    api.answer("GET", "/v1/clusters/demo", cluster_document(), ETag='"3"')
    plan = {"creates": [], "deletes": [{"kind": "Deployment", "name": "tools/server"}]}
    api.answer("PUT", OF_CLUSTER, {"plan": plan}).answer("PUT", OF_CLUSTER, operation_document(), status=202)
    file = written({"profiles": CHOICES})
    assert yaml.safe_load(cli("profile", "diff", "demo", "-f", file).stdout) == plan
    result = cli("cluster", "profiles", "demo", "-f", file)
    assert "Operation op_01 changes the profiles." in result.stderr
    puts = [request for request in api.requests if request.method == "PUT"]
    assert [dict(request.url.params) for request in puts] == [{"dry_run": "true"}, {}]
    assert {request.headers["If-Match"] for request in puts} == {'"3"'}
    assert [json.loads(request.content) for request in puts] == [{"profiles": CHOICES}] * 2


@pytest.mark.parametrize(("flag", "query"), [((), {}), (("--refresh",), {"refresh": "true"})])
def test_the_profiles_of_a_cluster_are_shown(cli, api, flag, query):
    view = {"profiles": CHOICES, "packs": [], "objects": 3, "drift": [], "compared_at": None}
    api.answer("GET", OF_CLUSTER, view)
    assert yaml.safe_load(cli("cluster", "profiles", "demo", *flag).stdout) == view
    assert dict(api.requests[0].url.params) == query
