"""Reads of a tenant cost what they show, however much there is."""

from __future__ import annotations

import json

import pytest

from benchmarks.large_tenant.looks import LOOKS, OF_SUMS, Look
from benchmarks.large_tenant.records import tenant_of
from benchmarks.reads import LIMIT_UNITS, ask, failures, make_sums, measure
from stockyard.operations.costs import kept_sums

PAGES = {look.name for look in LOOKS if not look.whole}
BOUND = 1100
"""Units of a request that looks for what is rare, with a count."""


def _units(clusters: int) -> dict[str, float]:
    with tenant_of(clusters, 1, history=2) as (counted, names):
        return {look.name: measure(look, counted, names, 1)["last"] for look in LOOKS if look not in OF_SUMS}


def test_a_page_costs_as_much_of_many_as_of_few():
    few, many = _units(60), _units(600)
    # A record may be a byte longer: its cluster has a longer name.
    assert {name: many[name] for name in PAGES if abs(many[name] - few[name]) > 1} == {}
    assert {name: units for name, units in many.items() if units > BOUND} == {}
    assert many["GET /v1/node-claims"] <= LIMIT_UNITS


def test_pages_of_what_is_rare_go_on():
    """All claims of a tenant are looked at in parts, and every part says where the next one begins."""
    with tenant_of(1500, 1, history=0) as (counted, names):
        query = "phase=Failed&page_size=1"
        first = json.loads(ask(Look("node_claims", "GET /v1/node-claims", query), names)["body"])
        assert (first["items"], counted.units) == ([], pytest.approx(500, rel=0.3))
        following = Look("node_claims", "GET /v1/node-claims", f"{query}&page_token={first['next_page_token']}")
        last = json.loads(ask(following, names)["body"])
        assert (last["items"], last["next_page_token"]) == ([], None)


def test_a_page_of_one_subject_is_full_behind_thousands_of_others():
    with tenant_of(30, 1, history=100) as (_, names):
        for query in ("subject={cluster}", "order=desc&subject={cluster}"):
            page = json.loads(ask(Look("records", "GET /v1/events", query), names)["body"])
            assert len(page["items"]) == 50, query


def test_looks_at_a_cluster_read_what_they_show():
    """The network of a cluster without an overlay shows no node; the use of nodes may be a second old."""
    looks = {look.name: look for look in LOOKS}
    with tenant_of(2, 100, history=2) as (counted, names):
        network = measure(looks["GET /v1/clusters/{cluster}/network"], counted, names, 1)
        assert network["units"] <= 2
        assert measure(looks["GET /v1/clusters/{cluster}/usage"], counted, names, 1)["units"] <= 60


def test_costs_of_a_large_tenant_read_no_claim(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kept_sums, "LARGE", 100)
    with tenant_of(60, 4, history=2) as (counted, names):
        assert make_sums(counted, names)["units"] > 60
        assert measure(Look("records", "GET /v1/costs"), counted, names, 1)["units"] <= 12
        costs = json.loads(ask(Look("records", "GET /v1/costs"), names)["body"])
        assert sum(line["quantity"] for line in costs["lines"] if line["kind"] == "nodes") == 240


def test_what_is_slow_or_dear_is_told():
    row = {"look": "GET /v1/node-claims", "p95_ms": 151.0, "units": 33.0}
    assert failures([row]) == ["GET /v1/node-claims: 151.0 ms", "GET /v1/node-claims: 33.0 units"]
    assert failures([{**row, "look": "GET /v1/metrics"}]) == ["GET /v1/metrics: 151.0 ms"]
