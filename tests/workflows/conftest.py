"""One crash world for all lives of a module. Nothing in it may sleep: every wait advances the world's clock."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.harness.crash.cells import Life, recordings
from tests.harness.crash.world import CrashWorld, crash_world


def no_sleep(seconds: float) -> None:
    """Stands for ``time.sleep`` where a clock of the world passes."""
    raise AssertionError(f"something sleeps for {seconds} s of real time")


@pytest.fixture(scope="module")
def world() -> Iterator[CrashWorld]:
    with pytest.MonkeyPatch.context() as patched, crash_world() as crash_world_of_module:
        patched.setattr(time, "sleep", no_sleep)
        yield crash_world_of_module


@pytest.fixture(scope="module")
def recorded(world: CrashWorld, seed: int) -> dict[str, tuple[int, Life]]:
    """For each story its seed, and a recorded life without the fault of a cell."""
    return recordings(world, seed)
