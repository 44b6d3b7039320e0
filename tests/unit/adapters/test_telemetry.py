"""Lines of the log and measurements, as CloudWatch reads them."""

from __future__ import annotations

import io
import itertools
import json
import time
from typing import Any

import pytest
from aws_lambda_powertools import Logger

from stockyard import metrics
from stockyard.adapters.telemetry import LoggedTelemetry
from stockyard.metrics import Metric

_NUMBERS = itertools.count()
MEASURED = [metric for metric in vars(metrics).values() if isinstance(metric, Metric)]
KEYS = {
    "tenant": "acme",
    "operation_id": "op_1",
    "operation_kind": "create_cluster",
    "phase": "network",
    "reason": "Empty",
}


def written(level: str, metric: Metric | None = None) -> list[dict[str, Any]]:
    """Log of a function with this level after one line and one measurement."""
    stream = io.StringIO()
    logger = Logger(service=f"telemetry-{next(_NUMBERS)}", stream=stream, level=level)
    logger.append_keys(function_request_id="invocation-1")
    telemetry = LoggedTelemetry("Stockyard/dev", logger)
    telemetry.log("execution started", claim_id="ncl_1", attempt=2)
    if metric is not None:
        telemetry.measure("measured", metric, 12.5, **KEYS)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_has_its_keys_and_those_of_the_invocation() -> None:
    (line,) = written("INFO")
    assert (line["message"], line["claim_id"], line["attempt"]) == ("execution started", "ncl_1", 2)
    assert (line["level"], line["function_request_id"]) == ("INFO", "invocation-1")


@pytest.mark.parametrize("metric", MEASURED, ids=lambda metric: metric.name)
def test_a_measurement_is_a_document_of_the_embedded_metric_format(metric: Metric) -> None:
    line = written("INFO", metric)[-1]
    embedded = line["_aws"]
    assert set(embedded) == {"Timestamp", "CloudWatchMetrics"}
    assert isinstance(embedded["Timestamp"], int)
    assert abs(embedded["Timestamp"] / 1000 - time.time()) < 60
    (directive,) = embedded["CloudWatchMetrics"]
    assert set(directive) == {"Namespace", "Dimensions", "Metrics"}
    assert directive["Namespace"] == "Stockyard/dev"
    assert directive["Metrics"] == [{"Name": metric.name, "Unit": metric.unit}]
    assert metric.unit in ("Seconds", "Count", "None")
    assert line[metric.name] == 12.5
    assert directive["Dimensions"] == [list(names) for names in metric.dimensions]
    for names in directive["Dimensions"]:
        assert len(names) <= 30
        assert all(isinstance(line[name], str) and line[name] for name in names)
    assert {name: line[name] for name in KEYS} == KEYS
    assert line["function_request_id"] == "invocation-1"


def test_a_stage_that_logs_errors_only_keeps_its_metrics() -> None:
    (line,) = written("ERROR", metrics.RELAY_LAG)
    assert line["RelayLag"] == 12.5
