"""The crash matrix of changes of a ready cluster whose control plane is a service: at any write to the table and any
call of the driver a worker dies, or an answer is lost.

A person sends a request again whose answer was lost, and resumes what has failed. At the end there is one operation,
the record and all that stands are as asked for, and so are pools and nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import pytest

from stockyard.domain.records import Operation
from stockyard.errors import IllegalTransition, StockyardError
from stockyard.lifecycle.change_phases import CHANGES
from stockyard.lifecycle.phases import DEGRADED
from stockyard.operations.clusters.changes.resume import resume_cluster
from stockyard.operations.clusters.changes.retag import start_if_due
from stockyard.operations.fleet.pools.reconcile import reconcile
from stockyard.operations.listing import every
from stockyard.operations.node_claims.delete import delete_claim
from stockyard.ports import CloudWork, Outcome
from tests.harness.checkpoint import Checkpoint
from tests.harness.walk import Walk, input_of
from tests.unit.operations.clusters.managed_world import GPU, USER, ManagedWorld, managed_world
from tests.workflows.table_faults import Faults, FaultyStore, every_fault, sample

SAMPLE = 15
"""Cells of a story that are run normally; in the soak all are."""
BATCH = {"name": "batch", "role": "system", "instance_type": "m6i.large", "min_size": 1, "count": 1, "max_size": 3}
STORIES: Mapping[str, tuple[Callable[[ManagedWorld], dict[str, Any]], str]] = {
    "settings": (lambda _: {"settings": {"support": "extended"}, "tags": {"team": "a"}}, "change_managed"),
    "upgrade": (lambda _: {"kubernetes_version": "1.35"}, "upgrade_managed"),
    "groups": (
        lambda world: world.groups({"name": "system", "labels": {"tier": "a"}}, {**GPU, "max_size": 1}, BATCH),
        "change_managed",
    ),
    "removal": (lambda world: world.groups({"name": "system", "max_size": 5}), "change_managed"),
}
NODES = {"settings": 2, "upgrade": 2, "groups": 1, "removal": 0}
"""How many nodes of the group ``l4`` are there at the end; at the beginning there are two."""
PATIENCE = 4
"""How often a person tries again before a life counts as hanging."""


@cache
def _beginning() -> tuple[ManagedWorld, Checkpoint]:
    managed = managed_world()
    managed.make_claims("l4", 2)
    return managed, managed.world.checkpoint(managed)


def _at_the_beginning() -> ManagedWorld:
    managed, checkpoint = _beginning()
    checkpoint.restore()
    return managed


@dataclass
class ChangeLife:
    """One change of a ready cluster, from the request to its end."""

    story: str
    faults: Faults = field(default_factory=Faults)
    managed: ManagedWorld = field(default_factory=_at_the_beginning)
    refusals: list[str] = field(default_factory=list)
    """What was said to requests that came while another one was carried out."""

    def run(self) -> list[str]:
        """Faults at the end."""
        managed = self.managed
        request, document = STORIES[self.story]
        patch = request(managed)
        plain, ensure = managed.world.services, managed.provider.ensure
        managed.world.services = replace(plain, store=FaultyStore(plain.store, self.faults))

        def faulty(phase: str, work: CloudWork) -> Outcome:
            outcome: Outcome = self.faults.around(phase, lambda: ensure(phase, work))
            return outcome

        managed.provider.ensure = faulty
        self._ask(patch)
        for _ in range(PATIENCE):
            self._drive(document)
            operation = self._operations()[-1]
            if operation.status == "succeeded":
                break
            with suppress(StockyardError):
                resume_cluster(managed.world.services, managed.id, USER)
        self.faults.site = -1
        start_if_due(plain, managed.cluster)  # as the sweep does
        self._drive("retag")
        reconcile(plain, managed.id)
        return list(self._wrong(patch, document))

    def _ask(self, patch: Mapping[str, Any]) -> None:
        """Send the request until it is answered; another one at work is the first."""
        for _ in range(PATIENCE):
            try:
                self.managed.patch(patch)
            except IllegalTransition as busy:
                self.refusals.append(busy.detail)
            except StockyardError:
                continue
            return

    def _drive(self, document: str) -> str:
        cluster = self.managed.cluster
        operation = self.managed.operation
        if operation.status != "running" or (operation.kind == "retag_cluster") != (document == "retag"):
            return ""
        world = self.managed.world
        return Walk(lambda: world.services, world.clock, waited=self._meanwhile).run(
            document, input_of("acme", cluster)
        )

    def _meanwhile(self) -> None:
        """Do what others do while a workflow waits: passes over the pools, and nodes that are gone at last."""
        services = self.managed.world.services
        with suppress(StockyardError):
            reconcile(services, self.managed.id)
            for claim in self.managed.claims("l4"):
                if claim.deleting:
                    delete_claim(services, claim.id, USER)

    def _operations(self) -> Sequence[Operation]:
        store = self.managed.world.services.store
        return [operation for operation in every(store, Operation) if operation.kind in CHANGES]

    def _wrong(self, patch: Mapping[str, Any], document: str) -> Any:
        managed, cluster = self.managed, self.managed.cluster
        operations = self._operations()
        if any(operations[0].id not in refusal for refusal in self.refusals):
            yield f"requests were refused by {self.refusals}"
        if [operation.status for operation in operations] != ["succeeded"]:
            yield f"operations: {[(operation.kind, operation.status, operation.error) for operation in operations]}"
        if cluster.status != "ready" or cluster.phase is not None or managed.condition(DEGRADED) == "True":
            yield f"the cluster is {cluster.status} at {cluster.phase}: {cluster.conditions}"
        if cluster.kubernetes_version != patch.get("kubernetes_version", "1.34"):
            yield f"the record has {cluster.kubernetes_version}"
        for phase in ("control_plane", "access", "addons", "node_groups", "objects"):
            if managed.provider.stands[phase] != (cluster.kubernetes_version, cluster.settings):
                yield f"{phase} stands as it was"
        groups = {str(group["name"]): group for group in cluster.settings["node_groups"]}
        pools = managed.pools()
        if pools.keys() != groups.keys():
            yield f"pools {sorted(pools)} for groups {sorted(groups)}"
        for name, pool in pools.items():
            group = groups[name]
            if (pool.floor, pool.limits["nodes"]) != (group["min_size"], str(group["max_size"])):
                yield f"pool {name} is not its group"
            if not group["labels"].items() <= pool.labels.items():
                yield f"pool {name} has labels {pool.labels}"
        if len(managed.claims("l4")) != NODES[self.story]:
            yield f"{len(managed.claims('l4'))} nodes of l4"
        if set(patch.get("tags", {}).items()) - set(managed.provider.tags[f"i-{cluster.id}"].items()):
            yield "tags are not put on"


@pytest.mark.parametrize("story", STORIES)
def test_lives_without_a_fault_end_well(story: str) -> None:
    assert ChangeLife(story).run() == []


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.timeout(3600)
def test_change_crash_matrix(
    story: str, seed: int, soaking: bool, record_property: Callable[[str, object], None]
) -> None:
    recorded = ChangeLife(story)
    assert recorded.run() == []
    points = recorded.faults.points
    cells = every_fault(points)
    selection = cells if soaking else sample(cells, points, SAMPLE, f"{seed} {story}")
    lives = {str(cell): ChangeLife(story, cell).run() for cell in selection}
    bad = {cell: wrong for cell, wrong in lives.items() if wrong}
    record_property(f"figure:change_{story}", {"cells": len(cells), "run": len(selection), "bad": len(bad)})
    assert bad == {}
