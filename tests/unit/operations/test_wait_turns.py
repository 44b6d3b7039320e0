"""Turns to wait: few of a tenant, not many of all, none lost for long."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from local.testing.memory_store import MemoryRegistry
from stockyard.domain.platform import PLATFORM
from stockyard.domain.wait_records import WAITERS, Waiters
from stockyard.errors import StoreUnavailable
from stockyard.operations.wait_turns import MARGIN, WaitTurns
from stockyard.ports import Replace


class Clock:
    def __init__(self):
        self.moment, self.count = datetime(2026, 11, 25, 12, tzinfo=UTC), 0

    def now(self):
        return self.moment

    def randomness(self, size):
        self.count += 1
        return self.count.to_bytes(size, "big")


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def registry():
    return MemoryRegistry()


@pytest.fixture
def store_of(registry):
    return lambda tenant: registry.platform() if tenant == PLATFORM else registry.store(tenant)


@pytest.fixture
def turns(store_of, clock):
    return WaitTurns(store_of, clock, 2, 3)


def test_so_many_of_a_tenant_wait_at_a_time(turns):
    with turns.take("acme", 20) as first, turns.take("acme", 20) as second, turns.take("acme", 20) as third:
        assert (first, second, third) == (True, True, False)
    with turns.take("acme", 20) as again:
        assert again


def test_so_many_of_all_wait_at_a_time_and_who_may_not_takes_nothing(turns, store_of):
    with ExitStack() as stack:
        allowed = [stack.enter_context(turns.take(tenant, 20)) for tenant in ("a", "a", "b", "b", "c")]
        assert allowed == [True, True, True, False, False]
        assert len(store_of("b").get(Waiters, WAITERS).leases) == 1
    assert store_of(PLATFORM).get(Waiters, WAITERS).leases == {}


def test_a_turn_whose_process_died_is_over_by_itself(turns, clock):
    dead = [turns.take("acme", 20), turns.take("acme", 20)]
    for turn in dead:
        turn.__enter__()
    with turns.take("acme", 20) as allowed:
        assert not allowed
    clock.moment += timedelta(seconds=20 + MARGIN + 1)
    with turns.take("acme", 20) as allowed:
        assert allowed


def test_the_platform_waits_in_its_own_turns(turns):
    with turns.take(PLATFORM, 20) as first, turns.take(PLATFORM, 20) as second, turns.take(PLATFORM, 20) as third:
        assert (first, second, third) == (True, True, True)


def test_where_none_may_wait_none_does(store_of, clock):
    with WaitTurns(store_of, clock, 0, 3).take("acme", 20) as allowed:
        assert not allowed


def test_a_wait_is_no_reason_to_fail(store_of, clock):
    def silent(tenant):
        store = store_of(tenant)
        store.get = lambda *_: (_ for _ in ()).throw(StoreUnavailable("no"))
        return store

    with WaitTurns(silent, clock, 2, 3).take("acme", 20) as allowed:
        assert not allowed


def test_others_turns_that_come_between_are_kept(store_of, clock):
    """A write of somebody else between reading and writing the record makes it be read again."""
    turns, stores = WaitTurns(store_of, clock, 5, 5), {}

    def raced(tenant):
        store = stores[tenant] = store_of(tenant)
        read, raced_once = store.get, []

        def get(kind, id):
            record = read(kind, id)
            if record is not None and not raced_once:
                raced_once.append(True)
                other = {**record.leases, "other": "2030-01-01T00:00:00.000Z"}
                store_of(tenant).commit(Replace(replace(record, leases=other, version=record.version + 1)))
            return record

        store.get = get
        return store

    with turns.take("acme", 20), WaitTurns(raced, clock, 5, 5).take("acme", 20) as allowed:
        assert allowed
        assert len(store_of("acme").get(Waiters, WAITERS).leases) == 3
