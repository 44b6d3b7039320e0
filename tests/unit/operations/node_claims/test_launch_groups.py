"""Launch groups: claims that are launched together, when a claim may leave, and how sweep and join use the group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.nodes.records import NewClaim
from stockyard.domain.records import LaunchGroup, NodeClaim, NodeProvider
from stockyard.domain.values import ids
from stockyard.errors import Conflict, Fenced, NotFound, NotYetVisible, Unauthorized
from stockyard.operations.engine.advance import Fence, load
from stockyard.operations.listing import every
from stockyard.operations.machines.attest import UNRECORDED
from stockyard.operations.machines.join import join_machine
from stockyard.operations.node_claims import launch_groups
from stockyard.operations.node_claims.create import create_claim
from stockyard.operations.node_claims.launch_groups import StoreGroup, form, leave
from stockyard.operations.node_claims.phases import RUNNER
from stockyard.operations.sweep.orphans import living, tagged_suspects
from stockyard.ports import Check, MachineIdentity, Outcome, Replace, Tagged
from tests.harness.worlds.memory import MemoryAttestor
from tests.harness.worlds.ports import with_ports
from tests.workflows.fleet_world import CLUSTER, FleetLife

PROOF = {"method": "POST", "url": "https://sts.test/machine", "headers": {}}


@pytest.fixture
def life() -> FleetLife:
    life = FleetLife(count=3)
    life.create()
    return life


def group_of(life: FleetLife, claim: NodeClaim) -> StoreGroup:
    assert claim.placement is not None
    guard = Check(NodeClaim, claim.id, {"operation_id": claim.operation_id, "attempt": claim.attempt})
    return StoreGroup(life.services, claim.placement.group, claim.id, guard)


def group_with_call(life: FleetLife) -> tuple[StoreGroup, LaunchGroup]:
    """The group of the first claim, after it has announced its call."""
    group = group_of(life, life.claims()[0])
    record = group.read()
    assert record is not None
    return group, group.intend(record, None)


# --- who is put together -------------------------------------------------------------------------------------------


def test_equal_claims_of_one_pass_form_one_group(life: FleetLife) -> None:
    (group,) = life.groups()
    claims = life.claims()
    assert sorted(group.members) == sorted(claim.id for claim in claims)
    assert {claim.placement.group for claim in claims if claim.placement} == {group.id}
    assert ids.is_id(group.id)


@pytest.mark.parametrize(
    "difference",
    [
        {"labels": {"stockyard.dev/pool": "b"}},
        {"resources": {"cpu": "1"}},
        {"properties": {"a": "b"}},
        {"requirements": ({"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]},)},
    ],
    ids=lambda difference: next(iter(difference)),
)
def test_claims_that_differ_for_a_launch_form_no_group(difference: dict[str, Any]) -> None:
    life = FleetLife()
    for name, fields in (("w-0", {}), ("w-1", {}), ("w-2", difference)):
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
    return {provider.id: provider for provider in life.plain.list(NodeProvider).items}


def test_number_and_size_of_groups_are_limited(life: FleetLife, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = form(life.services, providers(life), placed(life), 4)
    assert [len(group.members) for group in groups] == [3]
    assert form(life.services, providers(life), placed(life), 0) == []
    monkeypatch.setattr(type(life.services.node_sources["ec2"]), "together", lambda *_: 2)
    assert [len(group.members) for group in form(life.services, providers(life), placed(life), 4)] == [2]
    monkeypatch.setattr(type(life.services.node_sources["ec2"]), "together", lambda *_: 1)
    assert form(life.services, providers(life), placed(life), 4) == []


def test_diversified_claims_on_demand_are_launched_alone(life: FleetLife) -> None:
    (provider,) = providers(life).values()
    spread = replace(provider, spec={"ec2": {**provider.spec["ec2"], "allocationStrategy": "diversified"}})
    source: Any = life.services.node_sources["ec2"]
    assert source.together(provider, "on-demand", {}) > 1
    assert source.together(spread, "on-demand", {}) == 1
    assert source.together(provider, "on-demand", {"allocation_strategy": "diversified"}) == 1
    assert source.together(spread, "on-demand", {"allocation_strategy": "lowest-price"}) > 1, "the claim's own wins"
    assert source.together(spread, "spot", {}) > 1, "EC2 itself spreads spot"


# --- announcing and leaving ----------------------------------------------------------------------------------------


def test_launch_call_is_announced_once_for_waiting_members(life: FleetLife) -> None:
    first, second, third = life.claims()
    life.delete(2)
    group, before = group_of(life, first), life.groups()[0]
    record = group.intend(before, None)
    assert record.asked == tuple(member for member in before.members if member != third.id)
    with pytest.raises(NotYetVisible):
        group_of(life, second).intend(before, None)
    with pytest.raises(Fenced):
        group_of(life, third).intend(record, None)


def test_member_cannot_leave_during_its_call(life: FleetLife) -> None:
    claim = life.claims()[0]
    before = life.groups()[0]
    group, record = group_with_call(life)
    assert not leave(life.services, claim, before), "its share has changed since"
    assert not leave(life.services, claim, record)
    with pytest.raises(Conflict):
        RUNNER.ends["release"](life.services, Fence.of(claim), load(life.services, Fence.of(claim)), Outcome(True))
    opened = group.opened(record)
    assert opened is not None
    assert leave(life.services, claim, opened)
    assert leave(life.services, claim, opened), "again"
    assert claim.id not in life.groups()[0].members


def test_last_leaving_member_removes_group(life: FleetLife) -> None:
    for claim in life.claims():
        (group,) = life.groups()
        assert leave(life.services, claim, group)
    assert life.groups() == []


def test_machines_of_call_are_recorded_once_although_member_left(life: FleetLife) -> None:
    third = life.claims()[2]
    life.delete(2)
    group, record = group_with_call(life)
    assert leave(life.services, third, record), "the call is not for it"
    machines = [{"id": f"i-{number}", "type": "", "zone": ""} for number in range(2)]
    stored = group.made(record, machines)
    assert stored is not None
    assert len(stored.machines) == 2
    late = group.made(record, [{"id": "i-late", "type": "", "zone": ""}])
    assert late == stored, "another answer to the call was first"


def test_call_is_over_after_in_flight_time(life: FleetLife) -> None:
    group, record = group_with_call(life)
    life.clock.advance(life.services.settings.in_flight_seconds - 1)
    assert not group.over(record)
    life.clock.advance(1)
    assert group.over(record)


# --- the sweep, and joining ------------------------------------------------------------------------------------------


def test_sweep_treats_unassigned_machine_as_orphan(life: FleetLife) -> None:
    life.work()
    (group,) = life.groups()
    instance_id = next(iter(group.machines.values()))["id"]
    things = [
        Tagged(kind, name, "us-east-1", "acme", group.id, "1", None)
        for kind, name in (("instance", instance_id), ("instance", "i-stranger"), ("volume", "vol-1"))
    ]
    suspects = tagged_suspects(things, lambda _: True)
    alive = living(life.services, every(life.services.store, NodeClaim))
    assert [suspect.resource_id in alive for suspect in suspects] == [True, False, True]


def test_machine_of_group_joins_for_its_claim(life: FleetLife) -> None:
    attestor = MemoryAttestor()
    services = with_ports(life.services, attestor=attestor)

    def joining_as(machine: str) -> Callable[[], object]:
        attestor.identities[PROOF["url"]] = MachineIdentity("222222222222", "role", machine)
        return lambda: join_machine(services, b"key", group.id, PROOF)

    (group,) = life.groups()
    with pytest.raises(Unauthorized, match="not recorded"):
        joining_as("i-1")()
    life.work()
    (group,) = life.groups()
    claim_id, machine = next(iter(group.machines.items()))
    with pytest.raises(Unauthorized) as caught:
        joining_as(machine["id"])()
    assert UNRECORDED not in str(caught.value), "it got as far as its role"
    claim = life.plain.get(NodeClaim, claim_id)
    assert claim is not None
    life.plain.commit(Replace(replace(claim, deleting=True, version=claim.version + 1)))
    with pytest.raises(NotFound):
        joining_as(machine["id"])()
    with pytest.raises(NotFound):
        join_machine(services, b"key", ids.derive(ids.LAUNCH_GROUP, "ncl_1"), PROOF)
