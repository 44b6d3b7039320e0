"""One worker at a time undoes an acceptance, and never that of a cluster whose workflow was started."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stockyard.domain.records import Cluster, Counter, Name
from stockyard.errors import RequestInProgress, UnexpectedBehavior, VendorUnavailable
from stockyard.operations.clusters.creation import create as creation
from stockyard.operations.clusters.creation.undo_acceptance import undo
from stockyard.operations.sweep.records import sweep_lease
from stockyard.ports import Create, Remove

ID = "clu_01KG9YS7G0WQ0PAZ3RREMPE4FB"


class ProcessDied(Exception):
    """Ends a worker without any clean-up."""


@pytest.fixture
def accepted(world):
    """An acceptance whose worker created the client and died before it started the workflow."""
    world.identity.faults.after("create_client", ProcessDied())
    with pytest.raises(ProcessDied):
        creation.create_cluster(world.services, world.new_cluster(), "ann", ID)
    return stored(world)


def stored(world):
    return world.services.store.get(Cluster, ID)


def again(world):
    return creation.create_cluster(world.services, world.new_cluster(), "ann", ID)[0]


def before(world, method, act):
    """Run ``act`` once, just before the next call of a method of the realm."""
    original = getattr(world.identity, method)

    def call(*args, **kwargs):
        setattr(world.identity, method, original)
        act()
        return original(*args, **kwargs)

    setattr(world.identity, method, call)


def used(world):
    counter = world.services.store.get(Counter, "quota/clusters")
    return counter.value if counter else 0


def whole(world):
    """Whether the cluster is handed over and has its client, its name and its share of the quota."""
    cluster = stored(world)
    client = world.identity.find_client(cluster.client_id)
    name = world.services.store.get(Name, "cluster/demo")
    return (cluster.status, client is not None, name is not None, used(world)) == ("preparing", True, True, 1)


def nothing_left(world):
    store = world.services.store
    return (
        not world.identity.clients and not store.list(Cluster).items and not store.list(Name).items and not used(world)
    )


@pytest.mark.parametrize("method", ["find_client", "delete_client"])
def test_hand_over_during_undo_keeps_client_or_fails(world, accepted, method):
    outcome = []

    def hand_over():
        try:
            outcome.append(creation._hand_over(world.services, accepted, "ann").status)
        except UnexpectedBehavior:
            outcome.append("undone")

    before(world, method, hand_over)
    undo(world.services, accepted)
    if method == "find_client":
        assert outcome == ["preparing"]
        assert whole(world)
    else:
        assert outcome == ["undone"]
        assert nothing_left(world)


def test_repeated_hand_over_changes_nothing(world, accepted):
    first = creation._hand_over(world.services, accepted, "ann")
    assert creation._hand_over(world.services, accepted, "ann") == first
    assert whole(world)


def test_take_over_renews_lease(world, accepted):
    world.clock.advance(world.services.settings.lease_seconds + 1)
    [(_, due)] = world.registry.due(Cluster, world.clock.now())
    outcomes = []

    def sweep():
        outcomes.append((sweep_lease(world.services, due), world.registry.due(Cluster, world.clock.now())))

    before(world, "create_client", sweep)
    again(world)
    assert outcomes == [(None, [])]
    assert whole(world)


def test_first_worker_changes_nothing_after_take_over(world, accepted):
    def wake():
        with pytest.raises(UnexpectedBehavior):
            creation._hand_over(world.services, accepted, "ann")

    before(world, "create_client", wake)
    again(world)
    assert whole(world)


def test_concurrent_take_over_is_refused(world, accepted):
    commit = type(world.services.store).commit
    store = world.services.store

    class Raced:
        tenant = store.tenant

        def get(self, kind, id):
            return store.get(kind, id)

        def commit(self, *writes):
            commit(store, *[replace(w, record=replace(w.record, description="the other")) for w in writes])
            commit(store, *writes)

    with pytest.raises(RequestInProgress):
        creation._taken_over(replace(world.services, store=Raced()), ID)
    assert stored(world).version == 2


@pytest.mark.parametrize("late", [False, True])
def test_sweep_finishes_interrupted_undo(world, accepted, late):
    (world.identity.faults.after if late else world.identity.faults.before)("delete_client", VendorUnavailable("down"))
    assert undo(world.services, accepted) is False
    assert stored(world).status == "undoing"
    world.clock.advance(world.services.settings.lease_seconds + 1)
    [(_, due)] = world.registry.due(Cluster, world.clock.now())
    assert sweep_lease(world.services, due) == "undone"
    assert nothing_left(world)


def test_retry_finishes_interrupted_undo_and_creates_cluster(world, accepted):
    world.identity.faults.before("delete_client", VendorUnavailable("down"))
    undo(world.services, accepted)
    world.identity.faults.before("find_client", VendorUnavailable("down"))
    with pytest.raises(RequestInProgress):
        again(world)
    assert again(world).id == ID
    assert whole(world)


@pytest.mark.parametrize("method", ["find_client", "delete_client"])
def test_late_undo_does_not_change_recreated_cluster(world, accepted, method):
    """A second undo ends, and the repeated request is handed over, at any step of the first undo."""

    def undo_and_retry():
        assert undo(world.services, stored(world)) is True
        assert again(world).status == "preparing"

    before(world, method, undo_and_retry)
    undo(world.services, accepted)
    assert whole(world)


def test_undo_removes_only_records_under_undo(world, accepted):
    """The version alone does not distinguish the first acceptance from a later one with the same id."""

    class Slow:
        tenant, get, list = world.services.store.tenant, world.services.store.get, world.services.store.list

        def commit(self, *writes):
            if isinstance(writes[0], Remove):
                assert undo(world.services, stored(world)) is True
                assert again(world).version == writes[0].version
            world.services.store.commit(*writes)

    assert undo(replace(world.services, store=Slow()), accepted) is False
    assert whole(world)


def test_undo_of_missing_acceptance_succeeds(world, accepted):
    assert undo(world.services, accepted) is True
    assert undo(world.services, accepted) is True
    assert nothing_left(world)
    world.services.store.commit(Create(replace(accepted, status="preparing")))
    assert undo(world.services, accepted) is False
    assert stored(world).status == "preparing"
