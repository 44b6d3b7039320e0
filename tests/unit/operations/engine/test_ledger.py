"""Marks that a phase finds on the ledger, and its number of reads of the store."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import Resource
from stockyard.errors import NotYetVisible
from stockyard.operations.engine.ledger import Owner, StoreLedger
from tests.unit.operations.conftest import World


class Counting:
    """A store that counts its calls."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        self.calls[name] += 1
        return getattr(self._store, name)


def ledgers(world: World, *phases: str) -> tuple[Counting, list[StoreLedger]]:
    cluster = world.cluster(world.create())
    owner = Owner.of_cluster(cluster, str(cluster.operation_id), cluster.attempt)
    store = Counting(world.services.store)
    services = replace(world.services, store=store)
    return store, [StoreLedger(services, owner, phase) for phase in phases]


def test_find_reads_lines_of_earlier_phases_once(world: World) -> None:
    store, (network, security, endpoint) = ledgers(world, "network", "security", "endpoint")
    for key in ("a", "b"):
        network.made(network.intend("subnet", key), f"subnet-{key}")
    security.made(security.intend("security_group", "node"), "sg-1")
    store.calls.clear()
    lines = [endpoint.find(kind, key) for kind, key in (("subnet", "a"), ("subnet", "b"), ("security_group", "node"))]
    assert [line.vendor_id for line in lines if line] == ["subnet-a", "subnet-b", "sg-1"]
    assert endpoint.find("subnet", "c") is None
    assert store.calls["list"] == 1


def test_find_reads_own_lines_each_time(world: World) -> None:
    """The phase and other workers change these lines while it runs."""
    _, (ledger, other_worker) = ledgers(world, "network", "network")
    assert ledger.find("vpc", "main") is None
    line = other_worker.intend("vpc", "main")
    assert ledger.find("vpc", "main") == line
    recorded = other_worker.made(line, "vpc-1")
    assert ledger.find("vpc", "main") == recorded
    other_worker.gone(recorded)
    assert ledger.find("vpc", "main") is None


def test_intent_behind_a_find_reads_nothing_and_is_refused_when_late(world: World) -> None:
    store, (ledger, other_worker) = ledgers(world, "network", "network")
    assert ledger.find("vpc", "main") is None
    store.calls.clear()
    line = ledger.intend("vpc", "main")
    assert store.calls["get"] == 0
    assert other_worker.find("subnet", "a") is None
    ledger.intend("subnet", "a")
    with pytest.raises(NotYetVisible, match="another worker"):
        other_worker.intend("subnet", "a")
    assert ledger.find("vpc", "main") == line
    ledger.gone(line)
    assert ledger.intend("vpc", "main").version == 3, "what was found before is not believed any more"


def test_gone_line_keeps_its_time_until_next_intent(world: World) -> None:
    store, (network,) = ledgers(world, "network")
    line = network.made(network.intend("vpc", "main"), "vpc-1")
    network.gone(line)
    stored = store.get(Resource, line.id)
    assert (stored.state, stored.gone_at) == ("gone", world.services.now())
    world.clock.advance(60)
    network.gone(line)
    assert store.get(Resource, line.id) == stored, "it is gone once"
    assert network.intend("vpc", "main").gone_at is None


def test_find_returns_line_of_other_phase_after_own_is_gone(world: World) -> None:
    _, (network, leftovers) = ledgers(world, "network", "leftovers")
    network.made(network.intend("security_group", "x"), "sg-network")
    own = leftovers.made(leftovers.intend("security_group", "x"), "sg-own")
    assert leftovers.find("security_group", "x") == own
    leftovers.gone(own)
    line = leftovers.find("security_group", "x")
    assert line is not None
    assert line.vendor_id == "sg-network"
