"""Quotas, audit, environments, allowed node types, accounts of events."""

from __future__ import annotations

import json

import pytest

QUOTA = {"name": "clusters", "limit": 20, "used": 3, "version": 0}


def pages(*items):
    return {"items": [*items], "next_page_token": None}


def test_quotas_are_listed_and_set(cli, api):
    api.answer("GET", "/v1/quotas", pages(QUOTA, {"name": "nodes", "limit": None, "used": 0, "version": 2}))
    api.answer("PUT", "/v1/quotas/clusters", {**QUOTA, "limit": 30, "version": 1})
    rows = [line.split() for line in cli("quota", "list").stdout.splitlines()]
    assert rows[1:] == [["clusters", "3", "20", "default"], ["nodes", "0", "-", "own"]]
    assert json.loads(cli("quota", "get", "clusters", "-o", "json").stdout) == QUOTA
    result = cli("--tenant", "acme", "quota", "set", "clusters", "30")
    assert result.exit_code == 0, result.stderr
    assert (api.bodies("PUT"), api.requests[-1].headers["If-Match"]) == ([{"limit": 30}], '"0"')
    assert cli("quota", "set", "clusters", "--", "-1").exit_code == 2
    assert cli("quota", "set", "clusters", "--default").exit_code == 0
    assert api.bodies("PUT")[-1] == {"limit": None}
    for arguments in ((), ("3", "--default")):
        result = cli("quota", "set", "clusters", *arguments)
        assert (result.exit_code, "give the limit, or --default" in result.stderr) == (2, True)


def test_a_quota_that_is_not_there(cli, api):
    api.answer("GET", "/v1/quotas", pages(QUOTA))
    result = cli("quota", "get", "clusterz")
    assert (result.exit_code, "There is no quota clusterz." in result.stderr) == (3, True)


def test_environments_are_listed_by_names(cli, api, cluster_document):
    api.answer("GET", "/v1/clusters/demo", cluster_document())
    api.answer("GET", "/v1/node-providers/lab", {"id": "npr_1", "name": "lab"})
    environment = {"id": "nen_1", "provider": "lab", "cluster_id": "clu_01", "phase": "Available"}
    api.answer("GET", "/v1/node-environments", pages(environment))
    api.answer("GET", "/v1/node-environments/nen_1", environment)
    assert cli("environment", "list", "--cluster", "demo", "--provider", "lab", "-o", "name").stdout == "nen_1\n"
    assert dict(api.requests[-1].url.params) == {"cluster": "clu_01", "provider": "npr_1"}
    assert "Available" in cli("environment", "get", "nen_1").stdout


def test_allowed_types(cli, api):
    api.answer("GET", "/v1/allowed-node-types", {"allowed": ["lab.*"], "version": 2})
    api.answer("PUT", "/v1/allowed-node-types", {"allowed": None, "version": 3})
    assert "lab.*" in cli("type", "allowed").stdout
    for arguments, sent in ((["--all"], None), (["--none"], []), (["lab.*", "amazon.m6i.large"], None)):
        result = cli("type", "allow", *arguments)
        assert result.exit_code == 0, result.stderr
        expected = arguments if not arguments[0].startswith("--") else sent
        assert api.bodies("PUT")[-1] == {"allowed": expected}
        assert api.requests[-1].headers["If-Match"] == '"2"'


def test_a_dry_run_of_allowed_types_changes_nothing(cli, api):
    api.answer("GET", "/v1/allowed-node-types", {"allowed": ["lab.*"], "version": 2})
    change = {"kind": "allowed-node-types", "name": "", "pointer": "/allowed", "field": "allowed"}
    plan = {"changes": [{**change, "before": ["lab.*"], "after": ["lab.small"]}]}
    api.answer("PUT", "/v1/allowed-node-types", {"plan": plan})
    result = cli("type", "allow", "lab.small", "--dry-run", "-o", "json")
    assert json.loads(result.stdout)["changes"] == plan["changes"]
    sent = api.requests[-1]
    assert (sent.url.params["dry_run"], sent.headers["If-Match"]) == ("true", '"2"')
    assert api.bodies("PUT") == [{"allowed": ["lab.small"]}]


@pytest.mark.parametrize("arguments", [(), ("--all", "--none"), ("--all", "lab.*")])
def test_allowed_types_are_said_in_one_way(cli, api, arguments):
    assert cli("type", "allow", *arguments).exit_code == 2
    assert api.requests == []


def test_accounts_of_events(cli, api):
    api.answer("GET", "/v1/event-accounts", {"accounts": [], "version": 0})
    api.answer("PUT", "/v1/event-accounts", {"accounts": ["111122223333"], "version": 1})
    assert "none" in cli("event-account", "get").stdout
    assert cli("event-account", "set", "111122223333", "-o", "name").stdout == "111122223333\n"
    cli("event-account", "set", "111122223333", "--admin")
    assert [body["rights"] for body in api.bodies("PUT")] == ["operator", "admin"]
    assert api.bodies("PUT")[0]["accounts"] == ["111122223333"]


@pytest.mark.parametrize(
    ("tenant", "text"), [("", "--tenant names no tenant"), ("ä b", "a character that no tenant has")]
)
def test_a_name_that_no_tenant_has_is_refused(cli, api, tenant, text):
    result = cli("--tenant", tenant, "cluster", "list")
    assert (result.exit_code, text in result.stderr, api.requests) == (2, True, [])


@pytest.mark.parametrize("way", ["option", "environment"])
def test_somebody_of_the_platform_names_whom_they_act_for(cli, api, way):
    api.answer("GET", "/v1/node-providers", {"items": [{"id": "spr_1", "name": "lab", "shared": True}]})
    if way == "environment":
        cli.environment["STOCKYARD_TENANT"] = "_platform"
    before = ("--tenant", "_platform") if way == "option" else ()
    result = cli(*before, "provider", "list", "-o", "wide")
    assert result.exit_code == 0, result.stderr
    assert api.requests[0].headers["X-Stockyard-Tenant"] == "_platform"
    header, row = result.stdout.splitlines()[:2]
    assert row[header.index("SHARED") :].startswith("yes")
