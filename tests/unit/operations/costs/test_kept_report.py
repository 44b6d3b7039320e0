"""Costs that are looked at again and again: one report serves all who look within a minute."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.cost_records import CostReport
from stockyard.domain.models.clusters.views import ClusterCostsView
from stockyard.operations.costs import kept_report
from stockyard.operations.costs.kept_report import by_cluster, recent_report
from stockyard.operations.costs.report import report
from stockyard.operations.listing import every
from tests.unit.operations.fleet.pools.conftest import Yard, make_yard


@pytest.fixture
def yard() -> Yard:
    yard = make_yard()
    yard.pool("workers", quantity=3)
    yard.settle()
    return yard


def test_a_report_serves_until_it_is_too_old(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    services, reports = yard.nodes.services, [0]

    def counted(*arguments: Any) -> dict[str, Any]:
        reports[0] += 1
        return report(*arguments)

    monkeypatch.setattr(kept_report, "report", counted)
    first = recent_report(services, 60)
    yard.nodes.clock.advance(30)
    assert recent_report(services, 60) == first
    assert reports == [1]
    assert recent_report(services, 20)["until"] > first["until"], "who wants a younger one gets it"
    yard.nodes.clock.advance(61)
    recent_report(services, 60)
    assert reports == [3]
    assert len(list(every(services.store, CostReport))) == 1
    monkeypatch.setattr(kept_report, "MOST_BYTES", 10)
    yard.nodes.clock.advance(61)
    recent_report(services, 60)
    recent_report(services, 60)
    assert reports == [5], "a report that is too long for a record is made each time"


def test_sums_of_clusters_are_those_of_their_lines(yard: Yard) -> None:
    document = report(yard.nodes.services)
    sums = by_cluster(document)[yard.cluster.id]
    ClusterCostsView.model_validate(sums)
    own = [line for line in document["lines"] if line["cluster_id"] == yard.cluster.id]
    assert sums["nodes"] == 3
    for name in ("hour", "month_rate", "spent"):
        assert sums[name] == pytest.approx(sum(line[name] or 0 for line in own))
    assert sums["complete"] == all(line["hour"] is not None for line in own)
    assert sums["as_of"] == document["until"]
