"""Guests of KubeVirt in the local cloud: one boots with its machine's script, is switched, and ends with it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local.kubernetes.real.callers import InProcess
from local.machines import kubevirt_guests
from local.machines.kubevirt_guests import KubeVirtGuests
from tests.unit.providers.nodes.kubevirt.yard import Yard


class Recorded:
    """A program that does nothing. ``news`` is what it was told."""

    def __init__(self) -> None:
        self.news: list[str] = []

    def begin(self) -> bool:
        self.news.append("begin")
        return True

    def switched(self, *, on: bool) -> None:
        self.news.append("on" if on else "off")

    def end(self) -> None:
        self.news.append("end")


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_guest_boots_with_its_machine_and_ends_with_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program, sandboxes = Recorded(), list[Any]()
    monkeypatch.setattr(kubevirt_guests, "program_of", lambda sandbox, _clusters: sandboxes.append(sandbox) or program)
    monkeypatch.setattr(kubevirt_guests, "_BOOT", (0.0, 0.01))
    yard = Yard()
    name = yard.launch().facts["machine_id"]
    guests = KubeVirtGuests(InProcess(yard.host.api), tmp_path / "log", tmp_path / "guests", object())
    guests.look()
    until(lambda: "begin" in program.news)
    (sandbox,) = sandboxes
    assert (sandbox.machine_id if hasattr(sandbox, "machine_id") else name) == name
    yard.source.power(yard.work(), "Off")
    for _ in range(4):
        guests.look()
    until(lambda: "off" in program.news)
    yard.terminate()
    guests.look()
    until(lambda: "end" in program.news)
    guests.close()
