"""Claims that are launched together by one call: the tags of its machines, and what each answer means for a member."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from local.aws.corrections.compute.compute import hidden_at_first
from local.testing.memory_store import MemoryStore, MemoryTable
from stockyard.domain.records import LaunchGroup, NodeClaim
from stockyard.domain.values.times import from_text, to_text
from stockyard.errors import InsufficientCapacity, NotYetVisible, PermissionDenied, VendorTimeout
from stockyard.operations.node_claims.launch_groups import StoreGroup
from stockyard.ports import Check, Create, Outcome
from stockyard.ports.node_work import NodeWork
from stockyard.settings import Settings

GROUP = "lgr_01KDVJXQ80000000000000000A"
COUNT = 3


@dataclass
class Members:
    """Three claims of one group, each with a ledger of its own, in the tenant's account of ``hand``."""

    hand: Any
    store: MemoryStore
    claims: list[NodeClaim]
    ledgers: list[Any]

    @classmethod
    def of(cls, hand: Any) -> Members:
        hand.prepare()
        store = MemoryStore(MemoryTable(), "acme")
        placement = replace(hand.claim.placement, group=GROUP)
        claims = [
            replace(hand.claim, id=f"{hand.claim.id[:-1]}{number}", name=f"w-{number}", placement=placement)
            for number in range(COUNT)
        ]
        group = LaunchGroup(GROUP, hand.yard.cluster.id, tuple(claim.id for claim in claims), "t")
        store.commit(Create(group), *(Create(claim) for claim in claims))
        ledger = type(hand.ledger)
        return cls(hand, store, claims, [ledger(claim, "launch", hand.yard.now) for claim in claims])

    def work(self, number: int) -> NodeWork:
        claim, ledger = self.claims[number], self.ledgers[number]
        ledger.now = self.hand.yard.now
        clock = SimpleNamespace(now=lambda: self.hand.yard.now)
        services: Any = SimpleNamespace(
            store=self.store,
            clock=clock,
            now=lambda: to_text(self.hand.yard.now),
            seconds_since=lambda moment: (self.hand.yard.now - from_text(moment)).total_seconds(),
            settings=Settings("t"),
        )
        group = StoreGroup(services, GROUP, claim.id, Check(NodeClaim, claim.id, {"attempt": claim.attempt}))
        work: NodeWork = self.hand.node_work(claim=claim, ledger=ledger, group=group)
        return work

    def step(self, number: int) -> Outcome:
        outcome: Outcome = self.hand.source.launch(self.work(number))
        return outcome

    def launch(self, number: int) -> str:
        outcome = self.hand.until_done(lambda: self.step(number))
        return str(outcome.facts["machine_id"])

    def terminate(self, number: int) -> None:
        self.hand.until_done(lambda: self.hand.source.terminate(self.work(number)))

    def record(self) -> LaunchGroup:
        group = self.store.get(LaunchGroup, GROUP)
        assert group is not None
        return group

    def alive(self) -> list[str]:
        return [instance["InstanceId"] for instance in self.hand.instances()]


@pytest.fixture
def members(hand: Any) -> Members:
    return Members.of(hand)


def tags_of(item: dict[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in item["Tags"]}


def test_one_call_launches_machine_for_each_member(members: Members, sent: list[dict[str, Any]]) -> None:
    machines = [members.launch(number) for number in range(COUNT)]
    assert sorted(machines) == sorted(members.alive())
    assert [request["TargetCapacitySpecification"]["TotalTargetCapacity"] for request in sent] == [COUNT]
    again = [members.launch(number) for number in range(COUNT)]
    assert (again, len(sent)) == (machines, 1)
    facts = members.step(0).facts
    assert facts["type"] == "aws.m6i.large"
    assert facts["zone"]
    client = members.hand.calls
    repeated = client.create_fleet(**sent[0])
    assert sorted(name for instances in repeated["Instances"] for name in instances["InstanceIds"]) == sorted(machines)
    assert len(members.alive()) == COUNT, "the same token is the same call"


def test_machines_have_tag_of_group_and_sweep_lists_them(members: Members) -> None:
    members.launch(0)
    for instance in members.hand.instances():
        carried = tags_of(instance)
        assert carried["stockyard:resource"] == GROUP
        assert carried["stockyard:generation"] == "1"
        assert carried["vantage-cluster"] == members.hand.yard.cluster.client_id
        assert not [key for key in carried if "/" in key]
    yard = members.hand.yard
    things = [
        thing
        for thing in yard.cloud.tagged(yard.account, "inst-1", "acme", ["us-east-1"])
        if thing.resource_id == GROUP
    ]
    assert sorted(thing.kind for thing in things) == ["instance"] * COUNT + ["volume"] * COUNT
    machine = next(thing for thing in things if thing.kind == "instance")
    assert yard.cloud.discard(yard.account, machine, "acme")
    assert len(members.alive()) == COUNT - 1


def test_leaving_member_terminates_its_machine_only(members: Members) -> None:
    machines = [members.launch(number) for number in range(2)]
    members.hand.later(3600)
    members.terminate(1)
    third = members.record().machines[members.claims[2].id]["id"]
    assert sorted(members.alive()) == sorted([machines[0], third])
    members.terminate(2)
    assert members.alive() == [machines[0]], "the one that it never took is ended too"
    members.terminate(2)
    assert [ledger.lines() for ledger in members.ledgers[1:]] == [[], []]


def test_members_without_machine_get_refused_offerings(
    members: Members, limits: dict[str, int], sent: list[dict[str, Any]]
) -> None:
    limits["m6i.large"] = 2
    assert members.launch(1) != members.launch(0)
    with pytest.raises(InsufficientCapacity) as caught:
        members.step(2)
    assert {(kind, capacity_type) for kind, capacity_type, _ in caught.value.refused} == {("m6i.large", "on-demand")}
    assert caught.value.code == "InsufficientInstanceCapacity"
    members.terminate(2)
    assert (len(members.alive()), len(sent)) == (2, 1)


def test_refusal_of_one_call_applies_to_all_members(
    members: Members, limits: dict[str, int], sent: list[dict[str, Any]]
) -> None:
    limits["m6i.large"] = 0
    for number in range(COUNT):
        with pytest.raises(InsufficientCapacity):
            members.step(number)
    assert len(sent) == 1


@pytest.mark.parametrize("hidden", [0, 100])
def test_lost_answer_is_found_by_search(members: Members, answers: Any, hidden: int) -> None:
    answers.lost = True
    yard, start = members.hand.yard, members.hand.yard.now

    def passed() -> float:
        return float((yard.now - start).total_seconds())

    with hidden_at_first(lambda: hidden, passed):
        with pytest.raises(VendorTimeout):
            members.step(0)
        assert not members.step(1).done
        machines = [members.launch(number) for number in range(COUNT)]
    assert sorted(machines) == sorted(members.alive())
    assert len(answers.sent) == 1, "a call that may have worked is not repeated"
    assert members.step(2).facts["type"] == "aws.m6i.large"
    assert passed() >= max(60, hidden)


def test_lost_call_is_repeated_after_in_flight_time(members: Members, answers: Any) -> None:
    answers.left.append(VendorTimeout("no answer in time"))
    start = members.hand.yard.now
    with pytest.raises(VendorTimeout):
        members.step(0)
    machines = [members.launch(number) for number in range(COUNT)]
    assert len(set(machines)) == COUNT
    assert answers.sent[0]["ClientToken"] != answers.sent[1]["ClientToken"]
    assert (members.hand.yard.now - start).total_seconds() >= Settings("t").in_flight_seconds


def test_invisible_template_is_awaited_by_all_members(members: Members, answers: Any) -> None:
    answers.left = [PermissionDenied("no", code="UnauthorizedOperation")] * 2
    with pytest.raises(NotYetVisible):
        members.step(0)
    assert not members.step(1).done, "not at once again"
    members.hand.later(5)
    with pytest.raises(NotYetVisible):
        members.step(1)
    members.hand.later(5)
    assert members.launch(2)
    assert len(answers.sent) == 3


def test_unexplained_denial_fails_one_member(hand: Any, answers: Any) -> None:
    hand.prepare()
    hand.launch()
    members = Members.of(hand)
    answers.left = [PermissionDenied("no", code="UnauthorizedOperation")]
    with pytest.raises(PermissionDenied):
        members.step(0)
    assert members.record().state == "open"
    assert members.launch(1)


def test_late_answer_leaves_no_machine(members: Members, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StoreGroup, "made", lambda self, record, machines, refusal=None: self.read())
    assert not members.step(0).done
    assert members.alive() == []
