"""Members of control planes: a cluster is completed, grows, heals, and has its members replaced."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from stockyard.domain.records import Pool
from stockyard.errors import IllegalTransition, InvalidInput
from stockyard.lifecycle.phases import DEGRADED
from stockyard.operations.clusters.completion import complete_members
from stockyard.operations.clusters.delete import delete_cluster
from stockyard.operations.clusters.repaves import renew_certificates
from stockyard.operations.machines.member_plan import PLAN
from stockyard.operations.node_claims.delete import delete_claim
from stockyard.operations.pools.pools import pools_of
from stockyard.ports import Replace
from tests.unit.operations.clusters.members_world import USER, MembersWorld, members_world


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
    lose(members, victim.id)
    assert complete_members(members.world.services, members.id)
    assert members.drive() == "changed"
    assert victim.id not in {claim.id for claim in members.members()}
    assert len(members.voters) == 3


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


@pytest.mark.parametrize("moment", range(1, 30, 3))
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
        lose(members, victim.id)
    members.voters.clear()
    assert complete_members(members.world.services, members.id)
    assert members.drive() == "not_changed"
    assert members.condition(DEGRADED) == "True"
    assert "snapshot" in str(members.operation.error)
    assert not complete_members(members.world.services, members.id)


def test_nothing_is_left_of_the_plan_when_the_cluster_is_gone() -> None:
    from stockyard.operations.clusters.phases import FACTS

    assert PLAN in FACTS


def completed(size: int) -> MembersWorld:
    members = members_world(size)
    assert members.drive() == "changed"
    return members


def lose(members: MembersWorld, claim_id: str) -> None:
    """The sweep has seen that the machine is gone."""
    from dataclasses import replace

    from stockyard.domain.records import NodeClaim
    from stockyard.lifecycle.loss import lose as lost
    from stockyard.ports import Replace

    services = members.world.services
    claim = services.store.get(NodeClaim, claim_id)
    assert claim is not None
    changed, _ = lost(claim, services.now())
    services.store.commit(Replace(replace(changed, sequence=changed.sequence + 1)))
