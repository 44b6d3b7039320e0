"""The crash matrix of a node group's claims with people: at each step somebody acts on a node, or a kubelet or a
DaemonSet changes, and a worker dies, an answer is lost, or AWS throttles.

All pods have a node in the end, and all machines a claim; no machine ends with pods on it, and nothing is left.
``make soak`` runs each act at each step, alone and with each kind of fault after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from stockyard.lifecycle.disruption import vanished
from stockyard.ports import Outcome
from stockyard.providers.nodes.eks.provider import EksNodes
from tests.workflows.faulty_cloud import FaultInjection
from tests.workflows.node_group_life import faults_of
from tests.workflows.people.acts import ACTS, DELETED
from tests.workflows.people.cells import Cell, sample, with_faults
from tests.workflows.people.node_group_life import PeopleNodeGroupLife

STORIES: Mapping[str, dict[str, Any]] = {"grown": {"least": 1}, "present": {"size": 2}}
SAMPLED = 2
"""Acts of each story in a run outside the soak."""
CRASHES = 4
"""Faults of each act at each step in the soak."""
LATE = "the fault never came"
"""Of a life that ended before its fault: ids of machines are random, so that a life may have some calls less."""


def lived(cell: Cell) -> PeopleNodeGroupLife:
    injection = FaultInjection(cell.number, cell.fault)
    life = PeopleNodeGroupLife(injection, act=cell.act, at_step=cell.at_step, **STORIES[cell.story])
    life.run()
    return life


def wrong(cell: Cell) -> list[str]:
    """Faults of the cell's life."""
    try:
        life = lived(cell)
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]
    if not life.people.node:
        return ["the act never came"]
    return life.faults or ([LATE] if cell.fault and not life.injection.fired else [])


def with_crashes(cell: Cell) -> list[Cell]:
    """The act alone and with faults after it."""
    life = lived(cell)
    return [*with_faults(cell, life.injection.sites, life.sites_at[cell.at_step], faults_of, CRASHES)]


@pytest.mark.timeout(14_400)
def test_people_act_on_nodes_of_a_group(
    soaking: bool, seed: int, record_property: Callable[[str, object], None]
) -> None:
    selection: list[Cell] = []
    for name, group in STORIES.items():
        life = PeopleNodeGroupLife(**group)
        life.run()
        assert life.faults == []
        if soaking:
            alone = [Cell(act, step, story=name) for act in ACTS for step in range(len(life.sites_at))]
            selection += [crash for cell in alone for crash in with_crashes(cell)]
        else:
            selection += sample(life.sites_at, seed, SAMPLED, name)
    texts_by_cell = {cell: texts for cell in selection if (texts := wrong(cell))}
    bad = {cell: texts for cell, texts in texts_by_cell.items() if texts != [LATE]}
    late = len(texts_by_cell) - len(bad)
    figures: dict[str, Any] = {
        "run": len(selection),
        "by_act": dict(Counter(cell.act for cell in selection)),
        "late": late,
        "bad": len(bad),
    }
    record_property("figure:node_group_crashes_with_people", figures)
    assert not bad, f"{len(bad)} of {len(selection)}\n" + "\n".join(f"{cell}: {bad[cell]}" for cell in [*bad][:20])
    assert late * 20 <= len(selection), f"the fault of {late} of {len(selection)} never came"


def test_the_judge_sees_a_deleted_node_whose_claim_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vanished, "to_end", lambda *_: ())
    assert any(text.startswith("hangs: ") for text in wrong(Cell(DELETED, 6, story="grown")))


def test_the_judge_sees_a_machine_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EksNodes, "terminate", lambda *_: Outcome(True))
    texts = wrong(Cell(DELETED, 20, story="grown"))
    assert any(text.startswith("machines are left") for text in texts)
