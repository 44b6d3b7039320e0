"""Numbers of a tenant for monitoring: what they count, what they read, and how long they serve."""

from __future__ import annotations

import gzip
import json
from collections import Counter as Tally
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, get_args

import pytest

from stockyard.domain import gauges
from stockyard.domain.cost_records import GaugeReport
from stockyard.domain.gauges import Gauge, Sample
from stockyard.domain.month_budgets import USD_MONTH
from stockyard.domain.records import ClusterDisruption, NodeClaim, Operation
from stockyard.domain.values.states import OperationStatus
from stockyard.operations.costs import gauges as module
from stockyard.operations.costs.gauges import exposition
from stockyard.operations.costs.kept_report import recent_report
from stockyard.operations.listing import every
from stockyard.operations.quotas import limits as quotas
from stockyard.operations.services import Services
from stockyard.ports import Create, Put, Remove
from tests.unit.operations.fleet.pools.conftest import Yard, make_yard


@pytest.fixture
def yard() -> Yard:
    yard = make_yard()
    yard.pool("workers", quantity=3)
    yard.settle()
    return yard


def written(samples: Iterable[Sample]) -> bytes:
    """The samples as this test reads them back."""
    return gzip.compress(json.dumps([[*sample[:2], dict(sample.labels)] for sample in samples]).encode())


def samples(services: Services) -> list[Sample]:
    """The samples that somebody who asks now is told."""
    return [Sample(*sample) for sample in json.loads(gzip.decompress(exposition(services, written)))]


def values(yard: Yard, gauge: Gauge, label: str = "") -> Mapping[str, float]:
    """The family's numbers by the value of a label; the fleet has one cluster."""
    amounts = [sample for sample in samples(yard.nodes.services) if sample.gauge == gauge.name]
    assert all(set(sample.labels) <= set(gauge.labels) for sample in amounts)
    return {sample.labels.get(label, ""): sample.value for sample in amounts}


def of_store(yard: Yard, *writes: Any) -> None:
    yard.nodes.services.store.commit(*writes)
    yard.nodes.clock.advance(module.LEAST_SECONDS)


def test_numbers_are_those_of_the_costs_and_of_the_claims(yard: Yard) -> None:
    services, now = yard.nodes.services, yard.nodes.services.now()
    yard.nodes.claim("waits", cluster_ref=yard.cluster.name, resources={"cpu": "64"})
    quotas.set_quota(services, USD_MONTH, 500, 0)
    savings = {"a": 0.5, "b": 0.25}
    of_store(yard, Put(ClusterDisruption(yard.cluster.id, now, now, savings=savings, savings_month=now[:7])))
    assert values(yard, gauges.CLUSTERS, "status") == {"ready": 1, "preparing": 0, "failed": 0, "deleting": 0}
    assert values(yard, gauges.CLAIMS, "phase") == {"Available": 3, "Pending": 1, "Failed": 0, "Deleting": 0}
    assert values(yard, gauges.WAITING, "cluster") == {yard.cluster.name: 1}
    assert values(yard, gauges.SAVED, "cluster_id") == {yard.cluster.id: 0.75}
    costs = recent_report(services, 300)
    assert sum(values(yard, gauges.NODES, "capacity_type").values()) == 3
    assert sum(values(yard, gauges.COST_HOUR, "kind").values()) == pytest.approx(costs["known_hour"])
    assert sum(values(yard, gauges.SPENT, "kind").values()) == pytest.approx(costs["known_spent"], abs=1e-3)
    assert values(yard, gauges.FORECAST) == {"": costs["known_forecast"]}
    (budget,) = costs["budgets"]
    amounts = [values(yard, gauge, "scope") for gauge in (gauges.BUDGET, gauges.BUDGET_SPENT, gauges.BUDGET_FORECAST)]
    assert amounts == [{"tenant": budget[name]} for name in ("usd_month", "spent", "forecast")]


def test_what_is_gone_is_summed_up_without_a_cluster(yard: Yard) -> None:
    yard.put(status="undoing")
    yard.nodes.clock.advance(3600)
    amounts = [s for s in samples(yard.nodes.services) if s.gauge == gauges.SPENT.name and s.labels["kind"] == "nodes"]
    assert [(set(sample.labels), sample.value > 0) for sample in amounts] == [({"kind"}, True)]


def test_operations_are_counted_by_status_for_a_day(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    services = yard.nodes.services
    by_status = Tally(operation.status for operation in every(services.store, Operation))
    statuses = dict.fromkeys(get_args(OperationStatus), 0)
    assert by_status["succeeded"] == 3
    assert values(yard, gauges.OPERATIONS, "status") == statuses | by_status
    yard.nodes.clock.advance(23 * 3600)
    last = next(every(services.store, Operation))
    new = replace(last, id=services.new_id("op"), status="failed", created_at=services.now())
    of_store(yard, Create(new))
    assert values(yard, gauges.OPERATIONS, "status") == statuses | by_status | {"failed": by_status["failed"] + 1}
    monkeypatch.setattr(module, "MOST_OPERATIONS", 1)
    monkeypatch.setattr(module, "_PAGE", 1)
    yard.nodes.clock.advance(module.LEAST_SECONDS)
    assert values(yard, gauges.OPERATIONS, "status")["succeeded"] == 0, "of very many the newest"
    (since,) = values(yard, gauges.OPERATIONS_SINCE).values()
    (as_of,) = values(yard, gauges.AS_OF).values()
    assert as_of - since == 2 * module.LEAST_SECONDS


def test_a_read_costs_one_record_for_as_long_as_the_last_one_cost_many(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    services, store = yard.nodes.services, type(yard.nodes.services.store)
    lists: list[type] = []
    real = store.list

    def counted(self: Any, kind: type, **arguments: Any) -> Any:
        lists.append(kind)
        return real(self, kind, **arguments)

    monkeypatch.setattr(store, "list", counted)
    first = samples(services)
    assert lists.count(NodeClaim) == 1, "claims are read once for all of it"
    lists.clear()
    yard.nodes.clock.advance(module.LEAST_SECONDS - 1)
    assert samples(services) == first
    recent_report(services, 60)
    assert lists == [], "nor does the costs page read them again"
    yard.nodes.clock.advance(1)
    monkeypatch.setattr(module, "RECORDS_A_SECOND", 0.01)
    assert samples(services) != first
    (record,) = every(services.store, GaugeReport)
    yard.nodes.clock.advance(300)
    assert services.now() < record.serves_until
    monkeypatch.setattr(module, "MOST_BYTES", 1)
    monkeypatch.setattr(module, "RECORDS_A_SECOND", 20)
    yard.nodes.clock.advance(module.MOST_SECONDS)
    samples(services)
    assert list(every(services.store, GaugeReport)) == [record], "one that is too long is not kept"


def test_numbers_that_the_release_before_has_kept_stay_beside_those_of_this_one(yard: Yard) -> None:
    services = yard.nodes.services
    first = samples(services)
    (record,) = every(services.store, GaugeReport)
    former = replace(record, id="tenant", data=b"x\x9c")
    services.store.commit(Remove(GaugeReport, record.id), Put(former))
    assert samples(services) == first
    assert former in every(services.store, GaugeReport)
