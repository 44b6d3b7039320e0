"""A machine that was switched on: it boots, runs its program, and follows its power state; and who looks for such."""

from __future__ import annotations

import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from local.machines.programs import Program

TERMINATED = frozenset({"shutting-down", "terminated"})
"""States in which a machine is gone for good."""
WATCH_SECONDS = 0.1
RETRY_SECONDS = 2.0
"""Seconds after which a machine repeats its failed start script. A real machine waits half a minute."""


class Machine(threading.Thread):
    """One of our instances: it boots, repeats its program until that succeeds, and follows the power state."""

    def __init__(self, name: str, boot_seconds: tuple[float, float], on_end: Callable[[], None]) -> None:
        super().__init__(daemon=True, name=name)
        self.program: Program | None = None
        self._boot_seconds, self._on_end = boot_seconds, on_end
        self._state = "running"
        self._wake = threading.Event()
        self._done = False

    @property
    def on(self) -> bool:
        """Whether the machine is on."""
        return self._state == "running"

    def wait(self, seconds: float) -> None:
        """Do nothing for so long, or until the machine is switched off."""
        self._off_within(seconds)

    def tell(self, state: str) -> None:
        """Sets the state that EC2 shows for the instance."""
        if state != self._state:
            self._state = state
            self._wake.set()

    def run(self) -> None:
        """Runs until the instance is terminated."""
        program = self.program
        if program is None:
            return
        try:
            while self._state not in TERMINATED:
                if self.on:
                    self._up(program)
                    program.switched(on=False)
                else:
                    self._wake.wait()
                    self._wake.clear()
        finally:
            program.end()
            self._on_end()

    def _up(self, program: Program) -> None:
        """Runs from one start of the machine to its next stop."""
        if self._off_within(random.uniform(*self._boot_seconds)):
            return
        program.switched(on=True)
        while not self._done:
            self._done = program.begin()
            if not self._done and self._off_within(RETRY_SECONDS):
                return
        while self.on:
            self._wake.wait()
            self._wake.clear()

    def _off_within(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while self.on and (remaining := end - time.monotonic()) > 0:
            self._wake.wait(remaining)
            self._wake.clear()
        return not self.on


class MachineWatch(ABC):
    """Looks at a cloud's machines again and again, and has one of these for each that is on. They are kept by name."""

    def __init__(self, name: str) -> None:
        self._stop = threading.Event()
        self._seen: set[str] = set()
        self._machines: dict[str, Machine] = {}
        self._watcher = threading.Thread(target=self._watch, daemon=True, name=name)

    def start(self) -> None:
        """Begin to watch."""
        self._watcher.start()

    def close(self) -> None:
        """Switch every machine off."""
        self._stop.set()
        if self._watcher.is_alive():
            self._watcher.join(5)
        machines = list(self._machines.values())
        for machine in machines:
            machine.tell("terminated")
        for machine in machines:
            machine.join(5)

    @abstractmethod
    def look(self) -> None:
        """One look: boot what is new, tell the others their state."""

    def _watch(self) -> None:
        while not self._stop.wait(WATCH_SECONDS):
            self.look()
