"""The crash matrix of a claim that Cudo serves: every fault at every request and every write of the claim's life.

The cells are made from recorded lives without a fault. At the end there must be no machine in the project and no
claim, and no capacity slot may be taken. ``make soak`` runs the cells of all writes to the table too.
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
from stockyard.providers.clouds.cudo import client
from stockyard.providers.nodes.cudo.provider import CudoNodes
from tests.workflows.cudo_life import CudoLife, faults_of
from tests.workflows.faulty_cloud import FaultInjection, Site

STORIES = {"had": {}, "full": {"full": True}, "far": {"far": True}}
"""``had``: Cudo has room. ``full``: it has none, and the claim gets a node of another provider. ``far``: the claim's
cluster stands elsewhere, and has an overlay."""
WRITES = 12
"""Cells of writes to the table in a run outside the soak: other matrices have them all."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One fault at one site of one story."""

    story: str
    number: int
    site: Site
    fault: str

    def __str__(self) -> str:
        return f"{self.story}: {self.site.name} in {self.site.point} ({self.number}), {self.fault}"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client asks again at once."""
    monkeypatch.setattr(client, "MOST_PAUSE", 0.0)


def all_cells() -> list[Cell]:
    """Reads see the same states again, so only the first read of each name in a point has cells."""
    cells: list[Cell] = []
    for story, how in STORIES.items():
        life = CudoLife(**how)
        assert life.run() == "Available"
        assert life.wrong() == []
        covered: set[Site] = set()
        for number, site in enumerate(life.injection.sites):
            if not site.name.startswith("GET ") or site not in covered:
                cells += [Cell(story, number, site, fault) for fault in faults_of(site)]
            covered.add(site)
    return cells


def wrong(cell: Cell) -> list[str]:
    """The faults of a life with the cell's fault."""
    injection = FaultInjection(cell.number, cell.fault)
    life = CudoLife(injection, **STORIES[cell.story])
    try:
        life.run()
    except Exception as error:
        return [f"{cell}: {type(error).__name__}: {error}"]
    faults = life.wrong() if injection.fired else ["the fault never came"]
    return [f"{cell}: {text}" for text in faults]


@pytest.mark.timeout(600)
def test_cudo_crash_matrix(soaking: bool, seed: int, record_property: Callable[[str, object], None]) -> None:
    cells = all_cells()
    calls = [cell for cell in cells if cell.site.name != "commit"]
    writes = [cell for cell in cells if cell.site.name == "commit"]
    selection = [*calls, *(writes if soaking else random.Random(seed).sample(writes, WRITES))]
    faults: list[str] = []
    milliseconds: list[float] = []
    for cell in selection:
        started = time.process_time()
        faults += wrong(cell)
        milliseconds.append((time.process_time() - started) * 1000)
    figures = {
        "cells": len(cells),
        "run": len(selection),
        "requests": len({cell.site for cell in calls}),
        "by_fault": dict(Counter(cell.fault for cell in selection)),
        "bad": len(faults),
        "milliseconds_a_life": round(median(milliseconds), 1),
    }
    record_property("figure:cudo_crash_matrix", figures)
    assert not faults, f"{len(faults)} of {len(selection)}\n" + "\n".join(faults[:40])


def test_the_matrix_has_cells_for_every_call() -> None:
    calls = {(cell.site.point, cell.site.name.partition("acme-project/")[2]) for cell in all_cells()}
    assert calls >= {
        ("environment", "networks/-"),
        ("environment", "security-groups/-"),
        ("launch", "vm"),
        ("launch", "vms/-"),
        ("launch", "vm/-/expire-time"),
        ("power", "vms/-/stop"),
        ("power", "vms/-/start"),
        ("power", "vms/-/reboot"),
        ("terminate", "vms/-/terminate"),
    }


def test_a_claim_that_is_switched_does_what_it_is_told() -> None:
    life = CudoLife()
    life.run()
    assert life.powered == ["Off stopped", "On running", "Reboot running"]
    assert life.yard.cudo.calls["RebootVM"] == 1


def test_the_judge_sees_a_machine_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CudoNodes, "terminate", lambda *_: Outcome(True))
    life = CudoLife()
    life.run()
    assert any("left in the account" in text for text in life.wrong())
