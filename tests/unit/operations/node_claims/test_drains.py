"""For how long a node is drained: the claim's own grace from its deletion, without end, or until somebody ends it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from local.kubernetes.store import Key
from stockyard.domain.pools.records import Pool
from stockyard.domain.records import Event, Fact, NodeClaim
from stockyard.domain.values import times
from stockyard.lifecycle.nodes.draining import drain_deadline
from stockyard.lifecycle.nodes.interruption import LAST_SECONDS
from stockyard.lifecycle.nodes.node_commands import NODE
from stockyard.operations.fleet.pools.claims import draft_claim
from stockyard.operations.listing import every
from stockyard.operations.machines import observe
from stockyard.operations.node_claims.delete import delete_claim, plan_deletion
from stockyard.operations.node_claims.interruption import report_interruption
from stockyard.ports import Remove, Replace
from tests.unit.operations.conftest import World
from tests.unit.operations.machines.test_join import PROOF, Yard

SMALL: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "maxCapacity": 2}
PROTECTED = {"karpenter.sh/do-not-disrupt": "true"}


@pytest.fixture
def yard(world: World) -> Yard:
    yard = Yard.of(world)
    yard.nodes.provider("lab", SMALL, block={"cloudAccount": 1})
    return yard


def available(yard: Yard, grace: str = "") -> NodeClaim:
    claim = yard.nodes.claim("worker", cluster_ref="demo", termination_grace_period=grace)
    yard.nodes.schedule()
    assert yard.nodes.relay() == ["available"]
    return yard.nodes.now(claim)


def events(yard: Yard, claim: NodeClaim) -> list[tuple[str, str]]:
    """Reasons and messages since the deletion began."""
    store = yard.nodes.services.store
    messages = [(event.reason, event.message) for event in every(store, Event) if event.subject == claim.id]
    begin = [reason for reason, _ in messages].index("DeletionRequested")
    return messages[begin + 1 :]


def walk(yard: Yard, most: int) -> str:
    """Play the deletion as far as so many states."""
    claim = next(every(yard.nodes.services.store, NodeClaim))
    payload = {"claim_id": claim.id, "operation_id": claim.operation_id, "attempt": claim.attempt}
    return yard.nodes.run("delete_node", {"tenant": "acme", **payload}, most)


@pytest.mark.parametrize(("grace", "seconds"), [("5m", 300), ("", 600), ("30s", 30)])
def test_what_cannot_go_is_ended_when_the_grace_of_the_claim_is_over(yard: Yard, grace: str, seconds: int) -> None:
    nodes, rig = yard.nodes, yard.rig
    claim = available(yard, grace)
    rig.add_pod("job", "worker", annotations=PROTECTED, grace=10)
    begin = nodes.clock.now()
    nodes.delete(claim)
    deadline = drain_deadline(nodes.now(claim), 600)
    assert deadline == begin + timedelta(seconds=seconds)
    ends: list[float] = []
    nodes.before_phase = lambda phase: ends.append((nodes.clock.now() - begin).total_seconds())
    assert nodes.relay() == ["gone"]
    assert seconds - 10 <= ends[-2] <= seconds + 120
    assert [reason for reason, _ in events(yard, claim)] == ["Draining", "DrainHeld", "Draining", "Drained", "Deleted"]
    assert ("DrainHeld", "Pods wait: web/job: karpenter.sh/do-not-disrupt.") in events(yard, claim)
    assert nodes.nothing_left()


def test_a_deadline_counts_from_the_deletion_and_not_from_the_last_change(yard: Yard) -> None:
    claim = available(yard, "5m")
    yard.nodes.delete(claim)
    deleted = yard.nodes.now(claim)
    later = replace(deleted, updated_at="2099-01-01T00:00:00.000Z")
    assert drain_deadline(later, 600) == drain_deadline(deleted, 600)


def test_a_claim_that_never_ends_its_pods_waits_until_somebody_does(yard: Yard) -> None:
    nodes, rig = yard.nodes, yard.rig
    claim = available(yard, "Never")
    rig.add_pod("job", "worker", annotations=PROTECTED)
    nodes.delete(claim)
    begin = nodes.clock.now()
    assert walk(yard, 6000).startswith("still at")
    assert nodes.clock.now() - begin > timedelta(days=5), "a look each five minutes"
    assert nodes.clock.now() - begin < timedelta(days=8)
    assert rig.pods("worker") == ["job"]
    assert [reason for reason, _ in events(yard, claim)] == ["Draining", "DrainHeld"]
    yard.meanwhile()
    assert yard.reply is not None
    assert yard.reply.interval_seconds == nodes.services.settings.agent_quiet_seconds, "it waits for people"
    delete_claim(nodes.services, claim.id, "user:ann", 0)
    assert walk(yard, 300) == "gone"
    assert "DrainShortened" in [reason for reason, _ in events(yard, claim)]
    assert nodes.nothing_left()


def test_a_deletion_may_name_a_shorter_grace_and_no_longer_one(yard: Yard) -> None:
    nodes = yard.nodes
    claim = available(yard, "5m")
    for seconds, expected in ((3600, 300), (60, 60), (120, 60), (0, 0)):
        before = nodes.now(claim).version
        changed = delete_claim(nodes.services, claim.id, "user:ann", seconds)
        begin = times.from_text(str(changed.deletion_timestamp))
        assert drain_deadline(changed, 600) == begin + timedelta(seconds=expected)
        assert (changed.version > before) is (seconds != 120)
    assert nodes.relay() == ["gone"]


def test_a_node_that_its_agent_was_not_asked_about_is_drained_all_the_same(yard: Yard) -> None:
    """One that joined after its vendor had said so: nobody looked at it while its claim was worked on."""
    nodes, rig = yard.nodes, yard.rig
    claim = available(yard)
    nodes.services.store.commit(Remove(Fact, f"{claim.id}/{NODE}"))
    rig.add_pod("web", "worker")
    nodes.delete(claim)
    emptied: list[bool] = []
    nodes.before_phase = lambda phase: emptied.append(rig.pods("worker") == []) if phase == "terminate" else None
    assert nodes.relay() == ["gone"]
    assert emptied[0]
    assert Key("", "nodes", "", "worker") not in rig.kube.store.objects


def test_an_agent_that_says_nothing_is_not_waited_for_without_end(yard: Yard) -> None:
    nodes = yard.nodes
    claim = available(yard)
    nodes.services.store.commit(Remove(Fact, f"{claim.id}/{NODE}"))
    nodes.meanwhile = lambda: None
    nodes.delete(claim)
    begin = nodes.clock.now()
    assert nodes.relay() == ["gone"]
    assert timedelta(seconds=300) < nodes.clock.now() - begin < timedelta(seconds=1300)


def test_a_cloud_that_takes_the_machine_back_ends_a_drain_that_is_under_way(yard: Yard) -> None:
    nodes, rig = yard.nodes, yard.rig
    claim = available(yard, "Never")
    rig.add_pod("job", "worker", annotations=PROTECTED, grace=10)
    nodes.delete(claim)
    walk(yard, 20)
    end = nodes.clock.now() + timedelta(seconds=120)
    yard.prove(claim.machine_id)  # type: ignore[attr-defined]
    for news in (True, False):
        assert report_interruption(nodes.services, claim.id, PROOF, "interruption", times.to_text(end))[1] is news
    assert drain_deadline(nodes.now(claim), 600) == end - timedelta(seconds=LAST_SECONDS)
    assert walk(yard, 300) == "gone"
    assert "SpotInterruption" in [reason for reason, _ in events(yard, claim)]


def test_deletions_of_an_earlier_release_end(yard: Yard) -> None:
    """Claims of such deletions do not say when they were deleted."""
    nodes = yard.nodes
    claim = available(yard)
    yard.rig.add_pod("job", "worker", annotations=PROTECTED)
    nodes.delete(claim)
    old = nodes.now(claim)
    nodes.services.store.commit(Replace(replace(old, deletion_timestamp=None, version=old.version + 1)))
    assert nodes.relay() == ["gone"]


def test_the_plan_says_until_when_pods_may_hold_the_node(yard: Yard) -> None:
    services, claim = yard.nodes.services, available(yard, "5m")

    def text(grace: int | None = None) -> str:
        (warning,) = plan_deletion(services, claim.id, grace)["warnings"]
        return str(warning["detail"])

    def moment(seconds: float) -> str:
        return times.to_text(yard.nodes.clock.now() + timedelta(seconds=seconds))

    assert f"until {moment(300)} at most" in text()
    assert f"until {moment(60)} at most" in text(60)
    forever = replace(yard.nodes.now(claim), termination_grace_period="Never", version=claim.version + 1)
    services.store.commit(Replace(forever))
    assert "as long as it takes" in text()
    assert f"until {moment(0)} at most" in text(0)
    yard.nodes.delete(claim)
    assert "as long as it takes" in text()


def test_a_claim_that_was_never_placed_has_no_pods_to_wait_for(yard: Yard) -> None:
    claim = yard.nodes.claim("worker", cluster_ref="demo")
    assert plan_deletion(yard.nodes.services, claim.id)["warnings"] == []


@pytest.mark.parametrize(
    ("form", "grace", "expected"),
    [
        ("autoNodes", "30s", "30s"),
        ("karpenter", "", "Never"),
        ("karpenter", "1h", "1h"),
        ("stockyard", "", "Never"),
        ("stockyard", "Never", "Never"),
        ("group", "", ""),
    ],
)
def test_claims_have_the_grace_of_their_pool(yard: Yard, form: str, grace: str, expected: str) -> None:
    pool = Pool("clu/p", "clu", "p", "", "", form=form, termination_grace_period=grace)
    assert draft_claim(yard.nodes.services, "clu", pool).termination_grace_period == expected


@pytest.mark.parametrize(("sent", "text"), [("a pod", ""), ([], ""), (["a", 5, *["b"] * 9], "a; 5; b; b; b")])
def test_what_an_agent_says_of_pods_that_wait_is_bounded(sent: Any, text: str) -> None:
    assert observe._holders({"held": sent}) == text
