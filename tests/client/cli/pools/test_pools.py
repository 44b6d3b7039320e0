"""``stockyard pool`` against the fake API."""

from __future__ import annotations

import json

import pytest

POOLS = "/v1/clusters/demo/pools"


def document(status="True", message="2 of 2 nodes are available.", **changes):
    nodes = {"desired": 2, "claims": 2, "available": 2, "usd_hour": 0.2, **changes.pop("nodes", {})}
    condition = {"type": "Ready", "status": status, "reason": "Scaling", "message": message}
    fields = {"cluster_id": "clu_01", "name": "workers", "kind": "static", "limits": {"nodes": "5", "cpu": "64"}}
    return {**fields, "nodes": nodes, "deleting": False, "conditions": [condition], "version": 3, **changes}


def test_create_from_options(cli, api):
    api.answer("POST", POOLS, document(), status=201)
    options = ["--name", "workers", "--quantity", "2", "--provider", "sim", "--weight", "5"]
    rules = ["--require", "zone=a,b", "--limit", "nodes=5", "--label", "team=a", "--taint", "k=v:NoSchedule"]
    result = cli("pool", "create", "--cluster", "demo", *options, *rules, "--taint", "k:NoExecute")
    assert result.exit_code == 0, result.stderr
    assert api.bodies("POST") == [
        {
            "name": "workers",
            "quantity": 2,
            "provider": "sim",
            "weight": 5,
            "requirements": [{"key": "zone", "operator": "In", "values": ["a", "b"]}],
            "limits": {"nodes": "5"},
            "labels": {"team": "a"},
            "taints": [{"key": "k", "effect": "NoSchedule", "value": "v"}, {"key": "k", "effect": "NoExecute"}],
        }
    ]
    assert "Idempotency-Key" in api.requests[0].headers
    assert result.stdout.splitlines()[1].split() == [
        "workers",
        "static",
        "Ready",
        "2/2",
        "2",
        "cpu=64",
        "nodes=5",
        "0.2000",
        "-",
        "-",
    ]


def test_options_win_over_the_file(cli, api):
    api.answer("POST", POOLS, document(), status=201)
    text = '{"name": "a", "floor": 1, "limits": {"cpu": "8"}, "taints": [{"key": "x", "effect": "NoExecute"}]}'
    options = ["--floor", "2", "--limit", "nodes=3", "--taint", "k:NoSchedule"]
    assert cli("pool", "create", "--cluster", "demo", "-f", "-", *options, stdin=text).exit_code == 0
    (body,) = api.bodies("POST")
    assert (body["name"], body["floor"], body["limits"]) == ("a", 2, {"cpu": "8", "nodes": "3"})
    assert [taint["key"] for taint in body["taints"]] == ["x", "k"]


@pytest.mark.parametrize(
    ("manifest", "sent"),
    [
        (
            {"apiVersion": "stockyard/v1", "kind": "Pool", "spec": {"floor": 1}},
            {"spec": {"cluster": "demo", "floor": 1}},
        ),
        (
            {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "spec": {}},
            {"metadata": {"name": "workers", "labels": {"stockyard.dev/cluster": "demo"}}},
        ),
    ],
)
def test_create_from_a_manifest(cli, api, manifest, sent):
    api.answer("POST", "/v1/apply", {"results": [{"kind": "Pool", "name": "w", "id": "i", "action": "created"}]})
    api.answer("GET", f"{POOLS}/workers", document())
    text = json.dumps({"metadata": {"name": "workers"}, **manifest})
    result = cli("pool", "create", "--cluster", "demo", "-f", "-", "-o", "name", stdin=text)
    assert (result.exit_code, result.stdout) == (0, "workers\n"), result.stderr
    ((body,),) = api.bodies("POST")
    assert {name: body[name] for name in sent} == sent
    assert cli("pool", "create", "--cluster", "demo", "-f", "-", "--floor", "1", stdin=text).exit_code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("create", "--cluster", "demo"),
        ("create", "--cluster", "demo", "--name", "a", "--taint", "NoSchedule"),
        ("create", "--name", "a"),
        ("edit", "workers", "--cluster", "demo"),
        ("scale", "workers", "--cluster", "demo"),
        ("scale", "workers", "--cluster", "demo", "--quantity", "1", "--floor", "1"),
        ("scale", "workers", "--cluster", "demo", "--floor", "4", "--most", "3"),
    ],
)
def test_what_cannot_be_asked_for_is_not_sent(cli, api, arguments):
    assert cli("pool", *arguments).exit_code == 2
    assert api.requests == []


def test_pools_of_all_clusters_are_listed_with_the_cluster(cli, api, cluster_document):
    clusters = [cluster_document(), cluster_document(id="clu_02", name="other")]
    api.answer("GET", "/v1/clusters", {"items": clusters, "next_page_token": None})
    members = document(name="control-plane", cluster_id="clu_01", group="master", nodes={"leaving": 2, "claims": 3})
    api.answer("GET", "/v1/clusters/clu_01/pools", {"items": [members], "next_page_token": None})
    api.answer("GET", "/v1/clusters/clu_02/pools", {"items": [document(cluster_id="clu_02")], "next_page_token": None})
    heading, first, second = cli("pool", "list").stdout.splitlines()
    assert heading.startswith("CLUSTER   NAME ")
    assert first.startswith("demo      control-plane (master)   static ")
    assert "2/3 (2 leave)" in first
    assert second.startswith("other     workers ")
    assert cli("pool", "list", "-o", "name").stdout == "control-plane\nworkers\n"
    assert "give --cluster" in cli("pool", "list", "--watch").stderr


@pytest.mark.parametrize(
    ("pointer", "options", "option"),
    [
        ("/limits/usd", ("--limit", "usd=5"), "--limit usd: "),
        ("/requirements/0/key", ("--require", "a=b"), "--require: "),
        ("/max_price/percent", ("--max-price", "900%"), "--max-price: "),
        ("/floor", (), "floor: "),
    ],
)
def test_a_refusal_names_the_option_that_was_given(cli, api, pointer, options, option):
    api.problem("POST", POOLS, 422, "InvalidInput", errors=[{"pointer": pointer, "detail": "is wrong"}])
    result = cli("pool", "create", "--cluster", "demo", "--name", "x", *options)
    assert result.stderr.startswith(f"Error: {option}is wrong"), result.stderr


def test_list_and_get(cli, api):
    leaving = document(name="old", deleting=True)
    waiting = document("False", "0 of 2 nodes are available.", name="new", limits={}, nodes={"usd_hour": None})
    api.answer("GET", POOLS, {"items": [document(conditions=[]), waiting, leaving], "next_page_token": None})
    lines = cli("pool", "list", "--cluster", "demo").stdout.splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [
        ["workers", "static", "Preparing"],
        ["new", "static", "Scaling"],
        ["old", "static", "Deleting"],
    ]
    api.answer("GET", f"{POOLS}/workers", document())
    assert json.loads(cli("pool", "get", "workers", "--cluster", "demo", "-o", "json").stdout) == document()
    assert cli("pool", "get", "none", "--cluster", "demo").exit_code == 3


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        (["--zone", "us-east-1a", "--zone", "us-east-1b"], {"zones": ["us-east-1a", "us-east-1b"]}),
        (["--max-price", "60%"], {"max_price": {"percent": 60.0}}),
        (["--max-price", "0.12"], {"max_price": {"usd_hour": 0.12}}),
        (["--root-disk", "100"], {"properties": {"root_disk_gib": "100"}}),
        (["--update-strategy", "remove-first"], {"update_strategy": {"type": "remove_first"}}),
        (
            ["--update-strategy", "25%/1"],
            {"update_strategy": {"type": "custom", "max_surge": "25%", "max_unavailable": 1}},
        ),
    ],
)
def test_what_nodes_may_cost_where_they_stand_and_how_they_are_replaced(cli, api, options, fields):
    api.answer("POST", POOLS, document(), status=201)
    api.answer("GET", f"{POOLS}/workers", document(), ETag='"3"')
    api.answer("PATCH", f"{POOLS}/workers", document())
    assert cli("pool", "create", "--cluster", "demo", "--name", "workers", *options).exit_code == 0
    assert cli("pool", "edit", "workers", "--cluster", "demo", *options).exit_code == 0
    assert (api.bodies("POST"), api.bodies("PATCH")) == ([{"name": "workers", **fields}], [fields])


@pytest.mark.parametrize("options", [["--max-price", "cheap"], ["--update-strategy", "2"], ["--max-price", "%"]])
def test_a_bid_or_a_strategy_that_nobody_understands_is_not_sent(cli, api, options):
    result = cli("pool", "create", "--cluster", "demo", "--name", "workers", *options)
    assert (result.exit_code, api.requests) == (2, [])
    assert options[0] in result.stderr


def test_a_group_has_no_quantity_and_the_option_that_it_has_is_named(cli, api):
    api.answer("GET", f"{POOLS}/workers", document(form="group", kind="dynamic"), ETag='"3"')
    result = cli("pool", "scale", "workers", "--cluster", "demo", "--quantity", "4")
    assert result.exit_code == 2
    assert "give --count 4" in " ".join(result.stderr.split())
    assert api.bodies("PATCH") == []


def test_scale_reads_again_when_a_pass_was_faster(cli, api):
    api.answer("GET", f"{POOLS}/workers", document(), ETag='"3"')
    api.answer("GET", f"{POOLS}/workers", document(), ETag='"4"')
    api.problem("PATCH", f"{POOLS}/workers", 412, "PreconditionFailed")
    api.answer("PATCH", f"{POOLS}/workers", document(quantity=3))
    assert cli("pool", "scale", "workers", "--cluster", "demo", "--quantity", "3").exit_code == 0
    tags = [request.headers["If-Match"] for request in api.requests if request.method == "PATCH"]
    assert (tags, api.bodies("PATCH")[-1]) == (['"3"', '"4"'], {"quantity": 3})


def test_change_that_never_gets_its_turn_is_a_conflict(cli, api):
    api.answer("GET", f"{POOLS}/workers", document(), ETag='"3"')
    api.problem("PATCH", f"{POOLS}/workers", 412, "PreconditionFailed")
    assert cli("pool", "scale", "workers", "--cluster", "demo", "--floor", "3").exit_code == 5
    assert len(api.bodies("PATCH")) == 5


def test_change_of_a_record_is_not_repeated(api, client):
    api.answer("GET", f"{POOLS}/workers", document(), ETag='"3"')
    api.problem("PATCH", f"{POOLS}/workers", 412, "PreconditionFailed")
    pool = client.pools.get("demo", "workers")
    with pytest.raises(Exception, match="412"):
        client.pools.update("demo", pool, {"quantity": 1})
    assert len(api.bodies("PATCH")) == 1


def test_edit_sends_a_merge_patch(cli, api):
    api.answer("GET", f"{POOLS}/workers", document(), ETag='"3"')
    api.answer("PATCH", f"{POOLS}/workers", document())
    options = ["--limit", "cpu=", "--limit", "nodes=9", "--require", "zone=a"]
    text = "labels: {team: b}\nrequirements: [{key: x}]\nlimits: {memory: 1Gi}\n"
    assert cli("pool", "edit", "workers", "--cluster", "demo", "-f", "-", *options, stdin=text).exit_code == 0
    (patch,) = api.bodies("PATCH")
    assert patch["limits"] == {"memory": "1Gi", "cpu": None, "nodes": "9"}
    assert patch["requirements"] == [{"key": "zone", "operator": "In", "values": ["a"]}]
    assert patch["labels"] == {"team": "b"}


def test_dry_runs_show_plans_and_change_nothing(cli, api):
    plan = {"plan": {"creates": [{"kind": "pool", "name": "workers"}], "changes": ["quantity"]}}
    api.answer("GET", f"{POOLS}/workers", document(), ETag='"3"')
    for method, path in (("POST", POOLS), ("PATCH", f"{POOLS}/workers"), ("DELETE", f"{POOLS}/workers")):
        api.answer(method, path, plan)
    options = ["--cluster", "demo", "--dry-run"]
    for arguments in (("create", "--name", "a"), ("scale", "workers", "--floor", "1"), ("delete", "workers")):
        result = cli("pool", *arguments, *options)
        assert (result.exit_code, result.stdout.splitlines()[1]) == (0, "+ pool  workers"), result.stderr
    sent = [request for request in api.requests if request.method != "GET"]
    assert {request.url.params["dry_run"] for request in sent} == {"true"}
    assert sent[1].headers["If-Match"] == '"3"'


def test_wait_looks_at_condition_and_counts(cli, api):
    """Right after a change the condition may still be of the pool as it was."""
    api.answer("GET", f"{POOLS}/workers", document(), ETag='"3"')
    api.answer("PATCH", f"{POOLS}/workers", document())
    api.answer("GET", f"{POOLS}/workers", document(nodes={"desired": 3}))
    grown = {"desired": 3, "claims": 3}
    api.answer("GET", f"{POOLS}/workers", document("False", "2 of 3 nodes are available.", nodes=grown))
    api.answer(
        "GET", f"{POOLS}/workers", document("True", "3 of 3 nodes are available.", nodes={**grown, "available": 3})
    )
    result = cli("pool", "scale", "workers", "--cluster", "demo", "--quantity", "3", "--wait")
    assert result.exit_code == 0, result.stderr
    assert [line.partition("] ")[2] for line in result.stderr.splitlines()] == [
        "2 of 2 nodes are available.",
        "2 of 3 nodes are available.",
        "3 of 3 nodes are available.",
    ]
    assert result.stdout.splitlines()[1].split()[3] == "3/3"


def test_wait_for_fewer_nodes_waits_until_the_others_are_gone(api, client, clock):
    api.answer("GET", f"{POOLS}/workers", document(nodes={"desired": 1}))
    api.answer("GET", f"{POOLS}/workers", document(nodes={"desired": 1, "claims": 1, "available": 1}))
    assert client.wait_pool("demo", "workers").nodes.claims == 1
    assert clock.slept == []


def test_delete_waits_until_the_pool_is_gone(cli, api):
    leaving = document("False", "2 nodes are given back.", deleting=True)
    api.answer("DELETE", f"{POOLS}/workers", leaving, status=202)
    api.answer("GET", f"{POOLS}/workers", leaving)
    api.problem("GET", f"{POOLS}/workers", 404, "NotFound")
    result = cli("pool", "delete", "workers", "--cluster", "demo", "--wait")
    assert (result.exit_code, result.stdout) == (0, ""), result.stderr
    assert result.stderr.splitlines()[-1].endswith("it is gone")
    assert "Deleting" in cli("pool", "delete", "workers", "--cluster", "demo").stdout


def test_wait_that_times_out_says_what_is_missing(cli, api):
    api.answer("POST", POOLS, document(), status=201)
    api.answer("GET", f"{POOLS}/workers", document("False", "QuotaExceeded: no more.", nodes={"available": 0}))
    arguments = ["--cluster", "demo", "--name", "workers", "--quantity", "2", "--wait", "--timeout", "30s"]
    result = cli("pool", "create", *arguments)
    assert (result.exit_code, result.stdout) == (124, "")
    assert "Error: pool workers after 30 s: QuotaExceeded: no more." in result.stderr
