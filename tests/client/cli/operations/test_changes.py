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


def test_a_change_that_changes_nothing_says_so(cli, api, cluster_document):
    api.answer("GET", "/v1/clusters/demo", cluster_document(status="ready"), ETag='"3"')
    api.answer("PATCH", CLUSTER, cluster_document(status="ready"))
    result = cli("cluster", "upgrade", "demo", "--to", "1.35")
    assert (result.exit_code, result.stderr) == (0, "Cluster demo is so already: nothing changes.\n")


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
    assert lines[0] == "Would change 1 thing, for 0.7000 USD/hour, 511.00 USD/month in place of 146.00 USD/month."
    assert lines[1] == '~ kubernetes_version: "1.35" -> "1.36"'
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


def test_a_change_waits_for_its_turn(cli, api, cluster_document, operation_document):
    api.answer("GET", "/v1/clusters/demo", cluster_document(status="ready", operation_id="op_01"))
    waiting = cluster_document(status="ready", operation_id="op_01", queue=["op_05"])
    api.answer("PATCH", CLUSTER, waiting, status=202, Location="/v1/operations/op_05")
    api.answer("GET", "/v1/operations/op_05", operation_document("queued", id="op_05"))
    result = cli("cluster", "upgrade", "demo", "--to", "1.36", "--queue")
    assert result.exit_code == 0, result.stderr
    assert api.bodies("PATCH") == [{"kubernetes_version": "1.36", "queue": True}]
    assert "op_05 waits for its turn" in result.stderr


def test_a_queued_change_is_cancelled(cli, api, operation_document):
    api.answer("POST", "/v1/clusters/demo/cancel", operation_document("failed", id="op_05"), status=202)
    result = cli("cluster", "cancel", "demo", "--queued", "op_05")
    assert result.exit_code == 0, result.stderr
    assert api.requests[-1].url.params["operation"] == "op_05"
    assert "It had not begun." in result.stderr


def test_repave_is_shown_and_decided_on(cli, api):
    view = {"state": "Pending", "reasons": [], "nodes": ["web-1"], "operation_id": "op_02"}
    api.answer("GET", "/v1/clusters/demo/repave", view)
    assert "State        Pending" in cli("cluster", "repave", "demo").stdout
    assert "state: Pending" in cli("cluster", "repave", "demo", "-o", "yaml").stdout
    api.answer("PATCH", "/v1/clusters/demo/repave", {**view, "state": "Reverted"})
    assert "State        Reverted" in cli("cluster", "repave", "demo", "--revert").stdout
    assert api.bodies("PATCH") == [{"approved": False}]
    assert cli("cluster", "repave", "demo", "--revert", "--approve").exit_code == 2


def test_every_node_is_replaced(cli, api, operation_document):
    plan = {"deletes": [{"kind": "node", "name": "web-1"}], "steps": ["Replace the nodes of every pool."]}
    api.answer("POST", "/v1/clusters/demo/repave", {"plan": plan})
    api.answer("POST", "/v1/clusters/demo/repave", operation_document(id="op_03"), status=202)
    result = cli("cluster", "repave", "demo", "--start", "--dry-run")
    assert "1. Replace the nodes of every pool." in result.stdout, result.stderr
    assert "op_03" in cli("cluster", "repave", "demo", "--start").stderr


def test_certificates_are_shown_and_renewed(cli, api, operation_document):
    view = {"expire_at": "2027-01-01T00:00:00.000Z", "renewed_since": None, "operation_id": None}
    api.answer("GET", "/v1/clusters/demo/certificates", view)
    assert "2027-01-01" in cli("cluster", "certificates", "demo").stdout
    api.answer("POST", "/v1/clusters/demo/certificates/renew", operation_document(id="op_04"), status=202)
    assert "op_04" in cli("cluster", "certificates", "demo", "--renew").stderr


def test_snapshots_are_listed(cli, api):
    snapshot = {"id": "20260131T120000Z", "taken_at": "t", "stored_at": "2026-01-31T12:03:00.000Z", "size": 4096}
    view = {"items": [snapshot], "place": "s3://b/f/", "interval_hours": 6, "keep": 28, "failure": None}
    api.answer("GET", "/v1/clusters/demo/snapshots", view)
    api.answer("GET", "/v1/clusters/demo/snapshots", view)
    failure = {"at": "2026-02-01T00:00:00.000Z", "message": "S3 answers 403"}
    api.answer("GET", "/v1/clusters/demo/snapshots", {**view, "items": [], "failure": failure})
    result = cli("cluster", "snapshots", "demo")
    assert "20260131T120000Z   2026-01-31T12:03:00.000Z   4096" in result.stdout
    assert "One each 6 h, 28 stay, in s3://b/f/" in result.stderr
    assert cli("cluster", "snapshots", "demo", "-o", "name").stdout == "20260131T120000Z\n"
    result = cli("cluster", "snapshots", "demo")
    assert "No snapshot was taken yet." in result.stderr
    assert "S3 answers 403" in result.stderr


def test_a_snapshot_is_restored(cli, api, operation_document):
    plan = {"warnings": [{"pointer": "/snapshot", "detail": "Everything since then is forgotten."}], "steps": ["Make"]}
    api.answer("POST", "/v1/clusters/demo/restore", {"plan": plan})
    api.answer("POST", "/v1/clusters/demo/restore", operation_document(id="op_06"), status=202)
    result = cli("cluster", "restore", "demo", "--snapshot", "latest", "--dry-run")
    assert "is forgotten" in result.stdout + result.stderr
    assert "op_06" in cli("cluster", "restore", "demo", "--snapshot", "20260131T120000Z").stderr
    assert api.bodies("POST") == [{"snapshot": "latest"}, {"snapshot": "20260131T120000Z"}]
    assert cli("cluster", "restore", "demo").exit_code == 2


def test_forced_deletion_says_what_may_be_left(cli, api):
    forced = {"id": "clu_01", "name": "demo", "operation_id": "op_01", "remaining": ["vpc vpc-1"]}
    api.answer("DELETE", "/v1/clusters/demo", forced)
    result = cli("cluster", "delete", "demo", "--force")
    assert result.exit_code == 0, result.stderr
    assert api.requests[-1].url.params["force"] == "true"
    assert "vpc vpc-1" in result.stdout


def test_a_group_is_added(cli, api, cluster_document, operation_document):
    web = {"name": "web", "role": "worker"}
    settings = {"autoscaler_node_groups": [web]}
    api.answer("GET", "/v1/clusters/demo", cluster_document(status="ready", settings=settings))
    api.answer("PATCH", CLUSTER, cluster_document(status="ready", operation_id="op_02"), status=202)
    api.answer("GET", "/v1/operations/op_02", operation_document(id="op_02"))
    options = ("--type", "m5.large", "--count", "2", "--label", "tier=a", "--zone", "us-east-1a")
    result = cli("pool", "add-group", "batch", "--cluster", "demo", *options)
    assert result.exit_code == 0, result.stderr
    batch = {"name": "batch", "role": "worker", "min_size": 2, "max_size": 2, "instance_types": ["m5.large"]}
    batch |= {"capacity_type": "on-demand", "labels": {"tier": "a"}, "zones": ["us-east-1a"]}
    assert api.bodies("PATCH") == [{"settings": {"autoscaler_node_groups": [web, batch]}}]
    assert cli("pool", "add-group", "web", "--cluster", "demo", "--type", "m5.large").exit_code == 2


def test_a_group_is_added_with_a_bid_a_disk_and_a_strategy(cli, api, cluster_document, operation_document):
    api.answer("GET", "/v1/clusters/demo", cluster_document(status="ready", settings={"autoscaler_node_groups": []}))
    api.answer("PATCH", CLUSTER, cluster_document(status="ready", operation_id="op_02"), status=202)
    api.answer("GET", "/v1/operations/op_02", operation_document(id="op_02"))
    options = ("--type", "m5.large", "--max-price", "80%", "--root-disk", "200", "--update-strategy", "2/1")
    result = cli("pool", "add-group", "batch", "--cluster", "demo", *options)
    assert result.exit_code == 0, result.stderr
    ((batch,),) = (body["settings"]["autoscaler_node_groups"] for body in api.bodies("PATCH"))
    assert (batch["capacity_type"], batch["max_price"], batch["root_disk_gib"]) == ("spot", {"percent": 80.0}, 200)
    assert batch["update_strategy"] == {"type": "custom", "max_surge": 2, "max_unavailable": 1}


def test_a_pool_of_a_group_is_scaled_by_count_with_an_operation(cli, api, cluster_document, operation_document):
    api.answer("GET", "/v1/clusters/demo/pools/web", pool(name="web"), ETag='"7"')
    api.answer("GET", "/v1/clusters/demo", cluster_document(status="ready"))
    operation_path = "/v1/operations/op_06"
    api.answer("PATCH", "/v1/clusters/demo/pools/web", pool(name="web"), status=202, Location=operation_path)
    api.answer("GET", operation_path, operation_document(id="op_06"))
    result = cli("pool", "scale", "web", "--cluster", "demo", "--count", "5")
    assert result.exit_code == 0, result.stderr
    assert api.bodies("PATCH") == [{"count": 5}]
    assert "op_06" in result.stderr
