"""The program of a run, played: it asks as the real one does, and its OpenTofu makes machines of a vendor in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from stockyard.errors import IllegalTransition
from stockyard.operations import runs
from stockyard.operations.runs.program import RunReport
from stockyard.operations.runs.tokens import tenant_of
from stockyard.operations.services import Services
from stockyard.ports.sites import Seals
from tests.harness.runs.memory_runner import Machine

KEY = b"the installation's key"


@dataclass
class PlainSeals:
    """Seals with a name in each, so that nothing is opened under another one."""

    def seal(self, name: str, value: bytes) -> str:
        """The value and its name."""
        return json.dumps([name, value.decode()])

    def unseal(self, name: str, sealed: str) -> bytes:
        """The value, under its own name alone."""
        own, value = json.loads(sealed)
        assert own == name, f"{own} is opened as {name}"
        return str(value).encode()


@dataclass
class PlayedTofu:
    """``machines`` are those of the vendor by the name that the template gives them. ``seconds`` is how long an apply
    takes, ``fails`` are names whose apply fails after the machine was made, ``ignores`` names whose run is killed."""

    services: Callable[[], Services]
    seals: Seals = field(default_factory=PlainSeals)
    key: bytes = KEY
    machines: dict[str, dict[str, Any]] = field(default_factory=dict)
    seconds: float = 90
    fails: set[str] = field(default_factory=set)
    stuck: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    """Names of which a plan would change something."""
    broken: bool = False
    """Whether no template can be planned."""
    unreachable: bool = False
    """Whether templates that need the cluster fail."""
    commit: str | None = None
    """Commit that its templates are of."""
    tasks: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, machine: Machine) -> Iterator[float]:
        """The program of one machine."""
        run_id = machine.variables["STOCKYARD_RUN_URL"].rpartition("/")[2]
        token = machine.variables["STOCKYARD_RUN_TOKEN"]

        def run() -> Any:
            assert tenant_of(self.key, token, run_id) == self.services().tenant
            return runs.proven_run(self.services(), run_id)

        try:
            task = machine.request("begin", lambda: runs.begin(self.services(), self.seals, run()))
        except IllegalTransition:
            return
        self.tasks.append(task)
        report = replace((yield from self._tofu(machine, task, run)), commit=self.commit)
        machine.request("end", lambda: runs.end_of(self.services(), self.seals, run(), report))

    def _tofu(
        self, machine: Machine, task: dict[str, Any], run: Callable[[], Any]
    ) -> Generator[float, None, RunReport]:
        name = str(task["variables"]["vcluster"]["name"])
        if task.get("unlock"):
            machine.request("unlock", lambda: runs.unlock(self.services(), run()))
        lock_id = f"lock-{run().id}"
        if task["command"] != "plan":
            holder = machine.request("lock", lambda: runs.take_lock(self.services(), run(), lock_id, {"ID": lock_id}))
            if holder is not None:
                return RunReport("failed", "The state is locked.")
        state = machine.request("read", lambda: runs.read_state(self.services(), run())) or {"machines": []}
        lines = ["$ tofu", f"passphrase {task['passphrase']}"]
        machine.request("log", lambda: runs.keep_lines(self.services(), self.seals, run(), 1, lines))
        report = yield from self._work(machine, task, run, name, list(state["machines"]))
        if task["command"] != "plan" and report.end != "killed":
            machine.request("unlock", lambda: runs.unlock(self.services(), run()))
        return report

    def _work(
        self, machine: Machine, task: dict[str, Any], run: Callable[[], Any], name: str, names: list[str]
    ) -> Generator[float, None, RunReport]:
        def write(machines: list[str]) -> None:
            document = {"machines": machines}
            machine.request("write", lambda: runs.write_state(self.services(), run(), document, f"lock-{run().id}"))

        if task["command"] == "plan" or (self.unreachable and task.get("kubeconfig")):
            return self._plan(task["command"], name, names)
        if task["command"] == "apply" or task.get("unsure"):
            # what a template names after the claim is made once
            machine.request("make", lambda: self.machines.setdefault(name, {"run": run().id}))
            yield self.seconds
            write([name])
            names = [name]
        is_needless = task["command"] == "apply" and machine.request(
            "alive", lambda: runs.is_needless(self.services(), run())
        )
        if task["command"] == "apply" and name in self.stuck:
            return RunReport("killed", "The run was killed.")
        if task["command"] == "apply" and name not in self.fails and not is_needless:
            return RunReport("done", result={"outputs": {"ip": {"value": "10.0.0.1", "sensitive": False}}})
        is_kept = task["command"] == "apply" and task["keep"]
        for each in [] if is_kept else names:
            machine.request("remove", lambda each=each: self.machines.pop(each, None))  # type: ignore[misc]
        write(names if is_kept else [])
        if task["command"] == "apply":
            return RunReport("interrupted" if is_needless else "failed", "no room", is_empty=not is_kept)
        return RunReport("done", is_empty=True)

    def _plan(self, command: str, name: str, names: list[str]) -> RunReport:
        if command != "plan":
            return RunReport("failed", "The cluster does not answer.")
        if self.broken:
            return RunReport("failed", "no plug-in")
        differs = names != [name] or name in self.changed
        return RunReport("done", result={"drifted": differs, "summary": "Plan: 1 to add." if differs else ""})
