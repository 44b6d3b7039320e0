"""Environments that nobody needs any more go, also while a new claim arrives at that moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import Cluster, NodeClaim, NodeEnvironment, NodeProvider, Outbox, Resource
from stockyard.errors import Fenced, InUse, NotYetVisible, VendorUnavailable
from stockyard.operations import node_environments, run_node_phase
from stockyard.operations.claims import ClaimFence
from stockyard.operations.delete_cluster import delete_cluster
from stockyard.operations.every import every
from stockyard.operations.ledger import Owner, StoreLedger
from stockyard.operations.node_environments import needed_by, remove_unused
from stockyard.operations.node_providers import check_unused
from stockyard.operations.node_work import environment_id
from stockyard.operations.reap import Reaper
from stockyard.ports import Create, Outcome, Replace
from stockyard.ports.nodes import EnvironmentWork
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.unit.operations.conftest import World, make_world
from tests.unit.operations.nodes import Nodes

SMALL: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}}


class Building(SimulatedNodes):
    """Sets one thing up for each environment; ``meanwhile`` happens during a clearing."""

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
    """A ready cluster ``demo`` and a provider ``lab`` that sets something up."""
    nodes = Nodes.of(world.registry, world.services, world.clock)
    source = Building(world.registry.store)
    source.things, source.meanwhile = set(), lambda: None
    nodes.services = replace(nodes.services, sources={"simulated": source})
    assert world.drive(world.create(), "provision_cluster") == "ready"
    nodes.provider("lab", SMALL)
    return nodes


def source(nodes: Nodes) -> Building:
    found = nodes.services.sources["simulated"]
    assert isinstance(found, Building)
    return found


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


def test_an_environment_stays_while_a_claim_refers_to_it_and_goes_after_the_last(nodes: Nodes) -> None:
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


def test_a_claim_that_names_the_provider_refers_to_it_though_it_waits(nodes: Nodes) -> None:
    claim = there(nodes)
    waiting = nodes.claim("waits", cluster_ref="demo", provider_ref="lab", resources={"cpu": "64"})
    leave(nodes, claim)
    assert sweep(nodes)["done"] == []
    nodes.delete(waiting)
    assert len(sweep(nodes)["done"]) == 1


def test_claims_of_other_clusters_and_providers_do_not(nodes: Nodes) -> None:
    providers = {"lab": "npr_1", "other": "npr_2"}
    claim = there(nodes)
    assert claim.environment_ref in needed_by(claim, providers)
    of = replace(claim, environment_ref="", placement=None, provider_ref="lab")
    key = environment_id
    assert needed_by(of, providers) - {""} == {key(claim.cluster_id, "npr_1")}
    assert needed_by(replace(of, cluster_id="clu_x"), providers) - {""} == {key("clu_x", "npr_1")}
    assert needed_by(replace(of, provider_ref="none"), providers) - {""} == set()
    assert needed_by(replace(of, cluster_id=""), providers) == set()


def test_the_cluster_that_is_deleted_takes_its_environments_itself(nodes: Nodes) -> None:
    leave(nodes, there(nodes))
    (environment,) = environments(nodes)
    delete_cluster(nodes.services, environment.cluster_id, "user:ann")
    assert not remove_unused(nodes.services, environment)
    assert environments(nodes) == [environment]


def test_a_claim_that_comes_between_the_look_and_the_word_is_seen(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = there(nodes)
    looks = iter((False, True))
    monkeypatch.setattr(node_environments, "_referred", lambda *_: next(looks))
    (environment,) = environments(nodes)
    assert not remove_unused(nodes.services, environment)
    (kept,) = environments(nodes)
    assert (kept.removing, kept.phase, kept.version) == (False, "Pending", environment.version + 2)
    assert source(nodes).things == {environment.id}
    assert nodes.now(claim).phase == "Available"


def test_a_claim_that_comes_while_it_is_cleared_waits_and_gets_a_new_one(nodes: Nodes) -> None:
    leave(nodes, there(nodes))
    seen: list[Any] = []

    def meanwhile() -> None:
        source(nodes).meanwhile = lambda: None
        claim = nodes.claim("late", cluster_ref="demo")
        nodes.schedule()
        given = next(iter(_starts(nodes)))
        seen.append(nodes.run("provision_node", given, most=6))
        (environment,) = environments(nodes)
        seen.append((environment.removing, nodes.now(claim).environment_ref))
        phases = {one.name: one for one in nodes.operation(nodes.now(claim)).phases}
        seen.append(phases["environment"].message)

    source(nodes).meanwhile = meanwhile
    (environment,) = environments(nodes)
    assert remove_unused(nodes.services, environment)
    assert seen[1:] == [(True, ""), "Waiting until the environment that nobody needed is gone."]
    assert environments(nodes) == []
    assert nodes.relay() == ["available"]
    (again,) = environments(nodes)
    assert source(nodes).things == {again.id}


def _starts(nodes: Nodes) -> list[Any]:
    found = [one.payload for one in every(nodes.services.store, Outbox) if one.kind == "workflow"]
    return [one["input"] for one in found if one["workflow"] == "provision_node"]


def test_a_claim_cannot_begin_to_use_one_that_is_on_its_way_out(nodes: Nodes) -> None:
    """The claim has looked at the environment before somebody said that it goes, and writes after that."""
    leave(nodes, there(nodes))
    claim = nodes.claim("late", cluster_ref="demo")
    nodes.schedule()
    given = next(iter(_starts(nodes)))
    ensure = node_environments.ensure

    def overtaken(services: Any, claim: NodeClaim, fence: Any) -> Outcome:
        outcome = ensure(services, claim, fence)
        for environment in environments(nodes):
            services.store.commit(Replace(node_environments._moved(services, environment, removing=True)))
        return outcome

    run_node_phase._DOING["environment"] = overtaken
    try:
        nodes.run("provision_node", given, most=3)
    finally:
        run_node_phase._DOING["environment"] = ensure
    assert nodes.now(claim).environment_ref == ""
    assert {one.name: one for one in nodes.operation(nodes.now(claim)).phases}["environment"].state == "running"
    sweep(nodes)
    (kept,) = environments(nodes)
    assert not kept.removing, "the claim is placed there, so that it is needed"
    assert nodes.relay() == ["available"]
    assert [one.phase for one in environments(nodes)] == ["Available"]


def test_a_call_that_may_be_under_way_is_waited_for(nodes: Nodes) -> None:
    leave(nodes, there(nodes))
    (environment,) = environments(nodes)
    line = next(iter(every(nodes.services.store, Resource, f"{environment.id}/")))
    late = replace(line, id=f"{environment.id}/environment/network/late", key="late", state="intended", version=1)
    late = replace(late, intended_at=nodes.services.now(), vendor_id="")
    nodes.services.store.commit(Create(late))
    assert sweep(nodes)["done"] == []
    assert [one.removing for one in environments(nodes)] == [True]
    assert source(nodes).things == {environment.id}
    nodes.clock.advance(nodes.services.rules.in_flight_seconds)
    assert sweep(nodes)["done"] == [f"removed {environment.id}"]


def test_nothing_new_is_set_up_in_one_that_goes(nodes: Nodes) -> None:
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


def test_what_cannot_be_cleared_now_is_tried_again(nodes: Nodes) -> None:
    leave(nodes, there(nodes))
    source(nodes).fault = VendorUnavailable("not now")
    (environment,) = environments(nodes)
    assert sweep(nodes)["failures"] == [f"{environment.id}: VendorUnavailable"]
    (left,) = environments(nodes)
    assert (left.removing, left.reason) == (True, "Unused")
    source(nodes).fault = None
    assert sweep(nodes)["done"] == [f"removed {environment.id}"]
    assert nodes.services.store.get(Cluster, environment.cluster_id) is not None


# --- every moment at which the other one may come ---------------------------------------------------------------------


class Watched:
    """A store that lets something happen before its ``at``-th call."""

    def __init__(self, store: Any, at: int, happens: Callable[[], None]) -> None:
        self._store, self._left, self._happens = store, at, happens
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in ("get", "list", "commit"):
            return found

        def call(*given: Any, **more: Any) -> Any:
            self.calls += 1
            if self.calls == self._left:
                self._happens()
            return found(*given, **more)

        return call


def ready_world() -> Nodes:
    world = make_world()
    found = prepared(world)
    leave(found, there(found))
    return found


def watched(nodes: Nodes, at: int, happens: Callable[[], None]) -> Any:
    return replace(nodes.services, store=Watched(nodes.services.store, at, happens))


def check_whole(nodes: Nodes, claim: NodeClaim) -> None:
    """However it went: the claim gets its node in an environment that is there, and goes as the last one with it."""
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
def test_a_claim_may_come_at_any_moment_of_a_removal(most: int) -> None:
    """``most`` states of the claim's workflow run at that moment: its first look, or all that it can."""
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


def test_a_removal_may_come_at_any_moment_of_a_claims_environment_phase() -> None:
    """The claim is not placed yet when it is looked for: only what it writes at the end of the phase can tell."""
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

        given = next(iter(_starts(nodes)))
        fence = ClaimFence(given["claim_id"], given["operation_id"], given["attempt"])
        step = run_node_phase.run_node_phase(watched(nodes, at, come), fence, "environment")
        if not came:
            assert step.done
            break
        if step.done:
            assert [one.phase for one in environments(nodes)] == ["Available"]
        check_whole(nodes, claim)
    assert at > 6
