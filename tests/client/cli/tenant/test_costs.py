"""``stockyard cost``."""

from __future__ import annotations

import json

LINES = [
    {"kind": "cluster", "cluster_id": "clu_1", "cluster": "demo", "type": "NAT gateway", "quantity": 1, "hour": 0.05,
     "month_rate": 36.5, "spent": 3.0},
    {"kind": "nodes", "cluster_id": "clu_1", "cluster": "demo", "pool": "web", "type": "lab.s", "quantity": 2,
     "capacity_type": "spot", "hour": 0.2, "month_rate": 146.0, "spent": 7.5},
    {"kind": "nodes", "cluster_id": "clu_0", "cluster": None, "pool": None, "type": "lab.s", "quantity": 0,
     "capacity_type": "on-demand", "hour": 0.0, "month_rate": 0.0, "spent": 1.25},
]  # fmt: skip
COSTS = {
    "month": "2026-11",
    "currency": "USD",
    "hour": 0.25,
    "month_rate": 182.5,
    "spent": 11.75,
    "complete": True,
    "lines": LINES,
}


def _rows(result):
    return [" ".join(line.split()) for line in result.stdout.splitlines()[1:]]


def test_costs_by_cluster_pool_and_type(cli, api):
    api.answer("GET", "/v1/costs", COSTS)
    total = "total 0.2500 USD/hour, 182.50 USD/month; 2026-11 so far 11.75 USD"
    assert _rows(cli("cost")) == ["demo 2 0.2500 182.50 10.50", "clu_0 - 0.0000 0.00 1.25", total]
    assert _rows(cli("cost", "--by", "pool", "--cluster", "demo")) == [
        "demo web 2 0.2000 146.00 7.50",
        "demo (control plane and network) - 0.0500 36.50 3.00",
        "clu_0 (no pool) - 0.0000 0.00 1.25",
        total,
    ]
    assert api.requests[-1].url.params["cluster"] == "demo"
    assert _rows(cli("cost", "--by", "type")) == [
        "lab.s spot 2 0.2000 146.00 7.50",
        "NAT gateway - - 0.0500 36.50 3.00",
        "lab.s on-demand - 0.0000 0.00 1.25",
        total,
    ]
    assert cli("cost", "--by", "pool", "-o", "name").stdout.splitlines()[0] == "demo/web"
    assert json.loads(cli("cost", "-o", "json").stdout) == COSTS


def test_a_price_that_is_not_known_is_said(cli, api):
    unknown = {**LINES[1], "hour": None, "month_rate": None, "spent": None}
    api.answer("GET", "/v1/costs", {**COSTS, "complete": False, "lines": [LINES[0], unknown]})
    result = cli("cost")
    assert _rows(result)[0] == "demo 2 unknown unknown unknown"
    assert "Some prices are not known" in result.stderr


BUDGETS = [
    {"scope": "tenant", "usd_month": 500.0, "spent": 11.75, "forecast": 490.0, "percent": 98, "reached": False},
    {"scope": "pool", "cluster_id": "clu_1", "cluster": "demo", "pool": "web", "usd_month": 8.0, "spent": 7.5,
     "forecast": 9.0, "percent": 112, "reached": True, "complete": False},
]  # fmt: skip


def test_budgets_are_shown_beside_costs_and_by_themselves(cli, api):
    api.answer("GET", "/v1/costs", {**COSTS, "forecast": 44.75, "budgets": BUDGETS})
    assert _rows(cli("cost"))[-3:] == [
        "total 0.2500 USD/hour, 182.50 USD/month; 2026-11 so far 11.75 USD, 44.75 USD by its end",
        "budget tenant 500.00 USD a month: 11.75 spent, 490.00 by its end (98 %)",
        "budget pool web of demo 8.00 USD a month: at least 7.50 spent, 9.00 by its end (112 %, reached)",
    ]
    assert _rows(cli("budget", "show")) == [
        "tenant 500.00 11.75 490.00 98 % within",
        "pool web of demo 8.00 at least 7.50 at least 9.00 112 % reached",
    ]
    assert len(_rows(cli("budget", "show", "--cluster", "demo", "--pool", "web"))) == 1


def test_month_without_budgets_says_what_it_has_cost(cli, api):
    api.answer("GET", "/v1/costs", {**COSTS, "known_spent": 11.75})
    result = cli("budget", "show")
    assert (result.exit_code, "No budget is set. 2026-11 has cost 11.75 USD so far." in result.stderr) == (0, True)


def test_budgets_are_set_where_their_limits_stand(cli, api, cluster_document):
    api.answer("GET", "/v1/costs", {**COSTS, "budgets": BUDGETS})
    api.answer("GET", "/v1/quotas", {"items": [], "next_page_token": None})
    api.answer("PUT", "/v1/quotas/usd_month", {"name": "usd_month", "limit": 500, "used": 490, "version": 1})
    api.answer("GET", "/v1/clusters/demo", cluster_document())
    api.answer("PATCH", f"/v1/clusters/{cluster_document()['id']}", cluster_document())
    pool = {"id": "clu_1/web", "name": "web", "kind": "static", "cluster_id": "clu_1", "nodes": {}, "version": 3}
    api.answer("GET", "/v1/clusters/demo/pools/web", pool)
    api.answer("PATCH", "/v1/clusters/demo/pools/web", pool)
    assert _rows(cli("--tenant", "acme", "budget", "set", "500")) == ["tenant 500.00 11.75 490.00 98 % within"]
    assert (api.bodies("PUT"), cli("budget", "clear").exit_code) == ([{"limit": 500}], 0)
    assert cli("budget", "set", "900.5", "--cluster", "demo").exit_code == 0
    assert api.bodies("PATCH")[-1] == {"limits": {"usd_month": "900.5"}}
    assert cli("budget", "clear", "--cluster", "demo", "--pool", "web").exit_code == 0
    assert api.bodies("PATCH")[-1] == {"limits": {"usd_month": None}}
    for arguments in (("1.5",), ("1", "--pool", "web")):
        assert cli("budget", "set", *arguments).exit_code == 2
