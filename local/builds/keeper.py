"""Runs one command with limits, and ends with it whatever it has started. It needs Python's standard library only.

    python3 keeper.py SECONDS COMMAND...

Its standard input is a pipe that its owner holds open: a line, or the end of the pipe, is the end of the command. What
the command started ends too, also what has left its process group: the kernel gives orphans to this process.
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

SUBREAPER = 36
"""Number of the option of ``prctl`` by which orphans become children of this process."""
TIMED_OUT, STOPPED = 124, 143
LIMITS = (
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_FSIZE, 1 << 30),
    (resource.RLIMIT_NOFILE, 4096),
    (resource.RLIMIT_AS, 16 << 30),
)
"""Limits of each process: no dump, files of 1 GiB, 4,096 open files, 16 GiB of addresses."""


def children() -> list[int]:
    """Every process below this one."""
    parents: dict[int, int] = {}
    if Path("/proc/self/stat").exists():
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError, IndexError, ValueError):
                parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    else:
        listed = subprocess.run(["ps", "-axo", "pid=,ppid="], capture_output=True, text=True, check=False).stdout
        parents = {int(pid): int(parent) for pid, parent in (line.split() for line in listed.splitlines())}
    family = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return sorted(family - {os.getpid()})


def end_all() -> None:
    """Kill everything below this process, until nothing is left."""
    for _ in range(200):
        for pid in children():
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        reap()
        if not children():
            return
        time.sleep(0.01)


def reap() -> dict[int, int]:
    """Exit codes of the children that have ended, by number."""
    codes: dict[int, int] = {}
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            codes[pid] = os.waitstatus_to_exitcode(status)
    return codes


def limit() -> None:
    """Limit this process and what it starts."""
    for name, most in LIMITS:
        hard = resource.getrlimit(name)[1]
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with suppress(ValueError, OSError):
            resource.setrlimit(name, (value, value))


def main(seconds: float, command: list[str]) -> int:
    """Exit code of the command; ``TIMED_OUT`` or ``STOPPED`` for one that was ended."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    end = time.monotonic() + seconds
    process = os.posix_spawn(
        sys.executable,
        [sys.executable, "-S", "-E", __file__, "--", *command],
        dict(os.environ),
        setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGHUP],
        setsid=True,
    )
    try:
        while True:
            codes = reap()
            if process in codes:
                code = codes[process]
                return code if code >= 0 else 128 - code
            remaining = end - time.monotonic()
            if remaining <= 0:
                return TIMED_OUT
            ready, _, _ = select.select([sys.stdin, readable], [], [], remaining)
            if sys.stdin in ready:
                return STOPPED
            if readable in ready:
                os.read(readable, 4096)
    finally:
        end_all()


if __name__ == "__main__":
    if sys.argv[1] == "--":
        limit()
        # the owner's pipe is not the command's
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
