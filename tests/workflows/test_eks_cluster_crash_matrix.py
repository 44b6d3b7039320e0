"""The crash matrix of clusters on EKS: every fault at every call of every phase, of the vendor's too.

The cells are made from the documents and from recorded lives, as those of ``test_crash_matrix``. ``make test`` runs one
cell of each point, ``make soak`` runs all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from stockyard.providers.clusters.eks import removal
from tests.harness.crash.cells import RESUMED, Cell, judge, matrix, recordings, sample, tasks
from tests.harness.crash.eks import CrashEks
from tests.harness.crash.faults import Call, Mode
from tests.harness.crash.matrix import Recorded, judged, milliseconds_a_life
from tests.harness.crash.world import CrashWorld, crash_world

FAILS_FIRST = {"undone"}
"""Stories whose creation fails until a person resumes it."""


def _no_sleep(seconds: float) -> None:
    raise AssertionError(f"something sleeps for {seconds} s of real time")


@pytest.fixture(scope="module")
def world() -> Iterator[CrashWorld]:
    with pytest.MonkeyPatch.context() as patched, crash_world(CrashEks, lean=True) as crash_world_of_module:
        patched.setattr(time, "sleep", _no_sleep)
        yield crash_world_of_module


@pytest.fixture(scope="module")
def recorded(world: CrashWorld, seed: int) -> Recorded:
    """For each story its seed, and a recorded life without the fault of a cell."""
    return recordings(world, seed)


def test_lives_without_a_fault_end_as_their_story_says(world: CrashWorld, recorded: Recorded) -> None:
    ends = {story: (life.ready, life.failed, life.blocked, life.leftovers) for story, (_, life) in recorded.items()}
    assert ends == {story: (True, story in FAILS_FIRST, story == "blocked", []) for story in world.cloud.stories}
    assert {story: life.wrong for story, (_, life) in recorded.items() if life.wrong} == {}
    for _, life in recorded.values():
        assert life.things == {
            "vpc": 1, "internet_gateway": 1, "subnet": 4, "route_table": 2, "nat_gateway": 1, "address": 1,
            "vpc_endpoint": 1,
            "role": 6, "eks_cluster": 1, "access_entry": 3, "security_group": 3, "launch_template": 2,
            "node_group": 2, "auto_scaling_group": 2, "instance": 1, "volume": 1,
            "addon": 5, "pod_identity": 1, "file_system": 1, "mount_target": 2,
        }  # fmt: skip


def test_every_phase_of_the_crash_matrix_is_reached(world: CrashWorld, recorded: Recorded) -> None:
    every = matrix(world.cloud.stories, recorded)
    assert {cell.call.point for cell in every} >= tasks(world) | {"create", "relay", "reaper"}
    for point in tasks(world) | {"create"}:
        modes = {cell.mode for cell in every if cell.call.point == point}
        beyond = any(cell.call.mutating and not cell.call.record for cell in every if cell.call.point == point)
        assert modes >= set(Mode) - (set() if beyond else {Mode.RECORDED}), point
    vendor = {cell.call.name for cell in every}
    assert vendor >= {
        "ec2.CreateVpc", "ec2.CreateSubnet", "ec2.CreateNatGateway", "ec2.CreateLaunchTemplate", "iam.CreateRole",
        "eks.CreateCluster", "eks.CreateAccessEntry", "eks.AssociateAccessPolicy", "eks.CreateNodegroup",
        "eks.CreateAddon", "eks.CreatePodIdentityAssociation", "efs.CreateFileSystem", "efs.CreateMountTarget",
        "kubernetes.ApplyDeployments", "kubernetes.ApplyDaemonsets", "kubernetes.ApplyStorageclasses",
        "eks.UpdateClusterVersion", "eks.UpdateClusterConfig", "eks.UpdateNodegroupVersion",
        "eks.UpdateNodegroupConfig", "eks.UpdateAddon",
        "eks.DeleteNodegroup", "eks.DeleteAddon", "efs.DeleteMountTarget", "efs.DeleteFileSystem", "eks.DeleteCluster",
    }  # fmt: skip


@pytest.mark.timeout(14_400)
def test_eks_cluster_crash_matrix(
    world: CrashWorld,
    recorded: Recorded,
    soaking: bool,
    seed: int,
    record_property: Callable[[str, object], None],
) -> None:
    figures, wrong = judged(world, recorded, seed, soaking=soaking, part=3)
    if soaking:
        figures["milliseconds_a_life"] = milliseconds_a_life(world, seed)
    record_property("figure:eks_cluster_crash_matrix", figures)
    assert wrong == {}


def test_a_sample_has_every_phase_and_every_fault(world: CrashWorld, recorded: Recorded, seed: int) -> None:
    every = matrix(world.cloud.stories, recorded)
    cells: list[Cell] = sample(world.cloud.stories, every, seed)
    assert {cell.call.point for cell in cells} >= tasks(world) | {"create"}
    assert {cell.mode for cell in cells} == set(Mode)


@pytest.mark.parametrize("name", ["kubernetes.GetResources", "kubernetes.GetServices"])
def test_a_cluster_that_refuses_to_help_is_deleted_and_the_phase_says_so(
    world: CrashWorld, recorded: Recorded, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed, life = recorded["clean"]
    cell = Cell("clean", Call("delete:leftovers", name, 1), Mode.REFUSED, seed, RESUMED)
    assert judge(world, cell, life.things) == []
    load_balancers = removal._load_balancers
    monkeypatch.setattr(removal, "_load_balancers", lambda *arguments: (load_balancers(*arguments)[0], ""))
    assert judge(world, cell, life.things) == ["nobody was told of a refused deletion"]
