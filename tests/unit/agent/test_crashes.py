"""The agent's crash matrix: every outgoing call times every fault; the end is the same as without one."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable

from tests.unit.agent.story import MODES, Story


def test_scenario_without_fault_completes_every_command() -> None:
    clean = Story().run()
    assert set(clean.ends.values()) == {"done"}
    assert len(clean.ends) == 11
    remaining = clean.things
    assert (remaining["nodes"], remaining["pods"], remaining["secrets"], remaining["configmaps"]) == (2, 3, 3, 2)
    assert clean.calls > 80


def test_crash_matrix(soaking: bool, seed: int, record_property: Callable[[str, object], None]) -> None:
    clean = Story().run()
    cells = [(at, mode) for at in range(1, clean.calls + 1) for mode in MODES]
    kills = [cell for cell in cells if cell[1].startswith("killed")]
    remaining_cells = [cell for cell in cells if cell not in kills]
    if not soaking:
        chance = random.Random(seed)
        kills = chance.sample(kills, len(kills) // 6)
        remaining_cells = chance.sample(remaining_cells, len(remaining_cells) // 12)
    selected = [*kills, *remaining_cells]
    started = time.perf_counter()
    wrong: dict[str, str] = {}
    passed: Counter[str] = Counter()
    deaths = 0
    for at, mode in selected:
        story = Story(at, mode).run()
        deaths += story.deaths
        if story.state != clean.state or story.ends != clean.ends:
            wrong[f"{at} {mode}"] = f"{story.ends} {story.things}"
        else:
            passed[mode] += 1
    figure = {
        "calls": clean.calls,
        "cells": len(cells),
        "run": len(selected),
        "passed": passed.total(),
        "by_mode": dict(passed),
        "seed": seed,
        "seconds": round(time.perf_counter() - started, 1),
    }
    record_property("figure:agent_crashes", figure)
    assert wrong == {}
    assert deaths == len(kills), "each kill ended one agent"
