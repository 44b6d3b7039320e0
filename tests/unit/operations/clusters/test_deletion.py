"""The deletion of a cluster overtakes its creation, waits for calls in flight and removes what is left."""

from __future__ import annotations

import pytest

from stacks.functions import FUNCTIONS
from stockyard.domain.records import Cluster, Resource
from stockyard.domain.values import times
from stockyard.errors import Fenced, NotYetVisible, VendorThrottled
from stockyard.operations.clusters.changes.resume import resume_cluster
from stockyard.operations.clusters.phases import RUNNER
from stockyard.operations.clusters.removal.delete import delete_cluster
from stockyard.operations.engine.advance import Fence
from stockyard.operations.engine.ledger import Owner, StoreLedger
from stockyard.operations.engine.quiesce import quiesce
from stockyard.operations.engine.run_phase import run_phase
from stockyard.ports import Outcome
from stockyard.settings import Settings


def ledger_of(world, cluster, phase="network"):
    current = world.cluster(cluster)
    return StoreLedger(world.services, Owner.of_cluster(current, current.operation_id, current.attempt), phase)


def settled(world, cluster):
    return quiesce(RUNNER, world.services, world.cluster(cluster))


# --- settle ----------------------------------------------------------------------------------------------------------


def test_wait_covers_worker_timeout_and_visibility_delay():
    [phases_function] = [function for function in FUNCTIONS if function.name == "cluster_phases"]
    defaults = Settings(table="t")
    assert defaults.worker_seconds == phases_function.timeout
    assert defaults.in_flight_seconds == defaults.worker_seconds + defaults.visibility_seconds


def test_settle_waits_for_calls_of_fenced_creation(world):
    cluster = world.create()
    stale = ledger_of(world, cluster)
    stale.intend("vpc", "first")
    world.clock.advance(30)
    line = stale.intend("vpc", "main")
    world.clock.advance(10)
    delete_cluster(world.services, cluster.id, "ann")
    limit = world.services.settings.in_flight_seconds
    outcome = settled(world, cluster)
    assert (outcome.done, outcome.wait_seconds) == (False, limit - 10)
    assert not world.workflows.running("provision", world.cluster(cluster).execution)
    world.clock.advance(limit - 11)
    assert settled(world, cluster).wait_seconds == 1
    # the call that was under way ends, late: the ledger still has its line
    assert stale.made(line, "vpc-1").state == "made"
    world.clock.advance(1)
    assert settled(world, cluster).done


def test_settle_ends_at_once_without_open_intent(world):
    cluster = world.create()
    assert world.drive(cluster, "provision_cluster") == "ready"
    delete_cluster(world.services, cluster.id, "ann")
    assert settled(world, cluster).done


def test_late_resource_is_removed_with_its_cluster(world):
    cluster = world.create()
    stale = ledger_of(world, cluster)
    line = stale.intend("network", "main")
    deleting = delete_cluster(world.services, cluster.id, "ann")
    fence = Fence(Cluster, cluster.id, deleting.operation_id, deleting.attempt)
    assert not run_phase(RUNNER, world.services, fence, "settle").done
    world.clock.advance(110)
    world.provider.things["network-late"] = "network"
    stale.made(line, "network-late")
    assert world.drive(deleting, "delete_cluster") == "gone"
    assert world.provider.things == {}


# --- intents ---------------------------------------------------------------------------------------------------------


def test_repeated_intent_updates_time_and_keeps_first_detail(world):
    cluster = world.create()
    ledger = ledger_of(world, cluster)
    first = ledger.intend("instance", "main", {"image": "ami-1"})
    start = world.services.now()
    world.clock.advance(300)
    second = ledger.intend("instance", "main", {"image": "ami-2", "name": "x"})
    assert (first.intended_at, second.intended_at) == (start, world.services.now())
    assert second.token == first.token
    assert second.detail == {"image": "ami-1", "name": "x", "since": start}
    line = ledger.made(second, "i-1")
    world.clock.advance(1)
    assert ledger.intend("instance", "main") == line


def test_next_attempt_has_own_token_and_time(world):
    cluster = world.create()
    first = ledger_of(world, cluster).intend("instance", "main", {"image": "ami-1"})
    world.provider.faults["account"] = [VendorThrottled("slow")] * 11
    assert world.drive(cluster, "provision_cluster") == "not_deployed"
    world.clock.advance(300)
    resumed = resume_cluster(world.services, cluster.id, "ann")
    second = ledger_of(world, resumed).intend("instance", "main", {"image": "ami-2"})
    assert second.token != first.token
    assert second.detail == {"image": "ami-2", "since": world.services.now()}


def test_repeated_intent_is_fenced(world):
    cluster = world.create()
    stale = ledger_of(world, cluster)
    line = stale.intend("vpc", "main")
    delete_cluster(world.services, cluster.id, "ann")
    with pytest.raises(Fenced):
        stale.intend("vpc", "main")
    assert world.services.store.get(Resource, line.id) == line


def test_second_worker_with_same_intent_is_refused(world, monkeypatch):
    cluster = world.create()
    ledger = ledger_of(world, cluster)
    line = ledger.intend("vpc", "main")
    real = type(world.services.store).get

    def get(self, kind, name):
        return None if kind is Resource else real(self, kind, name)

    monkeypatch.setattr(type(world.services.store), "get", get)
    with pytest.raises(NotYetVisible):
        ledger.intend("vpc", "main")
    monkeypatch.undo()
    assert world.services.store.get(Resource, line.id) == line


# --- what the cluster's nodes left -----------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["in use", "throttled"])
def test_volumes_are_searched_again_after_machine_is_removed(world, monkeypatch, first):
    cluster = world.create()
    assert world.drive(cluster, "provision_cluster") == "ready"
    volumes, looks = ["vol-1"], []
    real = type(world.provider).remove

    def remove(self, phase, work):
        outcome = real(self, phase, work)
        if phase != "control_plane":
            return outcome
        looks.append(times.to_text(work.now))
        if len(looks) == 1 and first == "throttled":
            raise VendorThrottled("slow")
        if len(looks) < 3:
            return Outcome(False, "volumes of the cluster are still in use", remaining=tuple(volumes))
        volumes.clear()
        return outcome

    monkeypatch.setattr(type(world.provider), "remove", remove)
    deleting = delete_cluster(world.services, cluster.id, "ann")
    assert world.drive(deleting, "delete_cluster") == "gone"
    assert (len(looks), volumes) == (3, [])
    assert world.services.store.get(Cluster, cluster.id) is None
