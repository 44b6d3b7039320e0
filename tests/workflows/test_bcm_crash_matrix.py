"""The crash matrix of a claim for a host of a head node: every fault at every request and every write of its life.

The cells are made from recorded lives without a fault. At the end every device is as it was but for its revision, no
lease and no claim is left, and no call was made that must not be. ``make soak`` runs the cells of all writes too.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import pytest

from stockyard.ports import Outcome
from stockyard.providers.clouds.bcm import calls
from stockyard.providers.nodes.bcm.provider import BcmNodes
from tests.harness.bcm.yard import TENANT
from tests.workflows.bcm_life import BcmLife, faults_of
from tests.workflows.faulty_cloud import FaultInjection, Site

STORIES = {"had": False, "full": True}
"""``had``: a host is free. ``full``: none is, and the claim gets a node of another provider."""
REQUESTS, WRITES = 50, 12
"""Cells of requests, and of writes to the table, in a run outside the soak."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One fault at one site of one story."""

    story: str
    number: int
    site: Site
    fault: str

    def __str__(self) -> str:
        return f"{self.story}: {self.site.name} in {self.site.point} ({self.number}), {self.fault}"


def all_cells() -> list[Cell]:
    """Reads see the same states again, so only the first read of each name in a point has cells."""
    cells: list[Cell] = []
    for story, full in STORIES.items():
        life = BcmLife(full=full)
        assert life.run() == "Available"
        assert life.wrong() == []
        covered: set[Site] = set()
        for number, site in enumerate(life.injection.sites):
            if faults_of(site)[0] == "before" or site not in covered:
                cells += [Cell(story, number, site, fault) for fault in faults_of(site)]
            covered.add(site)
    return cells


def wrong(cell: Cell) -> list[str]:
    """The faults of a life with the cell's fault."""
    injection = FaultInjection(cell.number, cell.fault)
    life = BcmLife(injection, full=STORIES[cell.story])
    try:
        life.run()
    except Exception as error:
        return [f"{cell}: {type(error).__name__}: {error}"]
    faults = life.wrong() if injection.fired else ["the fault never came"]
    return [f"{cell}: {text}" for text in faults]


@pytest.mark.timeout(600)
def test_bcm_crash_matrix(soaking: bool, seed: int, record_property: Callable[[str, object], None]) -> None:
    cells = all_cells()
    requests = [cell for cell in cells if cell.site.name != "commit"]
    writes = [cell for cell in cells if cell.site.name == "commit"]
    chance = random.Random(seed)
    selection = cells if soaking else [*chance.sample(requests, REQUESTS), *chance.sample(writes, WRITES)]
    faults: list[str] = []
    milliseconds: list[float] = []
    for cell in selection:
        started = time.process_time()
        faults += wrong(cell)
        milliseconds.append((time.process_time() - started) * 1000)
    figures = {
        "cells": len(cells),
        "run": len(selection),
        "requests": len({cell.site for cell in requests}),
        "by_fault": dict(Counter(cell.fault for cell in selection)),
        "bad": len(faults),
        "milliseconds_a_life": round(median(milliseconds), 1),
    }
    record_property("figure:bcm_crash_matrix", figures)
    assert not faults, f"{len(faults)} of {len(selection)}\n" + "\n".join(faults[:40])


def test_the_matrix_has_cells_for_every_call() -> None:
    points = {(cell.site.point, cell.site.name) for cell in all_cells()}
    assert points >= {
        ("launch", "getDevices"),
        ("launch", "updateDevice"),
        ("launch", "powerOperation"),
        ("power", "powerOperation"),
        ("terminate", "updateDevice"),
        ("terminate", "powerOperation"),
    }


@pytest.mark.parametrize("settings", [{}, {"via": True}, {"args_field": "arg", "mode_field": "nextBootInstallMode"}])
def test_a_life_makes_documented_calls_alone_and_leaves_each_device_as_it_was(settings: dict[str, object]) -> None:
    life = BcmLife(**settings)
    cloud = life.nodes.services.clouds["bcm"]
    assert cloud.verify(life.yard.account, TENANT).works
    assert life.run() == "Available"
    assert life.wrong() == []
    assert life.powered == ["Off stopped", "On running"], "a reboot takes a moment"
    assert sorted(life.yard.wipes().values()) == [0, 0, 0, 2], "installed, and wiped"
    assert set(life.yard.head_node.calls) <= set(life.yard.head_node.documented())
    if settings.get("via"):
        assert life.yard.allowed_lines == set(calls.allow_list())


def test_a_host_is_switched_off_once_it_is_wiped_where_its_type_says_so() -> None:
    life = BcmLife(off=True)
    assert life.run() == "Available"
    assert life.wrong() == []
    hardware = life.yard.head_node.hardware
    (used,) = [uuid for uuid, machine in hardware.items() if machine.wipes]
    assert (hardware[used].on, hardware[used].wipes, hardware[used].scripts) == (False, 2, ["#!/bin/sh\necho own\n"])


def test_the_judge_sees_a_host_that_is_not_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BcmNodes, "terminate", lambda *_: Outcome(True))
    life = BcmLife()
    life.run()
    faults = life.wrong()
    assert any("left in the account: device node001" in text for text in faults)
    assert any("a lease is left" in text for text in faults)
