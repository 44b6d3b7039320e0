"""Parts of a cluster that somebody took away in the cloud are named on the cluster, until they are there again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from stockyard.domain.records import Cluster, Operation, Resource
from stockyard.errors import StockyardError, VendorUnavailable
from stockyard.lifecycle.sweeping import COMPLETE, MOST_SUSPECTS, PARTS_GONE, unlisted
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.fleet.pools import conditions
from stockyard.operations.sweep import parts
from stockyard.operations.sweep.scopes import ScopeSweep
from stockyard.operations.sweep.tally import Tally
from stockyard.ports import CloudWork, Create, Replace, Tagged
from stockyard.ports.clusters import GonePart
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import MemoryProvider, World, make_world

NAMES = {("aws", "k8s"): ("ec2",)}


@dataclass
class PartsProvider(MemoryProvider):
    """Reports one part as gone, and remembers the lines of the questions."""

    looks_at_parts = True

    questions: list[str] = field(default_factory=list)
    hidden: set[str] = field(default_factory=set)
    """What is there and has lost its tags."""
    given_ids: set[str] = field(default_factory=set)
    error: StockyardError | None = None

    def gone_parts(self, work: CloudWork, lines: Sequence[Resource]) -> Sequence[GonePart]:
        self.questions += [line.vendor_id for line in lines]
        if self.error is not None:
            raise self.error
        gone_lines = [line for line in lines if line.vendor_id not in {*self.things, *self.hidden}]
        return [
            GonePart(line, f"{line.kind} {line.vendor_id}", line.vendor_id in self.given_ids) for line in gone_lines
        ]

    def tagged(self, *args: Any, **kwargs: Any) -> Sequence[Tagged]:
        things = super().tagged(*args, **kwargs)
        # The ledger calls the machine of a control plane an instance.
        return [replace(thing, kind="instance") if thing.kind == "control_plane" else thing for thing in things]


@dataclass
class Yard:
    world: World
    provider: PartsProvider
    cluster_id: str

    def swept(self) -> str:
        """Message of the cluster after a sweep; empty for nothing."""
        tally = Tally()
        ScopeSweep(self.world.services, "account/1", trusted=True, tally=tally).run()
        assert bool(tally.failures) == bool(self.provider.error or self.provider.dark), tally.failures
        part = conditions.of(self.cluster, COMPLETE)
        assert part is None or (part.status, part.reason) == ("False", PARTS_GONE)
        return part.message if part is not None else ""

    @property
    def cluster(self) -> Cluster:
        cluster = self.world.services.store.get(Cluster, self.cluster_id)
        assert cluster is not None
        return cluster

    def take(self, phase: str) -> str:
        """Somebody removes what a phase has made; its id."""
        (vendor_id,) = [name for name, kind in self.provider.things.items() if kind == phase]
        del self.provider.things[vendor_id]
        return vendor_id


@pytest.fixture
def yard() -> Yard:
    world, provider = make_world(), PartsProvider()
    services = with_ports(
        world.services, clouds={"aws": provider}, cluster_drivers={"ec2": provider}, driver_names=NAMES
    )
    world = replace(world, services=services, provider=provider)
    cluster = world.create("demo")
    assert world.drive(cluster, "provision_cluster") == "ready"
    return Yard(world, provider, cluster.id)


def test_nobody_is_asked_and_no_claim_read_while_all_is_listed(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "claims_of", None)
    assert yard.swept() == ""
    assert yard.provider.questions == []


def test_what_is_gone_is_named_until_it_is_there_again(yard: Yard) -> None:
    network, machine = yard.take("network"), yard.take("control_plane")
    text = yard.swept()
    assert text == (
        f"Gone from the cloud account: network {network}, instance {machine}."
        f" The next change of the cluster makes network {network} again."
    )
    assert sorted(yard.provider.questions) == sorted([network, machine])
    version = yard.cluster.version
    assert yard.swept() == text
    assert yard.cluster.version == version, "nothing is written that is known"
    yard.provider.things |= {network: "network", machine: "control_plane"}
    assert yard.swept() == ""


def test_what_has_lost_its_tags_alone_is_there(yard: Yard) -> None:
    yard.provider.hidden.add(yard.take("network"))
    assert yard.swept() == ""
    assert len(yard.provider.questions) == 1


def test_what_the_tenant_has_given_is_for_the_tenant_to_replace(yard: Yard) -> None:
    network = yard.take("network")
    yard.provider.given_ids.add(network)
    assert yard.swept().endswith(f"Name others in the settings instead of network {network}.")


def test_a_read_that_fails_changes_nothing(yard: Yard) -> None:
    yard.take("network")
    yard.provider.error = VendorUnavailable("EC2 does not answer")
    assert yard.swept() == ""
    yard.provider.error = None
    text = yard.swept()
    assert text
    yard.provider.error = VendorUnavailable("EC2 does not answer")
    assert yard.swept() == text
    yard.provider.error = None
    yard.provider.dark.add("us-east-1")
    count = len(yard.provider.questions)
    assert yard.swept() == text, "of a region that does not answer nothing is known"
    assert len(yard.provider.questions) == count


def test_nothing_is_said_while_an_operation_makes_and_removes_parts(yard: Yard) -> None:
    yard.take("network")
    store = yard.world.services.store
    operation = store.get(Operation, str(yard.cluster.operation_id))
    assert operation is not None
    store.commit(Replace(replace(operation, status="running", version=operation.version + 1)))
    assert yard.swept() == ""
    assert yard.provider.questions == []


def test_lines_of_machines_of_claims_take_no_room_among_the_few_that_are_asked_about(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = lines_of(yard.world.services, yard.cluster_id)[0]
    many = [replace(line, id=f"{yard.cluster_id}/a/{number:03}", vendor_id=str(number)) for number in range(80)]
    yard.world.services.store.commit(*map(Create, many))
    machines = [SimpleNamespace(machine_id=str(number)) for number in range(50)]
    monkeypatch.setattr(parts, "claims_of", lambda *_: machines)
    yard.swept()
    assert yard.provider.questions == [str(number) for number in range(50, 50 + MOST_SUSPECTS)]


def test_only_what_was_made_can_be_missing(yard: Yard) -> None:
    line = lines_of(yard.world.services, yard.cluster_id)[0]
    many = [replace(line, id=f"{line.id}{number}", vendor_id=str(number)) for number in range(50)]
    assert unlisted([*many, replace(line, state="intended")], set()) == many
