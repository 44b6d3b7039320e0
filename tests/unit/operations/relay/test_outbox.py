"""The relay sends many messages in few calls and in order, and removes those that were sent from the outbox."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from local.testing.memory_store import MemoryRegistry
from stockyard.domain.records import Outbox
from stockyard.domain.values import times
from stockyard.errors import StockyardError, VendorRefused, VendorThrottled, VendorUnavailable
from stockyard.operations.relay import outbox as relay_outbox
from stockyard.operations.relay.outbox import Relay, Resent
from stockyard.ports import Create, Remove
from tests.harness.worlds.memory import FixedClock, MemoryBus, MemoryTelemetry, MemoryWorkflows

LATER = datetime(2027, 1, 1, tzinfo=UTC)


class CountingBus(MemoryBus):
    """Counts the events of each call; call number ``fails`` (from 1) is refused, none if 0."""

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
    """Refuses to start the execution of this name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def start(self, workflow, name, payload) -> None:
        if name == self._name:
            raise VendorUnavailable("down")
        super().start(workflow, name, payload)


def items(kinds: str, tenant: str = "acme") -> list[tuple[str, Outbox]]:
    """One item for each letter: an ``e``vent, or the start of a ``w``orkflow."""
    waiting = []
    for number, kind in enumerate(kinds):
        payload = {"detail_type": "NodeClaim", "detail": {"number": number}}
        if kind == "w":
            payload = {"workflow": "provision_node", "name": f"run-{number}", "input": {}}
        name = f"out_{tenant}_{number:03d}"
        item = Outbox(name, {"e": "event", "w": "workflow"}[kind], payload, "2026-01-01T00:00:00.000Z")
        waiting.append((tenant, item))
    return waiting


def whole(kinds: str, number: int) -> tuple[str, Outbox]:
    """One item with a message for each letter."""
    messages = [{**item.payload, "kind": item.kind} for _, item in items(kinds)]
    return "acme", Outbox(f"out_{number:03d}", "messages", {"messages": messages}, "2026-01-01T00:00:00.000Z")


def world(
    waiting: list[tuple[str, Outbox]], bus: MemoryBus, workflows: MemoryWorkflows
) -> tuple[Relay, MemoryRegistry]:
    registry = MemoryRegistry()
    for tenant, item in waiting:
        registry.store(tenant).commit(Create(item))
    return Relay(registry, lambda: workflows, lambda: bus, FixedClock(), MemoryTelemetry()), registry


def outbox_ids(registry: MemoryRegistry) -> list[str]:
    return sorted(item.id for _, item in registry.due(Outbox, LATER, 1000))


def numbers(bus: MemoryBus) -> list[int]:
    return [detail["number"] for _, detail in bus.published]


def test_events_are_sent_in_batches_and_executions_one_by_one():
    bus, workflows = CountingBus(), MemoryWorkflows()
    waiting = items("ewe" + "e" * 20 + "w")
    relay, registry = world(waiting, bus, workflows)
    assert relay.send_all(waiting) == (24, None)
    assert bus.sizes == [10, 10, 2]
    assert numbers(bus) == [n for n in range(24) if n not in (1, 23)]
    assert [name for _, name in workflows.executions] == ["run-1", "run-23"]
    assert outbox_ids(registry) == []


def test_repeated_item_is_sent_once_and_tenants_share_a_call():
    bus = CountingBus()
    waiting = [*items("ee"), *items("e", "globex")]
    relay, registry = world(waiting, bus, MemoryWorkflows())
    assert relay.send_all([*waiting, waiting[0]]) == (4, None)
    assert (bus.sizes, outbox_ids(registry)) == ([4], [])


@pytest.mark.parametrize(("fails", "sent"), [(1, 0), (2, 10), (3, 20)])
def test_items_after_refused_events_stay_in_outbox(fails: int, sent: int):
    waiting = items("e" * 25)
    bus = CountingBus(fails)
    relay, registry = world(waiting, bus, MemoryWorkflows())
    count, failure = relay.send_all(waiting)
    assert (count, type(failure)) == (sent, VendorThrottled)
    assert outbox_ids(registry) == [item.id for _, item in waiting[sent:]]
    again = relay.send_all(waiting[count:])
    assert (again, outbox_ids(registry)) == ((25 - sent, None), [])
    assert numbers(bus) == list(range(25))


def test_events_before_failed_execution_are_sent():
    bus = CountingBus()
    waiting = items("eewe")
    relay, registry = world(waiting, bus, OnceDown("run-2"))
    count, failure = relay.send_all(waiting)
    assert (count, type(failure)) == (2, VendorUnavailable)
    assert (numbers(bus), outbox_ids(registry)) == ([0, 1], [item.id for _, item in waiting[2:]])


def test_first_of_two_failures_is_returned():
    waiting = items("eewe")
    relay, registry = world(waiting, CountingBus(1), OnceDown("run-2"))
    count, failure = relay.send_all(waiting)
    assert (count, type(failure)) == (0, VendorThrottled)
    assert outbox_ids(registry) == [item.id for _, item in waiting]


def test_empty_list_makes_no_call():
    bus = CountingBus()
    relay, _ = world([], bus, MemoryWorkflows())
    assert (relay.send_all([]), bus.sizes) == ((0, None), [])


# --- what is refused for good does not hold up the stream -------------------------------------------------------------


class Picky(MemoryBus):
    """Refuses each call that contains one of these numbers."""

    def __init__(self, *refused: int, error: type[StockyardError] = VendorRefused) -> None:
        super().__init__()
        self.refused, self.error, self.calls = set(refused), error, 0

    def publish_all(self, events) -> None:
        self.calls += 1
        if self.refused & {detail["number"] for _, detail in events}:
            raise self.error("not that one")
        super().publish_all(events)


def test_finally_refused_event_is_skipped_and_stays():
    waiting, bus = items("eeeewe" + "e" * 10), Picky(2)
    relay, registry = world(waiting, bus, MemoryWorkflows())
    assert relay.send_acceptable(waiting) == (16, None, ["out_acme_002"])
    assert outbox_ids(registry) == ["out_acme_002"]
    assert numbers(bus) == [n for n in range(16) if n not in (2, 4)]


def test_malformed_items_are_skipped():
    waiting = items("ewe")
    del waiting[0][1].payload["detail"]
    waiting[1][1].payload["input"] = "text"
    relay, _ = world(waiting, CountingBus(), MemoryWorkflows())
    assert relay.send_acceptable(waiting) == (3, None, ["out_acme_000", "out_acme_001"])


def test_transient_failure_stops_stream():
    waiting = items("eewe")
    relay, registry = world(waiting, Picky(0), OnceDown("run-2"))
    sent, failure, refused = relay.send_acceptable(waiting)
    assert (sent, type(failure), refused) == (2, VendorUnavailable, ["out_acme_000"])
    assert outbox_ids(registry) == ["out_acme_000", "out_acme_002", "out_acme_003"]


# --- what is overdue --------------------------------------------------------------------------------------------------


def minutes(count: float) -> datetime:
    """The time ``count`` minutes after the first run; items that wait until then are due."""
    return datetime(2026, 1, 1, 0, 1, tzinfo=UTC) + timedelta(minutes=count)


def always() -> float:
    return 1.0


def test_resend_sends_all_overdue_pages(monkeypatch):
    monkeypatch.setattr(relay_outbox, "PAGE", 20)
    bus, workflows = CountingBus(), MemoryWorkflows()
    relay, registry = world(items("eeeeeeew" * 40), bus, workflows)
    assert relay.resend(minutes(0), always) == Resent(320, 0, [])
    assert (outbox_ids(registry), len(bus.published), len(workflows.executions)) == ([], 280, 40)
    assert len(bus.sizes) < 60, "few calls for many"


def test_resend_ends_when_time_is_used_up():
    seconds = iter([3.0, 2.0, 1.0, 0.0, 0.0])
    relay, registry = world(items("e" * 50), CountingBus(), MemoryWorkflows())
    assert relay.resend(minutes(0), lambda: next(seconds)) == Resent(20, 0, [])
    assert len(outbox_ids(registry)) == 30


def test_resend_starts_executions_before_events():
    relay, registry = world(items("e" * 30 + "ww"), CountingBus(), MemoryWorkflows())
    seconds = iter([2.0, 1.0, 0.0, 0.0])
    assert relay.resend(minutes(0), lambda: next(seconds)).sent == 10
    assert not {"out_acme_030", "out_acme_031"} & set(outbox_ids(registry))


def test_finally_refused_items_do_not_hide_others(monkeypatch):
    monkeypatch.setattr(relay_outbox, "PAGE", 20)
    waiting = items("e" * 60)
    relay, registry = world(waiting, Picky(*range(45)), MemoryWorkflows())
    refused = [item.id for _, item in waiting[:45]]
    resent = relay.resend(minutes(0), always)
    assert (resent.sent, resent.failed, sorted(resent.refused)) == (15, 45, refused)
    assert outbox_ids(registry) == refused
    fresh = Outbox("out_new", "workflow", {"workflow": "w", "name": "n", "input": {}}, "2026-01-01T00:00:30.000Z")
    registry.store("acme").commit(Create(fresh))
    assert relay.resend(minutes(0.5), always) == Resent(1, 0, [])


def test_pause_grows_up_to_ten_minutes():
    relay, registry = world(items("e"), Picky(0), MemoryWorkflows())
    moment, pauses = 0.0, []
    for _ in range(6):
        assert relay.resend(minutes(moment), always).failed == 1
        [(_, item)] = registry.due(Outbox, LATER)
        pause = (times.from_text(item.due_at) - minutes(moment)).total_seconds() / 60
        pauses.append(pause)
        assert relay.resend(minutes(moment + pause), always) == Resent(), "not before it is due"
        moment += pause + 0.01
    assert pauses == [1, 2, 4, 8, 10, 10]


def test_outage_delays_batches_and_all_is_sent_later():
    bus = Picky(*range(40), error=VendorUnavailable)
    relay, registry = world(items("e" * 40), bus, MemoryWorkflows())
    assert relay.resend(minutes(0), always) == Resent(0, 40, [])
    assert bus.calls == 4
    bus.refused.clear()
    assert relay.resend(minutes(1.1), always) == Resent(40, 0, [])
    assert outbox_ids(registry) == []


def test_item_that_always_fails_does_not_hold_its_batch():
    relay, registry = world(items("e" * 10), Picky(0, error=VendorUnavailable), MemoryWorkflows())
    for minute in (0, 2, 5, 10):
        relay.resend(minutes(minute), always)
    assert outbox_ids(registry) == ["out_acme_000"]


def test_item_sent_meanwhile_does_not_come_back():
    class SentMeanwhile(MemoryBus):
        def publish_all(self, events) -> None:
            registry.store("acme").commit(Remove(Outbox, "out_acme_000"))
            raise VendorUnavailable("too late")

    relay, registry = world(items("e"), SentMeanwhile(), MemoryWorkflows())
    assert relay.resend(minutes(0), always) == Resent(0, 1, [])
    assert outbox_ids(registry) == []


def test_stale_index_does_not_repeat_resend():
    class Late(MemoryRegistry):
        def due(self, kind, before, limit=100, since=None, tenants=None):
            return stale_items

    stale_items = items("eew")
    bus = CountingBus()
    relay = Relay(Late(), MemoryWorkflows, lambda: bus, FixedClock(), MemoryTelemetry())
    assert relay.resend(minutes(0), always).sent == 3
    assert bus.sizes == [2]


def test_all_messages_of_an_item_are_sent_and_no_call_has_too_many_events():
    bus, workflows = CountingBus(), MemoryWorkflows()
    waiting = [whole("ewe", number) for number in range(7)]
    relay, registry = world(waiting, bus, workflows)
    assert relay.send_all(waiting) == (7, None)
    assert (numbers(bus), bus.sizes) == ([0, 2] * 7, [10, 4])
    assert list(workflows.executions) == [("provision_node", "run-1")], "of one name, once"
    assert outbox_ids(registry) == []


def test_an_item_whose_execution_does_not_start_waits_as_a_whole():
    bus, workflows = CountingBus(), OnceDown("run-1")
    waiting = [*items("e"), whole("ewe", 1)]
    relay, registry = world(waiting, bus, workflows)
    sent, failure = relay.send_all(waiting)
    assert (sent, type(failure)) == (1, VendorUnavailable)
    assert numbers(bus) == [0]
    assert outbox_ids(registry) == ["out_001"]


def test_events_before_a_refused_call_are_sent_and_the_others_wait():
    bus = CountingBus(fails=2)
    waiting = [whole("eee", number) for number in range(5)]
    relay, registry = world(waiting, bus, MemoryWorkflows())
    sent, failure = relay.send_all(waiting)
    assert (sent, type(failure), bus.sizes) == (3, VendorThrottled, [9, 6])
    assert outbox_ids(registry) == ["out_003", "out_004"]


def test_a_writer_sends_its_own_item_and_leaves_what_is_not_taken():
    bus, workflows = CountingBus(fails=1), MemoryWorkflows()
    relay, registry = world(items("e"), bus, workflows)
    ((tenant, item),) = items("e")
    relay.send_own(tenant, item)
    assert (numbers(bus), outbox_ids(registry)) == ([], [item.id])
    relay.send_own(tenant, item)
    assert (numbers(bus), outbox_ids(registry)) == ([0], [])
