"""Machines for the programs of runs in memory: a function is the program, its time is a clock's, and it can be told to
die at any of its requests. No threads: it goes on only when somebody looks at its run.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, TypeVar

from stockyard.errors import PermissionDenied, VendorThrottled
from stockyard.ports.runs import RunnerAccount, RunnerState, RunStart
from tests.harness.worlds.memory import Faults, FixedClock

T = TypeVar("T")

TOKEN_SECONDS = 300
"""How long a start of the same run is the same machine."""
DIED = "The program ended with 137."


class MachineDied(BaseException):
    """The machine dies here. Not an ``Exception``, so that no program can catch it."""


@dataclass(frozen=True, slots=True, order=True)
class Request:
    """A request of a program: the ``number``-th, from 1, of that name by the ``start``-th machine of the run."""

    run: str
    start: int
    name: str
    number: int


@dataclass(slots=True)
class Death:
    """Death of a machine before or after the first request that this describes, once. None: any."""

    when: Literal["before", "after"]
    name: str | None = None
    number: int | None = None
    run: str | None = None
    start: int | None = None
    fired: bool = False

    def hits(self, request: Request) -> bool:
        """Whether this is the request."""
        conditions = ((self.run, request.run), (self.start, request.start), (self.name, request.name))
        return not self.fired and all(
            want in (None, value) for want, value in (*conditions, (self.number, request.number))
        )


@dataclass
class Machine:
    """One machine, as its program sees it."""

    vendor_id: str
    start: RunStart
    number: int
    """Number among the run's machines, from 1."""
    target: RunnerAccount
    since: datetime
    due: datetime
    """When it goes on."""
    limit: datetime
    _runner: MemoryRunner = field(repr=False)
    printed: list[str] = field(default_factory=list)
    phase: Literal["queued", "running", "ended"] = "queued"
    reason: str | None = None
    steps: Iterator[float] | None = field(default=None, repr=False)

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables of the program."""
        return dict(self.start.variables)

    def print(self, line: str) -> None:
        """Print a line, which the machine's own log has."""
        self.printed.append(line)

    def request(self, name: str, work: Callable[[], T]) -> T:
        """Do one request, or die before or after it."""
        return self._runner.requested(self, name, work)


Program = Callable[[Machine], Iterator[float] | None]
"""A program. A generator waits for so many seconds at each ``yield``, and goes on at the look after them."""


class MemoryRunner:
    """``ports.runs.Runner`` that plays a program.

    A run is queued for ``queue_seconds`` and begins at the first look after them, or within ``start``, before its
    answer, with ``at_once``. ``recorded`` has every request that was made: a later run can be told to die at each.
    """

    usd_a_minute = 0.0034

    def __init__(self, program: Program, clock: FixedClock, *, queue_seconds: float = 0, at_once: bool = False) -> None:
        self.program, self.clock, self.faults = program, clock, Faults()
        self.queue_seconds, self.at_once = queue_seconds, at_once
        self.machines: dict[str, Machine] = {}
        self.recorded: list[Request] = []
        self.deaths: list[Death] = []
        self.absent: set[str] = set()
        """Tenants whose account lacks what runs need."""
        self.most: int | None = None
        """How many machines an account may have at once."""
        self._ids = itertools.count(1)

    def start(self, target: RunnerAccount, start: RunStart) -> str:
        """Take the run. A second start is the same machine for five minutes, and another one after that."""
        self._allow("start", target)
        machine = self._earlier(target, start) or self._new(target, start)
        if self.at_once:
            self._go_on(machine)
        self.faults.raise_planned("start", after=True)
        return machine.vendor_id

    def state(self, target: RunnerAccount, vendor_id: str) -> RunnerState:
        """State, once every machine has done what it would have done by now."""
        self._allow("state", target)
        self.play()
        machine = self._machine(target, vendor_id)
        state = RunnerState("ended", "It is not known any more.")
        if machine is not None:
            state = RunnerState(machine.phase, machine.reason)
        self.faults.raise_planned("state", after=True)
        return state

    def log(self, target: RunnerAccount, vendor_id: str) -> Sequence[str]:
        """Last lines that the program printed."""
        self._allow("log", target)
        machine = self._machine(target, vendor_id)
        return machine.printed[-100:] if machine else ()

    def stop(self, target: RunnerAccount, vendor_id: str) -> None:
        """End the machine; the program does nothing more."""
        self._allow("stop", target)
        machine = self._machine(target, vendor_id)
        if machine is not None and machine.phase != "ended":
            self._end(machine, "It was stopped.")
        self.faults.raise_planned("stop", after=True)

    # --- instruments -------------------------------------------------------------------------------------------------

    def play(self) -> None:
        """Let every machine do what it would have done by now, in the order of its time."""
        while waiting := [each for each in self.machines.values() if each.phase != "ended" and self._is_due(each)]:
            self._go_on(min(waiting, key=lambda each: (min(each.due, each.limit), each.vendor_id)))

    def next_moment(self) -> datetime | None:
        """Moment at which a machine goes on next; None when all have ended."""
        return min(
            (min(each.due, each.limit) for each in self.machines.values() if each.phase != "ended"), default=None
        )

    def forget(self, vendor_id: str) -> None:
        """Remove a machine and all that is known of it, as an account's owner may do. Its program ends."""
        machine = self.machines.pop(vendor_id, None)
        if machine is not None:
            self._end(machine, None)

    def running(self) -> list[Machine]:
        """Machines that have not ended."""
        return [machine for machine in self.machines.values() if machine.phase != "ended"]

    def requested(self, machine: Machine, name: str, work: Callable[[], T]) -> T:
        """See ``Machine.request``."""
        if machine.phase == "ended":
            raise MachineDied(name)
        number = 1 + sum(
            (each.run, each.start, each.name) == (machine.start.id, machine.number, name) for each in self.recorded
        )
        request = Request(machine.start.id, machine.number, name, number)
        self.recorded.append(request)
        death = next((each for each in self.deaths if each.hits(request)), None)
        if death is None:
            return work()
        death.fired = True
        if death.when == "after":
            work()
        self._end(machine, DIED)
        raise MachineDied(name)

    # --- parts -------------------------------------------------------------------------------------------------------

    def _allow(self, method: str, target: RunnerAccount) -> None:
        self.faults.raise_planned(method)
        if target.tenant in self.absent:
            raise PermissionDenied("the account has no machines for runs", code="ResourceNotFoundException")

    def _machine(self, target: RunnerAccount, vendor_id: str) -> Machine | None:
        """The machine, if it is in that account."""
        machine = self.machines.get(vendor_id)
        own = machine and (machine.target.tenant, machine.target.account.id) == (target.tenant, target.account.id)
        return machine if own else None

    def _earlier(self, target: RunnerAccount, start: RunStart) -> Machine | None:
        earliest = self.clock.now() - timedelta(seconds=TOKEN_SECONDS)
        return next(
            (
                machine
                for machine in self.machines.values()
                if machine.start.id == start.id
                and machine.since > earliest
                and self._machine(target, machine.vendor_id)
            ),
            None,
        )

    def _new(self, target: RunnerAccount, start: RunStart) -> Machine:
        if self.most is not None and sum(each.target.tenant == target.tenant for each in self.running()) >= self.most:
            raise VendorThrottled("the account has as many machines at once as it may", code="AccountLimitExceeded")
        now = self.clock.now()
        number = 1 + sum(each.start.id == start.id for each in self.machines.values())
        machine = Machine(
            f"machine-{next(self._ids)}",
            start,
            number,
            target,
            now,
            now + timedelta(seconds=self.queue_seconds),
            now + timedelta(seconds=start.limit_seconds),
            self,
        )
        self.machines[machine.vendor_id] = machine
        return machine

    def _is_due(self, machine: Machine) -> bool:
        return min(machine.due, machine.limit) <= self.clock.now()

    def _go_on(self, machine: Machine) -> None:
        """Let a machine do its next step."""
        if machine.limit <= machine.due and machine.limit <= self.clock.now():
            self._end(machine, f"It ran longer than {machine.start.limit_seconds} seconds.")
            return
        if machine.due > self.clock.now() or machine.phase == "ended":
            return
        try:
            if machine.phase == "queued":
                machine.phase = "running"
                steps = self.program(machine)
                if steps is None:
                    self._end(machine, None)
                    return
                machine.steps = iter(steps)
            seconds = next(machine.steps or iter(()))
        except StopIteration:
            self._end(machine, None)
        except MachineDied:
            self._end(machine, DIED)
        except Exception as error:  # a program that fails tells nothing but what it printed
            machine.print(f"{type(error).__name__}: {error}")
            self._end(machine, "The program ended with 1.")
        else:
            machine.due += timedelta(seconds=seconds)

    def _end(self, machine: Machine, reason: str | None) -> None:
        if machine.phase != "ended":
            machine.phase, machine.reason = "ended", reason
            steps, machine.steps = machine.steps, None
            if steps is not None and not getattr(steps, "gi_running", False):
                steps.close()  # type: ignore[attr-defined]
