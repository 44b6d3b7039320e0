"""Environments without claims are removed, also when a new claim arrives during the removal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import Cluster, NodeClaim, NodeEnvironment, NodeProvider, Resource
from stockyard.errors import Fenced, InUse, NotYetVisible, VendorUnavailable
from stockyard.operations.clusters.removal.delete import delete_cluster
from stockyard.operations.engine.act import act
from stockyard.operations.engine.ledger import Owner, StoreLedger
from stockyard.operations.listing import every
from stockyard.operations.node_claims import environments as node_environments
from stockyard.operations.node_claims.environments import needed_by, remove_unused
from stockyard.operations.node_claims.phases import RUNNER
from stockyard.operations.node_claims.work import environment_id
from stockyard.operations.node_providers.providers import check_unused
from stockyard.ports import Create, Outcome, Replace
from stockyard.ports.node_work import EnvironmentWork
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.harness.sent import waiting
from tests.harness.sweeping import Reaper
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import World, make_world
from tests.unit.operations.nodes import Nodes

SMALL: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}}


class Building(SimulatedNodes):
    """Creates one thing for each environment; ``meanwhile`` is called when it is removed."""

    things: set[str]
    meanwhile: Callable[[], None]
    fault: Exception | None = None

    def prepare(self, work: EnvironmentWork) -> Outcome:
        line = work.ledger.intend("network", "main")
        self.things.add(work.environment.id)
        if line.state != "made":
            work.ledger.made(line, work.environment.id)
        return Outcome(True)

    def clear(self, work: EnvironmentWork) -> Outcome:
        self.meanwhile()
        if self.fault is not None:
            raise self.fault
        self.things.discard(work.environment.id)
        for line in work.ledger.lines():
            work.ledger.gone(line)
        return Outcome(True)


@pytest.fixture
def nodes(world: World) -> Nodes:
    return prepared(world)


def prepared(world: World) -> Nodes:
    """A ready cluster ``demo`` and a provider ``lab`` that needs an environment."""
    nodes = Nodes.of(world.registry, world.services, world.clock)
    source = Building(world.registry.store)
    source.things, source.meanwhile = set(), lambda: None
    nodes.services = with_ports(nodes.services, node_sources={"simulated": source})
    assert world.drive(world.create(), "provision_cluster") == "ready"
    nodes.provider("lab", SMALL)
    return nodes


def source(nodes: Nodes) -> Building:
    building = nodes.services.node_sources["simulated"]
    assert isinstance(building, Building)
    return building


def environments(nodes: Nodes) -> list[NodeEnvironment]:
    return list(every(nodes.services.store, NodeEnvironment))


def there(nodes: Nodes, name: str = "one", **fields: Any) -> NodeClaim:
    claim = nodes.claim(name, cluster_ref="demo", **fields)
    nodes.schedule()
    nodes.relay()
    return nodes.now(claim)


def leave(nodes: Nodes, claim: NodeClaim) -> None:
    nodes.delete(claim)
    nodes.relay()


def sweep(nodes: Nodes) -> dict[str, Any]:
    return Reaper(nodes.registry, nodes.clock, lambda _: nodes.services).run()


def test_environment_is_removed_after_its_last_claim(nodes: Nodes) -> None:
    first, second = there(nodes, "first"), there(nodes, "second")
    (environment,) = environments(nodes)
    assert first.environment_ref == second.environment_ref == environment.id
    assert source(nodes).things == {environment.id}
    leave(nodes, first)
    assert sweep(nodes)["done"] == []
    leave(nodes, second)
    (provider,) = every(nodes.services.store, NodeProvider)
    with pytest.raises(InUse):
        check_unused(nodes.services, provider)
    assert sweep(nodes)["done"] == [f"removed {environment.id}"]
    assert (environments(nodes), source(nodes).things) == ([], set())
    check_unused(nodes.services, provider)
    assert there(nodes, "third").phase == "Available"
    assert len(environments(nodes)) == len(source(nodes).things) == 1


def test_waiting_claim_that_names_provider_keeps_environment(nodes: Nodes) -> None:
    claim = there(nodes)
    waiting = nodes.claim("waits", cluster_ref="demo", provider_ref="lab", resources={"cpu": "64"})
    leave(nodes, claim)
    assert sweep(nodes)["done"] == []
    nodes.delete(waiting)
    assert len(sweep(nodes)["done"]) == 1


def test_claim_needs_environment_of_its_cluster_and_provider_only(nodes: Nodes) -> None:
    providers = {"lab": "npr_1", "other": "npr_2"}
    claim = there(nodes)
    assert claim.environment_ref in needed_by(claim, providers)
    of = replace(claim, environment_ref="", placement=None, provider_ref="lab")
    key = environment_id
    assert needed_by(of, providers) - {""} == {key(claim.cluster_id, "npr_1")}
    assert needed_by(replace(of, cluster_id="clu_x"), providers) - {""} == {key("clu_x", "npr_1")}
    assert needed_by(replace(of, provider_ref="none"), providers) - {""} == set()
    assert needed_by(replace(of, cluster_id=""), providers) == set()


def test_environment_of_deleted_cluster_is_left_to_its_deletion(nodes: Nodes) -> None:
    leave(nodes, there(nodes))
    (environment,) = environments(nodes)
    delete_cluster(nodes.services, environment.cluster_id, "user:ann")
    assert not remove_unused(nodes.services, environment)
    assert environments(nodes) == [environment]


def test_claim_created_before_removal_is_recorded_keeps_environment(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = there(nodes)
    looks = iter((False, True))
    monkeypatch.setattr(node_environments, "_referred", lambda *_: next(looks))
    (environment,) = environments(nodes)
    assert not remove_unused(nodes.services, environment)
    (current,) = environments(nodes)
    assert (current.removing, current.phase, current.version) == (False, "Pending", environment.version + 2)
    assert source(nodes).things == {environment.id}
    assert nodes.now(claim).phase == "Available"


def test_claim_created_during_removal_gets_new_environment(nodes: Nodes) -> None:
    leave(nodes, there(nodes))
    observations: list[Any] = []

    def meanwhile() -> None:
        source(nodes).meanwhile = lambda: None
        claim = nodes.claim("late", cluster_ref="demo")
        nodes.schedule()
        payload = next(iter(_starts(nodes)))
        observations.append(nodes.run("provision_node", payload, most=6))
        (environment,) = environments(nodes)
        observations.append((environment.removing, nodes.now(claim).environment_ref))
        phases = {phase.name: phase for phase in nodes.operation(nodes.now(claim)).phases}
        observations.append(phases["environment"].message)

    source(nodes).meanwhile = meanwhile
    (environment,) = environments(nodes)
    assert remove_unused(nodes.services, environment)
    assert observations[1:] == [(True, ""), "Waiting until the environment that nobody needed is gone."]
    assert environments(nodes) == []
    assert nodes.relay() == ["available"]
    (again,) = environments(nodes)
    assert source(nodes).things == {again.id}


def _starts(nodes: Nodes) -> list[Any]:
    payloads = waiting(nodes.services.store, "workflow")
    return [payload["input"] for payload in payloads if payload["workflow"] == "provision-node"]


def test_claim_cannot_use_environment_under_removal(nodes: Nodes) -> None:
    """The claim has read the environment before its removal is recorded, and writes after that."""
    leave(nodes, there(nodes))
    claim = nodes.claim("late", cluster_ref="demo")
    nodes.schedule()
    payload = next(iter(_starts(nodes)))
    ensure, before = node_environments.ensure, RUNNER.actions["environment"]

    def overtaken(services: Any, claim: NodeClaim, fence: Any) -> Outcome:
        outcome = ensure(services, claim, fence)
        for environment in environments(nodes):
            services.store.commit(Replace(node_environments._moved(services, environment, removing=True)))
        return outcome

    RUNNER.actions["environment"] = overtaken
    try:
        nodes.run("provision_node", payload, most=3)
    finally:
        RUNNER.actions["environment"] = before
    assert nodes.now(claim).environment_ref == ""
    assert {phase.name: phase for phase in nodes.operation(nodes.now(claim)).phases}["environment"].state == "running"
    sweep(nodes)
    (environment,) = environments(nodes)
    assert not environment.removing, "the claim is placed there, so that it is needed"
    assert nodes.relay() == ["available"]
    assert [environment.phase for environment in environments(nodes)] == ["Available"]


def test_removal_waits_for_calls_in_flight(nodes: Nodes) -> None:
    leave(nodes, there(nodes))
    (environment,) = environments(nodes)
    line = next(iter(every(nodes.services.store, Resource, f"{environment.id}/")))
    late = replace(line, id=f"{environment.id}/environment/network/late", key="late", state="intended", version=1)
    late = replace(late, intended_at=nodes.services.now(), vendor_id="")
    nodes.services.store.commit(Create(late))
    assert sweep(nodes)["done"] == []
    assert [environment.removing for environment in environments(nodes)] == [True]
    assert source(nodes).things == {environment.id}
    nodes.clock.advance(nodes.services.settings.in_flight_seconds)
    assert sweep(nodes)["done"] == [f"removed {environment.id}"]


def test_ledger_refuses_intents_during_removal(nodes: Nodes) -> None:
    leave(nodes, there(nodes))
    (environment,) = environments(nodes)
    ledger = StoreLedger(nodes.services, Owner.of_environment(environment, "", 0), "environment")
    going = node_environments._moved(nodes.services, environment, removing=True)
    nodes.services.store.commit(Replace(going))
    with pytest.raises(NotYetVisible, match="removed"):
        ledger.intend("network", "more")
    nodes.services.store.commit(Replace(node_environments._moved(nodes.services, going, removing=False)))
    assert ledger.intend("network", "more").state == "intended"
    delete_cluster(nodes.services, environment.cluster_id, "user:ann")
    with pytest.raises(Fenced):
        ledger.intend("network", "other")


def test_failed_removal_is_retried(nodes: Nodes) -> None:
    leave(nodes, there(nodes))
    source(nodes).fault = VendorUnavailable("not now")
    (environment,) = environments(nodes)
    assert sweep(nodes)["failures"] == [f"{environment.id}: VendorUnavailable"]
    (remaining,) = environments(nodes)
    assert (remaining.removing, remaining.reason) == (True, "Unused")
    source(nodes).fault = None
    assert sweep(nodes)["done"] == [f"removed {environment.id}"]
    assert nodes.services.store.get(Cluster, environment.cluster_id) is not None


# --- every moment at which the other one may come ---------------------------------------------------------------------


class Watched:
    """A store that calls ``happens`` before its ``at``-th call."""

    def __init__(self, store: Any, at: int, happens: Callable[[], None]) -> None:
        self._store, self._left, self._happens = store, at, happens
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._store, name)
        if name not in ("get", "get_together", "list", "commit"):
            return attribute

        def call(*args: Any, **more: Any) -> Any:
            self.calls += 1
            if self.calls == self._left:
                self._happens()
            return attribute(*args, **more)

        return call


def ready_world() -> Nodes:
    world = make_world()
    nodes = prepared(world)
    leave(nodes, there(nodes))
    return nodes


def watched(nodes: Nodes, at: int, happens: Callable[[], None]) -> Any:
    return replace(nodes.services, store=Watched(nodes.services.store, at, happens))


def check_whole(nodes: Nodes, claim: NodeClaim) -> None:
    """Assert that the claim gets a node in an existing environment, and that its deletion removes both."""
    for _ in range(3):
        nodes.relay()
        sweep(nodes)
    done = nodes.now(claim)
    assert done.phase == "Available", (done.phase, done.message)
    (environment,) = environments(nodes)
    assert (environment.id, environment.removing) == (done.environment_ref, False)
    assert source(nodes).things == {environment.id}
    leave(nodes, done)
    sweep(nodes)
    assert (environments(nodes), source(nodes).things) == ([], set())


def arrive(nodes: Nodes) -> NodeClaim:
    claim = nodes.claim("late", cluster_ref="demo")
    nodes.schedule()
    return nodes.now(claim)


@pytest.mark.parametrize("most", [2, 30])
def test_claim_created_at_any_step_of_removal_gets_node(most: int) -> None:
    """``most`` states of the claim's workflow run at that step: only its first look, or as many as possible."""
    at = 0
    while True:
        at += 1
        nodes = ready_world()
        came: list[NodeClaim] = []

        def come(nodes: Nodes = nodes, came: list[NodeClaim] = came) -> None:
            came.append(arrive(nodes))
            nodes.run("provision_node", next(iter(_starts(nodes))), most=most)

        (environment,) = environments(nodes)
        services = watched(nodes, at, come)
        remove_unused(services, environment)
        if not came:
            break
        check_whole(nodes, came[0])
    assert at > 8


def test_removal_at_any_step_of_environment_phase_is_safe() -> None:
    """The removal does not see the claim yet; only the write at the end of the phase can detect the conflict."""
    at = 0
    while True:
        at += 1
        nodes = ready_world()
        claim = arrive(nodes)
        (environment,) = environments(nodes)
        came: list[bool] = []

        def come(nodes: Nodes = nodes, came: list[bool] = came, environment: NodeEnvironment = environment) -> None:
            with pytest.MonkeyPatch.context() as patch:
                looks = iter((False, False))
                patch.setattr(node_environments, "_referred", lambda *_: next(looks))
                came.append(remove_unused(nodes.services, environment))

        payload = next(iter(_starts(nodes)))
        step = act(RUNNER, watched(nodes, at, come), {**payload, "action": "run", "phase": "environment"})
        if not came:
            assert step.done
            break
        if step.done:
            assert [environment.phase for environment in environments(nodes)] == ["Available"]
        check_whole(nodes, claim)
    assert at > 3
