"""A cluster begins anew from a snapshot of its etcd, whether its members are there or not."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from stockyard.domain.records import Cluster, Fact
from stockyard.errors import IllegalTransition, NotFound
from stockyard.lifecycle.phases import DEGRADED
from stockyard.operations.clusters.changes.resume import resume_cluster
from stockyard.operations.clusters.snapshots.restores import plan_restore, start_restore
from stockyard.operations.machines.member_plan import PLAN
from stockyard.ports import Replace
from tests.unit.operations.clusters.balanced_world import USER
from tests.unit.operations.clusters.members_world import MembersWorld, members_world

BACKUP = {"interval_hours": 6, "keep": 2, "bucket": None, "on_deletion": "remove"}
OLD, NEW = "20251230T000000Z", "20251231T060000Z"


def backed(size: int = 3, minor: str = "1.34") -> MembersWorld:
    members = members_world(size, etcd_backup=dict(BACKUP))
    if size > 1:
        assert members.drive() == "changed"
    members.provider.stored |= {OLD: minor, NEW: minor}
    members.world.clock.advance(600)
    return members


def restore(members: MembersWorld, snapshot: str = "latest") -> Cluster:
    return start_restore(members.world.services, members.id, snapshot, USER, "r")


def machines(members: MembersWorld) -> set[str]:
    return {claim.machine_id for claim in members.members()}


@pytest.mark.parametrize("size", [1, 3, 5])
def test_all_members_are_new_and_as_many_as_before(size: int) -> None:
    members = backed(size)
    before = machines(members) | {str(members.cluster.instance_id)}
    restore(members)
    assert members.drive() == "changed"
    assert members.restored_from == NEW
    assert len(members.voters) == size == len(members.members())
    assert not machines(members) & before
    assert members.provider.registered == machines(members)
    assert members.provider.released, "what the first member had goes"
    assert members.provider.readable == "", "nobody may read snapshots any more"
    assert members.condition(DEGRADED) in (None, "False")


def test_a_control_plane_without_quorum_is_restored() -> None:
    members = backed(3)
    members.lose(*members.members()[:2])
    members.patch({"settings": {"control_plane_size": 5}})
    assert members.drive() == "not_changed"
    assert members.condition(DEGRADED) == "True"
    restore(members, OLD)
    assert members.drive() == "changed"
    assert (members.restored_from, len(members.voters)) == (OLD, 5)
    assert members.condition(DEGRADED) == "False"


@pytest.mark.parametrize("size", [1, 3])
def test_a_control_plane_of_which_nothing_is_left_is_restored(size: int) -> None:
    members = backed(size)
    members.lose(*members.members())
    members.provider.ended_machines.add(str(members.cluster.instance_id))
    restore(members)
    assert members.drive() == "changed"
    assert len(members.voters) == size


def test_the_members_of_before_serve_until_the_new_one_has_begun() -> None:
    members = backed(3)
    before = machines(members)
    members.stillborn = 1
    restore(members)
    assert members.drive() == "not_changed"
    assert members.provider.registered == before
    assert "are as they were" in str(members.operation.error)
    assert members.provider.ended_machines


def test_the_members_of_before_serve_again_when_the_node_of_the_new_one_never_comes() -> None:
    members = backed(3)
    before, meanwhile = machines(members), members.meanwhile
    handed_over: list[bool] = []

    def without_a_node() -> None:
        meanwhile()
        restored = [claim for claim in members.members() if claim.machine_id not in before and claim.machine_id]
        for claim in restored:
            alone = members.provider.registered == {claim.machine_id}
            handed_over.append(alone)
            failed = replace(claim, phase="Failed" if alone and len(handed_over) > 5 else "Pending")
            members.world.services.store.commit(Replace(replace(failed, version=claim.version + 1)))

    members.meanwhile = without_a_node
    restore(members)
    assert members.drive() == "not_changed"
    assert any(handed_over)
    assert members.provider.registered >= before
    assert before <= {claim.machine_id for claim in members.members() if not claim.deleting}


def test_a_resume_makes_another_member() -> None:
    members = backed(3)
    members.stillborn = 1
    restore(members)
    assert members.drive() == "not_changed"
    resume_cluster(members.world.services, members.id, USER)
    assert members.drive() == "changed"
    assert (members.restored_from, len(members.voters)) == (NEW, 3)


def test_a_later_change_restores_nothing() -> None:
    members = backed(3)
    members.stillborn = 1
    restore(members)
    assert members.drive() == "not_changed"
    before = machines(members)
    members.patch({"settings": {"api_cidrs": ["198.51.100.0/24"]}})
    assert members.drive() == "changed"
    assert members.restored_from == ""
    assert machines(members) <= before


def test_nodes_that_the_snapshot_does_not_know_are_replaced() -> None:
    members = backed(3)
    web = {claim.id for claim in members.claims("web")}
    # Stored before the nodes came; the world tells when the cluster was made.
    plan = plan_restore(members.world.services, members.id, "latest")
    assert {entry["name"] for entry in plan["deletes"]} >= {claim.name for claim in members.claims("web")}
    restore(members)
    assert members.drive() == "changed"
    assert not web & {claim.id for claim in members.claims("web") if not claim.deleting}


def test_the_plan_says_what_is_forgotten_and_in_which_order() -> None:
    members = backed(3)
    plan = plan_restore(members.world.services, members.id, OLD)
    assert plan["changes"] == [{"pointer": "/restore", "before": None, "after": OLD}]
    assert "is forgotten" in plan["warnings"][0]["detail"]
    assert [step.split(" ")[0] for step in plan["steps"]] == ["Make", "Send", "End", "Replace", "Add"]
    assert plan["price"] == plan["price_before"]
    assert members.operation.kind == "change_cluster"
    assert members.operation.status == "succeeded", "nothing has begun"


def test_a_snapshot_that_is_not_there_is_named() -> None:
    members = backed(3)
    with pytest.raises(NotFound, match="no snapshot 20200101T000000Z"):
        restore(members, "20200101T000000Z")
    members.provider.stored.clear()
    with pytest.raises(NotFound, match="no snapshot yet"):
        restore(members)


def test_a_snapshot_of_a_minor_that_is_too_old_is_refused() -> None:
    restore(backed(1, minor="1.33"))
    for minor in ("1.32", "1.35"):
        with pytest.raises(IllegalTransition, match=f"is of Kubernetes {minor}"):
            restore(backed(1, minor=minor))


def test_a_restore_waits_for_nothing_that_is_at_work() -> None:
    members = backed(3)
    restore(members)
    with pytest.raises(IllegalTransition, match="still at work"):
        restore(members)


def test_a_cluster_without_the_setting_has_nothing_to_restore() -> None:
    members = members_world(1)
    with pytest.raises(IllegalTransition, match="etcd_backup asks for none"):
        restore(members)


def test_the_joining_machine_is_told_where_the_snapshot_is() -> None:
    members = backed(1)
    restore(members)
    assert members.drive() == "changed"
    fact = members.world.services.store.get(Fact, f"{members.id}/{PLAN}")
    assert fact is not None
    assert json.loads(fact.value)["restore"]["key"] == f"{members.id}/{NEW}.tar.gz"
