"""Room that is made for waiting claims starts a scheduling pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from local.testing.memory_store import MemoryRegistry
from stockyard.domain.records import NodeClaim
from stockyard.errors import InvalidInput, StoreUnavailable
from stockyard.operations.scheduler import schedule, wake
from stockyard.operations.scheduler.schedule import Report
from stockyard.operations.scheduler.waiting import Waiting
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


def test_a_tenant_with_many_claims_takes_turns_with_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """And when the time of the pass is over, what is left waits for the next one."""
    turns: list[tuple[str, int]] = []
    seconds = iter(float(number) for number in range(1000))

    def schedule_and_remember(services: Any, claims: Any) -> Report:
        turns.append((services, len(claims)))
        return Report(waiting=len(claims))

    monkeypatch.setattr(schedule, "schedule", schedule_and_remember)

    def claim(number: int) -> NodeClaim:
        return NodeClaim(f"ncl_{number}", str(number), f"{number:09}", "", sequence=1)

    many = {str(number): claim(number) for number in range(1200)}
    waiting = Waiting(MemoryRegistry(), {"busy": many, "small": {"s": claim(5000)}})
    scheduler = Scheduler(MemoryRegistry(), lambda tenant: tenant, lambda: next(seconds))
    assert scheduler._all(waiting)["left"] == 0
    assert turns == [("busy", 500), ("small", 1), ("busy", 500), ("busy", 200)]
    turns.clear()
    monkeypatch.setattr(wake, "PASS_SECONDS", 2.5)
    assert scheduler._all(waiting)["left"] == 700
    assert turns == [("busy", 500), ("small", 1)]
