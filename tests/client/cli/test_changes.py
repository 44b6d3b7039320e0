"""Changes of ready clusters against the fake API: ``cluster change``, ``upgrade``, ``cancel``, ``pool scale``."""

from __future__ import annotations

import pytest

CLUSTER = "/v1/clusters/clu_01"
GROUPS = [
    {"name": "system", "role": "system", "min_size": 1, "max_size": 2, "count": 1},
    {"name": "l4", "role": "gpu", "min_size": 0, "max_size": 8, "count": 0},
]


@pytest.fixture
def changing(api, cluster_document, operation_document):
    """An API whose cluster ``demo`` is changed by an operation that succeeds."""
    settings = {"node_groups": GROUPS}
    api.answer("GET", "/v1/clusters/demo", cluster_document(status="ready", settings=settings), ETag='"3"')
    api.answer("PATCH", CLUSTER, cluster_document(status="ready", operation_id="op_02", version=4), status=202)
    running = operation_document(id="op_02", kind="upgrade_cluster")
    api.answer("GET", "/v1/operations/op_02", running)
    success = operation_document("succeeded", *["succeeded"] * 9, id="op_02", kind="upgrade_cluster")
    api.answer("GET", "/v1/operations/op_02", success)
    return api


def test_upgrade_begins_an_operation_and_waits_for_it(cli, changing):
    result = cli("cluster", "upgrade", "demo", "--to", "1.36", "--wait", "-o", "json")
    assert result.exit_code == 0, result.stderr
    assert changing.bodies("PATCH") == [{"kubernetes_version": "1.36"}]
    assert "Cluster demo is being changed by operation op_02." in result.stderr
    assert '"succeeded"' in result.stdout


def test_plan_of_an_upgrade_shows_the_price_before(cli, api, cluster_document):
    price = {"currency": "USD", "hour": 0.7, "month": 511.0, "items": [{"name": "x", "hour": 0.7, "month": 511.0}]}
    plan = {
        "changes": [{"pointer": "/kubernetes_version", "before": "1.35", "after": "1.36"}],
        "price": price,
        "price_before": {**price, "hour": 0.2, "month": 146.0},
        "warnings": [{"pointer": "/kubernetes_version", "detail": "nodes are replaced"}],
    }
    api.answer("GET", "/v1/clusters/demo", cluster_document(status="ready"), ETag='"3"')
    api.answer("PATCH", CLUSTER, {"plan": plan})
    result = cli("cluster", "upgrade", "demo", "--to", "1.36", "--dry-run")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == '~ /kubernetes_version: "1.35" becomes "1.36"'
    assert lines[-1] == "Now: 0.2000 USD /hour, 146.00 USD /month"
    assert (api.requests[-1].url.params["dry_run"], api.requests[-1].headers["If-Match"]) == ("true", '"3"')


def test_change_is_sent_again_when_the_record_has_moved_on(cli, api, cluster_document, operation_document):
    api.answer("GET", "/v1/clusters/demo", cluster_document(status="ready"), ETag='"3"')
    api.answer("GET", CLUSTER, cluster_document(status="ready"), ETag='"4"')
    api.problem("PATCH", CLUSTER, 412, "PreconditionFailed")
    api.answer("PATCH", CLUSTER, cluster_document(status="ready", operation_id="op_02"), status=202)
    api.answer("GET", "/v1/operations/op_02", operation_document(id="op_02"))
    result = cli("cluster", "change", "demo", "-f", "-", stdin="settings: {support: extended}")
    assert result.exit_code == 0, result.stderr
    tags = [request.headers["If-Match"] for request in api.requests if request.method == "PATCH"]
    assert tags == ['"3"', '"4"']
    assert api.bodies("PATCH")[-1] == {"settings": {"support": "extended"}}


def test_change_without_an_operation_shows_the_cluster(cli, api, cluster_document):
    api.answer("GET", "/v1/clusters/demo", cluster_document(status="ready"))
    api.answer("PATCH", CLUSTER, cluster_document(status="ready", description="other"))
    result = cli("cluster", "change", "demo", "-f", "-", "-o", "name", stdin="description: other")
    assert (result.exit_code, result.stdout) == (0, "demo\n"), result.stderr


def test_a_change_that_something_else_is_in_the_way_of_names_it(cli, api, cluster_document):
    api.answer("GET", "/v1/clusters/demo", cluster_document(status="ready"))
    api.problem("PATCH", CLUSTER, 409, "IllegalTransition", detail="Operation op_07 is still at work on the cluster.")
    result = cli("cluster", "upgrade", "demo", "--to", "1.36")
    assert result.exit_code != 0
    assert "op_07" in result.stderr


def test_cancel(cli, api, operation_document):
    api.answer("POST", "/v1/clusters/demo/cancel", operation_document("failed", id="op_02"), status=202)
    result = cli("cluster", "cancel", "demo", "-o", "name")
    assert result.exit_code == 0, result.stderr
    assert "op_02" in result.stderr


def pool(**changes):
    return {"cluster_id": "clu_01", "name": "l4", "kind": "dynamic", "form": "group", "version": 3, **changes}


def test_a_group_is_scaled_in_the_settings(cli, changing):
    changing.answer("GET", "/v1/clusters/demo/pools/l4", pool())
    result = cli("pool", "scale", "l4", "--cluster", "demo", "--floor", "1", "--most", "4")
    assert result.exit_code == 0, result.stderr
    (patch,) = changing.bodies("PATCH")
    resized = {**GROUPS[1], "min_size": 1, "max_size": 4, "count": 1}
    assert patch == {"settings": {"node_groups": [GROUPS[0], resized]}}
    assert "op_02" in result.stderr


def test_a_floor_above_the_most_of_a_group_is_named_by_its_option(cli, changing):
    changing.answer("GET", "/v1/clusters/demo/pools/l4", pool())
    result = cli("pool", "scale", "l4", "--cluster", "demo", "--floor", "9")
    assert result.exit_code == 2
    assert "--floor 9 would be more than --most 8 of the node group l4" in result.stderr
    assert changing.bodies("PATCH") == []


def test_a_total_without_any_known_price_is_unknown(cli, api, cluster_document):
    item = {"name": "x", "hour": None, "month": None}
    price = {"currency": "USD", "hour": 0.0, "month": 0.0, "complete": False, "items": [item]}
    api.answer("GET", "/v1/clusters/demo", cluster_document(status="ready"), ETag='"3"')
    api.answer("PATCH", CLUSTER, {"plan": {"price": price, "price_before": price}})
    result = cli("cluster", "upgrade", "demo", "--to", "1.36", "--dry-run")
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[-2:] == ["total unknown /hour unknown /month", "Now: unknown /hour, unknown /month"]


def test_a_group_of_a_cluster_whose_pools_are_their_own_is_scaled_there(cli, api, cluster_document):
    api.answer("GET", "/v1/clusters/demo/pools/workers", pool(name="workers"), ETag='"7"')
    api.answer("GET", "/v1/clusters/demo", cluster_document(status="ready"))
    api.answer("PATCH", "/v1/clusters/demo/pools/workers", pool(name="workers"))
    result = cli("pool", "scale", "workers", "--cluster", "demo", "--floor", "1", "--most", "4")
    assert result.exit_code == 0, result.stderr
    assert api.bodies("PATCH") == [{"floor": 1, "limits": {"nodes": 4}}]


def test_a_group_that_the_settings_do_not_name_is_said(cli, changing):
    changing.answer("GET", "/v1/clusters/demo/pools/h100", pool(name="h100"))
    result = cli("pool", "scale", "h100", "--cluster", "demo", "--most", "4")
    assert result.exit_code == 2
    assert "have no node group h100" in result.stderr
    assert changing.bodies("PATCH") == []
