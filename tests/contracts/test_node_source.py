"""The contract of ``ports.nodes.NodeSource``, with the real ledger, for every source of the registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from local.testing.memory_store import MemoryStore, MemoryTable
from stockyard.domain.pools.records import cluster_claim
from stockyard.domain.records import NodeClaim, NodeEnvironment, NodeProvider, Placement, PlacementOption, Resource
from stockyard.domain.values.states import DesiredPower
from stockyard.domain.values.times import to_text
from stockyard.errors import Fenced, InsufficientCapacity, NodeCouldNotBeProvisioned
from stockyard.operations.engine.ledger import Owner, StoreLedger, lines_of
from stockyard.operations.node_claims.machine_holds import StoreHolds
from stockyard.operations.services import Services
from stockyard.ports import CloudWork, Create, Outcome, Replace
from stockyard.ports.clusters import TOKEN
from stockyard.ports.node_work import EnvironmentWork, Machine, NodeWork
from tests.harness.worlds.node_source_cases import CLAIM, CLUSTER, ENVIRONMENT, MOMENT, PROVIDER, SOURCES, cluster_of

OF_VENDORS = ("bcm", "cudo", "ec2", "kubeVirt", "metal3", "terraform")


class World:
    """One cluster with one claim on the source, with a table in memory."""

    def __init__(self, name: str, stack: ExitStack) -> None:
        self.store = MemoryStore(MemoryTable(), "acme")
        self.case = SOURCES[name](self.store, stack)
        self.clock = self.case.clock
        services = SimpleNamespace(store=self.store, clock=self.clock, now=lambda: to_text(self.clock.now()))
        self.services = cast(Services, services)
        self.account = self.case.account
        self.provider = NodeProvider(PROVIDER, "yard", name.partition(" ")[0], self.case.spec, MOMENT, MOMENT)
        self.cluster = cluster_of(self.account.provider, int(self.account.id), self.case.driver)
        self.environment = NodeEnvironment(ENVIRONMENT, CLUSTER, PROVIDER, "yard", MOMENT, MOMENT)
        self.claim = NodeClaim(
            CLAIM, "workers-1", MOMENT, MOMENT, cluster_id=CLUSTER, operation_id="op_1", pool=self.case.pool
        )
        self.claim = replace(self.claim, placement=self.placement(*self.case.types))
        entry = cluster_claim(CLUSTER, self.case.pool, CLAIM, MOMENT)
        self.store.commit(Create(self.cluster), Create(self.environment), Create(self.claim), Create(entry))
        if self.case.cluster_driver is not None:
            for phase in ("network", "security", "identity"):
                self.until_done(partial(self._cluster_phase, phase))

    def placement(self, *names: str) -> Placement:
        options = tuple(
            PlacementOption(f"yard.{name}", "on-demand", (self.case.zone,), usd_hour=0.1, cost=1) for name in names
        )
        return Placement(PROVIDER, f"yard.{names[0]}", "on-demand", (self.case.zone,), 1.0, MOMENT, options=options)

    def _cluster_phase(self, phase: str) -> Outcome:
        assert self.case.cluster_driver is not None
        ledger = StoreLedger(self.services, Owner.of_cluster(self.cluster, "op_0", 1), phase)
        work = CloudWork("acme", "inst", self.cluster, self.account, ledger, self.clock.now(), "op_0")
        return self.case.cluster_driver.ensure(phase, work)

    def work(self, operation: str = "op_1", **changes: Any) -> NodeWork:
        owner = Owner.of_claim(self.claim, operation, self.claim.attempt, "us-east-1", 1)
        work = NodeWork(
            "acme", "inst", self.claim, self.provider, StoreLedger(self.services, owner, "launch"), self.clock.now(),
            operation, self.cluster, self.account, self.environment,
            holds=self._holds(owner),
        )  # fmt: skip
        return replace(work, **changes)

    def _holds(self, owner: Owner) -> StoreHolds | None:
        source = self.case.source
        inventory = source.host_inventory(self.provider, self.account)
        return StoreHolds(self.services, self.claim, owner.guard, inventory) if inventory or self.case.grouped else None

    def environment_work(self) -> EnvironmentWork:
        ledger = StoreLedger(self.services, Owner.of_environment(self.environment, "us-east-1", 1), "environment")
        return EnvironmentWork(
            "acme",
            "inst",
            self.environment,
            self.provider,
            self.cluster,
            ledger,
            self.clock.now(),
            "op_1",
            self.account,
        )

    def until_done(self, step: Callable[[], Outcome]) -> Outcome:
        for _ in range(60):
            outcome = step()
            if outcome.done:
                return outcome
            assert outcome.message
            assert outcome.wait_seconds > 0
            self.clock.advance(outcome.wait_seconds)
        raise AssertionError(f"it does not end: {outcome}")

    def prepare(self) -> Outcome:
        outcome = self.until_done(lambda: self.case.source.prepare(self.environment_work()))
        self.environment = replace(self.environment, phase="Available", outputs=dict(outcome.facts))
        return outcome

    def launch(self) -> Outcome:
        return self.until_done(lambda: self.case.source.launch(self.work()))

    def terminate(self) -> None:
        self.until_done(lambda: self.case.source.terminate(self.work()))

    def look(self) -> Machine:
        return self.case.source.look(self.work())

    def running(self) -> Machine:
        for _ in range(20):
            observed = self.look()
            if observed.state == "running":
                return observed
            self.clock.advance(observed.refresh or 15)
        raise AssertionError(f"it does not run: {observed}")

    def next_attempt(self) -> None:
        self.claim = replace(self.claim, attempt=self.claim.attempt + 1, version=self.claim.version + 1)
        self.store.commit(Replace(self.claim))

    def lines(self) -> list[Resource]:
        return lines_of(self.services, CLAIM)


@pytest.fixture(params=sorted(SOURCES))
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "example")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with ExitStack() as stack:
        yield World(request.param, stack)


def test_machines_of_vendors_take_part_in_an_overlay(world: World) -> None:
    """Machines that begin with our first boot can."""
    assert world.case.source.joins_overlay or world.provider.kind not in OF_VENDORS


def test_node_types_belong_to_provider_and_are_available(world: World) -> None:
    node_types = world.case.source.node_types(world.provider, world.account)
    assert [node_type.bare for node_type in node_types] == list(world.case.types)
    for node_type in node_types:
        assert node_type.provider == "yard"
        assert node_type.available
        assert node_type.offerings
        assert all(amount > 0 for amount in node_type.allocatable.values())
        assert all(node_type.allocatable[name] <= amount for name, amount in node_type.capacity.items())
    findings = world.case.source.inspect(world.provider, world.account)
    assert [finding for finding in findings if not finding.warning] == []
    assert "/" in world.case.source.scope(world.provider, world.account)


def test_launch_is_idempotent_and_returns_machine(world: World) -> None:
    world.prepare()
    first = world.launch()
    assert set(first.facts) >= {"machine_id", "type", "capacity_type", "zone"}
    assert (first.facts["type"], first.facts["capacity_type"]) == (f"yard.{world.case.types[0]}", "on-demand")
    assert first.facts["machine_id"] in world.case.machines()
    assert {line.state for line in world.lines()} == {"made"}
    world.clock.advance(3600)
    assert world.launch().facts == first.facts
    assert len(world.case.machines()) == 1


def test_a_machine_token_is_told_to_one_machine_and_kept_in_no_record(world: World) -> None:
    source = world.case.source
    if source.attestation(world.provider) != TOKEN:
        pytest.skip("its machines sign a request: there is no token")
    assert source.together(world.provider, "on-demand", {}) == 1, "machines of one call have the same user data"
    world.prepare()
    token = "0123456789abcdef" * 4
    outcome = source.launch(world.work(machine_token=token))
    assert token not in repr((outcome, world.work(machine_token=token), world.lines()))
    assert token not in repr(list(world.store._table.items()))


def test_launched_machine_runs_after_a_while(world: World) -> None:
    world.prepare()
    assert world.look().state == "absent"
    facts = world.launch().facts
    observed = world.running()
    assert (observed.machine_id, observed.zone) == (facts["machine_id"], facts["zone"])


def test_launch_uses_next_option_when_first_is_full(world: World) -> None:
    if world.case.grouped:
        pytest.skip("a group has one type")
    if world.case.of_template:
        pytest.skip("a template has one way to make a machine; what it cannot have is the error of its run")
    world.case.full.add(world.case.types[0])
    world.prepare()
    assert world.launch().facts["type"] == f"yard.{world.case.types[1]}"


def test_refused_launch_names_offerings_and_leaves_nothing(world: World) -> None:
    if world.case.of_template:
        pytest.skip("what a template cannot have is the error of its run, which its own tests have")
    world.case.full.update(world.case.types)
    world.prepare()
    with pytest.raises(InsufficientCapacity) as caught:
        world.launch()
    assert {name for name, _, _ in caught.value.refused} == set(world.case.types)
    assert {capacity_type for _, capacity_type, _ in caught.value.refused} == {"on-demand"}
    assert {world.case.zone} <= {zone for _, _, zone in caught.value.refused}, "else the same way is chosen again"
    assert caught.value.code
    assert world.case.machines() == []
    world.case.full.clear()
    world.next_attempt()
    assert world.launch().facts["type"] == f"yard.{world.case.types[0]}"
    assert len(world.case.machines()) == 1


def test_stale_operation_launches_nothing(world: World) -> None:
    world.prepare()
    with pytest.raises(Fenced):
        world.case.source.launch(world.work("op_stale"))
    assert world.case.machines() == []


def test_launch_of_unscheduled_claim_is_refused(world: World) -> None:
    world.prepare()
    with pytest.raises(NodeCouldNotBeProvisioned):
        world.case.source.launch(world.work(claim=replace(world.claim, placement=None)))


def switch(world: World, state: DesiredPower) -> Outcome:
    assert world.case.source.switches
    return world.case.source.power(world.work(), state)


def test_power_states_are_switched(world: World) -> None:
    if world.case.grouped:
        pytest.skip("a group replaces what is off; that it is refused is tested with the source")
    if not world.case.source.switches:
        pytest.skip("its kind switches no machines; that use cases refuse it is tested with them")
    world.prepare()
    with pytest.raises(NodeCouldNotBeProvisioned):
        switch(world, "Off")
    world.launch()
    world.running()
    states: tuple[tuple[DesiredPower, str], ...] = (("Off", "stopped"), ("On", "running"), ("Reboot", "running"))
    for state, expected in states:
        outcome = world.until_done(partial(switch, world, state))
        assert outcome.facts["power"] == ("Off" if state == "Off" else "On")
        if state == "Reboot":
            world.running()
        assert world.look().state == expected


@pytest.mark.parametrize("launched", [False, True])
@pytest.mark.parametrize("seconds", [0, 3600])
def test_termination_leaves_nothing(world: World, launched: bool, seconds: int) -> None:
    world.prepare()
    if launched:
        world.launch()
    world.clock.advance(seconds)
    world.terminate()
    assert (world.case.machines(), world.lines()) == ([], [])
    world.terminate()
    assert world.look().state in ("absent", "gone")


def test_environment_preparation_and_removal_are_idempotent(world: World) -> None:
    first = world.prepare()
    lines = lines_of(world.services, ENVIRONMENT)
    world.clock.advance(3600)
    assert world.prepare().facts == first.facts
    assert lines_of(world.services, ENVIRONMENT) == lines
    world.launch()
    world.terminate()
    for _ in range(2):
        world.until_done(lambda: world.case.source.clear(world.environment_work()))
    assert lines_of(world.services, ENVIRONMENT) == []


def test_orphans_are_listed_and_discarded(world: World) -> None:
    if world.case.of_template:
        pytest.skip("what a template has made its state knows alone, and a claim's ledger has that")
    world.prepare()
    machine = world.launch().facts["machine_id"]
    source, cloud = world.case.source, world.case.cloud
    if cloud is None:
        resources = [*source.tagged(world.provider, "inst", "acme")]
        assert list(source.tagged(world.provider, "another", "acme")) == []
    else:
        resources = [*cloud.tagged(world.account, "inst", "acme", ["us-east-1"])]
        assert list(source.tagged(world.provider, "inst", "acme")) == []
    (thing,) = [resource for resource in resources if resource.vendor_id == machine]
    assert (thing.resource_id, thing.tenant, thing.generation) == (CLAIM, "acme", "1")
    ends: list[bool] = []
    while ends[-2:] != [True, True]:
        if cloud is None:
            ends.append(source.discard(world.provider, thing, "acme"))
        else:
            ends.append(cloud.discard(world.account, thing, "acme"))
        world.clock.advance(10)
        assert len(ends) < 12, "a cloud may take a moment to end it, and a host is wiped first"
    # A group makes another one, which nobody holds.
    assert [machine_id for machine_id in world.case.machines() if machine_id == machine or not world.case.grouped] == []
