"""The world in which cases are played that need a cluster on EC2: the product in one thread over moto."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

from stockyard import wiring
from stockyard.domain.records import Cluster
from stockyard.operations.relay.outbox import Relay
from stockyard.operations.scheduler import schedule
from tests.harness.crash.cells import carry_on
from tests.harness.crash.world import CrashWorld, crash_world
from tests.harness.worlds.memory import MemoryAttestor

ROUNDS = 12
"""How many rounds of its workflow a cluster may take until it is ready."""


@dataclass
class Bench:
    """The world, and who attests the machines in it."""

    world: CrashWorld
    attestor: MemoryAttestor
    clusters: int = 0
    """How many clusters there were. Each has ids of its own: processes keep what they have read of a provider."""


@contextmanager
def open_bench() -> Iterator[Bench]:
    """One place; a case finds it empty after ``ready_cluster``."""
    attestor = MemoryAttestor()
    # The yard's own relay takes what the outbox has, also what its writer would send or start itself.
    unsent, unstarted = (
        patch.object(Relay, "send_own", lambda *_: None),
        patch.object(schedule, "start", lambda *_: None),
    )
    attested = patch.object(wiring, "attestor", lambda: attestor)
    with crash_world(lean=True) as world, attested, unsent, unstarted:
        yield Bench(world, attestor)


def ready_cluster(where: Bench) -> Cluster:
    """The one cluster of a world that forgets all that was there before. It is ready."""
    world = where.world
    where.clusters += 1
    world._point = ""
    world.reset(where.clusters)
    status, answer = world.ask("create", "POST", "/v1/clusters", world.cloud.body)
    assert status == 202, answer
    for _ in range(ROUNDS):
        carry_on(world)
    cluster = world.cluster()
    assert cluster is not None
    assert cluster.status == "ready"
    return cluster
