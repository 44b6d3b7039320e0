"""Lets one test be alone on the machine for a while: times mean little while the other workers keep all cores busy.

Every test of a run holds a shared lock while it runs. Who measures gives its own up, waits until the others have come
to the end of theirs, and holds the lock alone; the others begin their next test afterwards.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Silence:
    """The locks of one run: two files in a folder that all its workers know."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._running = (folder / "running").open("w")
        self._gate = (folder / "gate").open("w")

    @contextmanager
    def test(self) -> Iterator[None]:
        """Run a test beside others, once nobody measures or waits to."""
        self._enter()
        try:
            yield
        finally:
            fcntl.flock(self._running, fcntl.LOCK_UN)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Within a test: nobody else runs one. Others that wait to begin do not come first."""
        fcntl.flock(self._running, fcntl.LOCK_UN)
        fcntl.flock(self._gate, fcntl.LOCK_EX)
        fcntl.flock(self._running, fcntl.LOCK_EX)
        fcntl.flock(self._gate, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._running, fcntl.LOCK_UN)
            self._enter()

    def _enter(self) -> None:
        fcntl.flock(self._gate, fcntl.LOCK_SH)
        fcntl.flock(self._running, fcntl.LOCK_SH)
        fcntl.flock(self._gate, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of everything."""
        self._running.close()
        self._gate.close()
