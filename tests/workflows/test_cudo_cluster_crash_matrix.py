"""The crash matrix of clusters on Cudo Compute: every fault at every call of every phase, of the vendor's too.

The cells are made from the documents and from recorded lives, as those of ``test_crash_matrix``. ``make test`` runs one
cell of each point, ``make soak`` runs all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from tests.harness.crash.cells import Cell, live, matrix, recordings, sample, tasks
from tests.harness.crash.cudo import CrashCudo
from tests.harness.crash.faults import Mode
from tests.harness.crash.matrix import Recorded, judged, milliseconds_a_life
from tests.harness.crash.world import CrashWorld, crash_world

FAILS_FIRST = {"undone", "kept", "swept", "full", "failed_disk", "failed_machine"}
"""Stories whose creation fails until a person resumes it."""


def _no_sleep(seconds: float) -> None:
    raise AssertionError(f"something sleeps for {seconds} s of real time")


@pytest.fixture(scope="module")
def world() -> Iterator[CrashWorld]:
    with pytest.MonkeyPatch.context() as patched, crash_world(CrashCudo, lean=True) as crash_world_of_module:
        patched.setattr(time, "sleep", _no_sleep)
        yield crash_world_of_module


@pytest.fixture(scope="module")
def recorded(world: CrashWorld, seed: int) -> Recorded:
    """For each story its seed, and a recorded life without the fault of a cell."""
    return recordings(world, seed)


def test_lives_without_a_fault_end_as_their_story_says(world: CrashWorld, recorded: Recorded) -> None:
    ends = {story: (life.ready, life.failed, life.blocked, life.leftovers) for story, (_, life) in recorded.items()}
    assert ends == {story: (True, story in FAILS_FIRST, story == "blocked", []) for story in world.cloud.stories}
    for _, life in recorded.values():
        assert life.things == {"vm": 1, "disk": 1, "disk_key": 1, "network": 1, "security_group": 2}


def test_every_phase_of_the_crash_matrix_is_reached(world: CrashWorld, recorded: Recorded) -> None:
    every = matrix(world.cloud.stories, recorded)
    assert {cell.call.point for cell in every} >= tasks(world) | {"create", "machine", "relay", "reaper"}
    for point in tasks(world) | {"create"}:
        modes = {cell.mode for cell in every if cell.call.point == point}
        beyond = any(cell.call.mutating and not cell.call.record for cell in every if cell.call.point == point)
        assert modes >= set(Mode) - (set() if beyond else {Mode.RECORDED}), point
    vendor = {cell.call.name for cell in every if cell.call.name.startswith(("cudo.", "vault."))}
    assert vendor >= {
        "cudo.GetProject", "cudo.ListVMMachineTypes", "cudo.ListPublicVMImages", "cudo.CreateSecurityGroup",
        "cudo.CreateNetwork", "cudo.CreateStorageDisk", "cudo.CreateVM", "cudo.UpdateVMExpireTime", "cudo.TerminateVM",
        "cudo.DeleteStorageDisk", "cudo.DeleteNetwork", "cudo.DeleteSecurityGroup",
        "vault.Login", "vault.GenerateSecretId", "vault.DeleteKey",
    }  # fmt: skip


@pytest.mark.timeout(14_400)
def test_cudo_cluster_crash_matrix(
    world: CrashWorld,
    recorded: Recorded,
    soaking: bool,
    seed: int,
    record_property: Callable[[str, object], None],
) -> None:
    figures, wrong = judged(world, recorded, seed, soaking=soaking)
    if soaking:
        figures["milliseconds_a_life"] = milliseconds_a_life(world, seed)
    record_property("figure:cudo_cluster_crash_matrix", figures)
    assert wrong == {}


def test_every_request_of_a_life_is_one_that_the_vendors_document_knows(world: CrashWorld, seed: int) -> None:
    cloud = world.cloud
    assert isinstance(cloud, CrashCudo)
    for story in cloud.stories:
        live(world, story, seed)
    assert cloud.outside == 0


def test_a_sample_has_every_phase_and_every_fault(world: CrashWorld, recorded: Recorded, seed: int) -> None:
    every = matrix(world.cloud.stories, recorded)
    cells: list[Cell] = sample(world.cloud.stories, every, seed)
    assert {cell.call.point for cell in cells} >= tasks(world) | {"create", "sweep_scope"}
    assert {cell.mode for cell in cells} == set(Mode)
