"""Ends processes whose parent has died, whatever it died of. A program that needs the standard library only.

Its standard input is a pipe that the parent holds open, so the end of the pipe is the end of the parent. Each line
names the leader of a process group that is to end then. ``record PATH`` names a file that lists them, for the case that
this program dies too: whoever starts next reads it with ``clear``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

SLACK_SECONDS = 2.0
"""Moments of the kernel and of the clock may be apart by so much."""


def started_at(pid: int) -> float | None:
    """Start of a process, in seconds since 1970; None when there is none."""
    status = Path("/proc/self/stat")
    if not status.exists():
        listed = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
        return time.mktime(time.strptime(listed.stdout.strip())) if listed.stdout.strip() else None
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    if fields[0] == "Z":
        return None
    booted = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime"))
    return int(booted.split()[1]) + int(fields[19]) / os.sysconf("SC_CLK_TCK")


def is_ours(pid: int, registered: float) -> bool:
    """Whether the process group still is what was registered then. A later process that got the number is not."""
    started = started_at(pid)
    return started is None or started <= registered + SLACK_SECONDS


def lives(pid: int) -> bool:
    """Whether a process group has a member."""
    try:
        os.killpg(pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def end(groups: dict[int, float]) -> None:
    """Kill the process groups: id of the leader -> when it was registered."""
    for pid, registered in groups.items():
        if is_ours(pid, registered):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)


def clear(record: Path) -> None:
    """Kill what an earlier parent has left, which nobody killed for it."""
    if record.exists():
        lines = (line.split() for line in record.read_text().splitlines())
        end({int(pid): float(registered) for pid, registered in lines})
        record.unlink()


def watch() -> None:
    """Until the parent ends."""
    groups: dict[int, float] = {os.getpid(): time.time()}
    record: Path | None = None
    for line in sys.stdin:
        word, _, path = line.strip().partition(" ")
        if word == "record":
            record = Path(path)
        else:
            groups = {pid: registered for pid, registered in groups.items() if lives(pid)}
            groups[int(word)] = time.time()
        if record is not None:
            record.write_text("".join(f"{pid} {registered}\n" for pid, registered in groups.items()))
    del groups[os.getpid()]
    end(groups)
    if record is not None:
        record.unlink(missing_ok=True)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    watch()
