"""``GET /v1/metrics`` through its handler, read as Prometheus reads it, beside ``GET /v1/costs``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from functions.records import handler
from stockyard.domain import gauges
from tests.harness.asking import Ask, asking
from tests.unit.operations.fleet.pools.conftest import Yard, make_yard


@pytest.fixture
def yard() -> Yard:
    yard = make_yard()
    yard.pool("workers", quantity=3)
    yard.settle()
    return yard


@pytest.fixture
def ask(yard: Yard) -> Iterator[Ask]:
    with asking(lambda: yard.nodes.services, lambda _: handler, handler) as send:
        yield send


def test_metrics_say_what_the_costs_say(ask: Ask) -> None:
    reply = ask("GET", "/v1/metrics")
    assert (reply.status, reply.headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    families = {family.name: family.samples for family in text_string_to_metric_families(reply.json)}
    costs = ask("GET", "/v1/costs", query="max_age=300").json

    def total(gauge: gauges.Gauge) -> float:
        return sum(sample.value for sample in families[gauge.name])

    assert total(gauges.COST_HOUR) == pytest.approx(costs["hour"])
    assert total(gauges.SPENT) == pytest.approx(costs["spent"], abs=1e-3)
    assert total(gauges.FORECAST) == costs["forecast"]
    assert total(gauges.NODES) == sum(line["quantity"] for line in costs["lines"] if line["kind"] == "nodes") == 3
    assert total(gauges.COMPLETE) == 1
