"""Bound claims: their executions are started by the pass that binds them, and by the outbox all the same."""

from __future__ import annotations

from stockyard.domain.records import Outbox
from stockyard.errors import VendorThrottled
from stockyard.operations.listing import every
from stockyard.operations.scheduler.begin import STARTED_AT_ONCE
from tests.harness.worlds.memory import MemoryWorkflows
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

SMALL = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}}


def lab(world: World) -> tuple[Nodes, MemoryWorkflows]:
    nodes, workflows = Nodes.of(world.registry, world.services, world.clock), MemoryWorkflows()
    nodes.services = with_ports(nodes.services, workflows=workflows)
    nodes.provider("lab", SMALL)
    return nodes, workflows


def starts(nodes: Nodes) -> dict[str, object]:
    """Inputs of the executions that the outbox starts, by their names."""
    messages = [message for item in every(nodes.services.store, Outbox) for _, message in item.messages]
    return {str(message["name"]): message["input"] for message in messages if "workflow" in message}


def test_a_pass_starts_the_first_of_a_batch_as_the_outbox_does(world: World) -> None:
    nodes, workflows = lab(world)
    for number in range(STARTED_AT_ONCE + 2):
        nodes.claim(f"claim-{number}")
    nodes.schedule()
    started = {name: execution.payload for (_, name), execution in workflows.executions.items()}
    assert len(started) == STARTED_AT_ONCE
    assert len(starts(nodes)) == STARTED_AT_ONCE + 2
    assert started.items() <= starts(nodes).items()
    assert {workflow for workflow, _ in workflows.executions} == {"provision-node"}


def test_a_start_that_fails_is_left_to_the_outbox(world: World) -> None:
    nodes, workflows = lab(world)
    workflows.faults.before("start", VendorThrottled("slow down"))
    claim = nodes.claim()
    assert nodes.schedule()["bound"] == 1
    assert workflows.executions == {}
    assert list(starts(nodes)) == [nodes.now(claim).execution]
