"""The page of the numbers for Prometheus, its alerts and the dashboard of Grafana name numbers and labels that there
are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import yaml

from stockyard.domain.gauges import GAUGES
from stockyard.domain.values.states import OperationStatus, ShownClusterStatus
from stockyard.edge.paths import methods

ROOT = Path(__file__).parents[3]
DASHBOARD = json.loads((ROOT / "examples/grafana/stockyard.json").read_text())
PROMETHEUS = ROOT / "examples/prometheus"
LABELS = {gauge.name: {*gauge.labels, "tenant"} for gauge in GAUGES}
"""Labels of each number; a target of Prometheus adds ``tenant``."""
NAME = re.compile(r"\bstockyard_\w+")
SELECTED = re.compile(r"(stockyard_\w+)\{([^}]*)\}")
GROUPED = re.compile(r"\bby \(([^)]*)\) \((stockyard_\w+)")


def expressions() -> Iterator[str]:
    """Every query of the dashboard and of the alerts."""
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield target["expr"]
    yield from (variable["query"]["query"] for variable in DASHBOARD["templating"]["list"] if "datasource" in variable)
    yield from (rule["expr"] for rule in rules())


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((PROMETHEUS / "stockyard-rules.yaml").read_text())["groups"]
    return list(group["rules"])


def test_every_number_is_on_the_page_with_its_labels() -> None:
    page = (ROOT / "docs/metrics.md").read_text()
    rows = re.findall(r"^\| `(stockyard_\w+)` \| ([^|]*) \|", page, re.MULTILINE)
    assert [(name, tuple(re.findall(r"`(\w+)`", labels))) for name, labels in rows] == [
        (gauge.name, gauge.labels) for gauge in GAUGES
    ]


def test_queries_name_numbers_and_labels_that_there_are() -> None:
    named: set[str] = set()
    for query in expressions():
        assert NAME.findall(query), query
        named.update(NAME.findall(query))
        for name, selectors in SELECTED.findall(query):
            assert set(re.findall(r"(\w+)=", selectors)) <= LABELS[name], query
        for labels, name in GROUPED.findall(query):
            assert {label.strip() for label in labels.split(",")} <= LABELS[name], query
    assert named == set(LABELS), "and each number is looked at somewhere"


def test_legends_and_alerts_use_labels_that_their_queries_leave() -> None:
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            (name, *_) = NAME.findall(target["expr"])
            used = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert used <= LABELS[name], panel["title"]
            grouped = GROUPED.search(target["expr"])
            assert grouped is None or used <= set(re.split(r",\s*", grouped[1])), panel["title"]
    for rule in rules():
        (name, *_) = NAME.findall(rule["expr"])
        used = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        assert used <= LABELS[name], rule["alert"]


def test_statuses_that_queries_name_are_those_of_records() -> None:
    statuses = {"stockyard_operations": get_args(OperationStatus), "stockyard_clusters": get_args(ShownClusterStatus)}
    for query in expressions():
        for name, status in re.findall(r'(\w+)\{status="(\w+)"', query):
            assert status in statuses[name], query


def test_panels_stand_beside_each_other_and_not_on_each_other() -> None:
    titles: dict[tuple[int, int], str] = {}
    for panel in DASHBOARD["panels"]:
        position = panel["gridPos"]
        assert position["x"] + position["w"] <= 24
        for x in range(position["x"], position["x"] + position["w"]):
            for y in range(position["y"], position["y"] + position["h"]):
                assert (x, y) not in titles, (panel["title"], titles[x, y])
                titles[x, y] = panel["title"]
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))


def test_prometheus_scrapes_a_path_that_there_is() -> None:
    document = yaml.safe_load((PROMETHEUS / "prometheus.yaml").read_text())
    (scrape,) = document["scrape_configs"]
    assert "GET" in methods()[scrape["metrics_path"]]
    assert document["rule_files"] == ["stockyard-rules.yaml"]
    assert scrape["static_configs"][0]["labels"] == {"tenant": "acme"}
