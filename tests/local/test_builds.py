"""Builds as processes: limits, and the end of everything that they have started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from local.builds.keeper import TIMED_OUT
from local.builds.processes import KEEPER, BuildProcesses
from local.opentofu.real.build import TOFU
from tests.harness.runs.worlds import Tofu

ESCAPE = """
import os, signal, subprocess, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
# a child in a session of its own, and a daemon whose parent has gone
child = subprocess.Popen(["sleep", "300"], start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("pids", child.pid, os.getpid(), flush=True)
        time.sleep(300)
    os._exit(0)
time.sleep(300)
"""


class NoTofu(Tofu):
    """A program that nobody has built."""

    def missing(self) -> str:
        return "tofu is not built: run make tofu"


def specification(*commands: str) -> str:
    return json.dumps({"version": 0.2, "phases": {"build": {"commands": commands}}})


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def is_there(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[BuildProcesses]:
    builds = BuildProcesses(tmp_path / "builds", {"NO_PROXY": "127.0.0.1"}, Tofu())
    yield builds
    builds.close()


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are given to a keeper by Linux alone")
def test_everything_that_a_build_started_ends_with_it(processes: BuildProcesses, tmp_path: Path):
    (tmp_path / "escape.py").write_text(ESCAPE)
    command = f"python3 {tmp_path / 'escape.py'}"
    for way in ("stop", "close", "time"):
        seconds = 8.0 if way == "time" else 300
        build = processes.start(way, specification(command), {}, seconds)
        until(lambda build=build: any(line.startswith("pids") for line in build.printed()))
        pids = [int(text) for text in next(line for line in build.printed() if line.startswith("pids")).split()[1:]]
        assert all(map(is_there, pids))
        if way == "time":
            until(lambda build=build: build.poll() == TIMED_OUT)
        else:
            build.stop() if way == "stop" else processes.close()
        assert not any(map(is_there, pids))
        assert not (tmp_path / "builds" / way).exists()
        assert build.printed()[0].startswith("pids")


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are given to a keeper by Linux alone")
def test_everything_ends_when_its_owner_is_killed(tmp_path: Path):
    (tmp_path / "escape.py").write_text(ESCAPE)
    owner = f"""
import subprocess, sys, time
command = [sys.executable, {str(KEEPER)!r}, "300", sys.executable, {str(tmp_path / "escape.py")!r}]
subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
time.sleep(300)
"""
    with subprocess.Popen([sys.executable, "-c", owner], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = [int(text) for text in process.stdout.readline().split()[1:]]
        process.send_signal(signal.SIGKILL)
    until(lambda: not any(map(is_there, pids)))


def test_build_has_a_home_of_its_own_and_limits(processes: BuildProcesses, tmp_path: Path):
    commands = ('echo "$HOME" "$NO_PROXY"', "pwd", "ulimit -c", "ulimit -n", "touch made", "false", "echo never")
    build = processes.start("one", specification(*commands), {"HOME_OF": "x"}, 60)
    until(lambda: build.poll() is not None)
    folder = tmp_path / "builds" / "one"
    assert build.printed() == [f"{folder}/home 127.0.0.1", f"{folder}/source", "0", str(min(4096, _most_files()))]
    assert build.code == 1


def _most_files() -> int:
    hard = subprocess.run(["/bin/sh", "-c", "ulimit -Hn"], capture_output=True, text=True, check=True).stdout.strip()
    return sys.maxsize if hard == "unlimited" else int(hard)


def test_build_without_opentofu_says_how_to_get_it(tmp_path: Path):
    build = BuildProcesses(tmp_path, tofu=NoTofu()).start("one", specification("echo never"), {}, 60)
    assert (build.poll(), build.printed()) == (1, ["OpenTofu cannot be run: tofu is not built: run make tofu."])
    assert not (tmp_path / "one").exists()
    assert TOFU.target == "tofu"
    build.stop()
    assert os.listdir(tmp_path) == []
