"""The crash matrix of disruption: every fault at every call to the table of the passes that let nodes leave.

The cells are made from recorded lives without a fault, one for each reason. ``make soak`` runs all cells.
"""

from __future__ import annotations

import random
import time
from collections import Counter as Tally
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from stockyard.domain.pools.disruption_records import IDLE, PROPOSED, REPLACING
from stockyard.operations.fleet.disruption import carry_out, hopeless
from tests.harness.crash.faults import Call, Fault, Mode
from tests.workflows.disruption_life import STORIES, DisruptionLife
from tests.workflows.people.acts import ACTS, CORDON, DAEMON_GROWS, READY_AGAIN, SHRINKS, TAINT
from tests.workflows.people.mutants import MUTANTS

MODES = (Mode.BEFORE, Mode.AFTER, Mode.TIMEOUT, Mode.THROTTLED, Mode.REFUSED)
OF_READS = (Mode.BEFORE, Mode.THROTTLED, Mode.REFUSED)


@dataclass(frozen=True, slots=True)
class Cell:
    """One fault at one call of a life."""

    story: str
    call: Call
    mode: Mode
    act: str = ""
    on_last: bool = False
    """Whether the act is on the last node, see ``DisruptionLife``."""

    def __str__(self) -> str:
        act = f" {self.act} of the {'last' if self.on_last else 'first'} node" if self.act else ""
        return f"{self.story}: {self.call}, {self.mode.value}{act}"

    def wrong(self) -> list[str]:
        """Faults of the cell's life."""
        return DisruptionLife(self.story, Fault(self.call, self.mode), self.act, self.on_last).run()


@pytest.fixture(scope="module")
def cells() -> list[Cell]:
    """All cells. A call that is made again in the same state has them once."""
    every: list[Cell] = []
    for story in STORIES:
        life = DisruptionLife(story)
        assert life.run() == []
        sites: set[tuple[str, int, int]] = set()
        for call, site in zip(life.tap.calls, life.sites, strict=True):
            if site not in sites:
                sites.add(site)
                every += [Cell(story, call, mode) for mode in (MODES if call.record else OF_READS)]
    return every


def sample(every: list[Cell], seed: int) -> list[Cell]:
    """Half of: a cell of each write of each story, and one of a read."""
    chance = random.Random(seed)
    groups: dict[tuple[str, Any], list[Cell]] = {}
    for cell in every:
        groups.setdefault((cell.story, cell.call if cell.call.record else ""), []).append(cell)
    cells = [chance.choice(there) for there in groups.values()]
    return chance.sample(cells, len(cells) // 2)


@pytest.mark.timeout(7200)
def test_disruption_crash_matrix(
    cells: list[Cell], soaking: bool, seed: int, record_property: Callable[[str, object], None]
) -> None:
    selection = cells if soaking else sample(cells, seed)
    started = time.process_time()
    bad = {cell: wrong for cell in selection if (wrong := cell.wrong())}
    figures: dict[str, Any] = {
        "cells": len(cells),
        "run": len(selection),
        "stories": len(STORIES),
        "by_mode": dict(Tally(cell.mode.value for cell in selection)),
        "bad": len(bad),
        "seconds": round(time.process_time() - started, 1),
    }
    record_property("figure:disruption_crash_matrix", figures)
    assert not bad, f"{len(bad)} of {len(selection)}\n" + "\n".join(f"{cell}: {bad[cell]}" for cell in [*bad][:20])


def with_people(every: list[Cell], seed: int, *, soaking: bool) -> list[Cell]:
    """Each act once at the moment of a fault, in the soak with each kind of fault and in each story."""
    chance = random.Random(f"{seed} people")
    if not soaking:
        acts = chance.sample([*ACTS], len(ACTS))
        picks = [(MODES[number % len(MODES)], act, "", number % 2 == 0) for number, act in enumerate(acts)]
    else:
        picks = [
            (mode, act, story, last) for story in STORIES for act in ACTS for mode in MODES for last in (False, True)
        ]
    cells = []
    for mode, act, story, last in picks:
        there = [cell for cell in every if cell.mode is mode and cell.call.record and story in ("", cell.story)]
        cells.append(replace(chance.choice(there), act=act, on_last=last))
    return cells


@pytest.mark.timeout(7200)
def test_people_act_while_a_pass_dies(
    cells: list[Cell], soaking: bool, seed: int, record_property: Callable[[str, object], None]
) -> None:
    selection = with_people(cells, seed, soaking=soaking)
    bad = {cell: wrong for cell in selection if (wrong := cell.wrong())}
    figures = {"run": len(selection), "by_act": dict(Tally(cell.act for cell in selection)), "bad": len(bad)}
    record_property("figure:disruption_crashes_with_people", figures)
    assert not bad, "\n".join(f"{cell}: {bad[cell]}" for cell in bad)


def test_the_matrix_has_every_step_of_every_reason(cells: list[Cell]) -> None:
    assert {cell.story for cell in cells} == set(STORIES)
    writes = {(cell.story, cell.call.point) for cell in cells if cell.call.record}
    assert {point for story, point in writes if story == "a cheaper node comes"} == {IDLE, PROPOSED, REPLACING}


@pytest.mark.parametrize("act", [CORDON, TAINT, SHRINKS, READY_AGAIN, DAEMON_GROWS])
def test_the_judge_sees_a_node_that_counts_as_nobody_told_it(cells: list[Cell], act: str) -> None:
    """The act comes before the decision: pods move to the node of the act, or to a new one beside the old DaemonSet."""
    stories = ("a cheaper node comes", "a node that may be taken back")
    early = [cell for cell in cells if cell.story in stories and cell.call.point == IDLE and cell.call.record]
    (first, *_), (second, *_) = ([cell for cell in early if cell.story == story] for story in stories)
    acted = [replace(cell, act=act, on_last=True) for cell in (first, second)]
    assert [cell.wrong() for cell in acted] == [[], []]
    with MUTANTS[act]():
        assert any("have lost their place" in text for cell in acted for text in cell.wrong())


def test_the_judge_sees_a_node_that_leaves_before_another_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carry_out, "_awaited", lambda *_: "")
    monkeypatch.setattr(carry_out, "homeless_pods", lambda *_: 0)
    (text, *_) = DisruptionLife("a cheaper node comes").run()
    assert "have lost their place" in text


def test_the_judge_sees_a_decision_that_waits_for_ever(cells: list[Cell], monkeypatch: pytest.MonkeyPatch) -> None:
    """The pass dies before it has made the replacement, and no later one gives the decision up."""
    monkeypatch.setattr(hopeless, "START_SECONDS", 10**9)
    monkeypatch.setattr(hopeless, "REPLACE_SECONDS", 10**9)
    there = [cell for cell in cells if cell.story == "a cheaper node comes" and cell.call.point == PROPOSED]
    wrong = [cell.wrong() for cell in there if cell.call.record and cell.mode is Mode.BEFORE]
    assert any(text.startswith("hangs: Replacing") for texts in wrong for text in texts)
