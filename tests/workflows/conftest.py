"""One world for all lives of a module. Nothing in it may sleep: every wait passes on the world's clock."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from local.crash_cells import Life, recordings
from local.crash_world import CrashWorld, crash_world


def _no_sleep(seconds: float) -> None:
    raise AssertionError(f"something sleeps for {seconds} s of real time")


@pytest.fixture(scope="module")
def world() -> Iterator[CrashWorld]:
    with pytest.MonkeyPatch.context() as patched, crash_world() as made:
        patched.setattr(time, "sleep", _no_sleep)
        yield made


@pytest.fixture(scope="module")
def recorded(world: CrashWorld, seed: int) -> dict[str, tuple[int, Life]]:
    """A life of each story without the fault of a cell, and its seed."""
    return recordings(world, seed)
