"""The relay's function: what it answers the stream, and how long it sends what is overdue."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest

from functions.relay.handler import lambda_handler
from local.testing.memory_store import MemoryRegistry
from stockyard import errors, wiring
from stockyard.adapters.dynamodb import codec
from stockyard.domain.records import Outbox
from stockyard.operations.relay.outbox import Relay
from stockyard.ports import Create
from stockyard.wiring import passes
from tests.harness.worlds.inprocess import Context
from tests.harness.worlds.memory import FixedClock, MemoryBus, MemoryTelemetry, MemoryWorkflows

TIME = "2026-01-31T12:00:00.000Z"


class Timed(Context):
    """A context with this many milliseconds left."""

    remaining_ms = 60_000

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_ms


@pytest.fixture
def context() -> Timed:
    return Timed("relay", "request")


@pytest.fixture
def relay(monkeypatch: pytest.MonkeyPatch) -> Relay:
    test_relay = Relay(MemoryRegistry(), MemoryWorkflows, cache(MemoryBus), FixedClock(), MemoryTelemetry())
    monkeypatch.setattr(passes, "relay", lambda: test_relay)
    monkeypatch.setattr(wiring, "clock", lambda: FixedClock(datetime(2026, 1, 31, 12, 5, tzinfo=UTC)))
    return test_relay


def records(relay: Relay, count: int) -> list[dict[str, Any]]:
    """Items of the outbox, as the stream tells of them."""
    items = []
    for number in range(count):
        item = Outbox(f"out_{number}", "event", {"detail_type": "x", "detail": {}}, TIME)
        relay.registry.store("acme").commit(Create(item))
        change = {"NewImage": codec.to_item("acme", item), "SequenceNumber": str(number)}
        items.append({"eventName": "INSERT", "dynamodb": change})
    return items


def test_the_stream_goes_on_behind_what_is_refused_for_good(relay: Relay, context: Any) -> None:
    stream_records = records(relay, 3)
    for _ in range(2):  # together, and alone
        relay.bus().faults.before("publish", errors.VendorRefused("no"))  # type: ignore[attr-defined]
    assert lambda_handler({"Records": stream_records}, context) == {"batchItemFailures": []}
    assert [item.id for item in relay.registry.store("acme").list(Outbox).items] == ["out_0"]


def test_the_stream_waits_for_what_may_work_later(relay: Relay, context: Any) -> None:
    stream_records = records(relay, 3)
    relay.bus().faults.before("publish", errors.VendorUnavailable("down"))  # type: ignore[attr-defined]
    assert lambda_handler({"Records": stream_records}, context) == {"batchItemFailures": [{"itemIdentifier": "0"}]}


def test_what_its_writer_sends_is_left_to_it_and_later_to_the_schedule(relay: Relay, context: Any) -> None:
    store = relay.registry.store("acme")
    own = Outbox("out_own", "event", {"detail_type": "x", "detail": {}}, TIME, sender="machines")
    store.commit(Create(own))
    change = {"NewImage": codec.to_item("acme", own), "SequenceNumber": "7"}
    stream_records = [{"eventName": "INSERT", "dynamodb": change}, *records(relay, 2)]
    relay.bus().faults.before("publish", errors.VendorUnavailable("down"))  # type: ignore[attr-defined]
    assert lambda_handler({"Records": stream_records}, context) == {"batchItemFailures": [{"itemIdentifier": "0"}]}
    assert lambda_handler({"Records": stream_records}, context) == {"batchItemFailures": []}
    assert [item.id for item in store.list(Outbox).items] == ["out_own"]
    assert lambda_handler({}, context) == {"sent": 1, "failed": 0}


@pytest.mark.parametrize(("remaining_ms", "sent"), [(60_000, 3), (10_000, 0)])
def test_the_schedule_begins_nothing_shortly_before_its_end(
    relay: Relay, context: Any, remaining_ms: int, sent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    records(relay, 3)
    monkeypatch.setattr(Timed, "remaining_ms", remaining_ms)
    assert lambda_handler({}, context) == {"sent": sent, "failed": 0}
