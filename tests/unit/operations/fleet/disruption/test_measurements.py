"""Measurements of decisions: how many by reason, the nodes that left, the money, and those that were given up."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.operations.fleet.disruption.conftest import POOL, Pods, pod
from tests.unit.operations.fleet.disruption.test_run import drift, idle, small_only, until

KINDS = ("disruption decided", "nodes disrupted", "money saved", "disruption abandoned")


def measured(pods: Pods) -> list[tuple[str, str, float]]:
    """Message, reason and value of each measurement of disruption, in order."""
    telemetry: Any = pods.yard.nodes.services.telemetry
    lines = [line for line in telemetry.lines if line["message"] in KINDS]
    assert all(line["cluster_id"] == pods.yard.cluster.id and line["tenant"] == "acme" for line in lines)
    values = {name: iter(telemetry.values.get(name, ())) for name in NAMES.values()}
    return [(line["message"], line["reason"], next(values[NAMES[line["message"]]])) for line in lines]


NAMES = dict(
    zip(KINDS, ("DisruptionDecisions", "NodesDisrupted", "UsdHourSaved", "DisruptionDecisionsAbandoned"), strict=True)
)


def test_a_decision_its_nodes_and_what_it_saves_are_measured_once(pods: Pods) -> None:
    idle(pods, 3)
    pods.run(8)
    assert measured(pods) == [
        ("disruption decided", "Underutilized", 1),
        ("nodes disrupted", "Underutilized", 2),
        ("money saved", "Underutilized", pytest.approx(0.6)),
    ]


def test_what_replaces_a_node_is_taken_off_its_saving(pods: Pods) -> None:
    any_type = [{"key": "vcluster.com/node-type", "operator": "Exists"}]
    pods.yard.dynamic_pool(POOL, disruption={"consolidate_after": "0s", "budgets": []}, requirements=any_type)
    pods.waiting = [pod("7500m")]
    pods.run(4)
    pods.on[next(iter(pods.on))] = [pod("1")]
    pods.run(8)
    assert ("money saved", "Underutilized", pytest.approx(0.2)) in measured(pods)


def test_drift_saves_no_money(pods: Pods) -> None:
    idle(pods, 1)
    pods.on[next(iter(pods.on))] = [pod("7500m")]
    drift(pods, pods.claims())
    pods.run(10)
    assert measured(pods) == [("disruption decided", "Drifted", 1), ("nodes disrupted", "Drifted", 1)]


def test_a_decision_that_is_given_up_is_measured_as_such(pods: Pods) -> None:
    small_only(pods)
    pods.yard.nodes.refused |= {("sim", "small", zone) for zone in ("*", "global")}
    until(pods, "Replacing")
    pods.run(2)
    assert measured(pods) == [
        ("disruption decided", "Underutilized", 1),
        ("disruption abandoned", "Underutilized", 1),
    ]


def test_a_node_that_is_repaired_is_measured(pods: Pods) -> None:
    idle(pods, 1)
    pods.on[next(iter(pods.on))] = [pod("7500m")]
    (claim,) = pods.claims()
    pods.facts[claim.node_name] = {"ready": "False", "ready_since": pods.yard.nodes.services.now()}
    pods.run(40)
    assert measured(pods)[:2] == [("disruption decided", "NotReady", 1), ("nodes disrupted", "NotReady", 1)]
