"""The sweep says up to where history has entries by its subjects, and gives those that are lacking."""

from __future__ import annotations

from datetime import timedelta

import pytest

from stockyard.domain.operation_records import SubjectOperation
from stockyard.domain.records import AuditRecord, Event, Fact, Operation
from stockyard.domain.subject_entries import bound_fact
from stockyard.domain.values import ids, times
from stockyard.operations.listing import every
from stockyard.operations.sweep import run
from stockyard.operations.sweep.subject_entries import AGE, AGE_OF_OPERATIONS, sweep_entries
from stockyard.ports import Create
from tests.unit.operations.conftest import World, make_world


@pytest.fixture
def world() -> World:
    """A tenant with the events of one cluster, none of them young."""
    world = make_world()
    world.create("demo")
    world.clock.advance(600)
    return world


def _write(world: World, number: int) -> Event:
    now = world.clock.now()
    name = ids.make(ids.EVENT, now, world.clock.randomness(10))
    event = Event(name, "Cluster", "clu_1", number, times.to_text(now), "ann", None, None, "Told", "")
    world.services.store.commit(Create(event))
    return event


def _forget(world: World, *events: Event) -> None:
    for event in events:
        item = world.registry.table.partitions[f"T#{world.services.tenant}#Event"][event.id]
        del item["all_pk"], item["all_sk"]


def _bound(world: World) -> str | None:
    fact = world.services.store.get(Fact, bound_fact(Event))
    return fact.value if fact else None


def test_the_bound_leaves_out_what_is_young(world: World) -> None:
    _write(world, 1)
    assert sweep_entries(world.services) is None
    assert _bound(world) == ids.before(ids.EVENT, world.clock.now() - AGE)
    audit = world.services.store.get(Fact, bound_fact(AuditRecord))
    assert audit is not None
    assert audit.value == ids.before(ids.AUDIT, world.clock.now() - AGE)


def test_a_record_without_an_entry_gets_one_and_is_looked_at_again(world: World) -> None:
    old, young = _write(world, 1), _write(world, 2)
    _forget(world, old, young)
    world.clock.advance(300)
    assert sweep_entries(world.services) == "gave 2 entries to history of"
    assert str(_bound(world)) < old.id
    world.clock.advance(60)
    assert sweep_entries(world.services) is None
    assert str(_bound(world)) < old.id, "the index may be behind the table"
    world.clock.advance(120)
    assert sweep_entries(world.services) is None
    assert str(_bound(world)) > young.id


def test_nothing_is_written_where_nothing_has_happened(world: World) -> None:
    sweep_entries(world.services)
    first = world.services.store.get(Fact, bound_fact(Event))
    world.clock.advance(3600)
    sweep_entries(world.services)
    assert world.services.store.get(Fact, bound_fact(Event)) == first
    event = _write(world, 1)
    world.clock.advance(300)
    sweep_entries(world.services)
    assert str(_bound(world)) > event.id


def test_each_turn_of_a_tenant_moves_its_bound_on_where_the_table_is_trusted(world: World) -> None:
    reaper = run.Reaper(world.registry, world.clock, lambda _: world.services, lambda *_: None, None)
    reaper.run()
    assert _bound(world) == ids.before(ids.EVENT, world.clock.now() - AGE)
    latest = max(event.id for event in every(world.services.store, Event))
    world.registry.table.id = "table-2"
    _write(world, 1)
    world.clock.advance(timedelta(minutes=10).total_seconds())
    reaper.run()
    assert latest < str(_bound(world)) < max(event.id for event in every(world.services.store, Event))


def test_operations_get_entries_that_name_them(world: World) -> None:
    operations = list(every(world.services.store, Operation))
    assert operations
    sweep_entries(world.services)
    entries = list(every(world.services.store, SubjectOperation))
    assert sorted(entry.id for entry in entries) == sorted(f"{each.subject}/{each.id}" for each in operations)
    fact = world.services.store.get(Fact, bound_fact(Operation))
    assert fact is not None
    assert fact.value == ids.before(ids.OPERATION, world.clock.now() - AGE_OF_OPERATIONS)
