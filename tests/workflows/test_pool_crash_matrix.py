"""The crash matrix of pools: every fault at every call to the table of a life of a cluster's pools.

The cells are made from a recorded life without a fault: each read and write of the requests that make, change and
delete a pool, of the passes that events and the schedule wake, and of the end of the cluster. After the fault events
come once, twice, or never, and the pools must still come to what they are to have. ``make soak`` runs all cells.
"""

from __future__ import annotations

import random
import time
from collections import Counter as Tally
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from stockyard.lifecycle.pools import pool as lifecycle
from stockyard.lifecycle.pools.pool import decide
from stockyard.operations.fleet.pools import pools, reconcile
from tests.harness.crash.faults import Call, Fault, Mode
from tests.workflows.pool_life import NEVER, ONCE, TWICE, PoolLife

MODES = (Mode.BEFORE, Mode.AFTER, Mode.TIMEOUT, Mode.THROTTLED, Mode.REFUSED)
OF_READS = (Mode.BEFORE, Mode.THROTTLED, Mode.REFUSED)
"""To die after a read is to die before the next call, and an answer that is lost is one that is too slow."""
DELIVERIES = (ONCE, TWICE, NEVER)
REQUESTS = ("make: POST", "up: PATCH", "down: PATCH", "delete: DELETE", "end: release")
STEPS = ("make", "pods", "up", "lost after up", "down", "lost after down", "delete", "end")


@dataclass(frozen=True, slots=True)
class Cell:
    """One fault at one call, and how often events come after it."""

    call: Call
    mode: Mode
    delivery: str

    def __str__(self) -> str:
        return f"{self.call}, {self.mode.value}, then events come {self.delivery}"

    def wrong(self) -> list[str]:
        """Faults of the cell's life."""
        return PoolLife(Fault(self.call, self.mode), self.delivery).run()


@pytest.fixture(scope="module")
def cells(seed: int) -> list[Cell]:
    """All cells. A call that is made again in the same state, such as that of a pass that finds nothing, has them once;
    a write has them for each delivery, a read for one."""
    life = PoolLife()
    assert life.run() == []
    every: list[Cell] = []
    sites: set[tuple[str, int, int]] = set()
    for call, site in zip(life.tap.calls, life.sites, strict=True):
        if site in sites:
            continue
        sites.add(site)
        for mode in MODES if call.record else OF_READS:
            chance = random.Random(f"{seed} {call} {mode.value}")
            deliveries = DELIVERIES if call.record else (chance.choice(DELIVERIES),)
            every += [Cell(call, mode, delivery) for delivery in deliveries]
    return every


def sample(every: list[Cell], seed: int) -> list[Cell]:
    """One cell of each point, of a write where there is one, with every mode among them."""
    chance = random.Random(seed)
    points: dict[str, list[Cell]] = {}
    for cell in chance.sample(every, len(every)):
        points.setdefault(cell.call.point, []).append(cell)
    selection: list[Cell] = []
    for number, there in enumerate(points.values()):
        there.sort(key=lambda cell: not cell.call.record)  # stable: still in a random order
        mode = MODES[number % len(MODES)]
        selection.append(next((cell for cell in there if cell.mode is mode), there[0]))
    return selection


@pytest.mark.timeout(7200)
def test_pool_crash_matrix(
    cells: list[Cell], soaking: bool, seed: int, record_property: Callable[[str, object], None]
) -> None:
    selection = cells if soaking else sample(cells, seed)
    started = time.process_time()
    bad = {cell: wrong for cell in selection if (wrong := cell.wrong())}
    figures: dict[str, Any] = {
        "cells": len(cells),
        "run": len(selection),
        "places": len({cell.call.point for cell in selection}),
        "by_mode": dict(Tally(cell.mode.value for cell in selection)),
        "by_delivery": dict(Tally(cell.delivery for cell in selection)),
        "bad": len(bad),
        "seconds": round(time.process_time() - started, 1),
    }
    record_property("figure:pool_crash_matrix", figures)
    assert not bad, f"{len(bad)} of {len(selection)}\n" + "\n".join(f"{cell}: {bad[cell]}" for cell in [*bad][:20])


def test_the_matrix_has_cells_for_every_write_and_point(cells: list[Cell], seed: int) -> None:
    points = {cell.call.point for cell in cells}
    assert points == {*REQUESTS, *(f"{step}: {handler}" for step in STEPS for handler in ("pass", "due"))}
    for call in {cell.call for cell in cells if cell.call.record}:
        assert len([cell for cell in cells if cell.call == call]) == len(MODES) * len(DELIVERIES)
    selection = sample(cells, seed)
    assert {cell.mode for cell in selection} == set(MODES)
    assert {cell.call.point for cell in selection} == points


def cell_of(cells: list[Cell], point: str, number: int, delivery: str = ONCE, mode: Mode = Mode.BEFORE) -> Cell:
    """The cell of the ``number``-th write in a point; negative numbers count from the last."""
    there = [cell for cell in cells if cell.call.record and cell.call.point == point]
    return [cell for cell in there if (cell.mode, cell.delivery) == (mode, delivery)][number]


def test_the_judge_sees_a_pool_that_no_schedule_looks_at(cells: list[Cell], monkeypatch: pytest.MonkeyPatch) -> None:
    """The pass that hears of a lost node dies, and nothing is told again."""
    monkeypatch.setattr(lifecycle, "_due_within", lambda pool, *_: replace(pool, due_at=None))
    (text,) = cell_of(cells, "lost after up: pass", 0, NEVER).wrong()
    assert text.startswith("lost after up: Hanging")


def test_the_judge_sees_a_request_whose_pool_is_not_found_again(
    cells: list[Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handler dies when the pool is written: the same key must find it."""
    original = pools.create_pool
    monkeypatch.setattr(pools, "create_pool", lambda *args: original(*args[:4]))
    written = cell_of(cells, "make: POST", 1, mode=Mode.AFTER)
    (text,) = written.wrong()
    assert "is answered with [0, 409" in text


def test_the_judge_sees_a_claim_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    def generous(*args: Any) -> Any:
        decision = decide(*args)
        return replace(decision, create=decision.create + 1) if decision.create else decision

    monkeypatch.setattr(reconcile, "decide", generous)
    assert "make: base has 3 nodes where 2 are needed" in PoolLife().run()
