"""An acceptance is undone by one worker at a time, and never under a cluster that was handed over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stockyard.domain.records import Cluster, Counter, Name
from stockyard.errors import RequestInProgress, UnexpectedBehavior, VendorUnavailable
from stockyard.operations import create_cluster as creation
from stockyard.operations.sweep_clusters import sweep_lease
from stockyard.operations.undo_acceptance import undo
from stockyard.ports import Create, Remove

ID = "clu_01KG9YS7G0WQ0PAZ3RREMPE4FB"


class ProcessDied(Exception):
    """What ends a try without any clean-up."""


@pytest.fixture
def accepted(world):
    """A first try with the id of an Idempotency-Key that made the client and died before it handed over."""
    world.identity.faults.after("create_client", ProcessDied())  # type: ignore[arg-type]
    with pytest.raises(ProcessDied):
        creation.create_cluster(world.services, world.wanted(), "ann", ID)
    return stored(world)


def stored(world):
    return world.services.store.get(Cluster, ID)


def again(world):
    return creation.create_cluster(world.services, world.wanted(), "ann", ID)[0]


def before(world, method, act):
    """Run ``act`` once, just before the next call of a method of the realm."""
    original = getattr(world.identity, method)

    def call(*args, **kwargs):
        setattr(world.identity, method, original)
        act()
        return original(*args, **kwargs)

    setattr(world.identity, method, call)


def used(world):
    found = world.services.store.get(Counter, "quota/clusters")
    return found.value if found else 0


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
def test_a_hand_over_during_an_undo_keeps_its_client_or_does_not_happen(world, accepted, method):
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


def test_a_second_hand_over_returns_the_cluster_and_takes_nothing_away(world, accepted):
    first = creation._hand_over(world.services, accepted, "ann")
    assert creation._hand_over(world.services, accepted, "ann") == first
    assert whole(world)


def test_a_take_over_renews_the_lease_so_that_no_sweep_undoes_it(world, accepted):
    world.clock.advance(world.services.rules.lease_seconds + 1)
    [(_, due)] = world.registry.due(Cluster, world.clock.now())
    seen = []

    def sweep():
        seen.append((sweep_lease(world.services, due), world.registry.due(Cluster, world.clock.now())))

    before(world, "create_client", sweep)
    again(world)
    assert seen == [("nothing", [])]
    assert whole(world)


def test_the_first_try_wakes_up_after_a_take_over_and_disturbs_nothing(world, accepted):
    def wake():
        with pytest.raises(UnexpectedBehavior):
            creation._hand_over(world.services, accepted, "ann")

    before(world, "create_client", wake)
    again(world)
    assert whole(world)


def test_two_take_overs_at_once_are_one(world, accepted):
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
def test_an_interrupted_undo_is_invisible_and_finished_by_the_sweep(world, accepted, late):
    (world.identity.faults.after if late else world.identity.faults.before)("delete_client", VendorUnavailable("down"))
    assert undo(world.services, accepted) is False
    assert stored(world).status == "undoing"
    world.clock.advance(world.services.rules.lease_seconds + 1)
    [(_, due)] = world.registry.due(Cluster, world.clock.now())
    assert sweep_lease(world.services, due) == "undone"
    assert nothing_left(world)


def test_a_retry_finishes_an_interrupted_undo_and_begins_anew(world, accepted):
    world.identity.faults.before("delete_client", VendorUnavailable("down"))
    undo(world.services, accepted)
    world.identity.faults.before("find_client", VendorUnavailable("down"))
    with pytest.raises(RequestInProgress):
        again(world)
    assert again(world).id == ID
    assert whole(world)


@pytest.mark.parametrize("method", ["find_client", "delete_client"])
def test_an_undo_that_slept_does_not_touch_the_cluster_made_anew_under_its_id(world, accepted, method):
    """The other undo finishes, and the retry is handed over, at any point of the first one."""

    def other():
        assert undo(world.services, stored(world)) is True
        assert again(world).status == "preparing"

    before(world, method, other)
    undo(world.services, accepted)
    assert whole(world)


def test_records_are_removed_only_while_they_are_being_undone(world, accepted):
    """The version alone does not tell the first acceptance from one that was made anew under its id."""

    class Slow:
        tenant, get, list = world.services.store.tenant, world.services.store.get, world.services.store.list

        def commit(self, *writes):
            if isinstance(writes[0], Remove):
                assert undo(world.services, stored(world)) is True
                assert again(world).version == writes[0].version
            world.services.store.commit(*writes)

    assert undo(replace(world.services, store=Slow()), accepted) is False
    assert whole(world)


def test_an_acceptance_that_is_gone_is_undone(world, accepted):
    assert undo(world.services, accepted) is True
    assert undo(world.services, accepted) is True
    assert nothing_left(world)
    world.services.store.commit(Create(replace(accepted, status="preparing")))
    assert undo(world.services, accepted) is False
    assert stored(world).status == "preparing"
