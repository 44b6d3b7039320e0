"""Changes that wait for their turn: one after the other, each by the cluster of its moment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import Operation
from stockyard.errors import IllegalTransition, NotFound, VendorRefused
from stockyard.lifecycle.operation import progress
from stockyard.operations.clusters.changes.cancel import cancel_change, cancel_queued
from stockyard.operations.clusters.changes.queue import MOST, begin_next, enqueue, is_busy
from stockyard.operations.clusters.changes.resume import resume_cluster
from stockyard.operations.clusters.phases import start_following
from stockyard.operations.clusters.removal.delete import delete_cluster
from stockyard.operations.sweep.records import sweep_cluster
from stockyard.ports import Replace
from tests.unit.operations.clusters.balanced_world import USER, BalancedWorld, balanced_world


@pytest.fixture
def balanced() -> BalancedWorld:
    return balanced_world()


def cidrs(number: int) -> dict[str, Any]:
    return {"settings": {"api_cidrs": [f"198.51.100.{number}/32"]}}


def queue(balanced: BalancedWorld, patch: dict[str, Any]) -> Operation:
    return enqueue(balanced.world.services, balanced.id, patch, USER, "r")


def test_queued_changes_begin_in_order(balanced: BalancedWorld) -> None:
    first = balanced.patch(cidrs(1)).operation_id
    second, third = queue(balanced, cidrs(2)), queue(balanced, {**cidrs(3), "description": "after all"})
    assert (second.status, progress(second), balanced.cluster.queue) == ("queued", 0, (second.id, third.id))
    assert (second.subject_name, second.request) == (balanced.cluster.name, cidrs(2))
    assert balanced.cluster.settings["api_cidrs"] == ["198.51.100.1/32"], "what waits is not on the record"
    assert balanced.drive() == "changed"
    assert (balanced.cluster.operation_id, balanced.cluster.queue) == (second.id, (third.id,))
    assert balanced.operation.status == "running"
    assert balanced.operation.changes[0]["before"] == ["198.51.100.1/32"]
    assert balanced.drive() == "changed"
    assert balanced.drive() == "changed"
    statuses = {balanced.operation_of(name).status for name in (str(first), second.id, third.id)}
    assert statuses == {"succeeded"}
    assert (balanced.cluster.queue, balanced.cluster.description) == ((), "after all")
    assert balanced.provider.stands["security"]["api_cidrs"] == ["198.51.100.3/32"]


def test_a_queue_waits_while_the_cluster_is_degraded(balanced: BalancedWorld) -> None:
    balanced.provider.faults["network"] = [VendorRefused("no")]
    balanced.patch(cidrs(1))
    second = queue(balanced, cidrs(2))
    assert balanced.drive() == "not_changed"
    assert not begin_next(balanced.world.services, balanced.id)
    resume_cluster(balanced.world.services, balanced.id, USER)
    assert balanced.drive() == "changed"
    assert balanced.cluster.operation_id == second.id


def test_conditions_are_checked_again_when_a_change_begins(balanced: BalancedWorld) -> None:
    balanced.patch({"kubernetes_version": "1.35"})
    again, after = queue(balanced, {"kubernetes_version": "1.34"}), queue(balanced, cidrs(2))
    balanced.serves("v1.35.4")
    assert balanced.drive("upgrade_balanced") == "upgraded"
    refused = balanced.operation_of(again.id)
    assert refused.status == "failed"
    assert refused.error is not None
    assert refused.error.cause_type == "InvalidInput"
    assert balanced.cluster.operation_id == after.id, "the next one has its turn"


def test_a_change_that_needs_no_operation_ends_at_once(balanced: BalancedWorld) -> None:
    balanced.patch(cidrs(1))
    repeated = queue(balanced, cidrs(1))
    assert balanced.drive() == "changed"
    assert balanced.operation_of(repeated.id).status == "succeeded"
    assert balanced.cluster.queue == ()


def test_a_queued_change_is_cancelled(balanced: BalancedWorld) -> None:
    current = str(balanced.patch(cidrs(1)).operation_id)
    second, third = queue(balanced, cidrs(2)), queue(balanced, cidrs(3))
    services = balanced.world.services
    stopped = cancel_queued(services, balanced.id, second.id, USER)
    assert stopped.error is not None
    assert (stopped.status, stopped.error.cause_type) == ("cancelled", "Cancelled")
    assert balanced.cluster.queue == (third.id,)
    with pytest.raises(IllegalTransition):
        cancel_queued(services, balanced.id, current, USER)
    with pytest.raises(NotFound):
        cancel_queued(services, balanced.id, "op_none", USER)


def test_a_cancelled_operation_holds_the_queue(balanced: BalancedWorld) -> None:
    balanced.patch(cidrs(1))
    queue(balanced, cidrs(2))
    cancel_change(balanced.world.services, balanced.id, USER)
    assert not begin_next(balanced.world.services, balanced.id)


def test_a_queue_has_an_end(balanced: BalancedWorld) -> None:
    balanced.patch(cidrs(1))
    for number in range(MOST):
        queue(balanced, cidrs(number + 2))
    with pytest.raises(IllegalTransition, match=f"{MOST} changes wait"):
        queue(balanced, cidrs(99))


def test_a_new_change_stands_behind_those_that_wait(balanced: BalancedWorld) -> None:
    assert not is_busy(balanced.world.services, balanced.cluster)
    balanced.patch(cidrs(1))
    assert is_busy(balanced.world.services, balanced.cluster)


def test_the_sweep_begins_what_a_lost_worker_did_not(balanced: BalancedWorld) -> None:
    """A worker that ends an operation and dies has begun nothing of the queue."""
    balanced.patch(cidrs(1))
    second = queue(balanced, cidrs(2))
    services = balanced.world.services
    waiting = balanced.cluster.queue
    services.store.commit(Replace(replace(balanced.cluster, queue=(), version=balanced.cluster.version + 1)))
    assert balanced.drive() == "changed"
    services.store.commit(Replace(replace(balanced.cluster, queue=waiting, version=balanced.cluster.version + 1)))
    assert sweep_cluster(services, balanced.cluster) == "changing"
    assert balanced.cluster.operation_id == second.id
    assert start_following(services, balanced.id) is None, "one at a time"


def test_deletion_ends_what_waits(balanced: BalancedWorld) -> None:
    balanced.patch(cidrs(1))
    second = queue(balanced, cidrs(2))
    delete_cluster(balanced.world.services, balanced.id, USER)
    over = balanced.operation_of(second.id)
    assert over.error is not None
    assert (over.status, over.error.cause) == ("failed", "The cluster was deleted before it began.")
    assert balanced.cluster.queue == ()
