"""A process whose loops run in threads until a signal comes."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import NoReturn

_FAREWELL = 0.3
"""Seconds that a running round gets to finish after SIGTERM."""


def run_until_signal(
    loops: Mapping[str, Callable[[Callable[[float], bool]], object]], log: Callable[[str], None]
) -> NoReturn:
    """Run the loops, by the names of their threads, and end the process: with 0 after SIGTERM or SIGINT, with 1 when
    the first loop has ended. Each loop is given a pause, which is True once the process ends."""
    # The signals are blocked before threads start and are waited for below. A signal handler could run while the
    # event's lock is held.
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    over = threading.Event()
    # Each loop has its own thread, because a network call may block longer than a pod has time to end. The next process
    # repeats whatever was interrupted.
    threads = [threading.Thread(target=loop, args=(over.wait,), daemon=True, name=name) for name, loop in loops.items()]
    for thread in threads:
        thread.start()
    signalled = False
    while threads[0].is_alive() and not signalled:
        signalled = signal.sigtimedwait(ends, 1.0) is not None
    over.set()
    threads[0].join(_FAREWELL)
    log("ends as told" if signalled else "ends: its loop is gone")
    sys.stderr.flush()
    os._exit(0 if signalled else 1)
