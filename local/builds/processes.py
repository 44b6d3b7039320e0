"""Builds as processes: the commands of a buildspec in a folder and a home of their own, with a bare environment.

Nothing of this process's environment reaches them. OpenTofu is the one that ``make tofu`` has built; without it a build
fails and says so. ``keeper.py`` ends a build's whole tree of processes with it, and all of them with this process.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from local.aws.corrections.builds import Builds, played_builds
from local.opentofu.real.build import TOFU

KEEPER = Path(__file__).with_name("keeper.py")
PATHS = (str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin")
MOST_LINES = 5000
"""Last lines that are kept of a build that has ended."""


class Program(Protocol):
    """A program that may be missing, as ``local.go_program`` has it."""

    @property
    def path(self) -> Path: ...

    def missing(self) -> str:
        """Reason why it cannot be run; empty when it is there."""


@dataclass
class BuildProcess:
    """One build. ``code`` is its exit code, once it has ended."""

    folder: Path
    process: subprocess.Popen[bytes] | None
    lines: list[str] = field(default_factory=list)
    code: int | None = None

    def poll(self) -> int | None:
        """Exit code; None while it runs."""
        if self.code is None and self.process is not None and self.process.poll() is not None:
            self._over()
        return self.code

    def printed(self) -> list[str]:
        """Lines so far."""
        if self.code is None:
            path = self.folder / "log"
            return path.read_text(errors="replace").splitlines() if path.exists() else []
        return self.lines

    def stop(self) -> None:
        """End it and all that it has started."""
        if self.process is not None and self.code is None:
            if self.process.stdin is not None:
                self.process.stdin.close()
            self.process.wait()
            self._over()

    def _over(self) -> None:
        if self.process is not None:
            self.lines = self.printed()[-MOST_LINES:]
            self.code = self.process.returncode
            if self.process.stdin is not None:
                self.process.stdin.close()
            shutil.rmtree(self.folder, ignore_errors=True)


class BuildProcesses:
    """Builds of one local cloud. ``variables`` are those that every build has."""

    def __init__(self, home: Path, variables: Mapping[str, str] | None = None, tofu: Program = TOFU) -> None:
        self._home, self._variables, self._tofu = home, dict(variables or {}), tofu
        self._builds: list[BuildProcess] = []

    def start(self, name: str, buildspec: str, variables: Mapping[str, str], seconds: float) -> BuildProcess:
        """Start a build that may take so long."""
        folder = self._home / name
        if reason := self._tofu.missing():
            return BuildProcess(folder, None, [f"OpenTofu cannot be run: {reason}."], 1)
        folder.mkdir(parents=True, mode=0o700)
        for part in ("home", "tmp", "source"):
            (folder / part).mkdir()
        phases = json.loads(buildspec)["phases"]
        commands = [command for phase in ("install", "build") for command in phases.get(phase, {}).get("commands", ())]
        (folder / "commands.sh").write_text("\n".join(["set -e", *commands, ""]), encoding="utf-8")
        environment = {
            "PATH": os.pathsep.join(PATHS),
            "HOME": str(folder / "home"),
            "TMPDIR": str(folder / "tmp"),
            "LANG": "C.UTF-8",
            **self._variables,
            "STOCKYARD_TOFU": str(self._tofu.path),
            **variables,
        }
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-S", "-E", str(KEEPER), str(seconds), "/bin/sh", str(folder / "commands.sh")],
                cwd=folder / "source",
                env=environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        build = BuildProcess(folder, process)
        self._builds = [each for each in self._builds if each.poll() is None] + [build]
        return build

    def close(self) -> None:
        """End every build."""
        for build in self._builds:
            build.stop()
        self._builds = []


@contextmanager
def local_builds(home: Path, variables: Mapping[str, str]) -> Iterator[None]:
    """Inside this context CodeBuild's builds are carried out by processes in folders of ``home``."""
    processes = BuildProcesses(home, variables)
    with closing(processes), played_builds(Builds(processes)):
        yield
