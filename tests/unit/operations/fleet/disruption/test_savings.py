"""Savings that are shown are what the bill is lower by."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.errors import StoreUnavailable
from stockyard.operations.fleet.disruption import carry_out
from stockyard.operations.node_claims.delete import delete_claim
from tests.unit.operations.fleet.disruption.conftest import POOL, Pods, pod
from tests.unit.operations.fleet.disruption.test_run import LARGE, NOW, idle, reasons, small_only, until


def usd_hour(pods: Pods) -> float:
    return sum(pods.record().savings.values())


def test_nodes_that_come_and_go_with_their_pods_save_nothing(pods: Pods) -> None:
    only_large = [{"key": "vcluster.com/node-type", "values": [LARGE]}]
    pods.yard.dynamic_pool(POOL, disruption=NOW, requirements=only_large)
    for number in range(3):
        pods.waiting = [pod("7500m", app=f"job-{number}")]
        pods.run(4)
        pods.on = {name: [] for name in pods.on}
        pods.run(6)
    assert pods.types() == []
    assert "Disrupted" in reasons(pods)
    assert pods.record().savings == {}


def test_a_decision_that_was_given_up_saves_nothing(pods: Pods) -> None:
    small_only(pods)
    (old,) = pods.on
    until(pods, "Replacing")
    pods.on[old] = [pod("7")]
    pods.run(8)
    assert pods.types() == [LARGE]
    assert pods.record().savings == {}


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_pass_that_dies_between_two_nodes_has_counted_both(
    pods: Pods, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    idle(pods, 3)
    look, calls = pods.look, iter(range(1, 100))

    def dying_delete(*arguments: Any) -> Any:
        if next(calls) == number:
            raise StoreUnavailable("The table does not answer.")
        return delete_claim(*arguments)

    def dying_look() -> Any:
        try:
            return look()
        except StoreUnavailable:
            return {}

    monkeypatch.setattr(carry_out, "delete_claim", dying_delete)
    monkeypatch.setattr(pods, "look", dying_look)
    pods.run(12)
    assert pods.types() == [LARGE]
    assert usd_hour(pods) == pytest.approx(0.6)
    assert reasons(pods).count("Disrupted") == 1
