"""Processes that end with this one, however it ends: a killed parent can end nobody, so a warden does it.

A child names itself to the warden before it becomes its program, on the pipe whose end tells the warden of our end. So
there is no moment at which a child runs and the warden does not know it. Linux's parent-death signal would not do: it
comes when the thread ends that has started the child.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_NAMED = 'echo "$$" >&0; exec "$0" "$@" < /dev/null'
"""Standard input is the warden's pipe at first."""


class Warden:
    """The warden of this process, started with the first child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: tuple[subprocess.Popen[bytes], int] | None = None

    def pipe(self) -> int:
        """Pipe on which children name themselves."""
        with self._lock:
            if self._running is None:
                command = [sys.executable, "-S", "-E", str(Path(__file__).with_name("warden.py"))]
                readable, writable = os.pipe()
                quiet = subprocess.DEVNULL
                process = subprocess.Popen(command, stdin=readable, stdout=quiet, cwd="/", start_new_session=True)
                os.close(readable)
                self._running = process, writable
                atexit.register(self.close)
            return self._running[1]

    def record(self, path: Path) -> None:
        """Let the warden list in a file what it is to end."""
        os.write(self.pipe(), f"record {path.resolve()}\n".encode())

    def close(self) -> None:
        """End every child that is left, and the warden."""
        with self._lock:
            running, self._running = self._running, None
        if running is not None:
            process, writable = running
            atexit.unregister(self.close)
            os.close(writable)
            process.wait()


WARDEN = Warden()


def start(command: Sequence[str], warden: Warden = WARDEN, **options: Any) -> subprocess.Popen[bytes]:
    """``subprocess.Popen`` of a child in a process group of its own, with nothing to read, that ends with us.

    It ends earlier when its ``warden`` is closed, which a local cloud does with the usual one.
    """
    # Ctrl-C reaches the local cloud, which then ends its parts in order.
    return subprocess.Popen(["/bin/sh", "-c", _NAMED, *command], stdin=warden.pipe(), process_group=0, **options)
