"""Nothing that changes while a look at a cluster is going on is left until the next look that time brings."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stockyard.domain.pools.workload_records import WorkloadReport
from stockyard.domain.values import times
from stockyard.errors import Conflict
from stockyard.operations.engine.watch import watch
from stockyard.operations.fleet.disruption.run import LONGEST_SECONDS
from stockyard.operations.fleet.state import Workload
from stockyard.operations.machines.pending_pods import SETTLING_SECONDS
from stockyard.ports import Create, Replace, Write
from tests.unit.operations.fleet.disruption.conftest import POOL, Pods, pod


@pytest.fixture
def full(pods: Pods) -> Pods:
    """One node that is full: nothing is to be done. The last report of its pods is stored."""
    pods.yard.dynamic_pool(POOL, disruption={"consolidate_after": "0s", "budgets": []})
    pods.waiting = [pod("7500m", "1Gi")]
    pods.run(6)
    report(pods, 1)
    return pods


def report(pods: Pods, sequence: int) -> None:
    """Write what a report of pods writes, and that the cluster is to be looked at when the pods have settled."""
    services, cluster_id = pods.yard.nodes.services, pods.yard.cluster.id
    new = WorkloadReport(cluster_id, sequence, services.now(), services.now(), sequence, 1, version=sequence)
    services.store.commit(Create(new) if sequence == 1 else Replace(new))
    watch(services, cluster_id, SETTLING_SECONDS)


def looked(pods: Pods, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], None]) -> tuple[dict[str, int], float]:
    """One look at the cluster, and what happens while it goes on: its counts, and in how many seconds the next is."""
    services, tell = pods.yard.nodes.services, pods.workload
    watch(services, pods.yard.cluster.id)
    pods.yard.nodes.clock.advance(1)

    def workload() -> Workload:
        picture = tell()
        monkeypatch.setattr(pods, "workload", tell)
        meanwhile()
        return picture

    monkeypatch.setattr(pods, "workload", workload)
    counts = dict(pods.look())
    due_at = pods.record().due_at
    assert due_at is not None
    return counts, (times.from_text(due_at) - services.clock.now()).total_seconds()


def test_a_look_that_nothing_disturbs_is_the_last_for_an_hour(full: Pods, monkeypatch: pytest.MonkeyPatch) -> None:
    counts, seconds = looked(full, monkeypatch, lambda: None)
    assert (counts.get("lost", 0), seconds) == (0, LONGEST_SECONDS)


def test_a_report_that_comes_during_a_look_has_a_look_of_its_own(full: Pods, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report's pods may have left the nodes that the look has found full."""
    counts, seconds = looked(full, monkeypatch, lambda: report(full, 2))
    assert (counts.get("lost", 0), seconds) == (0, SETTLING_SECONDS)


def test_a_look_begins_anew_when_something_else_changes(full: Pods, monkeypatch: pytest.MonkeyPatch) -> None:
    """A notice of an interruption, a pool's new rules, a node that has come."""
    services, cluster_id = full.yard.nodes.services, full.yard.cluster.id
    counts, seconds = looked(full, monkeypatch, lambda: watch(services, cluster_id))
    assert counts["lost"] == 1
    assert seconds <= 0


def test_a_wake_outlasts_who_writes_at_the_same_time(full: Pods, monkeypatch: pytest.MonkeyPatch) -> None:
    services, commit, refusals = full.yard.nodes.services, full.yard.nodes.services.store.commit, [1]

    def contended(*writes: Write) -> None:
        if refusals:
            refusals.pop()
            raise Conflict("somebody else was first")
        commit(*writes)

    monkeypatch.setattr(services.store, "commit", contended)
    watch(services, full.yard.cluster.id)
    due_at = full.record().due_at
    assert due_at is not None
    assert due_at <= services.now()


def test_a_change_that_is_written_is_not_refused_for_its_wake(full: Pods, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others write the record of the cluster's disruption without an end."""
    services = full.yard.nodes.services

    def contended(*_: Write) -> None:
        raise Conflict("somebody else was first")

    monkeypatch.setattr(services.store, "commit", contended)
    watch(services, full.yard.cluster.id)
