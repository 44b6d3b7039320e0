"""Many messages leave in few calls, in order, and what was sent does not stand in the outbox any more."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from local.memory import MemoryBus, MemoryWorkflows
from local.memory_store import MemoryRegistry
from stockyard.domain.records import Outbox
from stockyard.errors import VendorThrottled, VendorUnavailable
from stockyard.operations.relay_outbox import Relay
from stockyard.ports import Create

LATER = datetime(2027, 1, 1, tzinfo=UTC)


class CountingBus(MemoryBus):
    """Also says how many events came in each call; the call ``fails`` (from 1) is refused."""

    def __init__(self, fails: int = 0) -> None:
        super().__init__()
        self.sizes: list[int] = []
        self._fails = fails

    def publish_all(self, events) -> None:
        self.sizes.append(len(events))
        if len(self.sizes) == self._fails:
            raise VendorThrottled("not now")
        super().publish_all(events)


class OnceDown(MemoryWorkflows):
    """Refuses one execution by its name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def start(self, workflow, name, payload) -> None:
        if name == self._name:
            raise VendorUnavailable("down")
        super().start(workflow, name, payload)


def items(kinds: str, tenant: str = "acme") -> list[tuple[str, Outbox]]:
    """One item for each letter: an ``e``vent, or the start of a ``w``orkflow."""
    found = []
    for number, kind in enumerate(kinds):
        payload = {"detail_type": "NodeClaim", "detail": {"number": number}}
        if kind == "w":
            payload = {"workflow": "provision_node", "name": f"run-{number}", "input": {}}
        name = f"out_{tenant}_{number:03d}"
        made = Outbox(name, {"e": "event", "w": "workflow"}[kind], payload, "2026-01-01T00:00:00.000Z")
        found.append((tenant, made))
    return found


def world(
    waiting: list[tuple[str, Outbox]], bus: MemoryBus, workflows: MemoryWorkflows
) -> tuple[Relay, MemoryRegistry]:
    registry = MemoryRegistry()
    for tenant, item in waiting:
        registry.store(tenant).commit(Create(item))
    return Relay(registry, workflows, bus), registry


def left(registry: MemoryRegistry) -> list[str]:
    return sorted(item.id for _, item in registry.due(Outbox, LATER, 1000))


def numbers(bus: MemoryBus) -> list[int]:
    return [detail["number"] for _, detail in bus.published]


def test_events_go_ten_at_a_time_and_executions_one_by_one():
    bus, workflows = CountingBus(), MemoryWorkflows()
    waiting = items("ewe" + "e" * 20 + "w")
    relay, registry = world(waiting, bus, workflows)
    assert relay.send_all(waiting) == (24, None)
    assert bus.sizes == [10, 10, 2]
    assert numbers(bus) == [n for n in range(24) if n not in (1, 23)]
    assert [name for _, name in workflows.executions] == ["run-1", "run-23"]
    assert left(registry) == []


def test_an_item_that_comes_twice_and_two_tenants():
    bus = CountingBus()
    waiting = [*items("ee"), *items("e", "globex")]
    relay, registry = world(waiting, bus, MemoryWorkflows())
    assert relay.send_all([*waiting, waiting[0]]) == (4, None)
    assert (bus.sizes, left(registry)) == ([4], [])


@pytest.mark.parametrize(("fails", "sent"), [(1, 0), (2, 10), (3, 20)])
def test_what_comes_behind_refused_events_stands_in_the_outbox(fails: int, sent: int):
    waiting = items("e" * 25)
    bus = CountingBus(fails)
    relay, registry = world(waiting, bus, MemoryWorkflows())
    count, failure = relay.send_all(waiting)
    assert (count, type(failure)) == (sent, VendorThrottled)
    assert left(registry) == [item.id for _, item in waiting[sent:]]
    again = relay.send_all(waiting[count:])
    assert (again, left(registry)) == ((25 - sent, None), [])
    assert numbers(bus) == list(range(25))


def test_events_before_an_execution_that_cannot_start_are_sent():
    bus = CountingBus()
    waiting = items("eewe")
    relay, registry = world(waiting, bus, OnceDown("run-2"))
    count, failure = relay.send_all(waiting)
    assert (count, type(failure)) == (2, VendorUnavailable)
    assert (numbers(bus), left(registry)) == ([0, 1], [item.id for _, item in waiting[2:]])


def test_of_two_that_fail_the_first_counts():
    waiting = items("eewe")
    relay, registry = world(waiting, CountingBus(1), OnceDown("run-2"))
    count, failure = relay.send_all(waiting)
    assert (count, type(failure)) == (0, VendorThrottled)
    assert left(registry) == [item.id for _, item in waiting]


def test_nothing_to_send():
    bus = CountingBus()
    relay, _ = world([], bus, MemoryWorkflows())
    assert (relay.send_all([]), bus.sizes) == ((0, None), [])
