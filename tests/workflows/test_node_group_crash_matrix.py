"""The crash matrix of a node group's claims: every fault at every call to AWS and every write of their life.

The cells are made from recorded lives without a fault. At the end nobody holds a machine, there is none, and the group
wants none. ``make soak`` runs the cells of all writes to the table too.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest

from stockyard.ports import Outcome
from stockyard.providers.nodes.eks.provider import EksNodes
from tests.workflows.faulty_cloud import FaultInjection, Site
from tests.workflows.node_group_life import NodeGroupLife, faults_of, is_read

STORIES: Mapping[str, Mapping[str, int]] = {"grown": {"least": 1}, "present": {"size": 2}}
"""``grown``: the pool wants a node, and its group makes a machine. ``present``: the group has machines already."""
CALLS, WRITES = 24, 8
"""Cells of calls to AWS and of writes to the table in a run outside the soak."""


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
def cells() -> list[Cell]:
    """All cells, of recorded lives without a fault.

    Reads see the same states again, so only the first read of each name in a point has cells.
    """
    cells: list[Cell] = []
    for story, group in STORIES.items():
        life = NodeGroupLife(**group)
        life.run()
        assert life.faults == []
        covered: set[Site] = set()
        for number, site in enumerate(life.injection.sites):
            if not is_read(site) or site not in covered:
                cells += [Cell(story, number, site, fault) for fault in faults_of(site)]
            covered.add(site)
    return cells


def wrong(cell: Cell) -> list[str]:
    """The faults of a life with the cell's fault."""
    injection = FaultInjection(cell.number, cell.fault)
    life = NodeGroupLife(injection, **STORIES[cell.story])
    try:
        life.run()
    except Exception as error:
        return [f"{cell}: {type(error).__name__}: {error}"]
    faults = life.faults if injection.fired else ["the fault never came"]
    return [f"{cell}: {text}" for text in faults]


@pytest.mark.timeout(3600)
def test_node_group_crash_matrix(
    cells: list[Cell], soaking: bool, seed: int, record_property: Callable[[str, object], None]
) -> None:
    calls = [cell for cell in cells if cell.site.name != "commit"]
    writes = [cell for cell in cells if cell.site.name == "commit"]
    choice = random.Random(seed)
    selection = cells if soaking else [*choice.sample(calls, CALLS), *choice.sample(writes, WRITES)]
    faults = [text for cell in selection for text in wrong(cell)]
    figures = {
        "cells": len(cells),
        "run": len(selection),
        "by_fault": dict(Counter(cell.fault for cell in selection)),
        "bad": len(faults),
    }
    record_property("figure:node_group_crash_matrix", figures)
    assert not faults, f"{len(faults)} of {len(selection)}\n" + "\n".join(faults[:40])


def test_the_matrix_has_cells_for_every_change(cells: list[Cell]) -> None:
    changes = {(cell.site.point, cell.site.name) for cell in cells if not is_read(cell.site)}
    assert changes >= {
        ("launch", "autoscaling.set_desired_capacity"),
        ("launch", "ec2.create_tags"),
        ("terminate", "autoscaling.terminate_instance_in_auto_scaling_group"),
        ("launch", "commit"),
        ("pool", "commit"),
        ("agent", "commit"),
    }


def test_the_judge_sees_a_machine_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EksNodes, "terminate", lambda *_: Outcome(True))
    life = NodeGroupLife(least=1)
    life.run()
    assert {text.partition(":")[0] for text in life.faults} >= {"machines are left", "the group has the desired size 1"}
