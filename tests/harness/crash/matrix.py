"""A crash matrix as a test runs it: its cells, or a sample of them, and the figures of what became of them."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping
from statistics import median

from tests.harness.crash.branches import judge_all
from tests.harness.crash.cells import Life, live, matrix, sample
from tests.harness.crash.world import CrashWorld

Recorded = dict[str, tuple[int, Life]]
"""For each story its seed, and a recorded life without the fault of a cell."""
LIVES = 9


def judged(
    world: CrashWorld, recorded: Recorded, seed: int, *, soaking: bool, part: int = 1
) -> tuple[dict[str, object], Mapping[str, list[str]]]:
    """The figures, and what is wrong with each cell that is not as it has to be. All cells when ``soaking``, else a
    sample, or each ``part``-th cell of it."""
    every = matrix(world.cloud.stories, recorded)
    cells = every if soaking else sample(world.cloud.stories, every, seed)[seed % part :: part]
    started = time.perf_counter()
    processes = (os.cpu_count() or 1) if soaking else 1
    faults_by_cell = judge_all(world, cells, recorded["clean"][1].things, processes=processes)
    passed = [cell for cell, wrong in faults_by_cell.items() if not wrong]
    figures: dict[str, object] = {
        "cells": len(every),
        "run": len(faults_by_cell),
        "passed": len(passed),
        "places": len({cell.call.point for cell in faults_by_cell}),
        "by_mode": dict(Counter(cell.mode.value for cell in passed)),
        "by_story": dict(Counter(cell.story for cell in passed)),
        "seed": seed,
        "seconds": round(time.perf_counter() - started, 1),
    }
    return figures, {str(cell): wrong for cell, wrong in faults_by_cell.items() if wrong}


def milliseconds_a_life(world: CrashWorld, seed: int) -> float:
    """Milliseconds of CPU for a life without a fault."""
    lives = []
    for number in range(LIVES):
        started = time.process_time()
        live(world, "clean", seed + number)
        lives.append(1000 * (time.process_time() - started))
    return round(median(lives), 1)
