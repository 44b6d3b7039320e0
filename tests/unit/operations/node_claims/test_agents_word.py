"""The word of an agent ends the phases that wait for it, and begins none that a workflow has to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import NodeClaim
from stockyard.lifecycle.operation import phase_of
from stockyard.operations.node_claims import phases
from stockyard.operations.node_claims.phases import go_on
from stockyard.ports import Replace
from tests.unit.operations.conftest import World
from tests.unit.operations.machines.test_join import Yard


@pytest.fixture
def yard(world: World) -> Yard:
    yard = Yard.of(world)
    yard.nodes.provider("lab", {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}}, block={"cloudAccount": 1})
    return yard


def placed(yard: Yard) -> tuple[NodeClaim, dict[str, Any]]:
    claim = yard.nodes.claim("worker", cluster_ref="demo")
    yard.nodes.schedule()
    bound = yard.nodes.now(claim)
    return claim, {
        "tenant": "acme",
        "claim_id": claim.id,
        "operation_id": bound.operation_id,
        "attempt": bound.attempt,
    }


def news(yard: Yard, most: int = 30) -> tuple[NodeClaim, ...]:
    """The claims of whose nodes a post says something new, of the first post that does."""
    for _ in range(most):
        yard.meanwhile()
        if yard.reply is not None and yard.reply.news_of:
            return yard.reply.news_of
        yard.nodes.clock.advance(10)
    raise AssertionError("nothing new was told")


def test_a_node_is_available_by_its_agents_word_and_the_workflow_ends_at_its_next_look(yard: Yard) -> None:
    claim, payload = placed(yard)
    assert yard.nodes.run("provision_node", payload, most=2) == "still at register"
    for _ in range(10):
        go_on(yard.nodes.services, news(yard))
        if yard.nodes.now(claim).phase == "Available":
            break
        yard.nodes.clock.advance(10)
    assert yard.nodes.now(claim).phase == "Available"
    assert yard.nodes.operation(yard.nodes.now(claim)).status == "succeeded"
    assert yard.nodes.run("provision_node", payload) == "available"


def test_what_a_workflow_has_to_do_is_left_to_it(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    claim, _ = placed(yard)
    go_on(yard.nodes.services, [yard.nodes.now(claim)])
    operation = yard.nodes.operation(yard.nodes.now(claim))
    assert {phase_of(operation, name).state for name in ("environment", "launch", "register")} == {"pending"}
    monkeypatch.setattr(phases, "run_phases", lambda *_: pytest.fail("it was begun"))
    current = yard.nodes.now(claim)
    for other in ({"power": "Off"}, {"phase": "Available"}, {"deleting": True}):
        go_on(yard.nodes.services, [replace(current, **other)])


def test_a_claim_that_others_work_on_by_now_is_left_alone(yard: Yard) -> None:
    claim, payload = placed(yard)
    yard.nodes.run("provision_node", payload, most=2)
    (current,) = news(yard)
    store = yard.nodes.services.store
    store.commit(Replace(replace(yard.nodes.now(claim), attempt=2, version=yard.nodes.now(claim).version + 1)))
    go_on(yard.nodes.services, [current])
    assert yard.nodes.now(claim).phase == "Pending"
