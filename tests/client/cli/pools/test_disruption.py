"""``stockyard disruption`` against the fake API."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

PATH = "/v1/clusters/demo/disruption"
STATE = {
    "cluster_id": "clu_01",
    "state": "Replacing",
    "reason": "Underutilized",
    "message": "Underutilized: 2 nodes go (a, b), 1 come; 0.6000 becomes 0.2000 USD an hour.",
    "paused": False,
    "paused_by": None,
    "nodes": ["ncl_1", "ncl_2"],
    "replacements": ["ncl_3"],
    "usd_month_possible": 300.0,
    "usd_month_saved": 292.0,
    "savings": [{"pool": "burst", "usd_month": 292.0}],
}
NODE = {"name": "a", "pool": "burst", "type": "sim.large", "usd_hour": 0.3, "leaves": True, "why": "Underutilized"}
PREVIEW = {
    "message": "Underutilized: 1 nodes go (a), 0 come; 0.3000 becomes 0.0000 USD an hour.",
    "observed_at": "2026-01-02T03:04:05.678Z",
    "decision": {"reason": "Underutilized"},
    "nodes": [
        NODE,
        {**NODE, "name": "b", "leaves": False, "why": "PodDisruptionBudget default/web allows no eviction"},
    ],
}


def lines(text):
    return [" ".join(line.split()) for line in text.splitlines()]


def test_show_says_what_is_done_and_saved(cli, api):
    api.answer("GET", PATH, STATE)
    result = cli("disruption", "show", "demo", "-o", "wide")
    assert result.exit_code == 0, result.stderr
    assert lines(result.stdout)[1] == "Replacing Underutilized 2 1 no 292.00 300.00 - burst 292.00"
    assert "0.6000 becomes 0.2000" in result.stderr


def test_show_names_pools_that_are_paused_by_themselves_and_explains_what_is_possible(cli, api):
    api.answer("GET", PATH, {**STATE, "paused_pools": ["burst", "web"]})
    result = cli("disruption", "show", "demo")
    assert "burst, web" in result.stdout.splitlines()[1]
    assert "USD POSSIBLE/MONTH: what the nodes cost above" in result.stderr
    whole = {**STATE, "paused_pools": ["burst"], "paused_by": "all is paused", "usd_month_possible": None}
    api.answer("GET", "/v1/clusters/other/disruption", whole)
    result = cli("disruption", "show", "other")
    assert (" yes " in result.stdout, "POSSIBLE" in result.stderr) == (True, False)
    api.answer("GET", "/v1/disruption", {"paused": False})
    result = cli("disruption", "show")
    assert (result.stdout, "show CLUSTER" in result.stderr) == ("not paused for all clusters\n", True)


def test_preview_lists_nodes_with_the_rule_that_keeps_them(cli, api, clock):
    clock.time = datetime.fromisoformat(PREVIEW["observed_at"]).timestamp() + 200.5
    api.answer("GET", f"{PATH}/preview", PREVIEW)
    result = cli("disruption", "preview", "demo")
    assert result.exit_code == 0, result.stderr
    assert lines(result.stdout) == [
        "NODE POOL TYPE USD/HOUR LEAVES WHY",
        "a burst sim.large 0.3000 yes Underutilized",
        "b burst sim.large 0.3000 no PodDisruptionBudget default/web allows no eviction",
        PREVIEW["message"],
    ]
    assert "what the cluster's agent told 3m20s ago" in result.stderr
    assert json.loads(cli("disruption", "preview", "demo", "-o", "json").stdout)["nodes"][1]["leaves"] is False
    assert lines(cli("disruption", "preview", "demo", "-o", "name").stdout) == ["a", "b"]


@pytest.mark.parametrize(("command", "paused", "words"), [("pause", True, "is paused"), ("resume", False, "goes on")])
def test_the_switches(cli, api, command, paused, words):
    api.answer("PUT", PATH, {**STATE, "paused_by": "the disruption of all clusters is paused"})
    api.answer("PUT", "/v1/disruption", {"paused": paused, "updated_at": None, "version": 1})
    result = cli("disruption", command, "demo")
    assert f"Disruption of cluster demo {words}." in result.stderr
    assert ("Still: the disruption of all clusters is paused." in result.stderr) is not paused
    assert f"all clusters {words}." in cli("disruption", command, "--all").stderr
    assert api.bodies("PUT") == [{"paused": paused}] * 2


def test_the_switch_of_a_pool_is_in_its_record(cli, api):
    pool = {"cluster_id": "clu_01", "name": "burst", "kind": "dynamic", "version": 3}
    api.answer("GET", "/v1/clusters/demo/pools/burst", pool)
    api.answer("PATCH", "/v1/clusters/demo/pools/burst", pool)
    result = cli("disruption", "pause", "demo", "--pool", "burst")
    assert result.exit_code == 0, result.stderr
    assert api.bodies("PATCH") == [{"disruption": {"paused": True}}]


@pytest.mark.parametrize("arguments", [(), ("demo", "--all"), ("--all", "--pool", "burst")])
def test_a_switch_needs_one_location(cli, api, arguments):
    result = cli("disruption", "pause", *arguments)
    assert result.exit_code == 2
    assert "give a cluster, or --all alone" in result.stderr
    assert not api.requests
