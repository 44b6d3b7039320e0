"""A cloud takes a machine back: its word reaches the claim, and the node is emptied before the machine ends."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from agent.stockyard_agent import observation
from local.kubernetes.store import Key
from stockyard.domain.records import Event, NodeClaim, Operation, SimulatedMachine
from stockyard.domain.values import times
from stockyard.errors import NotFound, Unauthorized
from stockyard.lifecycle.nodes.interruption import LAST_SECONDS
from stockyard.operations.listing import every
from stockyard.operations.machines.observe import INTERRUPTIBLE_SECONDS, INTERRUPTION
from stockyard.operations.node_claims.interruption import MOST_NOTICE, report_interruption
from stockyard.ports import Put, Remove, Replace
from tests.harness.sent import waiting
from tests.unit.operations.conftest import World
from tests.unit.operations.machines.test_join import PROOF, Yard

SPOT = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "maxCapacity": 2}
WARNING = 120.0


@pytest.fixture
def yard(world: World) -> Yard:
    yard = Yard.of(world)
    yard.nodes.provider("lab", SPOT, block={"cloudAccount": 1})
    return yard


def available(yard: Yard, name: str = "worker") -> NodeClaim:
    claim = yard.nodes.claim(name, cluster_ref="demo")
    yard.nodes.schedule()
    assert yard.nodes.relay() == ["available"]
    return yard.nodes.now(claim)


def end_of(yard: Yard) -> str:
    return times.to_text(yard.nodes.clock.now() + timedelta(seconds=WARNING))


def report(yard: Yard, claim: NodeClaim, kind: str = "interruption", moment: str = "") -> bool:
    """Post as the machine of the claim, and return whether that was news."""
    yard.prove(claim.machine_id)  # type: ignore[attr-defined]
    return report_interruption(yard.nodes.services, claim.id, PROOF, kind, moment or end_of(yard))[1]


def reasons(yard: Yard, claim: NodeClaim) -> list[str]:
    return [event.reason for event in every(yard.nodes.services.store, Event) if event.subject == claim.id]


def test_the_warning_empties_the_node_before_its_machine_ends(yard: Yard) -> None:
    nodes, rig = yard.nodes, yard.rig
    claim = available(yard)
    rig.add_pod("web-1", "worker")
    end = end_of(yard)
    ends_at = times.from_text(end)
    assert report(yard, claim, moment=end)
    warned = nodes.now(claim)
    assert (warned.deleting, warned.reason, warned.ends_at) == (True, "SpotInterruption", end)
    (condition,) = (part for part in warned.conditions if part.type == "Interrupted")
    assert (condition.status, condition.reason) == ("True", "SpotInterruption")
    assert end in condition.message
    assert nodes.operation(warned).actor == "node:worker"
    yard.meanwhile()
    assert yard.reply is not None
    (drain,) = (command for command in yard.reply.commands if command.kind == "drain")
    assert drain.deadline == times.to_text(ends_at - timedelta(seconds=LAST_SECONDS))
    emptied: list[bool] = []
    nodes.before_phase = lambda phase: emptied.append(rig.pods("worker") == []) if phase == "terminate" else None
    assert nodes.relay() == ["gone"]
    assert emptied[0], "the machine is ended when it is empty"
    assert nodes.clock.now() < ends_at
    assert Key("", "nodes", "", "worker") not in rig.kube.store.objects
    assert nodes.nothing_left()
    order = ["SpotInterruption", "DeletionRequested", "Draining", "Drained", "Deleted"]
    assert reasons(yard, claim)[-5:] == order


def test_pods_that_budgets_hold_are_ended_shortly_before_the_machine(yard: Yard) -> None:
    """A node's drain may take ten minutes, but this one has two: it is over before they are."""
    nodes, rig = yard.nodes, yard.rig
    claim = available(yard)
    pod = rig.add_pod("web-1", "worker")
    rig.kube.store.get(pod)["metadata"]["finalizers"] = ["example.com/held"]
    ends_at = times.from_text(end_of(yard))
    report(yard, claim)
    drained: list[timedelta] = []
    nodes.before_phase = lambda phase: drained.append(nodes.clock.now() - ends_at) if phase == "terminate" else None
    assert nodes.relay() == ["gone"]
    assert timedelta(seconds=-LAST_SECONDS) < drained[0] < timedelta(seconds=20), "the agent is not waited for longer"
    assert nodes.nothing_left()


def test_a_member_of_a_control_plane_is_not_given_back_by_its_own_word(yard: Yard) -> None:
    """The machine is a voter of etcd, which would be short of one that nobody has taken out."""
    claim = available(yard)
    member = replace(claim, control_plane=True, pool="control-plane", version=claim.version + 1)
    yard.nodes.services.store.commit(Replace(member))
    assert report(yard, claim)
    warned = yard.nodes.now(claim)
    assert (warned.deleting, warned.phase, warned.reason) == (False, "Available", "SpotInterruption")
    assert not report(yard, claim)
    assert yard.nodes.now(claim) == warned


def test_a_report_that_comes_again_changes_nothing(yard: Yard) -> None:
    """At every step of the deletion: the answer to a report may be lost, and a machine may restart."""
    nodes = yard.nodes
    claim = available(yard)
    assert report(yard, claim)
    news: list[bool] = []

    def again(_: str) -> None:
        if nodes.services.store.get(NodeClaim, claim.id) is not None:
            news.append(report(yard, claim))

    nodes.before_phase = again
    before = nodes.now(claim)
    again("")
    assert nodes.now(claim) == before
    assert nodes.relay() == ["gone"]
    assert len(news) > 4
    assert not any(news)
    assert reasons(yard, claim).count("SpotInterruption") == 1
    assert len([item for item in every(nodes.services.store, Operation) if item.kind == "delete_node"]) == 1
    with pytest.raises(NotFound):
        report(yard, claim)


def test_a_report_that_meets_another_change_is_written_anew(yard: Yard) -> None:
    nodes = yard.nodes
    claim = available(yard)
    store: Any = nodes.services.store
    commit, raced = store.commit, [True]

    def racing(*writes: Any) -> None:
        if raced and raced.pop():
            current = nodes.now(claim)
            commit(Put(replace(current, labels={"a": "b"}, version=current.version + 1)))
        commit(*writes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(store), "commit", lambda _, *writes: racing(*writes))
        assert report(yard, claim)
    changed = nodes.now(claim)
    assert (changed.labels, changed.deleting) == ({"a": "b"}, True)
    assert len(waiting(store, "workflow")) == 1


def test_a_machine_that_ends_during_its_drain_is_given_back_all_the_same(yard: Yard) -> None:
    nodes = yard.nodes
    claim = available(yard)
    report(yard, claim)
    ends: list[str] = []

    def before(phase: str) -> None:
        if phase == "drain" and not ends:
            ends.append(phase)
            nodes.services.store.commit(Remove(SimulatedMachine, claim.machine_id))

    nodes.before_phase = before
    assert nodes.relay() == ["gone"]
    assert nodes.nothing_left()


def test_a_warning_before_the_node_has_joined_gives_it_back(yard: Yard) -> None:
    nodes = yard.nodes
    yard.boots = False
    claim = nodes.claim("worker", cluster_ref="demo")
    nodes.schedule()
    bound = nodes.now(claim)
    payload = {"tenant": "acme", "claim_id": claim.id, "operation_id": bound.operation_id, "attempt": bound.attempt}
    nodes.run("provision_node", payload, most=2)
    assert report(yard, nodes.now(claim))
    assert "gone" in nodes.relay()
    assert nodes.nothing_left()


def test_a_recommendation_is_noted_once_and_takes_nothing_away(yard: Yard) -> None:
    nodes = yard.nodes
    claim = available(yard)
    assert report(yard, claim, "rebalance")
    assert not report(yard, claim, "rebalance")
    noted = nodes.now(claim)
    (condition,) = (part for part in noted.conditions if part.type == "Interrupted")
    assert (condition.status, condition.reason) == ("Unknown", "RebalanceRecommendation")
    assert (noted.phase, noted.deleting, noted.ends_at) == ("Available", False, None)
    assert report(yard, claim), "what follows is news"
    assert not report(yard, claim, "rebalance")
    assert nodes.relay() == ["gone"]


def test_scheduled_maintenance_is_noted_once_with_its_moment(yard: Yard) -> None:
    claim = available(yard)
    assert report(yard, claim, "maintenance", moment="2099-01-01T00:00:00.000Z")
    assert not report(yard, claim, "maintenance", moment="2099-01-02T00:00:00.000Z")
    noted = yard.nodes.now(claim)
    (condition,) = (part for part in noted.conditions if part.type == "Interrupted")
    assert (condition.status, condition.reason) == ("True", "ScheduledMaintenance")
    assert "2099-01-01T00:00:00.000Z" in condition.message
    assert (noted.deleting, noted.ends_at) == (False, None)


def test_maintenance_says_more_than_a_recommendation_before_it(yard: Yard) -> None:
    claim = available(yard)
    assert report(yard, claim, "rebalance")
    assert report(yard, claim, "maintenance", moment="2099-01-01T00:00:00.000Z")
    assert not report(yard, claim, "rebalance")
    (condition,) = (part for part in yard.nodes.now(claim).conditions if part.type == "Interrupted")
    assert (condition.status, condition.reason) == ("True", "ScheduledMaintenance")
    assert "2099-01-01T00:00:00.000Z" in condition.message


def test_only_the_claims_machine_may_say_that_it_ends(yard: Yard) -> None:
    claim = available(yard)
    with pytest.raises(Unauthorized):
        report(yard, replace(claim, machine_id="i-stranger"))
    assert yard.nodes.now(claim) == claim


def test_a_far_end_is_taken_for_a_near_one(yard: Yard) -> None:
    claim = available(yard)
    latest = times.to_text(yard.nodes.clock.now() + MOST_NOTICE)
    assert report(yard, claim, moment="2099-01-01T00:00:00.000Z")
    assert yard.nodes.now(claim).ends_at == latest


@pytest.mark.parametrize(
    ("labels", "version", "interval"),
    [
        ({"karpenter.sh/capacity-type": "spot"}, "2", INTERRUPTIBLE_SECONDS),
        ({"karpenter.sh/capacity-type": "on-demand"}, "2", 60),
        ({"karpenter.sh/capacity-type": "spot", INTERRUPTION: "watched"}, "2", 60),
        ({"karpenter.sh/capacity-type": "spot", INTERRUPTION: "watched"}, "1", INTERRUPTIBLE_SECONDS),
    ],
)
def test_an_agent_of_spot_nodes_comes_soon_unless_machines_and_agent_tell_each_other(
    yard: Yard, labels: dict[str, str], version: str, interval: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = available(yard)
    monkeypatch.setattr(observation, "VERSION", version)
    yard.rig.node("worker")["metadata"]["labels"].update(labels)
    yard.meanwhile()
    assert yard.reply is not None
    assert (yard.reply.commands, yard.reply.interval_seconds) == ((), interval)
    assert yard.nodes.now(claim).phase == "Available"
