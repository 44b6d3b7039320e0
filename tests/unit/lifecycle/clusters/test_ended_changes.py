"""The end of a change of a ready cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stockyard.domain.records import Operation, PhaseRecord
from stockyard.domain.values.conditions import Condition
from stockyard.lifecycle import phases
from stockyard.lifecycle.clusters.cluster import MOVES
from tests.unit.lifecycle.clusters.test_cluster_changes import CLUSTER

NOW = "2026-01-31T12:00:00.000Z"
RUNNING = Operation(
    "op_1", "upgrade_cluster", "clu_1", "running", (PhaseRecord("verify", "running", attempt=1),), "", "", "user:ann"
)
CHANGED = replace(CLUSTER, phase="verify", nodes_version="1.33")


def test_a_change_that_has_ended_is_not_ended_again() -> None:
    assert MOVES.end_change(CHANGED, replace(RUNNING, status="succeeded"), "verify", NOW) is None


@pytest.mark.parametrize(("nodes_version", "remaining_version"), [("1.33", "1.33"), (CHANGED.kubernetes_version, "")])
def test_the_version_of_the_nodes_is_told_as_long_as_it_is_another(nodes_version: str, remaining_version: str) -> None:
    change = MOVES.end_change(replace(CHANGED, nodes_version=nodes_version), RUNNING, "verify", NOW)
    assert change is not None
    assert change.operation is not None
    assert (change.subject.phase, change.subject.nodes_version) == (None, remaining_version)
    assert change.operation.status == "succeeded"


def test_a_change_that_succeeds_ends_what_an_earlier_one_has_broken() -> None:
    degraded = Condition(phases.DEGRADED, "True", "QuotaExceeded", "Broken.", NOW)
    change = MOVES.end_change(replace(CHANGED, conditions=(degraded,)), RUNNING, "verify", NOW)
    assert change is not None
    (condition,) = change.subject.conditions
    assert (condition.type, condition.status, condition.reason) == (phases.DEGRADED, "False", "Changed")
    untouched = MOVES.end_change(CHANGED, RUNNING, "verify", NOW)
    assert untouched is not None
    assert untouched.subject.conditions == ()
