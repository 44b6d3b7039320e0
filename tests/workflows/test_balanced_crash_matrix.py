"""The crash matrix of the second day of clusters on machines: pool verbs, an upgrade, a queue, a repave that is
approved or taken back. At any write to the table and any call of the driver a worker dies, or an answer is lost.

A person sends a request again whose answer was lost, and resumes what has failed. At the end the record, the pools and
their nodes are as asked for, and every operation has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import pytest

from stockyard.domain.records import Operation
from stockyard.errors import IllegalTransition, StockyardError
from stockyard.lifecycle.change_phases import CHANGES
from stockyard.lifecycle.phases import DEGRADED
from stockyard.operations.clusters.changes.approval import decide_repave, repave_view
from stockyard.operations.clusters.changes.queue import enqueue
from stockyard.operations.clusters.changes.repaves import start_repave
from stockyard.operations.clusters.changes.resume import resume_cluster
from stockyard.operations.listing import every
from stockyard.operations.sweep.records import sweep_cluster
from stockyard.ports import CloudWork, Outcome
from tests.harness.checkpoint import Checkpoint
from tests.unit.operations.clusters.balanced_world import (
    CHANGE,
    UPGRADE,
    USER,
    WEB,
    BalancedWorld,
    balanced_world,
)
from tests.workflows.table_faults import Faults, FaultyStore, every_fault, sample

SAMPLE = 5
"""Cells of a story that are run normally; in the soak all are."""
PATIENCE = 6
CIDRS = {"settings": {"api_cidrs": ["198.51.100.0/24"]}}
BATCH = {**WEB, "name": "batch", "min_size": 1}


@dataclass(frozen=True)
class Story:
    """A patch, or a repave where there is none, and how many nodes each pool has at the end."""

    groups: Sequence[Mapping[str, Any]] = (WEB,)
    nodes: Mapping[str, int] = field(default_factory=lambda: {"web": 2})
    replaces: bool = False
    """Whether none of the nodes of before is there at the end."""
    patch: Mapping[str, Any] | None = None
    approval: bool | None = None
    """What a person says who is asked."""
    queued: Mapping[str, Any] | None = None

    def body(self, balanced: BalancedWorld) -> Mapping[str, Any]:
        return self.patch if self.patch is not None else balanced.groups(*self.groups)


STORIES: Mapping[str, Story] = {
    "scaled up": Story(({**WEB, "min_size": 4},), {"web": 4}),
    "scaled down": Story(({**WEB, "min_size": 1, "max_size": 1},), {"web": 1}),
    "added": Story((WEB, BATCH), {"web": 2, "batch": 1}),
    "removed": Story((BATCH,), {"batch": 1}),
    "reconfigured": Story(({**WEB, "labels": {"tier": "a"}},), replaces=True),
    "upgraded": Story(patch={"kubernetes_version": "1.35"}, replaces=True),
    "repaved": Story(patch={}, replaces=True),
    "approved": Story(({**WEB, "labels": {"tier": "a"}},), replaces=True, approval=True),
    "reverted": Story(({**WEB, "labels": {"tier": "a"}},), approval=False),
    "queued": Story(({**WEB, "min_size": 3},), {"web": 3}, queued=CIDRS),
}


@cache
def _beginning(*, asks: bool) -> tuple[BalancedWorld, Checkpoint]:
    """A cluster as each life finds it. ``asks``: nodes are replaced when a person has approved that."""
    balanced = balanced_world(**({"repave_approval": "required"} if asks else {}))
    return balanced, balanced.world.checkpoint(balanced)


@dataclass
class BalancedLife:
    """One change of a ready cluster, from the request to its end."""

    story: Story
    faults: Faults = field(default_factory=Faults)
    balanced: BalancedWorld = field(init=False)
    before: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.balanced, checkpoint = _beginning(asks=self.story.approval is not None)
        checkpoint.restore()
        self.before = {claim.name for claim in self.balanced.claims("web")}

    def run(self) -> list[str]:
        """Faults at the end."""
        balanced, story = self.balanced, self.story
        document = UPGRADE if "kubernetes_version" in (story.patch or {}) else CHANGE
        if document == UPGRADE:
            balanced.serves("v1.35.4")
        plain, ensure, meanwhile = balanced.world.services, balanced.provider.ensure, balanced.meanwhile
        balanced.world.services = replace(plain, store=FaultyStore(plain.store, self.faults))

        def faulty(phase: str, work: CloudWork) -> Outcome:
            outcome: Outcome = self.faults.around(phase, lambda: ensure(phase, work))
            return outcome

        def pass_by() -> None:
            with suppress(StockyardError):
                self._decide()
            with suppress(StockyardError):
                meanwhile()

        balanced.provider.ensure, balanced.meanwhile = faulty, pass_by
        self._ask(self._begin)
        if story.queued is not None:
            self._ask(lambda: enqueue(balanced.world.services, balanced.id, story.queued or {}, USER, "r"), 2)
        for _ in range(PATIENCE):
            if not self._is_over():
                self._go_on(document)
        self.faults.site = -1
        balanced.world.services = plain
        for _ in range(4):
            meanwhile()
        return list(self._wrong())

    def _begin(self) -> None:
        balanced, story = self.balanced, self.story
        if story.patch == {}:
            start_repave(balanced.world.services, balanced.id, USER, "r")
        else:
            balanced.patch(story.body(balanced))

    def _ask(self, send: Callable[[], object], number: int = 1) -> None:
        """Send the request until it is answered; who finds an operation at work has begun it."""
        for _ in range(PATIENCE):
            try:
                send()
            except IllegalTransition:
                return
            except StockyardError:
                if len(self._operations()) >= number:
                    return
                continue
            return

    def _decide(self) -> None:
        services, approval = self.balanced.world.services, self.story.approval
        if approval is not None and repave_view(services, self.balanced.cluster)["state"] == "Pending":
            decide_repave(services, self.balanced.id, approved=approval, actor=USER)

    def _go_on(self, document: str) -> None:
        balanced = self.balanced
        services = balanced.world.services
        if balanced.operation.status == "running":
            with suppress(StockyardError):
                balanced.drive(document)
        if balanced.operation.status == "failed":
            with suppress(StockyardError):
                resume_cluster(services, balanced.id, USER)
        with suppress(StockyardError):
            sweep_cluster(services, balanced.cluster)

    def _operations(self) -> Sequence[Operation]:
        operations = every(self.balanced.world.services.store, Operation)
        return [operation for operation in operations if operation.kind in CHANGES]

    def _is_over(self) -> bool:
        operations = self._operations()
        return bool(operations) and all(each.status in ("succeeded", "reverted") for each in operations)

    def _wrong(self) -> Iterator[str]:
        balanced, story, cluster = self.balanced, self.story, self.balanced.cluster
        statuses = {operation.status for operation in self._operations()}
        if statuses != ({"reverted"} if story.approval is False else {"succeeded"}):
            yield f"operations: {[(each.kind, each.status, each.error) for each in self._operations()]}"
        if cluster.status != "ready" or cluster.phase is not None or balanced.condition(DEGRADED) == "True":
            yield f"the cluster is {cluster.status} at {cluster.phase}: {cluster.conditions}"
        if cluster.queue:
            yield f"{cluster.queue} still wait"
        if cluster.kubernetes_version != (story.patch or {}).get("kubernetes_version", "1.34"):
            yield f"the record has {cluster.kubernetes_version}"
        if cluster.node_minor != cluster.kubernetes_version:
            yield f"nodes get {cluster.node_minor}"
        if story.queued is not None and cluster.settings["api_cidrs"] != CIDRS["settings"]["api_cidrs"]:
            yield "the queued change is not there"
        counts = {name: len(balanced.claims(name)) for name in balanced.pools()}
        if counts != story.nodes:
            yield f"nodes: {counts}"
        remaining = self.before & {claim.name for name in counts for claim in balanced.claims(name)}
        if story.replaces and remaining:
            yield f"{remaining} are still there"
        if story.approval is False and remaining != self.before:
            yield "nodes went without approval"
        labels = {} if story.approval is False or not story.groups else story.groups[0].get("labels", {})
        if "web" in counts and not labels.items() <= balanced.pools()["web"].labels.items():
            yield "the pool is not its group"


@pytest.mark.parametrize("story", STORIES)
def test_lives_without_a_fault_end_well(story: str) -> None:
    assert BalancedLife(STORIES[story]).run() == []


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.timeout(3600)
def test_second_day_crash_matrix(
    story: str, seed: int, soaking: bool, record_property: Callable[[str, object], None]
) -> None:
    recorded = BalancedLife(STORIES[story])
    assert recorded.run() == []
    points = recorded.faults.points
    cells = every_fault(points)
    selection = cells if soaking else sample(cells, points, SAMPLE, f"{seed} {story}")
    lives = {str(cell): BalancedLife(STORIES[story], cell).run() for cell in selection}
    bad = {cell: wrong for cell, wrong in lives.items() if wrong}
    record_property(
        f"figure:second_day_{story.replace(' ', '_')}", {"cells": len(cells), "run": len(selection), "bad": len(bad)}
    )
    assert bad == {}
