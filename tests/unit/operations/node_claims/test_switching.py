"""A kind that switches no machines: refused before an operation begins, and no machine is made to be off."""

from __future__ import annotations

import pytest

from stockyard.domain.records import NodeClaim, Operation
from stockyard.domain.values.states import DesiredPower
from stockyard.errors import IllegalTransition
from stockyard.operations.listing import every
from stockyard.operations.node_claims.power import plan_power, power_claim
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

SMALL = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "maxCapacity": 2}
STATES: tuple[DesiredPower, ...] = ("On", "Off", "Reboot")
WHY = "Machines of node provider lab are of kind simulated, which switches none on or off."


class _Unswitchable(SimulatedNodes):
    """Without the capability."""

    switches = False


@pytest.fixture
def nodes(world: World) -> Nodes:
    nodes = Nodes.of(world.registry, world.services, world.clock)
    nodes.services = with_ports(nodes.services, node_sources={"simulated": _Unswitchable(world.registry.store)})
    nodes.provider("lab", SMALL)
    return nodes


def available(nodes: Nodes, **fields: str) -> NodeClaim:
    claim = nodes.claim(**fields)
    nodes.schedule()
    nodes.relay()
    return nodes.now(claim)


def test_a_switch_is_refused_by_the_name_of_the_kind_and_no_operation_begins(nodes: Nodes) -> None:
    claim = available(nodes)
    operations = list(every(nodes.services.store, Operation))
    for state in STATES:
        with pytest.raises(IllegalTransition, match=WHY):
            power_claim(nodes.services, claim.id, state, "user:ann")
        with pytest.raises(IllegalTransition, match=WHY):
            plan_power(nodes.services, claim, state, "user:ann")
    assert nodes.now(claim) == claim
    assert list(every(nodes.services.store, Operation)) == operations


def test_no_machine_is_made_that_is_to_be_off(nodes: Nodes) -> None:
    claim = available(nodes, power="Off")
    assert (claim.phase, nodes.machines()) == ("Failed", [])
    assert f"The claim asks for a node that is off. {WHY}" in nodes.operation(claim).error.cause
    nodes.delete(claim)
    nodes.relay()
    assert nodes.nothing_left()
