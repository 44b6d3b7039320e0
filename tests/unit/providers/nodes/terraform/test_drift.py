"""Comparison of a node with its template, by a plan that is a run of its own."""

from __future__ import annotations

import pytest

from stockyard.domain.records import NodeClaim
from stockyard.errors import RunFailed, VendorUnavailable
from stockyard.lifecycle.nodes.node_phases import MACHINE_PHASE
from stockyard.operations.engine.advance import Fence
from stockyard.operations.node_claims.comparisons import compare_machine
from stockyard.operations.node_claims.work import node_work
from tests.workflows.machine_life import CLAIM
from tests.workflows.terraform_life import TerraformLife


class NodeLife(TerraformLife):
    """A life that stops when the node is there."""

    def _delete(self) -> None:
        """Nothing is deleted."""

    def _clear(self) -> None:
        """Nothing is cleared."""


@pytest.fixture
def life() -> NodeLife:
    life = NodeLife()
    assert life.run() == "Available"
    return life


def drift(life: NodeLife) -> str | None:
    claim = life.nodes.services.store.get(NodeClaim, CLAIM)
    assert claim is not None
    source, work = node_work(life.nodes.services, claim, MACHINE_PHASE, Fence.of(claim))
    assert source.compares
    return source.drift(work)


def after_its_plan(life: NodeLife) -> str | None:
    """Differences that are told at the next look, once the plan has run."""
    with pytest.raises(VendorUnavailable, match="drift"):
        drift(life)
    life.nodes.clock.advance(600)
    life.memory_runner.play()
    return drift(life)


def test_a_plan_is_a_run_whose_result_is_told_at_the_next_look(life: NodeLife) -> None:
    assert after_its_plan(life) is None
    assert [run.command for run in life.runs()] == ["apply", "plan"]
    assert drift(life) is None, "a plan that is new is not made again"
    assert len(life.runs()) == 2
    life.nodes.hours(2)
    life.tofu.changed.add("one")
    assert after_its_plan(life) == "Plan: 1 to add."
    assert len(life.runs()) == 3


def test_a_plan_has_the_user_data_that_was_applied(life: NodeLife) -> None:
    after_its_plan(life)
    applied, planned = life.tofu.tasks
    for name in ("userData", "userDataBase64"):
        assert planned["variables"]["vcluster"][name] == applied["variables"]["vcluster"][name] != ""
    assert planned["secrets"] == applied["secrets"] != [], "the machine's token is hidden in both logs"


def test_what_differs_is_said_on_the_claim(life: NodeLife) -> None:
    life.tofu.changed.add("one")
    after_its_plan(life)
    compare_machine(life.nodes.services, CLAIM, "mark")
    claim = life.nodes.services.store.get(NodeClaim, CLAIM)
    assert claim is not None
    assert (claim.machine_drift, claim.compared_as) == ("Plan: 1 to add.", "mark")
    condition = next(each for each in claim.conditions if each.type == "NotDrifted")
    assert condition.status == "False"
    assert "Plan: 1 to add." in condition.message


def test_a_plan_makes_nothing_and_leaves_nothing_unsure(life: NodeLife) -> None:
    from stockyard.domain.run_records import RunState

    after_its_plan(life)
    state = life.nodes.services.store.get(RunState, f"{CLAIM}/node")
    assert state is not None
    assert (state.is_unsure, state.lock, state.applied_by) == (False, None, life.runs()[0].id)


def test_a_plan_that_fails_says_so_and_notes_nothing(life: NodeLife) -> None:
    life.tofu.broken = True
    with pytest.raises(VendorUnavailable):
        drift(life)
    life.nodes.clock.advance(600)
    life.memory_runner.play()
    with pytest.raises(RunFailed, match="no plug-in"):
        drift(life)
