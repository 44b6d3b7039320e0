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
