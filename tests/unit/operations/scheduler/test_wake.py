"""Room that is made for waiting claims starts a scheduling pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.errors import InvalidInput, StoreUnavailable
from stockyard.operations.scheduler.wake import Scheduler
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

SMALL: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "maxCapacity": 1}


@pytest.fixture
def nodes(world: World) -> Nodes:
    return Nodes.of(world.registry, world.services, world.clock)


def test_room_in_tenant_wakes_its_waiting_claims(nodes: Nodes) -> None:
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


def test_room_without_waiting_claims_loads_no_catalogue(nodes: Nodes) -> None:
    nodes.provider("lab", SMALL)
    nodes.services.factories.catalogs.clear()
    Scheduler(nodes.registry, lambda _: nodes.services).woken([], nodes.clock.now(), {"acme"})
    assert nodes.services.factories.catalogs == {}


def test_retryable_failure_is_raised_before_final_one(nodes: Nodes) -> None:
    failures = {"acme": InvalidInput("for good"), "globex": StoreUnavailable("for now")}

    def services(tenant: str) -> Any:
        raise failures[tenant]

    with pytest.raises(StoreUnavailable):
        Scheduler(nodes.registry, services).woken([], nodes.clock.now(), set(failures))


def test_a_fault_of_ours_with_one_tenant_keeps_none_of_the_others(nodes: Nodes) -> None:
    nodes.provider("lab", SMALL)
    claim = nodes.claim("one")
    nodes.clock.advance(1)

    def services(tenant: str) -> Any:
        if tenant == "aaa":
            raise ZeroDivisionError("a record that nobody thought of")
        return nodes.services

    scheduler = Scheduler(nodes.registry, services)
    with pytest.raises(ZeroDivisionError):
        scheduler.woken([("aaa", replace(nodes.now(claim), id="ncl_0"))], nodes.clock.now(), {"acme", "aaa"})
    assert nodes.now(claim).placement is not None


def test_a_failure_worth_a_retry_is_raised_before_a_fault_of_ours(nodes: Nodes) -> None:
    failures = {"acme": ZeroDivisionError("ours"), "globex": StoreUnavailable("for now")}

    def services(tenant: str) -> Any:
        raise failures[tenant]

    with pytest.raises(StoreUnavailable):
        Scheduler(nodes.registry, services).woken([], nodes.clock.now(), set(failures))
