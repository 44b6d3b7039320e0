"""The crash matrix of a claim whose node a template makes: every fault at every call of the runner and every write, and
the death of a run's machine before and after each of its requests.

At the end there must be no machine, no state, no lock, no object of a state and no claim, and no capacity slot may be
taken. ``make soak`` runs the cells of all writes to the table too.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import pytest

from stockyard.ports import Outcome
from stockyard.providers.nodes.terraform.provider import TerraformNodes
from tests.harness.runs.memory_runner import Death
from tests.workflows.faulty_cloud import FaultInjection, Site
from tests.workflows.terraform_life import TerraformLife

STORIES = {"node": False, "environment": True}
FAULTS = ("before", "after", "timeout", "throttled")
WRITES, REQUESTS = 20, 12
"""Cells of writes to the table, and requests of each story that a run dies at, outside the soak."""


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
    cells: list[Cell] = []
    for story, environment in STORIES.items():
        life = TerraformLife(environment=environment)
        assert life.run() == "Available"
        assert life.wrong() == []
        covered: set[Site] = set()
        for number, site in enumerate(life.injection.sites):
            # a look sees the same state again: only the first in a point has cells
            if site.name != "runner.state" or site not in covered:
                faults = FAULTS[:2] if site.name == "commit" else FAULTS
                cells += [Cell(story, number, site, fault) for fault in faults]
            covered.add(site)
    return cells


def wrong(cell: Cell) -> list[str]:
    """The faults of a life with the cell's fault."""
    injection = FaultInjection(cell.number, cell.fault)
    life = TerraformLife(injection, environment=STORIES[cell.story])
    try:
        life.run()
    except Exception as error:
        return [f"{cell}: {type(error).__name__}: {error}"]
    faults = life.wrong() if injection.fired else ["the fault never came"]
    return [f"{cell}: {text}" for text in faults]


@pytest.mark.timeout(600)
def test_crash_matrix(soaking: bool, seed: int, record_property: Callable[[str, object], None]) -> None:
    started = time.process_time()
    cells = all_cells()
    calls = [cell for cell in cells if cell.site.name != "commit"]
    writes = [cell for cell in cells if cell.site.name == "commit"]
    selection = [*calls, *(writes if soaking else random.Random(seed).sample(writes, WRITES))]
    faults = [text for cell in selection for text in wrong(cell)]
    figures = {
        "cells": len(cells),
        "run": len(selection),
        "by_fault": dict(Counter(cell.fault for cell in selection)),
        "bad": len(faults),
        "milliseconds_a_life": round(1000 * (time.process_time() - started) / (len(selection) + 2), 1),
    }
    record_property("figure:terraform_crash_matrix", figures)
    assert not faults, f"{len(faults)} of {len(selection)}\n" + "\n".join(faults[:40])


def test_a_run_may_die_at_each_of_its_requests(
    soaking: bool, seed: int, record_property: Callable[[str, object], None]
) -> None:
    faults: list[str] = []
    deaths = 0
    moments: tuple[Literal["before", "after"], ...] = ("before", "after")
    for environment in STORIES.values():
        story = TerraformLife(environment=environment)
        story.run()
        requests = list(enumerate(story.memory_runner.recorded))
        for index, request in requests if soaking else random.Random(seed).sample(requests, REQUESTS):
            for when in moments:
                life = TerraformLife(environment=environment)
                life.memory_runner.deaths = [Death(when, request.name, request.number, request.run, request.start)]
                life.run()
                deaths += any(death.fired for death in life.memory_runner.deaths)
                faults += [f"{when} {request.name} ({index}): {text}" for text in life.wrong()]
    record_property("figure:terraform_deaths", {"deaths": deaths, "bad": len(faults)})
    assert not faults, "\n".join(faults[:40])
    assert deaths >= 2 * REQUESTS


def test_the_judge_sees_a_machine_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TerraformNodes, "terminate", lambda *_: Outcome(True))
    life = TerraformLife()
    life.run()
    assert any("left in the account" in text for text in life.wrong())
