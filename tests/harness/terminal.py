"""The command line on a terminal of so many columns, as a person has it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from local.cloud import ROOT

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
SECONDS = 240.0


@dataclass(frozen=True, slots=True)
class Screen:
    """Text that a command has shown, both of its streams in one, and its exit code."""

    text: str
    exit_code: int
    raw: str = ""

    @property
    def lines(self) -> list[str]:
        """The lines, with one blank between words."""
        return [" ".join(line.split()) for line in self.text.splitlines()]


@dataclass(slots=True)
class Terminal:
    """A person's terminal."""

    environment: Mapping[str, str]
    home: Path
    columns: int = 80
    commands: list[str] = field(default_factory=list)
    """What was typed, in order."""

    def start(self, *arguments: str) -> Running:
        """A command that goes on."""
        self.commands.append(" ".join(arguments))
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, self.columns, 0, 0))
        variables = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8", "TERM": "xterm"}
        variables |= {"PYTHONPATH": str(ROOT / "client"), "COLUMNS": str(self.columns), **self.environment}
        process = subprocess.Popen(
            [sys.executable, "-m", "stockyard_client", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=variables,
            cwd=ROOT,
            start_new_session=True,
        )
        os.close(slave)
        return Running(process, master)

    def run(self, *arguments: str, keys: str = "") -> Screen:
        """A command at its end."""
        running = self.start(*arguments)
        if keys:
            os.write(running.master, keys.encode())
        return running.end()


@dataclass(slots=True)
class Running:
    """A command that goes on, and what it has shown so far."""

    process: subprocess.Popen[bytes]
    master: int
    output: bytes = b""

    def wait_for(self, text: str) -> str:
        """Wait for ``text`` on the screen, and return the screen. Raises ``TimeoutError``."""
        end = time.monotonic() + SECONDS
        while text not in (screen := plain(self.output)):
            if time.monotonic() > end or not self._read(0.5):
                raise TimeoutError(f"no {text!r} in:\n{screen}")
        return screen

    def interrupt(self) -> Screen:
        """Ctrl-C, and the end."""
        self.process.send_signal(signal.SIGINT)
        return self.end()

    def end(self) -> Screen:
        """Wait until the program ends by itself."""
        end = time.monotonic() + SECONDS
        while self._read(0.5):
            if time.monotonic() > end:
                self.process.kill()
                raise TimeoutError(f"it goes on and on:\n{plain(self.output)}")
        os.close(self.master)
        return Screen(plain(self.output), self.process.wait(10), self.output.decode(errors="replace"))

    def _read(self, seconds: float) -> bool:
        """Takes in what it shows within that time. False once it has ended and all is read."""
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return True
        try:
            part = os.read(self.master, 65_536)
        except OSError:  # the other end is closed
            return False
        self.output += part
        return bool(part)


def plain(output: bytes) -> str:
    """The text without colours and movements of the cursor."""
    return _CONTROL.sub("", output.decode(errors="replace")).replace("\r\n", "\n").replace("\r", "\n")
