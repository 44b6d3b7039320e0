"""The crash matrix of a claim that EC2 serves: every write and every call of its life, struck by every fault.

The cells are read off lives without a fault: launch template, fleet, switching, end, what is set up for the cluster and
its removal, each call and each write, and the writes that an agent's post leads to. In the end there is no machine, no
launch template, no volume, no claim, and no place is taken. ``make soak`` runs all.
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
from tests.workflows.machine_life import MachineLife
from tests.workflows.played_agent import TROUBLES
from tests.workflows.struck_cloud import Cloud, Site, Strikes, machine_cloud

STORIES = {"had": False, "full": True}
"""EC2 has the machine; EC2 has none, and the claim gets another provider's."""
MAKES_AND_ENDS = {"ec2.CreateFleet", "ec2.TerminateInstances"}
"""A run outside the soak tries every fault at these, two at the other changes, and one cell of every place."""
CHANGES = {
    *MAKES_AND_ENDS,
    "ec2.CreateLaunchTemplate",
    "ec2.StopInstances",
    "ec2.StartInstances",
    "ec2.RebootInstances",
    "ec2.DeleteLaunchTemplate",
}
KINDS = ("bootstrap_token", "label", "drain", "delete_node")
"""What an agent is asked to do in a claim's life."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One fault at one site of one story."""

    story: str
    number: int
    site: Site
    fault: str

    def __str__(self) -> str:
        return f"{self.story}: {self.site.name} in {self.site.where} ({self.number}), {self.fault}"


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    def no_sleep(seconds: float) -> None:
        raise AssertionError(f"something sleeps for {seconds} s of real time")

    with pytest.MonkeyPatch.context() as patched, machine_cloud() as made:
        patched.setattr(time, "sleep", no_sleep)
        yield made


@pytest.fixture(scope="module")
def cells(cloud: Cloud, seed: int) -> list[Cell]:
    """All of them. Of looks, which repeat the states that the writes leave, the first of each name in a place."""
    found: list[Cell] = []
    for story, full in STORIES.items():
        life = MachineLife(cloud, full=full, seed=seed)
        assert life.run() == "Available"
        assert life.wrong() == []
        known: set[Site] = set()
        for number, site in enumerate(life.strikes.seen):
            if "before" in site.faults or site not in known:
                found += [Cell(story, number, site, fault) for fault in site.faults]
            known.add(site)
    return found


def sample(every: list[Cell], seed: int) -> list[Cell]:
    """What a run outside the soak tries, drawn by ``seed``."""
    chance = random.Random(seed)
    chosen: list[Cell] = []
    for name in sorted(CHANGES):
        there = {cell.fault: cell for cell in every if cell.site.name == name}
        chosen += chance.sample(list(there.values()), len(there) if name in MAKES_AND_ENDS else 2)
    rest = [cell for cell in every if cell.site.name not in CHANGES]
    chance.shuffle(rest)
    return [*chosen, *{cell.site.where: cell for cell in rest}.values()]


def wrong(cloud: Cloud, cell: Cell, seed: int) -> list[str]:
    """What is wrong with the life that the cell's fault struck."""
    strikes = Strikes(cell.number, cell.fault)
    life = MachineLife(cloud, strikes, full=STORIES[cell.story], seed=seed)
    try:
        life.run()
    except Exception as error:
        return [f"{cell}: {type(error).__name__}: {error}"]
    bad = life.wrong() if strikes.fired else ["the fault never came"]
    return [f"{cell}: {text}" for text in bad]


@pytest.mark.timeout(3600)
def test_machine_crash_matrix(
    cloud: Cloud, cells: list[Cell], soaking: bool, seed: int, record_property: Callable[[str, object], None]
) -> None:
    chosen = cells if soaking else sample(cells, seed)
    started = time.process_time()
    bad = [text for cell in chosen for text in wrong(cloud, cell, seed)]
    figures: dict[str, Any] = {
        "cells": len(cells),
        "run": len(chosen),
        "places": len({cell.site.where for cell in chosen}),
        "by_fault": dict(Counter(cell.fault for cell in chosen)),
        "bad": len(bad),
        "seconds": round(time.process_time() - started, 1),
    }
    record_property("figure:machine_crash_matrix", figures)
    assert not bad, f"{len(bad)} of {len(chosen)}\n" + "\n".join(bad[:40])


def test_every_call_and_every_place_has_its_cells(cells: list[Cell], seed: int) -> None:
    places = {"create", "schedule", "environment", "launch", "register", "agent", "power", "delete", "terminate"}
    for chosen in (cells, sample(cells, seed)):
        assert {cell.site.name for cell in chosen} >= CHANGES
        assert {cell.site.where for cell in chosen} >= places | {"initialize", "release", "clear"}
        for name in CHANGES if chosen is cells else MAKES_AND_ENDS:
            faults = {cell.fault for cell in chosen if cell.site.name == name}
            assert faults == {"before", "after", "timeout", "throttled", "refused"}, name
    assert "simulated.Machine" in {cell.site.name for cell in cells}, "what EC2 has not is had elsewhere"


@pytest.mark.parametrize("kind", KINDS)
def test_results_of_the_agent_that_are_lost_late_or_bad(cloud: Cloud, kind: str, soaking: bool, seed: int) -> None:
    troubles = TROUBLES if soaking else random.Random(f"{seed} {kind}").sample(TROUBLES, 2)
    for trouble in troubles:
        _troubled(cloud, kind, trouble)


def _troubled(cloud: Cloud, kind: str, trouble: str) -> None:
    """A life in which what becomes of one kind of command goes wrong."""
    life = MachineLife(cloud, kind=kind, trouble=trouble)
    started = life.nodes.clock.now()
    life.run()
    assert life.agent.fired, "the command never came"
    assert life.wrong() == []
    hopeless = (kind, trouble) == ("bootstrap_token", "never")
    assert life.became == ("Failed" if hopeless else "Available")
    assert (life.nodes.clock.now() - started).total_seconds() < 3 * 3600


def test_a_machine_that_is_forgotten_is_seen(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge is not blind."""

    def forget(_: Ec2Nodes, work: Any) -> Outcome:
        for line in work.ledger.lines():
            work.ledger.gone(line)
        return Outcome(True)

    monkeypatch.setattr(Ec2Nodes, "terminate", forget)
    life = MachineLife(cloud)
    life.run()
    assert any(text.startswith("left in the account: i-") for text in life.wrong())
