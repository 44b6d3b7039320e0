"""The crash matrix of pools with people: a person acts on a node, or a kubelet or a DaemonSet changes, more pods come,
and a pass that hears of that dies.

The passes must still come to the nodes that the pods need by all rules, to no more, and to no pod that waits. The cells
are those of the passes from the act until it is over; ``make soak`` runs all.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import pytest

from stockyard.lifecycle.disruption import vanished
from stockyard.lifecycle.waiting.unused import GroupMemory
from stockyard.operations.fleet.state import workload
from tests.harness.crash.faults import Call, Fault, Mode
from tests.workflows.people.acts import ACTS, CORDON, DAEMON_GROWS, DELETED, DRAIN
from tests.workflows.people.mutants import MUTANTS
from tests.workflows.people.pool_life import DAEMON_CPU, PeoplePoolLife
from tests.workflows.pool_life import NEVER, ONCE, TWICE

MODES = (Mode.BEFORE, Mode.AFTER, Mode.TIMEOUT, Mode.THROTTLED, Mode.REFUSED)
OF_READS = (Mode.BEFORE, Mode.THROTTLED, Mode.REFUSED)
DELIVERIES = (ONCE, TWICE, NEVER)
PLACE = "people: pass"
"""The pass that the first report after the act wakes."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One fault at one call of a life with an act, and how often events come after it."""

    act: str
    call: Call
    mode: Mode
    delivery: str

    def __str__(self) -> str:
        return f"{self.act}: {self.call}, {self.mode.value}, then events come {self.delivery}"

    def wrong(self) -> list[str]:
        """Faults of the cell's life."""
        return PeoplePoolLife(Fault(self.call, self.mode), self.delivery, act=self.act).run()


def of_act(act: str, seed: int) -> list[Cell]:
    """All cells of an act. A call that is made again in the same state has them once; a write has them for each
    delivery, a read for one."""
    life = PeoplePoolLife(act=act)
    assert life.run() == []
    chance = random.Random(f"{seed} {act}")
    cells: list[Cell] = []
    sites: set[tuple[str, int, int]] = set()
    for call, site in zip(life.tap.calls, life.sites, strict=True):
        if site in sites or not call.point.startswith(("people: ", "back: ")):
            continue
        sites.add(site)
        for mode in MODES if call.record else OF_READS:
            deliveries = DELIVERIES if call.record else (chance.choice(DELIVERIES),)
            cells += [Cell(act, call, mode, delivery) for delivery in deliveries]
    return cells


def one_of_each(seed: int) -> list[Cell]:
    """Each act once, at the first write of the first pass."""
    chance = random.Random(seed)
    call = Call(PLACE, "dynamodb.TransactWriteItems", 1)
    acts = chance.sample([*ACTS], len(ACTS))
    return [Cell(act, call, MODES[number % len(MODES)], chance.choice(DELIVERIES)) for number, act in enumerate(acts)]


@pytest.mark.timeout(7200)
def test_people_act_while_a_pass_over_pools_dies(
    soaking: bool, seed: int, record_property: Callable[[str, object], None]
) -> None:
    selection = [cell for act in ACTS for cell in of_act(act, seed)] if soaking else one_of_each(seed)
    bad = {cell: wrong for cell in selection if (wrong := cell.wrong())}
    figures = {"run": len(selection), "by_act": dict(Counter(cell.act for cell in selection)), "bad": len(bad)}
    record_property("figure:pool_crashes_with_people", figures)
    assert not bad, f"{len(bad)} of {len(selection)}\n" + "\n".join(f"{cell}: {bad[cell]}" for cell in [*bad][:20])


def _mutant(act: str) -> Any:
    if act == DELETED:
        return patch.object(vanished, "to_end", lambda *_: ())
    if act == DAEMON_GROWS:
        return patch.object(PeoplePoolLife, "told_cpu", DAEMON_CPU)
    return MUTANTS[CORDON if act == DRAIN else act]()


@pytest.mark.parametrize("act", ACTS)
def test_the_judge_sees_a_node_that_counts_as_nobody_told_it(act: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Room that pods do not use is not believed for ever, which would hide the fault.
    monkeypatch.setattr(GroupMemory, "distrusted", lambda *_: ())
    with _mutant(act):
        assert any(text.startswith("people: Hanging") for text in PeoplePoolLife(act=act).run())


def test_the_judge_sees_rules_that_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pods that are spread, keep apart and have volumes are packed by their size alone."""
    original = workload._pods

    def by_size(groups: Any) -> Any:
        pods, unreadable = original(groups)
        bare = {"anti_affinity": (), "spreads": (), "attachments": ()}
        return {group: replace(pod, **bare) for group, pod in pods.items()}, unreadable

    monkeypatch.setattr(GroupMemory, "distrusted", lambda *_: ())
    monkeypatch.setattr(workload, "_pods", by_size)
    assert any(text.startswith("pods: Hanging") for text in PeoplePoolLife(act=CORDON).run())
