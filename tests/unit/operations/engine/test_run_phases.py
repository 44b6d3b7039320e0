"""Phases of a node in one call: as far as they are done at once, and again from where a call died."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from stockyard.domain.records import NodeClaim
from stockyard.errors import VendorTimeout
from stockyard.lifecycle.operation import phase_of
from stockyard.operations.engine.act import act
from stockyard.operations.node_claims.phases import RUNNER
from stockyard.ports import Outcome
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

SMALL = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}}


@pytest.fixture
def nodes(world: World) -> Nodes:
    nodes = Nodes.of(world.registry, world.services, world.clock)
    nodes.provider("lab", SMALL, block={"joinSeconds": 600})
    return nodes


def call(nodes: Nodes, claim: NodeClaim) -> Any:
    """One call of the state that stands for all phases."""
    event = {"action": "run", "claim_id": claim.id, "operation_id": claim.operation_id, "attempt": claim.attempt}
    return act(RUNNER, nodes.services, {**event, "state": {}, "retries": 0})


def states(nodes: Nodes, claim: NodeClaim) -> list[str]:
    operation = nodes.operation(nodes.now(claim))
    return [phase_of(operation, name).state for name in ("environment", "launch", "register", "initialize")]


def placed(nodes: Nodes) -> NodeClaim:
    claim = nodes.claim()
    nodes.schedule()
    return nodes.now(claim)


def test_a_call_goes_on_until_a_phase_is_not_done(nodes: Nodes) -> None:
    claim = placed(nodes)
    step = call(nodes, claim)
    assert (step.done, step.phase) == (False, "register")
    assert step.wait > 0
    assert states(nodes, claim) == ["succeeded", "succeeded", "running", "pending"]
    nodes.clock.advance(700)
    assert call(nodes, claim).done
    assert states(nodes, claim) == ["succeeded"] * 4
    assert call(nodes, claim).done, "also when nothing is left"


def test_a_call_that_died_goes_on_where_it_was(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    claim, calls = placed(nodes), []

    def dies(*_: Any) -> Outcome:
        calls.append("launch")
        raise VendorTimeout("no answer")

    with monkeypatch.context() as patched:
        patched.setitem(RUNNER.actions, "launch", dies)
        with pytest.raises(VendorTimeout) as timeout:
            call(nodes, claim)
    assert (calls, timeout.value.phase) == (["launch"], "launch")
    assert states(nodes, claim)[:2] == ["succeeded", "pending"]
    monkeypatch.setitem(RUNNER.actions, "environment", dies)
    assert call(nodes, claim).phase == "register"


def test_a_call_that_has_taken_long_begins_no_further_phase(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: Any) -> Outcome:
        nodes.clock.moment += timedelta(seconds=11)
        return Outcome(True)

    claim = placed(nodes)
    monkeypatch.setitem(RUNNER.actions, "environment", slow)
    step = call(nodes, claim)
    assert (step.done, step.phase, step.wait) == (False, "launch", 1)
    assert nodes.machines() == []
    assert call(nodes, claim).phase == "register"
