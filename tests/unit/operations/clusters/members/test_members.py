"""Members of control planes: a cluster is completed, grows, heals, and has its members replaced."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from stockyard.domain.pools.node_groups import group_name
from stockyard.domain.pools.records import CONTROL_PLANE
from stockyard.domain.records import Pool, Resource
from stockyard.errors import IllegalTransition, InvalidInput
from stockyard.lifecycle.clusters.cluster import MOVES
from stockyard.lifecycle.clusters.member_health import ALL_HEALTHY, COMPLETE
from stockyard.lifecycle.hints import HINTS, hint
from stockyard.lifecycle.phases import DEGRADED
from stockyard.operations.clusters.changes.repaves import plan_repave, renew_certificates, start_repave
from stockyard.operations.clusters.cloud_work import cloud_work
from stockyard.operations.clusters.healing.completion import complete_members
from stockyard.operations.clusters.healing.health import attend_members
from stockyard.operations.clusters.members.members import QuorumLost, ensure_members
from stockyard.operations.clusters.removal.delete import delete_cluster
from stockyard.operations.engine.advance import Fence
from stockyard.operations.fleet.pools.pools import member_pool_of, pools_of
from stockyard.operations.listing import every
from stockyard.operations.machines.member_plan import PLAN
from stockyard.operations.node_claims import lost_machines
from stockyard.operations.node_claims.delete import delete_claim
from stockyard.operations.services import Services
from stockyard.operations.sweep.scopes import ScopeSweep
from stockyard.operations.sweep.tally import Tally
from stockyard.ports import CloudWork, ClusterDriver, Finding, Replace
from tests.unit.operations.clusters.balanced_world import USER, WEB, BalancedWorld
from tests.unit.operations.clusters.members_world import MembersWorld, members_world


@pytest.mark.parametrize("size", [3, 5])
def test_a_new_cluster_is_completed_by_an_operation_that_begins_by_itself(size: int) -> None:
    members = members_world(size)
    assert (members.operation.kind, members.operation.status) == ("change_cluster", "running")
    assert members.drive() == "changed"
    assert len(members.voters) == size == len(members.members())
    counts = Counter(members.zones())
    assert max(counts.values()) - min(counts.values()) <= 1
    assert members.condition("ControlPlaneComplete") == "True"
    assert all(claim.control_plane for claim in members.members())
    assert not complete_members(members.world.services, members.id)


def test_a_control_plane_of_one_has_no_claims() -> None:
    members = members_world(1)
    assert members.operation.kind == "create_cluster"
    members.patch({"settings": {"api_cidrs": ["198.51.100.0/24"]}})
    assert members.drive() == "changed"
    assert members.members() == []


def test_the_pool_of_the_members_names_the_control_group_of_the_settings() -> None:
    group = {"name": "master", "role": "control", "min_size": 3, "max_size": 3, "instance_types": ["t3.large"]}
    members = members_world(3, autoscaler_node_groups=[dict(WEB), group])
    services = members.world.services
    members.drive()
    pool = member_pool_of(services, members.id)
    assert pool is not None
    assert (group_name(pool), pool.name) == ("master", CONTROL_PLANE)
    # a pool of earlier has no such word, and gets it without a change of what it asks for
    services.store.commit(Replace(replace(pool, document={}, version=pool.version + 1)))
    members.patch({"settings": {"api_cidrs": ["198.51.100.0/24"]}})
    members.drive()
    later = member_pool_of(services, members.id)
    assert later is not None
    assert (group_name(later), later.generation) == ("master", pool.generation)


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 5), (1, 5)])
def test_a_control_plane_grows(before: int, after: int) -> None:
    members = members_world(before)
    if before > 1:
        members.drive()
    members.patch({"settings": {"control_plane_size": after}})
    assert members.drive() == "changed"
    assert len(members.voters) == after


@pytest.mark.parametrize(("before", "after"), [(3, 1), (5, 3)])
def test_a_control_plane_does_not_shrink(before: int, after: int) -> None:
    members = members_world(before)
    members.drive()
    with pytest.raises(InvalidInput) as refused:
        members.patch({"settings": {"control_plane_size": after}})
    assert [(fault.pointer, "only grows" in fault.detail) for fault in refused.value.errors] == [
        ("/settings/control_plane_size", True)
    ]


def test_a_dead_member_is_replaced_by_an_operation_that_begins_by_itself() -> None:
    members = completed(3)
    victim = members.members()[-1]
    members.provider.ended_machines.add(victim.machine_id)
    members.notice()
    assert complete_members(members.world.services, members.id)
    assert members.drive() == "changed"
    assert victim.id not in {claim.id for claim in members.members()}
    assert len(members.voters) == 3


def test_a_lost_member_is_replaced_whatever_is_wrong_with_the_settings() -> None:
    """The needs of machines are seen when one is made: a fault of the settings would leave the control plane
    incomplete."""
    members = completed(3)
    pointers = ("/settings/key_pair", "/settings/image", "/settings/subnets/0", "/cloud_account_id")
    members.provider.findings = [Finding(pointer, "is gone") for pointer in pointers]
    victim = members.members()[-1]
    members.provider.end(victim.machine_id)
    members.notice()
    assert complete_members(members.world.services, members.id)
    assert members.condition(COMPLETE) == "False", "what is seen is said at once"
    assert members.drive() == "changed"
    assert (len(members.voters), members.condition(COMPLETE)) == (3, "True")


def test_a_degraded_cluster_says_why_a_lost_member_is_not_replaced() -> None:
    members = completed(3)
    services, now = members.world.services, members.world.services.now()
    degraded = MOVES.condition(MOVES.touch(members.cluster, now), DEGRADED, "True", "Failed", "", now)
    services.store.commit(Replace(degraded))
    members.provider.end(members.members()[-1].machine_id)
    members.notice()
    assert not complete_members(services, members.id)
    (part,) = [part for part in members.cluster.conditions if part.type == COMPLETE]
    assert part.status == "False"
    assert part.message.startswith("2 of 3 members are there.")
    assert f"They are replaced when {members.operation.id}, which has failed, was resumed." in part.message
    attend_members(services, members.id)
    assert members.condition(ALL_HEALTHY) == "False", "one that is gone is not healthy"


def test_the_sweep_that_misses_a_member_begins_to_replace_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep comes each five minutes, and three members bear the death of one only."""
    members = completed(3)
    victim = members.members()[-1]
    members.provider.ended_machines.add(victim.machine_id)
    monkeypatch.setattr(lost_machines, "missing", lambda *_: [victim])
    monkeypatch.setattr(lost_machines, "note", lambda *_: members.notice() is None)
    tally = Tally()
    ScopeSweep(members.world.services, "account/1", trusted=True, tally=tally).run()
    assert (tally.done, tally.failures) == ([f"lost {victim.id}"], [])
    assert members.drive() == "changed"
    assert victim.id not in {claim.id for claim in members.members()}


def test_certificates_are_renewed_by_new_members() -> None:
    members = completed(3)
    before = {claim.id for claim in members.members()}
    members.world.clock.advance(10)
    renew_certificates(members.world.services, members.id, USER, "r")
    assert members.drive() == "changed"
    assert not before & {claim.id for claim in members.members()}
    assert len(members.voters) == 3
    assert members.provider.released


def test_the_type_of_a_single_member_changes_by_a_second_one() -> None:
    members = members_world(1)
    members.world.clock.advance(10)
    types = {"control_plane_instance_type": "m5.xlarge", "control_plane_instance_types": ["m5.xlarge"]}
    members.patch({"settings": types})
    assert members.drive() == "changed"
    (claim,) = members.members()
    assert claim.machine_id != members.cluster.instance_id
    assert len(members.voters) == 1


@pytest.mark.parametrize("moment", range(1, 30, 6))
def test_a_member_that_dies_while_others_are_replaced(moment: int) -> None:
    members = completed(3)
    members.world.clock.advance(10)
    renew_certificates(members.world.services, members.id, USER, "r")
    members.dying = [members.waits + moment]
    assert members.drive() == "changed"
    while complete_members(members.world.services, members.id):
        assert members.drive() == "changed"
    assert len(members.voters) == 3 == members.living()


def test_a_person_cannot_delete_a_member() -> None:
    members = completed(3)
    with pytest.raises(IllegalTransition, match="member of a control plane"):
        delete_claim(members.world.services, members.members()[0].id, USER)


def test_a_cluster_whose_members_leave_can_be_deleted_again() -> None:
    """Somebody asks again who has mended what held a member up."""
    members = completed(3)
    services = members.world.services
    delete_cluster(services, members.id, USER)
    member = members.members()[0]
    services.store.commit(Replace(replace(member, deleting=True, version=member.version + 1)))
    assert delete_cluster(services, members.id, USER).status == "deleting"


def test_a_machine_that_was_just_taken_over_goes_with_its_cluster() -> None:
    """The machine's claim waits for the scheduler yet, and is gone at once when it is deleted: the cluster ends the
    machine."""
    members = members_world(3)
    services, cluster = members.world.services, members.cluster
    outcome = ensure_members(*_arguments(members))
    assert outcome.message.endswith("becomes a claim.")
    (claim,) = members.members()
    assert (claim.machine_id, claim.execution) == (cluster.instance_id, None)
    delete_cluster(services, members.id, USER)
    members.meanwhile = lambda: BalancedWorld.meanwhile(members)
    members.drive("delete")
    assert members.provider.things == {}
    assert [line.id for line in every(services.store, Resource) if line.state != "gone"] == []


def test_a_member_leaves_when_its_claim_was_placed() -> None:
    """A claim that was never placed is forgotten when it is deleted, and the first member has a machine all the
    same."""
    members, late = members_world(1), 40
    play, first = members._play, members.cluster.instance_id
    members._play = lambda claim: None if claim.machine_id == first and members.waits < late else play(claim)
    members.world.clock.advance(10)
    renew_certificates(members.world.services, members.id, USER, "r")
    assert members.drive() == "changed"
    assert members.waits > late
    assert first not in members.provider.things
    assert [claim.machine_id == first for claim in members.members()] == [False]


def test_the_pool_of_members_is_none_of_the_others() -> None:
    members = completed(3)
    assert [pool.name for pool in pools_of(members.world.services, members.id)] == ["web"]
    pool = members.world.services.store.get(Pool, f"{members.id}/control-plane")
    assert pool is not None
    assert (pool.form, pool.quantity) == ("control-plane", 3)


def test_without_a_quorum_the_change_fails_and_says_what_helps() -> None:
    members = completed(3)
    for victim in members.members()[:2]:
        members.provider.ended_machines.add(victim.machine_id)
    members.notice()
    members.voters.clear()
    assert complete_members(members.world.services, members.id)
    assert members.drive() == "not_changed"
    assert members.condition(DEGRADED) == "True"
    assert "snapshot" in str(members.operation.error)
    assert not complete_members(members.world.services, members.id)


def test_nothing_is_left_of_the_plan_when_the_cluster_is_gone() -> None:
    from stockyard.operations.clusters.removal.record import FACTS

    assert PLAN in FACTS


def _arguments(members: MembersWorld) -> tuple[Services, ClusterDriver, CloudWork]:
    services, cluster = members.world.services, members.cluster
    driver, work = cloud_work(services, cluster, "members", Fence.of(cluster))
    return services, driver, work


def completed(size: int) -> MembersWorld:
    members = members_world(size)
    assert members.drive() == "changed"
    return members


# --- plans ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3])
def test_a_plan_of_another_type_names_each_member_that_is_replaced(size: int) -> None:
    members = members_world(size)
    if size > 1:
        members.drive()
    plan = members.plan({"settings": {"control_plane_instance_type": "m5.xlarge"}})
    nodes = sorted(members.voters)
    assert len(nodes) == size
    assert sorted(thing["name"] for thing in plan["deletes"] if thing["kind"] == "member") == nodes
    created = [thing["name"] for thing in plan["creates"] if thing["kind"] == "member"]
    assert sorted(created) == [f"in the place of {node}" for node in nodes]
    single = [step for step in plan["steps"] if step.startswith("Add a member in the place of")]
    assert sorted(step.split(";")[0].rpartition(" ")[2] for step in single) == nodes
    assert [change["pointer"] for change in plan["changes"]] == ["/settings/control_plane_instance_type"]


@pytest.mark.parametrize("size", [1, 3])
def test_a_plan_names_the_members_that_have_come_for_others(size: int) -> None:
    members = members_world(size)
    if size > 1:
        members.drive()
    before = set(members.voters)
    members.world.clock.advance(60)
    start_repave(members.world.services, members.id, USER, "r")
    assert members.drive() == "changed"
    assert before.isdisjoint(members.voters)
    plan = plan_repave(members.world.services, members.id)
    assert sorted(thing["name"] for thing in plan["deletes"] if thing["kind"] == "member") == sorted(members.voters)
    assert sum(step.startswith("Add a member in the place of") for step in plan["steps"]) == size


def test_a_plan_of_another_size_says_it_once() -> None:
    control = {"name": "control", "role": "control", "min_size": 1, "max_size": 1, "instance_types": ["t3.xlarge"]}
    members = members_world(1, autoscaler_node_groups=[control, dict(WEB)])
    plan = members.plan({"settings": {"control_plane_size": 3}})
    assert [(each["pointer"], each["before"], each["after"]) for each in plan["changes"]] == [
        ("/settings/control_plane_size", 1, 3)
    ]
    assert [thing["name"] for thing in plan["deletes"]] == []
    # What only the group says is shown where it stands.
    larger = [{**control, "min_size": 3, "max_size": 3, "root_disk_gib": 80}, dict(WEB)]
    changes = members.plan({"settings": {"autoscaler_node_groups": larger}})["changes"]
    assert {each["pointer"] for each in changes} == {
        "/settings/control_plane_size",
        "/settings/autoscaler_node_groups/0/root_disk_gib",
    }


def test_a_lost_quorum_says_what_to_do() -> None:
    advice = hint("QuorumLost", "A resume goes on.")
    assert "docs/restore.md" in advice
    assert advice.endswith("A resume goes on.")
    assert QuorumLost.__name__ in HINTS
