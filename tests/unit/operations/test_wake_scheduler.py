"""What wakes a scheduling pass besides claims that wait: room that was made for them."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.errors import InvalidInput, StoreUnavailable
from stockyard.operations.wake_scheduler import Scheduler
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

SMALL: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "maxCapacity": 1}


@pytest.fixture
def nodes(world: World) -> Nodes:
    return Nodes.of(world.registry, world.services, world.clock)


def test_room_in_a_tenant_lets_what_waits_there_be_looked_at(nodes: Nodes) -> None:
    nodes.provider("lab", SMALL)
    first, second = nodes.claim("first"), nodes.claim("second")
    nodes.schedule()
    nodes.relay()
    nodes.delete(first)
    nodes.relay()
    scheduler = Scheduler(nodes.registry, lambda _: nodes.services)
    now = nodes.clock.advance(0.001)
    assert scheduler.woken([], now) == {"bound": 0, "waiting": 0, "lost": 0, "left": 0}
    assert scheduler.woken([], now, {"globex"})["bound"] == 0
    assert nodes.now(second).placement is None
    assert scheduler.woken([], now, {"acme"})["bound"] == 1
    assert nodes.now(second).type_ref == "lab.small"


def test_room_for_nobody_costs_no_catalogue(nodes: Nodes) -> None:
    nodes.provider("lab", SMALL)
    nodes.services.catalogs.clear()
    Scheduler(nodes.registry, lambda _: nodes.services).woken([], nodes.clock.now(), {"acme"})
    assert nodes.services.catalogs == {}


def test_of_two_tenants_that_fail_the_one_worth_a_retry_is_told(nodes: Nodes) -> None:
    failures = {"acme": InvalidInput("for good"), "globex": StoreUnavailable("for now")}

    def services(tenant: str) -> Any:
        raise failures[tenant]

    with pytest.raises(StoreUnavailable):
        Scheduler(nodes.registry, services).woken([], nodes.clock.now(), set(failures))
