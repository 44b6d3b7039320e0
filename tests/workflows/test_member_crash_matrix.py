"""The crash matrix of a control plane's members: made, grown, replaced, renewed, upgraded and repaved, while at any
write to the table and any call of the driver a worker dies or an answer is lost, and while a member's machine dies.

At every moment etcd has its quorum. At the end the members are as wanted, and after the deletion nothing is left.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from stockyard.lifecycle.clusters import control_plane
from tests.workflows.member_life import CALLS, STORIES, Death, MemberLife
from tests.workflows.table_faults import Died, Faults, every_fault, sample

SAMPLE = 3
"""Cells of a story that are run normally, every other one with a death; in the soak all are."""
Cell = tuple[Faults, Death | None]


def recorded(story: str) -> MemberLife:
    life = MemberLife(STORIES[story])
    assert life.run() == []
    return life


def cells_of(life: MemberLife, seed: str, *, soaking: bool) -> Sequence[Cell]:
    """Each fault alone, and each moment of a worker's death with a machine's at another moment."""
    chance, faults = random.Random(seed), every_fault(life.faults.points)
    waits = life.members.waits
    if not soaking:
        faults = sample(faults, life.faults.points, SAMPLE, seed)
        return [(fault, _death(chance, waits) if number % 2 else None) for number, fault in enumerate(faults)]
    alone: list[Cell] = [(fault, None) for fault in faults]
    return [*alone, *((replace(fault), _death(chance, waits)) for fault in faults if fault.error is Died)]


def _death(chance: random.Random, waits: int) -> Death:
    return Death(chance.randrange(waits), chance.randrange(6))


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.timeout(7200)
def test_member_crash_matrix(
    story: str, seed: int, soaking: bool, record_property: Callable[[str, object], None]
) -> None:
    cells = cells_of(recorded(story), f"{seed} {story}", soaking=soaking)
    lives = {f"{fault} {death or ''}": MemberLife(STORIES[story], fault, death).run() for fault, death in cells}
    bad: Mapping[str, Sequence[str]] = {cell: wrong for cell, wrong in lives.items() if wrong}
    record_property(f"figure:members_{story.replace(' ', '_')}", {"run": len(cells), "bad": len(bad)})
    assert bad == {}


def test_a_life_comes_to_all_that_is_done_for_members() -> None:
    assert set(recorded("renewed").faults.points) >= {*CALLS, "ready at members"}


def test_the_judge_sees_a_quorum_that_is_given_up() -> None:
    (wrong,) = MemberLife(replace(STORIES["1 of 3 is replaced"], dead=2)).run()
    assert wrong.startswith("the quorum was given up")


def test_the_judge_sees_a_dead_member_that_nobody_replaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_plane, "_without_dead", lambda *_: None)
    assert any(text.startswith("members: ") for text in MemberLife(STORIES["1 of 3 is replaced"]).run())
