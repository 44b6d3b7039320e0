"""The crash matrix of a claim that EC2 serves: every fault at every write and every call of the claim's life.

The cells are made from recorded lives without a fault: each call and write of launch template, fleet, power, deletion
and node environment, and the writes that an agent's observation causes. At the end there must be no machine, no launch
template, no volume and no claim, and no capacity slot may be taken. ``make soak`` runs all cells.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from stockyard.ports import Outcome
from stockyard.providers.nodes.ec2.provider import Ec2Nodes
from tests.workflows.fake_agent import TROUBLES
from tests.workflows.faulty_cloud import Cloud, FaultInjection, Site, machine_cloud
from tests.workflows.machine_life import MachineLife

STORIES = {"had": False, "full": True}
"""``had``: EC2 has capacity. ``full``: EC2 has none, and the claim gets a node of another provider."""
MAKES_AND_ENDS = {"ec2.CreateFleet", "ec2.TerminateInstances"}
"""A run outside the soak tries every fault at these calls, two at the other changes, and one cell of each point."""
CHANGES = {
    *MAKES_AND_ENDS,
    "ec2.CreateLaunchTemplate",
    "ec2.StopInstances",
    "ec2.StartInstances",
    "ec2.RebootInstances",
    "ec2.DeleteLaunchTemplate",
}
KINDS = ("bootstrap_token", "label", "drain", "delete_node")
"""The kinds of commands that an agent gets in a claim's life."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One fault at one site of one story."""

    story: str
    number: int
    site: Site
    fault: str

    def __str__(self) -> str:
        return f"{self.story}: {self.site.name} in {self.site.point} ({self.number}), {self.fault}"


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    def no_sleep(seconds: float) -> None:
        raise AssertionError(f"something sleeps for {seconds} s of real time")

    with pytest.MonkeyPatch.context() as patched, machine_cloud() as machine_account:
        patched.setattr(time, "sleep", no_sleep)
        yield machine_account


@pytest.fixture(scope="module")
def cells(cloud: Cloud, seed: int) -> list[Cell]:
    """All cells. Reads see the same states again, so only the first read of each name in a point has cells."""
    cells_of_lives: list[Cell] = []
    for story, full in STORIES.items():
        life = MachineLife(cloud, full=full, seed=seed)
        assert life.run() == "Available"
        assert life.wrong() == []
        sites_with_cells: set[Site] = set()
        for number, site in enumerate(life.injection.sites):
            if "before" in site.faults or site not in sites_with_cells:
                cells_of_lives += [Cell(story, number, site, fault) for fault in site.faults]
            sites_with_cells.add(site)
    return cells_of_lives


def sample(every: list[Cell], seed: int) -> list[Cell]:
    """The cells of a run outside the soak, chosen by ``seed``."""
    chance = random.Random(seed)
    selection: list[Cell] = []
    for name in sorted(CHANGES):
        there = {cell.fault: cell for cell in every if cell.site.name == name}
        selection += chance.sample(list(there.values()), len(there) if name in MAKES_AND_ENDS else 2)
    other_cells = [cell for cell in every if cell.site.name not in CHANGES]
    chance.shuffle(other_cells)
    return [*selection, *{cell.site.point: cell for cell in other_cells}.values()]


def wrong(cloud: Cloud, cell: Cell, seed: int) -> list[str]:
    """The faults of a life with the cell's fault."""
    injection = FaultInjection(cell.number, cell.fault)
    life = MachineLife(cloud, injection, full=STORIES[cell.story], seed=seed)
    try:
        life.run()
    except Exception as error:
        return [f"{cell}: {type(error).__name__}: {error}"]
    faults = life.wrong() if injection.fired else ["the fault never came"]
    return [f"{cell}: {text}" for text in faults]


@pytest.mark.timeout(3600)
def test_machine_crash_matrix(
    cloud: Cloud, cells: list[Cell], soaking: bool, seed: int, record_property: Callable[[str, object], None]
) -> None:
    selection = cells if soaking else sample(cells, seed)
    started = time.process_time()
    faults = [text for cell in selection for text in wrong(cloud, cell, seed)]
    figures: dict[str, Any] = {
        "cells": len(cells),
        "run": len(selection),
        "places": len({cell.site.point for cell in selection}),
        "by_fault": dict(Counter(cell.fault for cell in selection)),
        "bad": len(faults),
        "seconds": round(time.process_time() - started, 1),
    }
    record_property("figure:machine_crash_matrix", figures)
    assert not faults, f"{len(faults)} of {len(selection)}\n" + "\n".join(faults[:40])


def test_the_matrix_has_cells_for_every_call_and_point(cells: list[Cell], seed: int) -> None:
    points = {"create", "schedule", "environment", "launch", "register", "agent", "power", "delete", "terminate"}
    for selection in (cells, sample(cells, seed)):
        assert {cell.site.name for cell in selection} >= CHANGES
        assert {cell.site.point for cell in selection} >= points | {"initialize", "release", "clear"}
        for name in CHANGES if selection is cells else MAKES_AND_ENDS:
            faults = {cell.fault for cell in selection if cell.site.name == name}
            assert faults == {"before", "after", "timeout", "throttled", "refused"}, name
    assert "simulated.Machine" in {cell.site.name for cell in cells}, (
        "a claim that EC2 cannot serve goes to another provider"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_survives_lost_late_and_failed_results_of_the_agent(
    cloud: Cloud, kind: str, soaking: bool, seed: int
) -> None:
    troubles = TROUBLES if soaking else random.Random(f"{seed} {kind}").sample(TROUBLES, 2)
    for trouble in troubles:
        _troubled(cloud, kind, trouble)


def _troubled(cloud: Cloud, kind: str, trouble: str) -> None:
    """Runs a life in which the results of one kind of command are in trouble."""
    life = MachineLife(cloud, kind=kind, trouble=trouble)
    started = life.nodes.clock.now()
    life.run()
    assert life.agent.fired, "the command never came"
    assert life.wrong() == []
    hopeless = (kind, trouble) == ("bootstrap_token", "never")
    assert life.reached_phase == ("Failed" if hopeless else "Available")
    assert (life.nodes.clock.now() - started).total_seconds() < 3 * 3600


def test_the_judge_sees_a_forgotten_machine(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """A termination that only forgets its ledger must be reported."""

    def forget(_: Ec2Nodes, work: Any) -> Outcome:
        for line in work.ledger.lines():
            work.ledger.gone(line)
        return Outcome(True)

    monkeypatch.setattr(Ec2Nodes, "terminate", forget)
    life = MachineLife(cloud)
    life.run()
    assert any(text.startswith("left in the account: i-") for text in life.wrong())
