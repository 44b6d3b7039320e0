"""The crash matrix: every fault at every call of every phase of both workflows and of the create handler.

The cells are made from the documents and from recorded lives, so a new phase or call adds its own cells. ``make test``
runs one cell of each place, ``make soak`` runs all.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable

import pytest

from tests.harness.crash_cells import Cell, Life, judge_all, matrix, sample, tasks
from tests.harness.crash_world import CrashWorld
from tests.harness.faults import Mode

Recorded = dict[str, tuple[int, Life]]


def test_every_phase_of_the_crash_matrix_is_reached(world: CrashWorld, recorded: Recorded) -> None:
    every = matrix(world.cloud.stories, recorded)
    assert {cell.call.place for cell in every} >= tasks(world) | {"create"}
    for place in tasks(world) | {"create"}:
        there = [cell for cell in every if cell.call.place == place]
        modes = {cell.mode for cell in there}
        # The mode RECORDED needs a change besides the write of the record. A place without one has no such cell.
        beyond = any(cell.call.mutating and not cell.call.record for cell in there)
        assert modes >= set(Mode) - (set() if beyond else {Mode.RECORDED}), place


def test_lives_without_a_fault_end_as_their_story_says(recorded: Recorded) -> None:
    ends = {story: (life.ready, life.failed, life.blocked, life.leftovers) for story, (_, life) in recorded.items()}
    assert ends == {
        "clean": (True, False, False, []),
        "undone": (True, True, False, []),
        "blocked": (True, False, True, []),
        "kept": (True, True, False, []),
        "swept": (True, True, False, []),
        "scarce": (True, False, False, []),
    }
    assert recorded["clean"][1].things.total() >= 17


@pytest.mark.timeout(14_400)
def test_crash_matrix(
    world: CrashWorld,
    recorded: Recorded,
    soaking: bool,
    seed: int,
    record_property: Callable[[str, object], None],
) -> None:
    every = matrix(world.cloud.stories, recorded)
    cells = every if soaking else sample(world.cloud.stories, every, seed)
    started = time.perf_counter()
    faults_by_cell = judge_all(
        world, cells, recorded["clean"][1].things, processes=(os.cpu_count() or 1) if soaking else 1
    )
    record_property("figure:crash_matrix", _figures(every, faults_by_cell, seed, time.perf_counter() - started))
    assert {str(cell): wrong for cell, wrong in faults_by_cell.items() if wrong} == {}


def _figures(every: list[Cell], faults_by_cell: dict[Cell, list[str]], seed: int, seconds: float) -> dict[str, object]:
    passed = [cell for cell, wrong in faults_by_cell.items() if not wrong]
    return {
        "cells": len(every),
        "run": len(faults_by_cell),
        "passed": len(passed),
        "places": len({cell.call.place for cell in faults_by_cell}),
        "by_mode": dict(Counter(cell.mode.value for cell in passed)),
        "by_story": dict(Counter(cell.story for cell in passed)),
        "seed": seed,
        "seconds": round(seconds, 1),
    }


def test_a_sample_has_every_phase_and_every_fault(world: CrashWorld, recorded: Recorded, seed: int) -> None:
    every = matrix(world.cloud.stories, recorded)
    cells = sample(world.cloud.stories, every, seed)
    assert cells == sample(world.cloud.stories, every, seed)
    assert cells != sample(world.cloud.stories, every, seed + 1)
    assert {cell.call.place for cell in cells} == tasks(world) | {"create", "sweep_place"}
    assert {cell.mode for cell in cells} == set(Mode)
