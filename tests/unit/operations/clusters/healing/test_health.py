"""A member that lives and answers nobody is noticed, told of, and replaced by an operation that begins by itself."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from stockyard.domain.records import Cluster, NodeClaim
from stockyard.lifecycle.clusters.cluster import MOVES
from stockyard.lifecycle.clusters.member_health import ALL_HEALTHY, HEALTHY, MARKED, NODE_NOT_READY, SILENT, UNMARKED
from stockyard.lifecycle.phases import DEGRADED
from stockyard.operations.clusters.healing import health as member_health
from stockyard.operations.clusters.healing.health import attend_members, unready_nodes
from stockyard.operations.clusters.members.members import node_of_member
from stockyard.operations.fleet.pools import conditions
from stockyard.operations.node_claims import lost_machines
from stockyard.operations.node_claims.cluster_claims import claims_of
from stockyard.operations.sweep import scopes
from stockyard.operations.sweep.scopes import ScopeSweep
from stockyard.operations.sweep.tally import Tally
from stockyard.ports import Replace
from stockyard.wiring import passes
from tests.harness.sweeping import Reaper
from tests.unit.operations.clusters.members_world import MembersWorld, members_world


def completed(size: int = 3) -> MembersWorld:
    members = members_world(size)
    assert members.drive() == "changed"
    return members


def looked(members: MembersWorld, seconds: int = 0) -> str | None:
    members.world.clock.advance(seconds)
    return attend_members(members.world.services, members.id)


def health(members: MembersWorld) -> list[str]:
    """Health of each member that has a condition about it."""
    parts = [part for claim in members.members() for part in claim.conditions if part.type == HEALTHY]
    return [part.reason if part.status == "False" else part.status for part in parts]


@pytest.mark.parametrize("index", range(3))
def test_a_silent_member_is_replaced_after_the_limit(index: int) -> None:
    members = completed()
    victim = members.members()[index]
    members.provider.silent_machines.add(victim.machine_id)
    assert looked(members) is None
    assert health(members) == [SILENT]
    assert members.condition(ALL_HEALTHY) == "False"
    assert looked(members, 599) is None
    assert looked(members, 2) == "replacing a member"
    assert members.operation.kind == "change_cluster"
    (message,) = members.messages("MemberUnhealthy")
    assert node_of_member(victim) in message
    assert "600 seconds" in message
    assert members.drive() == "changed"
    assert victim.id not in {claim.id for claim in members.members()}
    assert (len(members.voters), len(members.members())) == (3, 3)
    assert node_of_member(victim) not in members.voters
    assert looked(members) is None
    assert members.condition(ALL_HEALTHY) == "True"


def test_the_sweep_of_the_account_looks() -> None:
    members = completed()
    members.provider.silent_machines.add(members.members()[1].machine_id)
    tally = Tally()
    for _ in range(2):
        ScopeSweep(members.world.services, "account/1", trusted=True, tally=tally).run()
        members.world.clock.advance(601)
    ScopeSweep(members.world.services, "account/1", trusted=True, tally=tally).run()
    assert (tally.done, tally.failures) == ([f"replacing a member {members.id}"], [])


def test_what_keeps_a_member_from_its_mark_is_said_until_it_has_it() -> None:
    members = completed()
    services = members.world.services

    def swept() -> str | None:
        ScopeSweep(services, "account/1", trusted=True, tally=Tally()).run()
        part = conditions.of(services.store.get(Cluster, members.id), MARKED)
        return part.message if part is not None and part.status == "False" else None

    assert swept() is None, "nothing is said of what is as it should be"
    members.provider.lack = "i-1: no mark. Deploy the template again."
    assert swept() == members.provider.lack
    (message,) = members.messages(UNMARKED)
    assert message == members.provider.lack
    members.provider.lack = ""
    assert swept() is None


def test_one_that_is_well_again_stays() -> None:
    members = completed()
    before = {claim.id for claim in members.members()}
    members.provider.silent_machines.add(members.members()[1].machine_id)
    looked(members)
    members.provider.silent_machines.clear()
    assert looked(members, 601) is None
    assert health(members) == ["True"]
    assert {claim.id for claim in members.members()} == before
    assert members.messages("Healthy") == [f"Member {node_of_member(members.members()[1])} is healthy."]


def test_one_that_is_well_again_while_the_operation_begins_stays() -> None:
    members = completed()
    before = {claim.id for claim in members.members()}
    members.provider.silent_machines.add(members.members()[1].machine_id)
    looked(members)
    assert looked(members, 601)
    members.provider.silent_machines.clear()
    assert members.drive() == "changed"
    assert {claim.id for claim in members.members()} == before


@pytest.mark.parametrize(("size", "silent", "action"), [(3, 2, None), (5, 3, None), (5, 2, "replacing a member")])
def test_never_when_the_quorum_is_at_stake(size: int, silent: int, action: str | None) -> None:
    members = completed(size)
    members.provider.silent_machines |= {claim.machine_id for claim in members.members()[:silent]}
    looked(members)
    assert looked(members, 601) == action
    if action:
        assert members.drive() == "changed"
        assert len(members.voters) == size


def test_one_at_a_time() -> None:
    members = completed()
    members.provider.silent_machines.add(members.members()[0].machine_id)
    looked(members)
    assert looked(members, 601)
    assert looked(members, 601) is None, "an operation is at work"


def test_a_degraded_cluster_waits_for_a_person() -> None:
    members = completed()
    members.provider.silent_machines.add(members.members()[0].machine_id)
    looked(members)
    services, now = members.world.services, members.world.services.now()
    degraded = MOVES.condition(MOVES.touch(members.cluster, now), DEGRADED, "True", "Failed", "", now)
    services.store.commit(Replace(degraded))
    assert looked(members, 601) is None


@pytest.mark.parametrize(("facts", "reason"), [({"ready": "Unknown"}, [NODE_NOT_READY]), ({"ready": "True"}, [])])
def test_a_node_that_is_not_ready_counts(
    monkeypatch: pytest.MonkeyPatch, facts: Mapping[str, Any], reason: list[str]
) -> None:
    members = completed()
    victim = members.members()[1]
    facts_by_node: dict[str, Any] = {node_of_member(claim): {"ready": "True"} for claim in members.members()}
    facts_by_node[node_of_member(victim)] = {**facts, "ready_since": "2020-01-01T00:00:00.000Z"}
    monkeypatch.setattr(member_health, "report_age", lambda *_: 5.0)
    monkeypatch.setattr(member_health, "pod_state_of", lambda *_: (None, {"nodes": facts_by_node}))
    action = looked(members)
    assert health(members) == reason
    assert bool(action) == bool(reason), "the cluster knows for how long"
    if action:
        assert members.drive() == "changed"
        assert victim.id not in {claim.id for claim in members.members()}
        assert len(members.voters) == 3


def test_a_silent_agent_says_nothing_against_a_member(monkeypatch: pytest.MonkeyPatch) -> None:
    members = completed()
    facts_by_node = {
        node_of_member(claim): {"ready": "Unknown", "ready_since": None} for claim in members.members()[:1]
    }
    monkeypatch.setattr(member_health, "report_age", lambda *_: 4000.0)
    monkeypatch.setattr(member_health, "pod_state_of", lambda *_: (None, {"nodes": facts_by_node}))
    assert looked(members) is None
    assert health(members) == []


def test_a_control_plane_of_one_is_left_alone() -> None:
    members = members_world(1)
    assert looked(members) is None
    assert members.condition(ALL_HEALTHY) is None


def test_nodes_that_are_not_ready_or_gone_are_found() -> None:
    claims = [
        NodeClaim(id=name, name=name, created_at="", updated_at="", cluster_ref="c", node_name=name)
        for name in ("a", "b", "c")
    ]
    nodes = {"a": {"ready": "True"}, "b": {"ready": "Unknown"}}
    assert [claim.id for claim in unready_nodes(nodes, claims)] == ["b", "c"]
    assert unready_nodes(None, claims) == []


def test_what_the_agent_tells_of_nodes_has_their_machines_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long before the sweep comes by."""
    members = completed()
    victim = members.members()[0]
    members.provider.ended_machines.add(victim.machine_id)
    facts_by_node = {
        node_of_member(claim): {"ready": "True"} for claim in claims_of(members.world.services, members.id)
    }
    facts_by_node[node_of_member(victim)] = {"ready": "Unknown"}
    monkeypatch.setattr(scopes, "pod_state_of", lambda *_: (None, {"nodes": facts_by_node}))
    claim_ids: list[str] = []

    def note(_: Any, claim_id: str) -> bool:
        claim_ids.append(claim_id)
        members.miss(next(claim for claim in members.members() if claim.id == claim_id))
        return True

    monkeypatch.setattr(lost_machines, "note", note)
    reaper = Reaper(members.world.registry, members.world.clock, lambda _: members.world.services)
    report = reaper.look_at_nodes("acme", members.id)
    assert (report["done"], report["failures"]) == ([f"lost {victim.id}"], [])
    assert claim_ids == [victim.id]
    assert members.drive() == "changed"
    assert victim.id not in {claim.id for claim in members.members()}


def test_a_table_that_was_set_back_is_not_acted_upon(monkeypatch: pytest.MonkeyPatch) -> None:
    members = completed()
    reaper = Reaper(members.world.registry, members.world.clock, lambda _: members.world.services)
    reaper.run()
    members.world.clock.advance(7200)
    monkeypatch.setattr(scopes, "pod_state_of", lambda *_: (None, {"nodes": {}}))
    monkeypatch.setattr(lost_machines, "note", lambda *_: pytest.fail("a machine is claim_ids for"))
    assert reaper.look_at_nodes("acme", members.id)["distrusted"]


@pytest.mark.parametrize(
    ("event", "called"),
    [
        ({"detail": {}}, ("run",)),
        ({"tenant": "acme", "place": "account/1"}, ("sweep_scope", "acme", "account/1")),
        ({"detail": {"tenant": "acme", "subject": "clu_1", "nodes": 1}}, ("look_at_nodes", "acme", "clu_1")),
    ],
)
def test_the_handler_tells_events_from_the_schedule(
    monkeypatch: pytest.MonkeyPatch, event: Mapping[str, Any], called: tuple[str, ...]
) -> None:
    from functions.reaper import handler

    calls: list[tuple[str, ...]] = []

    class Played:
        def __getattr__(self, name: str) -> Any:
            def call(*values: str, **_: Any) -> dict[str, Any]:
                calls.append((name, *values))
                return {"stopped": [], "distrusted": False}

            return call

    monkeypatch.setattr(passes, "reap", Played)
    context = SimpleNamespace(get_remaining_time_in_millis=lambda: 200_000)
    inspect.unwrap(handler.lambda_handler)(dict(event), context)
    assert calls == [called]
