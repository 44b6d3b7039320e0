"""Alarms and the dashboard of the service stack, read off its template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stockyard import metrics
from stockyard.metrics import Metric

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "metric", "statistic", "threshold"),
    [
        ("sweep-stopped", metrics.SWEEP_STOPPED, "Sum", 0),
        ("outbox-refused", metrics.OUTBOX_REFUSED, "Sum", 0),
        ("outbox-late", metrics.RELAY_LAG, "Maximum", 300),
        ("operations-failed", metrics.OPERATIONS_FAILED, "Sum", 5),
        ("identity-unreachable", metrics.IDENTITY_UNREACHABLE, "Sum", 0),
        ("binding-slow", metrics.TIME_TO_BIND, "p50", 300),
        ("scheduler-missing", metrics.CLAIMS_WAITING, "SampleCount", 1),
    ],
)
def test_alarms_hang_on_the_sum_of_what_functions_measure(
    assembly: Any, name: str, metric: Metric, statistic: str, threshold: int
) -> None:
    alarm = _alarms(assembly)[f"stockyard-dev-{name}"]
    variables = assembly.function("scheduler")[1]["Environment"]["Variables"]
    assert alarm["Namespace"] == metrics.namespace(variables["STOCKYARD_STAGE"]) == "Stockyard/dev"
    assert (alarm["MetricName"], alarm["Threshold"]) == (metric.name, threshold)
    assert alarm.get("Statistic", alarm.get("ExtendedStatistic")) == statistic
    assert "Dimensions" not in alarm
    assert () in metric.dimensions


def test_alarms_watch_what_aws_refuses(assembly: Any) -> None:
    alarms = _alarms(assembly)
    throttled = alarms["stockyard-dev-table-throttled"]["Metrics"]
    stats = [query["MetricStat"]["Metric"] for query in throttled if "MetricStat" in query]
    dimensions = {tuple(sorted(part["Value"] for part in metric["Dimensions"])) for metric in stats}
    assert dimensions == {("stockyard-dev",), ("due", "stockyard-dev"), ("everything", "stockyard-dev")}
    assert {metric["MetricName"] for metric in stats} == {"ReadThrottleEvents", "WriteThrottleEvents"}
    for name in ("functions-throttled", "functions-concurrency"):
        assert "Dimensions" not in alarms[f"stockyard-dev-{name}"], "of the whole account"
    (kind,) = alarms["stockyard-dev-cluster-failed"]["Dimensions"]
    assert (kind["Name"], kind["Value"]) == ("operation_kind", "create_cluster")
    for name in ("relay", "scheduler"):
        late = alarms[f"stockyard-dev-{name}-late"]
        assert (late["MetricName"], late["Threshold"]) == ("IteratorAge", 300_000)


def test_every_alarm_is_in_the_operators_table(assembly: Any) -> None:
    table = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    names = {name.removeprefix("stockyard-dev-") for name in _alarms(assembly)}
    single = {name for name in names if not name.endswith("-failures")}
    assert {name for name in single if f"`{name}`" not in table} == set()


def test_a_schedule_that_does_not_run_is_an_alarm(assembly: Any) -> None:
    alarms = _alarms(assembly)
    missing = alarms["stockyard-dev-sweep-missing"]
    assert (missing["MetricName"], missing["TreatMissingData"]) == ("Invocations", "breaching")
    assert missing["Dimensions"][0]["Value"]["Ref"] == assembly.function("reaper")[0]
    assert alarms["stockyard-dev-scheduler-missing"]["TreatMissingData"] == "breaching"


def test_the_dashboard_shows_every_metric_of_ours(assembly: Any) -> None:
    (dashboard,) = assembly.of_type("AWS::CloudWatch::Dashboard").values()
    body = json.dumps(dashboard["Properties"]["DashboardBody"])
    measured = [metric for metric in vars(metrics).values() if isinstance(metric, Metric)]
    assert len(measured) == 13
    for metric in measured:
        assert metric.name in body
    assert "Stockyard/dev,operation_kind,phase" in body
    assert "Stockyard/dev,reason" in body


def test_no_dimension_is_a_tenant_or_an_identifier() -> None:
    measured = [metric for metric in vars(metrics).values() if isinstance(metric, Metric)]
    dimensions = {name for metric in measured for names in metric.dimensions for name in names}
    assert dimensions == {"operation_kind", "phase", "reason"}


def _alarms(assembly: Any) -> dict[str, dict[str, Any]]:
    alarms = (resource["Properties"] for resource in assembly.of_type("AWS::CloudWatch::Alarm").values())
    return {alarm["AlarmName"]: alarm for alarm in alarms}
