"""The crash matrix: every fault at every call of every phase of both workflows and of the create handler.

The cells are made from the documents and from recorded lives, so a new phase or call adds its own cells. ``make test``
runs one cell of each point on a table in memory, ``make soak`` runs all on the real adapter, which is under the lives
of ``test_crash_judge`` too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from tests.harness.crash.cells import matrix, sample, tasks
from tests.harness.crash.faults import Mode
from tests.harness.crash.matrix import Recorded, judged
from tests.harness.crash.world import CrashWorld, crash_world
from tests.workflows.conftest import no_sleep


@pytest.fixture(scope="module")
def world(soaking: bool) -> Iterator[CrashWorld]:
    with pytest.MonkeyPatch.context() as patched, crash_world(lean=not soaking) as crash_world_of_module:
        patched.setattr(time, "sleep", no_sleep)
        yield crash_world_of_module


def test_every_phase_of_the_crash_matrix_is_reached(world: CrashWorld, recorded: Recorded) -> None:
    every = matrix(world.cloud.stories, recorded)
    assert {cell.call.point for cell in every} >= tasks(world) | {"create"}
    for point in tasks(world) | {"create"}:
        there = [cell for cell in every if cell.call.point == point]
        modes = {cell.mode for cell in there}
        # The mode RECORDED needs a change besides the write of the record. A point without one has no such cell.
        beyond = any(cell.call.mutating and not cell.call.record for cell in there)
        assert modes >= set(Mode) - (set() if beyond else {Mode.RECORDED}), point


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
    figures, wrong = judged(world, recorded, seed, soaking=soaking)
    record_property("figure:crash_matrix", figures)
    assert wrong == {}


def test_a_sample_has_every_phase_and_every_fault(world: CrashWorld, recorded: Recorded, seed: int) -> None:
    every = matrix(world.cloud.stories, recorded)
    cells = sample(world.cloud.stories, every, seed)
    assert cells == sample(world.cloud.stories, every, seed)
    assert cells != sample(world.cloud.stories, every, seed + 1)
    assert {cell.call.point for cell in cells} == tasks(world) | {"create", "sweep_scope"}
    assert {cell.mode for cell in cells} == set(Mode)
