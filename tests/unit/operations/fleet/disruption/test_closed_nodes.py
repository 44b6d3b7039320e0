"""Consolidation never counts on a node that takes no pods, and a cordoned node goes when it is empty."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.operations.fleet.disruption.conftest import Pods, pod
from tests.unit.operations.fleet.disruption.test_run import LARGE, idle, reasons

CLOSED: dict[str, dict[str, Any]] = {
    "open": {},
    "cordoned": {"unschedulable": True},
    "tainted": {"taints": (("maintenance", "", "NoSchedule"),)},
    "not ready": {"ready": "False", "ready_since": None},
    "smaller": {"allocatable": {"cpu": "1500m", "memory": "32Gi", "pods": "110"}},
}


@pytest.mark.parametrize("state", CLOSED)
def test_pods_stay_where_only_a_closed_node_had_room_for_them(pods: Pods, state: str) -> None:
    idle(pods, 2)
    first, _ = sorted(pods.on)
    # The first one stays for its budget: whether the second one goes is the question.
    pods.budgets, guard = {"default/one": 0}, {"budgets": {"default/one": 1}}
    pods.facts[first] = {**guard, **CLOSED[state]}
    pods.run(4)
    assert pods.types() == [LARGE] * (1 if state == "open" else 2)


def test_a_node_that_was_cordoned_goes_when_its_pods_have_left(pods: Pods) -> None:
    idle(pods, 2)
    first, second = sorted(pods.on)
    pods.facts[first] = {"unschedulable": True}
    pods.on[second].append(pods.on[first].pop())
    pods.run(4)
    assert list(pods.on) == [second]
    assert "Disrupted" in reasons(pods)


def test_a_node_that_pods_are_about_to_be_bound_to_stays(pods: Pods, monkeypatch: pytest.MonkeyPatch) -> None:
    idle(pods, 2)
    first, second = sorted(pods.on)
    pods.on[second].append(pods.on[first].pop())
    reports = pods.workload
    monkeypatch.setattr(pods, "workload", lambda: replace(reports(), nominated={first: ((pod("7", "1Gi"), 1),)}))
    pods.run(4)
    assert sorted(pods.on) == [first, second]


@pytest.mark.parametrize("believed", [True, False])
def test_pods_stay_where_only_room_that_pods_like_them_have_not_used_was_left(pods: Pods, *, believed: bool) -> None:
    """Scale-up counts room no more that such pods have waited beside for a while. Then nothing is moved there."""
    idle(pods, 2, limits={"nodes": 2})
    first, second = sorted(pods.on)
    # The first one stays for its budget: whether the second one goes is the question.
    pods.budgets, pods.facts[first] = {"default/one": 0}, {"budgets": {"default/one": 1}}
    (like,) = pods.on[second]
    pods.waiting = [] if believed else [like]
    pods.refuses = lambda each, node: each == like
    pods.facts[second] = {"do_not_disrupt": True}
    pods.run(3)
    pods.facts[second] = {}
    pods.run(3)
    assert pods.types() == [LARGE] * (1 if believed else 2)
