"""``stockyard apply --set``: a folder as a set of manifests, with a plan before and removals after; ``set``."""

from __future__ import annotations

import json

import pytest

WEB = {"apiVersion": "stockyard/v1", "kind": "Pool", "metadata": {"name": "web"}, "spec": {"cluster": "shop"}}
LAB = {"apiVersion": "stockyard/v1", "kind": "NodeProvider", "metadata": {"name": "lab", "labels": {"team": "a"}}}
RESULT = {"index": 0, "kind": "Pool", "name": "web", "id": "clu_1/web", "action": "created", "warnings": []}
GOING = {"id": "op_1", "kind": "dynamic", "subject": "x", "status": "running", "phases": [], "name": "x", "plan": {}}
PRICE = {"currency": "USD", "hour": 0.1, "month": 73.0, "complete": True, "items": [{"name": "node", "hour": 0.1}]}


def member(kind, name, *, cluster=None, **labels):
    return {"set": "shop", "kind": kind, "id": f"id_{name}", "name": name, "cluster": cluster, "labels": labels}


@pytest.fixture
def folder(tmp_path):
    """A folder with these documents, each in a file of its own."""

    def make(*documents):
        for number, document in enumerate(documents):
            (tmp_path / f"{number}.json").write_text(json.dumps(document), encoding="utf-8")
        return str(tmp_path)

    return make


def planned(api, *unnamed, creates=({"kind": "pool", "name": "web"},), **more):
    api.answer("POST", "/v1/apply", {"plan": {"creates": list(creates), "unnamed": list(unnamed), **more}})


def deletions(api):
    sent = [request for request in api.requests if request.method == "DELETE"]
    return [request.url.path for request in sent if "dry_run" not in request.url.params]


def test_what_no_document_names_is_kept_and_said(cli, api, folder):
    planned(api, member("pool", "old", cluster="shop"))
    api.answer("POST", "/v1/apply", {"results": [RESULT]})
    result = cli("apply", "-f", folder(WEB), "--set", "shop")
    assert result.exit_code == 0
    assert (
        "Kept: pool old of cluster shop is of this set, and no document names it; --prune removes it." in result.stderr
    )
    assert result.stdout.splitlines()[0] == "+ pool  web"
    assert result.stdout.splitlines()[-1].split() == ["Pool", "web", "created"]
    queries = [dict(request.url.params) for request in api.requests]
    assert queries == [{"set": "shop", "dry_run": "true"}, {"set": "shop"}]


def test_prune_removes_in_reverse_order_after_a_plan_with_prices(cli, api, folder):
    unnamed = [member("node-provider", "gone"), member("cluster", "east"), member("pool", "old", cluster="shop")]
    planned(api, *unnamed, member("pool", "of-east", cluster="east"), member("node-claim", "one"))
    api.answer("POST", "/v1/apply", {"results": [RESULT]})
    paths = ["/v1/node-claims/id_one", "/v1/clusters/shop/pools/old", "/v1/clusters/id_east"]
    paths.append("/v1/node-providers/id_gone")
    for path in paths:
        api.answer("DELETE", path, {"plan": {"price": PRICE}})
        api.answer("DELETE", path, GOING)
    result = cli("apply", "-f", folder(WEB), "--set", "shop", "--prune", "--yes")
    assert result.exit_code == 0, result.stderr
    assert deletions(api) == paths
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["-", "pool", "old", "of", "shop"] in lines
    assert lines[-4:] == [
        ["claim", "one", "is", "going"],
        ["pool", "old", "is", "going"],
        ["cluster", "east", "is", "going"],
        ["provider", "gone", "deleted"],
    ]


def test_a_cluster_goes_only_where_somebody_says_yes(cli, api, folder):
    planned(api, member("cluster", "east"))
    api.answer("DELETE", "/v1/clusters/id_east", {"plan": {}})
    result = cli("apply", "-f", folder(WEB), "--set", "shop", "--prune")
    assert result.exit_code == 2
    assert "cluster east would be deleted with everything that runs in it: give --yes" in result.stderr
    cli.terminal = True
    result = cli("apply", "-f", folder(WEB), "--set", "shop", "--prune", stdin="n\n")
    assert (result.exit_code, deletions(api)) == (1, [])
    assert [request.url.params.get("dry_run") for request in api.requests if request.method == "POST"] == ["true"] * 2


def test_a_selector_takes_a_part_of_the_set(cli, api, folder):
    foreign = [member("pool", "b", cluster="shop", team="b"), member("pool", "web", cluster="shop", team="a")]
    planned(api, *foreign, member("pool", "a", cluster="shop", team="a"))
    api.answer("POST", "/v1/apply", {"results": []})
    api.answer("DELETE", "/v1/clusters/shop/pools/a", GOING)
    result = cli("apply", "-f", folder(LAB, WEB), "--set", "shop", "--prune", "-l", "team=a,!canary", "-o", "name")
    assert result.exit_code == 0, result.stderr
    assert [document["metadata"]["name"] for document in api.bodies("POST")[0]] == ["lab"]
    # web is in the folder, so that it stays whatever its labels were
    assert deletions(api) == ["/v1/clusters/shop/pools/a"]
    for text, message in (("team=c", "no document has such labels"), ("=x", "is not k=v")):
        refused = cli("apply", "-f", folder(LAB), "--set", "shop", "-l", text)
        assert (refused.exit_code, message in refused.stderr) == (2, True)


def test_a_failure_in_the_middle_says_what_was_done(cli, api, folder):
    creates = [{"kind": "node-provider", "name": "lab"}, {"kind": "pool", "name": "web"}]
    planned(api, creates=creates)
    api.problem("POST", "/v1/apply", 500, "Internal")
    planned(api, creates=creates[1:])
    result = cli("apply", "-f", folder(LAB, WEB), "--set", "shop")
    assert result.exit_code == 1
    assert "Done before the failure: node provider lab." in result.stderr
    assert "Not done: pool web. Apply again; it goes on from there." in result.stderr


def test_a_thing_that_stands_twice_in_the_folder_is_refused_with_both_locations(cli, api, folder):
    result = cli("apply", "-f", folder(WEB, LAB, WEB), "--set", "shop")
    assert (result.exit_code, api.requests) == (2, [])
    assert "2.json:1 Pool web: " in result.stderr
    assert "0.json:1 Pool web has the same name" in result.stderr


def test_diff_counts_removals_where_the_set_is_pruned(cli, api, folder):
    path = folder(WEB)
    planned(api, member("pool", "old", cluster="shop"), creates=())
    api.answer("DELETE", "/v1/clusters/shop/pools/old", {"plan": {}})
    result = cli("diff", "-f", path, "--set", "shop")
    assert (result.exit_code, "Kept: pool old of cluster shop" in result.stderr) == (0, True)
    result = cli("diff", "-f", path, "--set", "shop", "--prune")
    assert (result.exit_code, result.stdout) == (1, "- pool old of shop\n")
    assert cli("diff", "-f", path, "--prune").exit_code == 2


def test_a_set_is_listed_and_deleted(cli, api):
    items = [member("node-provider", "lab"), member("pool", "web", cluster="shop")]
    api.answer("GET", "/v1/set-members", {"items": items, "next_page_token": None})
    assert cli("set", "members", "shop", "-o", "name").stdout == "node-provider/lab\npool/web\n"
    assert cli("set", "delete", "shop", "--dry-run").stdout == "pool web of cluster shop\nprovider lab\n"
    for path in ("/v1/clusters/shop/pools/web", "/v1/node-providers/id_lab"):
        api.answer("DELETE", path, GOING)
    result = cli("set", "delete", "shop")
    assert (result.exit_code, deletions(api)) == (0, ["/v1/clusters/shop/pools/web", "/v1/node-providers/id_lab"])
    assert all(request.url.params.get("set") == "shop" for request in api.requests if request.method == "GET")
