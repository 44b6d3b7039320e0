"""Machines of the simulated Cudo boot what their start scripts unpack, once, and follow their power."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.cudo.api import SimulatedCudo
from local.fault_plan import MachinePlan
from local.kubernetes.clusters import Clusters
from local.machines import booted as watching
from local.machines import virtual_machines
from local.machines.programs import MachineSandbox
from local.machines.virtual_machines import VirtualMachines
from stockyard.machines import control_plane
from tests.harness.worlds.cudo_yard import DALLAS, KEY, PROJECT
from tests.harness.worlds.memory import FixedClock
from tests.unit.machines.first_boot import VALUES

NAME = f"{PROJECT}/demo"
SCRIPT = control_plane.ControlPlaneMachine(**{**VALUES, "volume_tags": None, "token": "e" * 64}).first_boot().script()


class Script:
    """A program that tells what it was asked for."""

    def __init__(self) -> None:
        self.said: queue.Queue[str] = queue.Queue()

    def begin(self) -> bool:
        self.said.put("begun")
        return True

    def switched(self, *, on: bool) -> None:
        self.said.put("on" if on else "off")

    def end(self) -> None:
        self.said.put("ended")

    def next(self, *expected: str) -> None:
        assert [self.said.get(timeout=30) for _ in expected] == list(expected)


class Yard:
    """A project whose machines are looked at when a test says so."""

    def __init__(self, folder: Path, plan: MachinePlan) -> None:
        self.clock, self.folder = FixedClock(), folder
        self.cudo = SimulatedCudo({KEY: PROJECT}, self.clock.now)
        self.scripts: list[Script] = []
        self.sandboxes: list[MachineSandbox] = []
        self.machines = VirtualMachines(
            lambda: self.cudo, folder / "log", folder / "machines", Clusters(folder / "kubernetes"), plan
        )

    def program(self, sandbox: MachineSandbox, _: Clusters) -> Script:
        """In place of ``program_of``."""
        self.sandboxes.append(sandbox)
        self.scripts.append(Script())
        return self.scripts[-1]

    def make(self, script: str = SCRIPT, name: str = "demo") -> None:
        """A machine that is on once the clock has advanced."""
        body = {
            "vmId": name, "dataCenterId": DALLAS, "machineType": "intel-broadwell", "vcpus": 4, "memoryGib": 8,
            "gpus": 0, "bootDiskImageId": "ubuntu-2404", "startScript": script,
        }  # fmt: skip
        self.ask("POST", "vm", body)

    def ask(self, method: str, path: str, body: Any = None) -> None:
        url, headers = f"https://cudo/v1/projects/{PROJECT}/{path}", {"authorization": f"Bearer {KEY}"}
        content = {} if body is None else {"json": body}
        request = httpx.Request(method, url, headers=headers, **content)
        answer = self.cudo.answer(request)
        assert answer.is_success, answer.text

    def look(self, seconds: float = 0) -> None:
        """Some time passes, and somebody looks."""
        self.clock.advance(seconds)
        self.machines._look(self.cudo.machines())


@pytest.fixture
def plan() -> MachinePlan:
    return MachinePlan(boot_seconds=(0.0, 0.0))


@pytest.fixture
def yard(tmp_path: Path, plan: MachinePlan, monkeypatch: pytest.MonkeyPatch) -> Iterator[Yard]:
    yard = Yard(tmp_path, plan)
    monkeypatch.setattr(virtual_machines, "program_of", yard.program)
    yield yard
    yard.machines.close()


def test_a_machine_boots_once_it_is_on_and_only_once(yard: Yard) -> None:
    yard.make()
    yard.look()
    assert yard.scripts == [], "it is being made"
    for _ in range(3):
        yard.look(60)
    (script,) = yard.scripts
    script.next("on", "begun")


def test_it_has_the_files_of_its_script_and_its_own_address_and_no_metadata(yard: Yard) -> None:
    yard.make()
    yard.look(60)
    (sandbox,) = yard.sandboxes
    (document,) = yard.cudo.machines().values()
    assert control_plane.CONFIG_PATH in sandbox.files
    assert '"token": "eee' in sandbox.files[control_plane.CONFIG_PATH]
    assert "eee" not in repr(sandbox)
    assert (sandbox.id, sandbox.metadata) == ("demo", "")
    kubelet = sandbox.kubelet()
    assert (kubelet.provider_id, kubelet.cpu, kubelet.memory, kubelet.gpus) == ("", 4, 8 * 1024, 0)
    assert kubelet.address == document["internalIpAddress"] != ""


def test_it_follows_its_power_and_is_gone_when_it_was_ended(yard: Yard) -> None:
    yard.make()
    yard.look(60)
    (script,) = yard.scripts
    script.next("on", "begun")
    yard.ask("POST", "vms/demo/stop")
    yard.look()
    script.next("off")
    yard.ask("POST", "vms/demo/start")
    yard.look()
    script.next("on")
    yard.ask("POST", "vms/demo/terminate")
    yard.look()
    script.next("off", "ended")


def test_a_machine_that_cudo_ended_by_itself_is_gone_too(yard: Yard) -> None:
    yard.make()
    yard.look(60)
    (script,) = yard.scripts
    script.next("on", "begun")
    project = yard.cudo.projects[PROJECT]
    del project.machines["demo"]
    yard.look()
    script.next("off", "ended")


def test_the_next_machine_of_that_name_is_another_one(yard: Yard) -> None:
    for number in (1, 2):
        yard.make()
        yard.look(60)
        assert len(yard.scripts) == number
        yard.ask("POST", "vms/demo/terminate")
        yard.look(60)
    first, second = yard.sandboxes
    assert first.folder != second.folder


def test_a_machine_whose_making_failed_does_not_boot(yard: Yard) -> None:
    yard.cudo.plan.failing["CreateVM"] = 1
    yard.make()
    yard.look(60)
    assert yard.scripts == []


@pytest.mark.parametrize("plan", [MachinePlan(boot_seconds=(0.0, 0.0), silent=1)])
def test_a_silent_machine_is_on_and_never_boots(yard: Yard) -> None:
    yard.make()
    yard.make(name="other")
    yard.look(60)
    yard.look(60)
    (sandbox,) = yard.sandboxes
    assert sandbox.id == "other"


def test_all_are_ended_when_the_local_cloud_stops(yard: Yard) -> None:
    yard.make()
    yard.look(60)
    (script,) = yard.scripts
    script.next("on", "begun")
    yard.machines.close()
    script.next("off", "ended")


def test_it_watches_by_itself_and_needs_no_cudo_before_somebody_calls_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "WATCH_SECONDS", 0.001)
    vendors: list[SimulatedCudo | None] = [None]
    questions: queue.Queue[bool] = queue.Queue()

    def cudo() -> SimulatedCudo | None:
        questions.put(vendors[0] is not None)
        return vendors[0]

    booted = queue.Queue[str]()
    machines = VirtualMachines(cudo, tmp_path / "log", tmp_path / "machines", Clusters(tmp_path / "kubernetes"))
    boots: Callable[..., None] = lambda key, _: booted.put(key)  # noqa: E731
    monkeypatch.setattr(machines, "_boot", boots)
    machines.start()
    try:
        assert questions.get(timeout=30) is False
        yard = Yard(tmp_path, MachinePlan())
        yard.make()
        yard.clock.advance(60)
        vendors[0] = yard.cudo
        assert booted.get(timeout=30) == f"{NAME}/1"
    finally:
        machines.close()


def test_programs_of_others_are_left_alone(tmp_path: Path) -> None:
    yard = Yard(tmp_path, MachinePlan())
    yard.make(script="#!/bin/sh\ntrue\n")
    yard.look(60)
    assert yard.machines._machines == {}
