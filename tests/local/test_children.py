"""Child processes end with their parent, however the parent ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from local import warden
from local.children import Warden, start

ROOT = Path(__file__).parents[2]
STUBBORN = "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
WITH_ONE_OF_ITS_OWN = f"{STUBBORN}; subprocess.Popen(['sleep', '600']); time.sleep(600)"
PARENT = f"""
import sys, time
from pathlib import Path
from local.children import WARDEN, start
WARDEN.record(Path(sys.argv[1]))
child = start([sys.executable, "-c", {WITH_ONE_OF_ITS_OWN!r}])
print(child.pid, WARDEN._running[0].pid, flush=True)
time.sleep(600)
"""


def parent(record: Path) -> tuple[subprocess.Popen[str], int, int]:
    """A process with a child that has a child: the process, its child's group and its warden."""
    path = os.pathsep.join(map(str, (ROOT, ROOT / "layers" / "common" / "python")))
    command = [sys.executable, "-c", PARENT, str(record)]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    child, guard = map(int, process.stdout.readline().split())
    wait(lambda: record.exists() and str(child) in record.read_text())
    return process, child, guard


def killed(process: subprocess.Popen[str]) -> None:
    """Kills a process. Its output is not read to the end, because a child may keep it open."""
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def wait(look: object, seconds: float = 10) -> None:
    end, pause = time.monotonic() + seconds, threading.Event()
    while not look():
        assert time.monotonic() < end, "not in time"
        pause.wait(0.02)


def test_a_killed_parent_leaves_no_child_and_no_record(tmp_path: Path) -> None:
    process, child, guard = parent(tmp_path / "record")
    assert warden.started_at(child)
    killed(process)
    wait(lambda: not warden.started_at(child) and not warden.started_at(guard))
    assert not (tmp_path / "record").exists()


def test_the_next_start_ends_children_of_a_killed_warden(tmp_path: Path) -> None:
    process, child, guard = parent(tmp_path / "record")
    os.kill(guard, signal.SIGKILL)
    killed(process)
    assert warden.started_at(child)
    warden.clear(tmp_path / "record")
    wait(lambda: not warden.started_at(child))
    assert not (tmp_path / "record").exists()
    warden.clear(tmp_path / "record")


def test_a_later_process_with_the_same_id_is_not_ours() -> None:
    started_at = warden.started_at(os.getpid())
    assert started_at is not None
    assert abs(started_at - time.time()) < 36_000
    assert warden.is_ours(os.getpid(), time.time())
    assert not warden.is_ours(os.getpid(), started_at - 60)


def test_a_child_has_empty_input_and_keeps_its_exit_code() -> None:
    child = start([sys.executable, "-c", "import sys; sys.exit(len(sys.stdin.read()) + 7)"])
    assert child.wait(10) == 7


def test_closing_the_warden_ends_remaining_children() -> None:
    guard = Warden()
    child = start([sys.executable, "-c", "import time; time.sleep(600)"], guard)
    guard.close()
    assert child.wait(10) == -signal.SIGKILL
    guard.close()
