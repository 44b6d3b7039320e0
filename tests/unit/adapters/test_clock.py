"""The running clock and the one of tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from stockyard.adapters.clock import SystemClock
from tests.harness.worlds.memory import FixedClock


def test_the_system_clock_is_utc_and_random():
    clock = SystemClock()
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(seconds=5)
    assert clock.now().utcoffset() == timedelta(0)
    assert len(clock.randomness(10)) == 10
    assert clock.randomness(16) != clock.randomness(16)


def test_the_fixed_clock_stands_still_and_repeats():
    clock, equal_clock = FixedClock(seed=7), FixedClock(seed=7)
    first = clock.now()
    assert clock.now() == first
    assert clock.advance(90) - first == timedelta(seconds=90)
    assert clock.randomness(10) == equal_clock.randomness(10)
    assert clock.randomness(10) != FixedClock(seed=8).randomness(10)
