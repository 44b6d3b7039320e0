"""Who is launched together, who may leave, and what the sweep and a machine that joins make of a group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from local.memory import MemoryProver
from stockyard.domain import ids
from stockyard.domain.records import LaunchGroup, NodeClaim, NodeProvider
from stockyard.errors import Conflict, Fenced, NotFound, NotYetVisible, Unauthorized
from stockyard.operations import launch_groups
from stockyard.operations.claims import ClaimFence
from stockyard.operations.create_claim import NewClaim, create_claim
from stockyard.operations.give_back import forget
from stockyard.operations.join_machine import UNRECORDED, join_machine
from stockyard.operations.launch_groups import StoreGroup, form, leave
from stockyard.operations.sweep_orphans import cloud_suspects, living
from stockyard.ports import Check, MachineIdentity, Replace, Tagged
from tests.workflows.fleet_world import CLUSTER, FleetLife

PROOF = {"method": "POST", "url": "https://sts.test/machine", "headers": {}}


@pytest.fixture
def life() -> FleetLife:
    made = FleetLife(count=3)
    made.create()
    return made


def group_of(life: FleetLife, claim: NodeClaim) -> StoreGroup:
    assert claim.placement is not None
    guard = Check(NodeClaim, claim.id, {"operation_id": claim.operation_id, "attempt": claim.attempt})
    return StoreGroup(life.services, claim.placement.group, claim.id, guard)


def asked(life: FleetLife) -> tuple[StoreGroup, LaunchGroup]:
    """The first claim's group with a call announced."""
    group = group_of(life, life.claims()[0])
    seen = group.read()
    assert seen is not None
    return group, group.intend(seen, None)


# --- who is put together -------------------------------------------------------------------------------------------


def test_equal_claims_of_one_pass_are_one_group(life: FleetLife) -> None:
    (group,) = life.groups()
    claims = life.claims()
    assert sorted(group.members) == sorted(claim.id for claim in claims)
    assert {claim.placement.group for claim in claims if claim.placement} == {group.id}
    assert ids.is_id(group.id)


@pytest.mark.parametrize(
    "other",
    [
        {"labels": {"stockyard.dev/pool": "b"}},
        {"resources": {"cpu": "1"}},
        {"properties": {"a": "b"}},
        {"requirements": ({"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]},)},
    ],
    ids=lambda other: next(iter(other)),
)
def test_what_a_launch_may_depend_on_keeps_claims_apart(other: dict[str, Any]) -> None:
    life = FleetLife()
    for name, fields in (("w-0", {}), ("w-1", {}), ("w-2", other)):
        create_claim(life.services, NewClaim(name=name, cluster_ref=CLUSTER, **fields), "user:ann")
    life.nodes.schedule()
    (group,) = life.groups()
    alone = next(claim for claim in life.claims() if claim.name == "w-2")
    assert len(group.members) == 2
    assert alone.placement is not None
    assert alone.placement.group == ""


def placed(life: FleetLife) -> list[launch_groups.Placed]:
    return [(claim, claim.placement) for claim in life.claims() if claim.placement]


def providers(life: FleetLife) -> dict[str, NodeProvider]:
    return {one.id: one for one in life.plain.list(NodeProvider).items}


def test_no_more_groups_than_there_is_room_for_and_none_larger_than_its_source_takes(
    life: FleetLife, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = form(life.services, providers(life), placed(life), 4)
    assert [len(group.members) for group in found] == [3]
    assert form(life.services, providers(life), placed(life), 0) == []
    monkeypatch.setattr(type(life.services.sources["ec2"]), "together", lambda *_: 2)
    assert [len(group.members) for group in form(life.services, providers(life), placed(life), 4)] == [2]
    monkeypatch.setattr(type(life.services.sources["ec2"]), "together", lambda *_: 1)
    assert form(life.services, providers(life), placed(life), 4) == []


def test_types_that_claims_are_to_begin_differently_with_are_launched_alone(life: FleetLife) -> None:
    (provider,) = providers(life).values()
    spread = replace(provider, spec={"ec2": {**provider.spec["ec2"], "allocationStrategy": "diversified"}})
    source: Any = life.services.sources["ec2"]
    assert source.together(provider, "on-demand") > 1
    assert source.together(spread, "on-demand") == 1
    assert source.together(spread, "spot") > 1, "EC2 itself spreads spot"


# --- announcing and leaving ----------------------------------------------------------------------------------------


def test_a_call_is_announced_once_and_only_for_who_waits(life: FleetLife) -> None:
    first, second, third = life.claims()
    life.delete(int(third.name[-1]))
    group, seen = group_of(life, first), life.groups()[0]
    record = group.intend(seen, None)
    assert record.asked == tuple(member for member in seen.members if member != third.id)
    with pytest.raises(NotYetVisible):
        group_of(life, second).intend(seen, None)
    with pytest.raises(Fenced):
        group_of(life, third).intend(record, None)


def test_nobody_leaves_while_a_call_for_it_may_be_under_way(life: FleetLife) -> None:
    claim = life.claims()[0]
    before = life.groups()[0]
    group, record = asked(life)
    assert not leave(life.services, claim, before), "its share has changed since"
    assert not leave(life.services, claim, record)
    with pytest.raises(Conflict):
        forget(life.services, ClaimFence(claim.id, str(claim.operation_id), claim.attempt))
    opened = group.opened(record)
    assert opened is not None
    assert leave(life.services, claim, opened)
    assert leave(life.services, claim, opened), "again"
    assert claim.id not in life.groups()[0].members


def test_the_last_who_leaves_takes_the_record_along(life: FleetLife) -> None:
    for claim in life.claims():
        (group,) = life.groups()
        assert leave(life.services, claim, group)
    assert life.groups() == []


def test_what_a_call_made_is_written_though_members_left_and_only_for_that_call(life: FleetLife) -> None:
    third = life.claims()[2]
    life.delete(int(third.name[-1]))
    group, record = asked(life)
    assert leave(life.services, third, record), "the call is not for it"
    machines = [{"id": f"i-{number}", "type": "", "zone": ""} for number in range(2)]
    kept = group.made(record, machines)
    assert kept is not None
    assert len(kept.machines) == 2
    late = group.made(record, [{"id": "i-late", "type": "", "zone": ""}])
    assert late == kept, "another answer to the call was first"


def test_a_call_is_over_when_no_worker_of_it_can_live(life: FleetLife) -> None:
    group, record = asked(life)
    life.clock.advance(life.services.rules.in_flight_seconds - 1)
    assert not group.over(record)
    life.clock.advance(1)
    assert group.over(record)


# --- the sweep, and joining ------------------------------------------------------------------------------------------


def test_the_sweep_takes_a_machine_that_the_group_has_not_given_out_for_an_orphan(life: FleetLife) -> None:
    life.work()
    (group,) = life.groups()
    given = next(iter(group.machines.values()))["id"]
    things = [
        Tagged(kind, name, "us-east-1", "acme", group.id, "1", None)
        for kind, name in (("instance", given), ("instance", "i-stranger"), ("volume", "vol-1"))
    ]
    account: Any = type("Account", (), {"provider": "aws"})
    suspects = cloud_suspects(life.services, account, things)
    alive = living(life.services)
    assert [suspect.resource_id in alive for suspect in suspects] == [True, False, True]


def test_a_machine_that_knows_its_group_joins_for_the_claim_that_it_was_given_to(life: FleetLife) -> None:
    prover = MemoryProver()
    services = replace(life.services, prover=prover)

    def told(machine: str) -> Callable[[], object]:
        arn = f"arn:aws:sts::222222222222:assumed-role/role/{machine}"
        prover.known[PROOF["url"]] = MachineIdentity("222222222222", arn, "x")  # type: ignore[index]
        return lambda: join_machine(services, b"key", group.id, PROOF)

    (group,) = life.groups()
    with pytest.raises(Unauthorized, match="not recorded"):
        told("i-1")()
    life.work()
    (group,) = life.groups()
    claim_id, machine = next(iter(group.machines.items()))
    with pytest.raises(Unauthorized) as caught:
        told(machine["id"])()
    assert UNRECORDED not in str(caught.value), "it got as far as its role"
    claim = life.plain.get(NodeClaim, claim_id)
    assert claim is not None
    life.plain.commit(Replace(replace(claim, deleting=True, version=claim.version + 1)))
    with pytest.raises(NotFound):
        told(machine["id"])()
    with pytest.raises(NotFound):
        join_machine(services, b"key", ids.derive(ids.LAUNCH_GROUP, "ncl_1"), PROOF)
