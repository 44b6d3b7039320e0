"""The crash matrix of restores: at any write to the table and any call of the driver a worker dies, or loses an answer.

A person sends a request again whose answer was lost, and resumes what has failed. At the end the control plane has
begun from the snapshot, with as many members as wanted, none of those of before, and nobody may read snapshots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from stockyard.errors import IllegalTransition, StockyardError
from stockyard.lifecycle.phases import DEGRADED
from stockyard.operations.clusters.changes.resume import resume_cluster
from stockyard.operations.clusters.snapshots.restores import start_restore
from stockyard.operations.sweep.records import sweep_cluster
from tests.unit.operations.clusters.balanced_world import USER
from tests.unit.operations.clusters.members_world import MembersWorld, members_world
from tests.workflows.table_faults import Faults, FaultyStore, every_fault, sample

BACKUP = {"interval_hours": 6, "keep": 2, "bucket": None, "on_deletion": "remove"}
SNAPSHOT = "20251231T060000Z"
SAMPLE = 6
"""Cells of a story that are run normally; in the soak all are."""
PATIENCE = 8
CALLS = ("ensure", "targets", "admit", "withdraw", "release_first", "snapshot", "open_snapshot", "close_snapshots")
STORIES = {"one": (1, 0), "three": (3, 0), "no quorum": (3, 2), "nobody left": (3, 3)}
"""Members, and how many of them are lost before."""


@dataclass
class RestoreLife:
    """One restore, from the request to its end."""

    story: str
    faults: Faults = field(default_factory=Faults)
    members: MembersWorld = field(init=False)
    before: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        size, lost = STORIES[self.story]
        self.members = members_world(size, etcd_backup=dict(BACKUP))
        if size > 1:
            assert self.members.drive() == "changed"
        self.members.provider.stored[SNAPSHOT] = "1.34"
        self.before = {claim.machine_id for claim in self.members.members()} | {str(self.members.cluster.instance_id)}
        self.members.lose(*self.members.members()[:lost])

    def run(self) -> list[str]:
        """Faults at the end."""
        members = self.members
        plain = members.world.services
        members.world.services = replace(plain, store=FaultyStore(plain.store, self.faults))
        for name in CALLS:
            self._spoil(name)
        meanwhile = members.meanwhile

        def pass_by() -> None:
            with suppress(StockyardError):
                meanwhile()

        members.meanwhile = pass_by
        self._ask()
        for _ in range(PATIENCE):
            if members.operation.status != "succeeded":
                self._go_on()
        self.faults.site = -1
        members.world.services = plain
        for _ in range(4):
            meanwhile()
        return list(self._wrong())

    def _spoil(self, name: str) -> None:
        call = getattr(self.members.provider, name)

        def faulty(*arguments: Any) -> Any:
            return self.faults.around(name, lambda: call(*arguments))

        setattr(self.members.provider, name, faulty)

    def _ask(self) -> None:
        """Send the request until it is answered; who finds an operation at work has begun it."""
        for _ in range(PATIENCE):
            with suppress(StockyardError):
                try:
                    start_restore(self.members.world.services, self.members.id, SNAPSHOT, USER, "r")
                except IllegalTransition:
                    return
                return

    def _go_on(self) -> None:
        members = self.members
        if members.operation.status == "running":
            with suppress(StockyardError):
                members.drive()
        if members.operation.status == "failed":
            with suppress(StockyardError):
                resume_cluster(members.world.services, members.id, USER)
        with suppress(StockyardError):
            sweep_cluster(members.world.services, members.cluster)

    def _wrong(self) -> Iterator[str]:
        members, (size, _) = self.members, STORIES[self.story]
        if members.operation.status != "succeeded":
            yield f"the operation is {members.operation.status}: {members.operation.error}"
        if members.restored_from != SNAPSHOT:
            yield "nothing was restored"
        machines = {claim.machine_id for claim in members.members()}
        if len(machines) != size or machines & self.before:
            yield f"members: {machines}, before: {self.before}"
        # A balancer forgets machines that have ended by itself.
        serving = members.provider.registered - members.provider.ended_machines
        if len(members.voters) != size or serving != machines:
            yield f"voters: {members.voters}, served by {serving}"
        if members.provider.readable:
            yield f"{members.provider.readable} may still be read"
        if members.cluster.status != "ready" or members.condition(DEGRADED) == "True":
            yield f"the cluster is {members.cluster.status}: {members.cluster.conditions}"


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.timeout(3600)
def test_restore_crash_matrix(
    story: str, seed: int, soaking: bool, record_property: Callable[[str, object], None]
) -> None:
    recorded = RestoreLife(story)
    assert recorded.run() == []
    points = list(recorded.faults.points)
    cells = every_fault(points)
    selection = cells if soaking else sample(cells, points, SAMPLE, f"{seed} {story}")
    lives = {str(cell): RestoreLife(story, cell).run() for cell in selection}
    bad = {cell: wrong for cell, wrong in lives.items() if wrong}
    record_property(f"restore_{story.replace(' ', '_')}", {"cells": len(cells), "run": len(selection), "bad": len(bad)})
    assert bad == {}
