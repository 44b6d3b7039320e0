"""Snapshots of etcd: who takes which, what is said when none comes, and which ones go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import Cluster, Event
from stockyard.errors import IllegalTransition, Unauthorized
from stockyard.operations.clusters.snapshots.snapshots import CURRENT, look_at_snapshots, prune, snapshots_view
from stockyard.operations.listing import every
from stockyard.operations.machines import snapshot_reports
from stockyard.operations.machines.snapshot_reports import Due, answer_member
from stockyard.ports import Replace
from tests.unit.operations.clusters.members_world import MembersWorld, members_world

BACKUP = {"interval_hours": 6, "keep": 2, "bucket": None, "on_deletion": "remove"}
PROOF = {"token": "of the machine"}


@pytest.fixture
def backed(monkeypatch: pytest.MonkeyPatch) -> MembersWorld:
    monkeypatch.setattr(snapshot_reports, "recorded_machine", lambda *_: "i-1")
    return members_world(1, etcd_backup=dict(BACKUP))


def ask(backed: MembersWorld, **report: Any) -> Due | None:
    body = {"revision": 1, "size": 10, "failure": "", **report} if report else None
    return answer_member(backed.world.services, backed.id, PROOF, body)


def condition(backed: MembersWorld) -> tuple[str, str, str]:
    entry = next((c for c in backed.cluster.conditions if c.type == CURRENT), None)
    return (entry.status, entry.reason, entry.message) if entry else ("", "", "")


def look(backed: MembersWorld) -> str | None:
    return look_at_snapshots(backed.world.services, backed.id)


def test_one_member_has_a_slot_and_a_later_one_when_that_says_nothing(backed: MembersWorld) -> None:
    due = ask(backed)
    assert due is not None
    assert due.store.key(due.id) == f"{backed.id}/{due.id}.tar.gz"
    assert ask(backed) is None, "another member takes it"
    backed.world.clock.advance(1201)
    assert ask(backed) == due


def test_a_slot_has_one_snapshot(backed: MembersWorld) -> None:
    due = ask(backed)
    assert due is not None
    assert ask(backed, id=due.id) is None
    assert backed.cluster.last_snapshot == due.id
    backed.world.clock.advance(1201)
    assert ask(backed) is None
    backed.world.clock.advance(6 * 3600)
    following = ask(backed)
    assert following is not None
    assert following.id > due.id


def test_a_failure_gives_the_slot_back_and_is_told(backed: MembersWorld) -> None:
    due = ask(backed)
    assert due is not None
    ask(backed, id=due.id, failure="OSError: S3 answers 403, password=hunter2hunter2hunter2hunter2hunter2")
    failure = snapshots_view(backed.world.services, backed.cluster)["failure"]
    assert "S3 answers 403" in failure["message"]
    assert "hunter2" not in failure["message"]
    assert ask(backed) == due
    ask(backed, id=due.id)
    assert snapshots_view(backed.world.services, backed.cluster)["failure"] is None


def test_nothing_is_due_where_nobody_asks_for_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_reports, "recorded_machine", lambda *_: "i-1")
    plain = members_world(1)
    assert ask(plain) is None
    with pytest.raises(IllegalTransition, match="etcd_backup asks for none"):
        snapshots_view(plain.world.services, plain.cluster)


def test_a_machine_that_is_not_recorded_is_told_nothing(backed: MembersWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with pytest.raises(Unauthorized):
        answer_member(backed.world.services, backed.id, {"token": "x" * 32}, None)


def test_a_snapshot_that_does_not_come_is_told_by_condition_and_event(backed: MembersWorld) -> None:
    look(backed)
    due = ask(backed)
    assert due is not None
    ask(backed, id=due.id)
    assert look(backed) == "snapshots current"
    backed.world.clock.advance(8 * 3600)
    later = ask(backed)
    assert later is not None
    ask(backed, id=later.id, failure="OSError: crictl ended with 1")
    backed.world.clock.advance(6 * 3600)
    assert look(backed) == "snapshots overdue"
    status, reason, message = condition(backed)
    assert (status, reason) == ("False", "Overdue")
    assert "crictl ended with 1" in message
    assert look(backed) is None, "it is told once"
    reasons = [event.reason for event in every(backed.world.services.store, Event)]
    assert reasons.count("SnapshotsOverdue") == 1
    following = ask(backed)
    assert following is not None
    ask(backed, id=following.id)
    assert look(backed) == "snapshots current"
    assert condition(backed)[0] == "True"


def test_without_any_snapshot_the_first_one_becomes_overdue(backed: MembersWorld) -> None:
    look(backed)
    backed.world.clock.advance(6 * 3600)
    assert look(backed) is None
    backed.world.clock.advance(2 * 3600)
    assert look(backed) == "snapshots overdue"
    assert "never" in condition(backed)[2]
    assert "a repave replaces them" in condition(backed)[2]


def test_turned_off_nothing_is_overdue(backed: MembersWorld) -> None:
    look(backed)
    backed.world.clock.advance(8 * 3600)
    look(backed)
    cluster: Cluster = replace(backed.cluster, settings={**backed.cluster.settings, "etcd_backup": None})
    backed.world.services.store.commit(Replace(replace(cluster, version=cluster.version + 1)))
    assert look(backed) == "snapshots off"
    assert condition(backed)[0] == "Unknown"
    assert look(backed) is None


def test_old_snapshots_go_once_for_each_new_one(backed: MembersWorld) -> None:
    services, stored = backed.world.services, backed.provider.stored
    assert prune(services, backed.id) is None
    due = ask(backed)
    assert due is not None
    stored |= dict.fromkeys((due.id, "20250101T000000Z", "20250102T000000Z"), "1.34")
    ask(backed, id=due.id)
    assert prune(services, backed.id) == "1 old snapshots removed"
    assert sorted(stored) == ["20250102T000000Z", due.id]
    stored["20240101T000000Z"] = "1.34"
    assert prune(services, backed.id) is None, "the cloud is asked once for each"


def test_a_change_of_the_setting_is_an_operation_of_the_second_day() -> None:
    plain = members_world(1)
    plain.patch({"settings": {"etcd_backup": {"keep": 7}}})
    assert plain.drive() == "changed"
    assert plain.provider.stands["identity"]["etcd_backup"]["keep"] == 7


@pytest.mark.parametrize(("after", "stays"), [(None, True), ({"bucket": "acme-new"}, True), ({"keep": 3}, False)])
def test_a_plan_that_leaves_a_bucket_of_the_tenants_says_what_stays_there(
    after: dict[str, Any] | None, stays: bool
) -> None:
    members = members_world(1, etcd_backup={**BACKUP, "bucket": "acme-old"})
    steps = members.plan({"settings": {"etcd_backup": after}})["steps"]
    assert any(step.startswith("Snapshots in acme-old stay there") for step in steps) is stays


def test_snapshots_are_switched_off_on_the_second_day(backed: MembersWorld) -> None:
    backed.patch({"settings": {"etcd_backup": None}})
    assert backed.drive() == "changed"
    assert backed.cluster.settings["etcd_backup"] is None
    assert backed.provider.stands["identity"]["etcd_backup"] is None
    assert ask(backed) is None
