"""What a phase finds on the ledger, and how often it reads for that."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from stockyard.domain.records import Resource
from stockyard.operations.ledger import Owner, StoreLedger
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
    services = replace(world.services, store=store)  # type: ignore[arg-type]
    return store, [StoreLedger(services, owner, phase) for phase in phases]


def test_what_earlier_phases_made_is_read_once(world: World) -> None:
    store, (network, security, endpoint) = ledgers(world, "network", "security", "endpoint")
    for key in ("a", "b"):
        network.made(network.intend("subnet", key), f"subnet-{key}")
    security.made(security.intend("security_group", "node"), "sg-1")
    store.calls.clear()
    found = [endpoint.find(kind, key) for kind, key in (("subnet", "a"), ("subnet", "b"), ("security_group", "node"))]
    assert [line.vendor_id for line in found if line] == ["subnet-a", "subnet-b", "sg-1"]
    assert endpoint.find("subnet", "c") is None
    assert store.calls["list"] == 1


def test_its_own_lines_are_read_each_time(world: World) -> None:
    """They change while it runs, and another worker may change them."""
    _, (mine, another) = ledgers(world, "network", "network")
    assert mine.find("vpc", "main") is None
    line = another.intend("vpc", "main")
    assert mine.find("vpc", "main") == line
    made = another.made(line, "vpc-1")
    assert mine.find("vpc", "main") == made
    another.gone(made)
    assert mine.find("vpc", "main") is None


def test_a_line_says_since_when_it_is_gone_until_it_is_intended_again(world: World) -> None:
    store, (network,) = ledgers(world, "network")
    line = network.made(network.intend("vpc", "main"), "vpc-1")
    network.gone(line)
    gone = store.get(Resource, line.id)
    assert (gone.state, gone.gone_at) == ("gone", world.services.now())
    world.clock.advance(60)
    network.gone(line)
    assert store.get(Resource, line.id) == gone, "it is gone once"
    assert network.intend("vpc", "main").gone_at is None


def test_what_is_gone_of_its_own_may_stand_in_another_phase(world: World) -> None:
    _, (network, leftovers) = ledgers(world, "network", "leftovers")
    network.made(network.intend("security_group", "x"), "sg-network")
    own = leftovers.made(leftovers.intend("security_group", "x"), "sg-own")
    assert leftovers.find("security_group", "x") == own
    leftovers.gone(own)
    found = leftovers.find("security_group", "x")
    assert found is not None
    assert found.vendor_id == "sg-network"
