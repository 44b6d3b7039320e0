"""Changes of a ready cluster whose control plane is a service of the cloud: settings, version, node groups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import Cluster, Event, Operation, Outbox
from stockyard.errors import (
    Fenced,
    IllegalTransition,
    InvalidInput,
    PermissionDenied,
    PreconditionFailed,
    VendorRefused,
    VendorUnavailable,
)
from stockyard.lifecycle.phases import DEGRADED, TAGS_APPLIED
from stockyard.operations.clusters.changes.cancel import cancel_change
from stockyard.operations.clusters.changes.resume import resume_cluster
from stockyard.operations.clusters.phases import RUNNER
from stockyard.operations.clusters.removal.delete import delete_cluster
from stockyard.operations.engine.advance import Fence
from stockyard.operations.engine.run_phase import run_phase
from stockyard.operations.engine.sweep import CLOSED, sweep_operation
from stockyard.operations.listing import every
from stockyard.ports import ClusterPlan, Finding, PriceList, Replace
from tests.unit.operations.clusters.managed_world import GPU, USER, ManagedWorld, managed_world
from tests.unit.operations.conftest import make_world

EXTENDED: dict[str, Any] = {"settings": {"support": "extended"}}
UPGRADE = {"kubernetes_version": "1.35"}
CHANGE_PHASES = ("control_plane", "access", "node_groups", "addons", "storage", "objects")
UPGRADE_PHASES = ("control_plane", "access", "addons", "node_groups", "objects")


@pytest.fixture
def managed() -> ManagedWorld:
    return managed_world()


def faults(error: InvalidInput) -> dict[str, str]:
    return {problem.pointer: problem.detail for problem in error.errors}


def test_settings_are_on_the_record_before_the_operation_begins(managed: ManagedWorld) -> None:
    changed = managed.patch(EXTENDED)
    assert (changed.status, changed.settings["support"], changed.phase) == ("ready", "extended", "checks")
    operation = managed.operation
    assert (operation.kind, operation.status, operation.id) == ("change_cluster", "running", changed.operation_id)
    assert operation.changes == ({"pointer": "/settings/support", "before": "standard", "after": "extended"},)
    (start,) = [
        message
        for item in every(managed.world.services.store, Outbox)
        for kind, message in item.messages
        if kind == "workflow" and message["workflow"] == "change-managed-cluster"
    ]
    assert start["input"]["operation_id"] == operation.id
    assert managed.drive() == "changed"
    assert {managed.provider.stands[phase][1]["support"] for phase in CHANGE_PHASES} == {"extended"}
    assert managed.operation.status == "succeeded"
    assert (managed.cluster.status, managed.cluster.phase) == ("ready", None)


def test_events_tell_of_a_change(managed: ManagedWorld) -> None:
    operation_id = managed.patch(EXTENDED).operation_id
    managed.drive()
    events = [
        (event.detail_type, event.reason)
        for event in every(managed.world.services.store, Event)
        if event.subject in (managed.id, operation_id)
    ]
    assert {("Cluster", "ChangeStarted"), ("Operation", "Started"), ("Operation", "Succeeded")} <= set(events)
    assert events.count(("Cluster", "Changed")) == 2, "once wanted, once done"


def test_a_second_change_names_the_first(managed: ManagedWorld) -> None:
    first = managed.patch(EXTENDED).operation_id
    for second in (UPGRADE, {"settings": {"support": "standard"}}):
        with pytest.raises(IllegalTransition, match=str(first)):
            managed.patch(second)
        with pytest.raises(IllegalTransition, match=str(first)):
            managed.patch(second, version=1)
    assert managed.cluster.settings["support"] == "extended"
    assert managed.drive() == "changed"
    with pytest.raises(PreconditionFailed):
        managed.patch(UPGRADE, version=1)
    assert managed.patch(UPGRADE).operation_id != first


def test_a_change_that_changes_nothing_begins_nothing(managed: ManagedWorld) -> None:
    before = managed.cluster.operation_id
    assert managed.patch({"settings": {"support": "standard"}}).operation_id == before
    assert managed.patch({"settings": {"mirror": False}}).operation_id == before
    assert managed.patch({"description": "other"}).operation_id == before


@pytest.mark.parametrize("phase", CHANGE_PHASES)
def test_a_change_that_fails_leaves_a_degraded_cluster_and_is_resumed(managed: ManagedWorld, phase: str) -> None:
    managed.provider.faults[phase] = [VendorRefused("no")]
    operation_id = managed.patch(EXTENDED).operation_id
    assert managed.drive() == "not_changed"
    assert (managed.cluster.status, managed.condition(DEGRADED)) == ("ready", "True")
    operation = managed.operation
    assert operation.error is not None
    assert (operation.error.error_type, operation.error.phase) == ("ClusterCouldNotBeChanged", phase)
    assert "Not undone" not in operation.error.hint, "what stood before stands"
    assert operation.changes[0]["before"] == "standard"
    assert managed.condition("ControlPlaneRunning") == "True"
    resumed = resume_cluster(managed.world.services, managed.id, USER)
    # What it stands on may be what it failed for, so that this is looked at first.
    begin = phase if phase == "objects" else "network"
    assert (resumed.status, resumed.phase, resumed.attempt) == ("ready", begin, 2)
    assert managed.drive() == "changed"
    assert managed.operation.id == operation_id
    assert managed.condition(DEGRADED) == "False"
    assert managed.provider.stands[phase][1]["support"] == "extended"


@pytest.mark.parametrize("when", ["faults", "late"])
@pytest.mark.parametrize("phase", CHANGE_PHASES)
def test_a_change_goes_on_after_a_crash(managed: ManagedWorld, phase: str, when: str) -> None:
    getattr(managed.provider, when)[phase] = [VendorUnavailable("lost"), VendorUnavailable("lost again")]
    managed.patch(EXTENDED)
    assert managed.drive() == "changed"
    assert list(managed.provider.things.values()).count(phase) == 1
    assert managed.provider.stands[phase][1]["support"] == "extended"


def test_a_lost_execution_ends_as_a_failure_that_can_be_resumed(managed: ManagedWorld) -> None:
    managed.patch(EXTENDED)
    managed.world.clock.advance(managed.world.services.settings.stuck_seconds + 1)
    assert sweep_operation(RUNNER, managed.world.services, managed.cluster) == CLOSED
    assert managed.condition(DEGRADED) == "True"
    resume_cluster(managed.world.services, managed.id, USER)
    assert managed.drive() == "changed"


def test_what_failed_is_begun_anew_by_the_same_request(managed: ManagedWorld) -> None:
    managed.provider.faults["addons"] = [VendorRefused("no")]
    first = managed.patch(EXTENDED).operation_id
    assert managed.drive() == "not_changed"
    second = managed.patch(EXTENDED)
    assert second.operation_id != first
    assert managed.drive() == "changed"
    assert managed.condition(DEGRADED) == "False"


@pytest.mark.parametrize(
    ("status", "advice"), [("failed", "Resume its creation"), ("preparing", "Change it when it is ready")]
)
def test_a_cluster_that_is_not_ready_says_what_to_do_instead(managed: ManagedWorld, status: str, advice: str) -> None:
    store, cluster = managed.world.services.store, managed.cluster
    store.commit(Replace(replace(cluster, status=status, version=cluster.version + 1)))
    with pytest.raises(IllegalTransition, match=f"The cluster is {status}; only a ready one can be changed. {advice}"):
        managed.patch(EXTENDED)


def test_deletion_overtakes_a_change(managed: ManagedWorld) -> None:
    operation_id = str(managed.patch(EXTENDED).operation_id)
    delete_cluster(managed.world.services, managed.id, USER)
    closed = managed.world.services.store.get(Operation, operation_id)
    assert closed is not None
    assert closed.error is not None
    assert closed.error.cause == "The cluster was deleted while its settings were being changed."
    with pytest.raises(IllegalTransition, match="deleting"):
        managed.patch(UPGRADE)
    assert managed.drive("delete_managed") == "gone"
    assert not managed.provider.things


def test_tags_wait_for_a_change_and_follow_it(managed: ManagedWorld) -> None:
    managed.patch({**EXTENDED, "tags": {"team": "a"}})
    assert managed.operation.kind == "change_cluster"
    assert managed.condition(TAGS_APPLIED) == "Unknown"
    assert managed.drive() == "changed"
    assert managed.operation.kind == "retag_cluster"
    assert managed.drive("retag") == "retagged"
    assert managed.condition(TAGS_APPLIED) == "True"


def test_tags_leave_a_failed_change_as_it_is(managed: ManagedWorld) -> None:
    managed.provider.faults["addons"] = [VendorRefused("no")]
    failed = managed.patch(EXTENDED).operation_id
    assert managed.drive() == "not_changed"
    assert managed.patch({"tags": {"team": "a"}}).operation_id == failed
    resume_cluster(managed.world.services, managed.id, USER)
    assert managed.drive() == "changed"
    assert managed.operation.kind == "retag_cluster"


def test_a_change_is_stopped_between_two_steps(managed: ManagedWorld) -> None:
    with pytest.raises(IllegalTransition):
        cancel_change(managed.world.services, managed.id, USER)
    first = managed.patch(EXTENDED).operation_id
    fence = Fence.of(managed.cluster)
    assert run_phase(RUNNER, managed.world.services, fence, "checks").done
    stopped = cancel_change(managed.world.services, managed.id, USER)
    assert (stopped.status, stopped.operation_id, managed.condition(DEGRADED)) == ("ready", first, "True")
    error = managed.operation.error
    assert error is not None
    assert (error.phase, error.cause_type, managed.operation.status) == ("network", "Cancelled", "cancelled")
    (condition,) = [part for part in stopped.conditions if part.type == DEGRADED]
    assert (condition.reason, condition.message) == ("Cancelled", f"Stopped by {USER}. What it has done so far stands.")
    assert {phase.state for phase in managed.operation.phases} == {"succeeded", "skipped", "pending"}
    with pytest.raises(Fenced):
        run_phase(RUNNER, managed.world.services, fence, "control_plane")
    with pytest.raises(IllegalTransition):
        cancel_change(managed.world.services, managed.id, USER)
    assert managed.provider.stands["control_plane"][1]["support"] == "standard"
    assert resume_cluster(managed.world.services, managed.id, USER).phase == "network"
    assert managed.drive() == "changed"


def test_a_creation_cannot_be_stopped() -> None:
    world = make_world()
    cluster = world.create()
    with pytest.raises(IllegalTransition, match="No change"):
        cancel_change(world.services, cluster.id, USER)


# --- what may change --------------------------------------------------------------------------------------------------


def test_what_its_driver_does_not_change_is_refused_by_name(managed: ManagedWorld) -> None:
    with pytest.raises(InvalidInput) as refused:
        managed.patch({"settings": {"vpc_cidr": "10.1.0.0/16", "support": "extended"}})
    assert faults(refused.value) == {"/settings/vpc_cidr": "cannot be changed after creation"}
    role = {**GPU, "role": "system"}
    with pytest.raises(InvalidInput) as refused:
        managed.patch(managed.groups({"name": "system"}, role))
    assert faults(refused.value) == {"/settings/node_groups/1/role": "cannot change; give the group another name"}


def test_add_on_versions_are_merged(managed: ManagedWorld) -> None:
    managed.patch({"settings": {"addon_versions": {"vpc-cni": "v1.20.0", "coredns": "v1.12.0"}}})
    managed.drive()
    managed.patch({"settings": {"addon_versions": {"vpc-cni": None}}})
    assert managed.cluster.settings["addon_versions"] == {"coredns": "v1.12.0"}
    assert managed.drive() == "changed"
    assert managed.provider.stands["addons"][1]["addon_versions"] == {"coredns": "v1.12.0"}


def test_faults_of_what_is_wanted_are_told_before_anything_is_written(managed: ManagedWorld) -> None:
    managed.provider.findings = [Finding("/settings/support", "is not to be had")]
    before = managed.cluster
    with pytest.raises(InvalidInput) as refused:
        managed.patch(EXTENDED)
    assert faults(refused.value) == {"/settings/support": "is not to be had"}
    assert managed.cluster == before


def test_faults_of_what_a_change_does_not_touch_are_warnings(managed: ManagedWorld) -> None:
    managed.provider.findings = [Finding("/settings/node_groups/1/capacity_reservation_id", "is not there")]
    managed.patch(EXTENDED)
    assert [warning["detail"] for warning in managed.warnings] == ["is not there"]
    assert managed.drive() == "changed"


def test_faults_that_come_up_later_fail_the_checks(managed: ManagedWorld) -> None:
    managed.patch(EXTENDED)
    managed.provider.findings = [Finding("/settings/support", "is not to be had")]
    assert managed.drive() == "not_changed"
    assert managed.operation.error is not None
    assert managed.operation.error.phase == "checks"
    assert managed.provider.stands["control_plane"][1]["support"] == "standard"


# --- upgrade ----------------------------------------------------------------------------------------------------------


def test_an_upgrade_goes_one_minor_up(managed: ManagedWorld) -> None:
    for version, text in (("1.36", "must be 1.35: an upgrade goes one minor at a time"), ("1.33", "must not be older")):
        with pytest.raises(InvalidInput) as refused:
            managed.patch({"kubernetes_version": version})
        assert text in faults(refused.value)["/kubernetes_version"]
    changed = managed.patch(UPGRADE)
    assert (changed.status, changed.kubernetes_version) == ("ready", "1.35")
    assert managed.operation.changes == ({"pointer": "/kubernetes_version", "before": "1.34", "after": "1.35"},)
    assert managed.drive("upgrade_managed") == "upgraded"
    assert {managed.provider.stands[phase][0] for phase in UPGRADE_PHASES} == {"1.35"}
    assert managed.provider.stands["storage"][0] == "1.34", "an upgrade does not touch it"


def test_an_upgrade_ends_at_what_the_driver_supports(managed: ManagedWorld) -> None:
    managed.provider.newest = "1.34"
    with pytest.raises(InvalidInput) as refused:
        managed.patch(UPGRADE)
    assert faults(refused.value) == {"/kubernetes_version": "must be at most 1.34"}


def test_an_upgrade_is_refused_by_what_the_cloud_knows(managed: ManagedWorld) -> None:
    managed.provider.upgrade_faults = [Finding("/kubernetes_version", "flowschemas v1beta3 is in use")]
    with pytest.raises(InvalidInput) as refused:
        managed.patch(UPGRADE)
    assert faults(refused.value) == {"/kubernetes_version": "flowschemas v1beta3 is in use"}
    managed.provider.upgrade_faults = [Finding("/kubernetes_version", "an add-on is old", warning=True)]
    assert {"pointer": "/kubernetes_version", "detail": "an add-on is old"} in managed.plan(UPGRADE)["warnings"]
    managed.patch(UPGRADE)
    assert managed.drive("upgrade_managed") == "upgraded"


def test_an_account_that_may_not_be_asked_about_an_upgrade_says_why(
    managed: ManagedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A denial of the second question would make all that was found before a cloud that could not be asked."""

    def denied(_work: Any) -> Any:
        raise PermissionDenied("no")

    managed.provider.findings = [Finding("/cloud_account_id", "the template lacks a part")]
    monkeypatch.setattr(managed.provider, "upgrade_findings", denied)
    with pytest.raises(InvalidInput) as refused:
        managed.patch(UPGRADE)
    assert faults(refused.value) == {"/cloud_account_id": "the template lacks a part"}


def test_version_and_groups_change_one_after_the_other(managed: ManagedWorld) -> None:
    with pytest.raises(InvalidInput) as refused:
        managed.patch({**UPGRADE, **managed.groups({"name": "system", "max_size": 3}, GPU)})
    assert list(faults(refused.value)) == ["/settings/node_groups"]
    managed.patch({**UPGRADE, "settings": {"addon_versions": {"coredns": "v1.12.0"}}})
    assert managed.operation.kind == "upgrade_cluster"


def test_an_upgrade_that_has_touched_nothing_is_taken_back(managed: ManagedWorld) -> None:
    managed.patch(UPGRADE)
    managed.provider.upgrade_faults = [Finding("/kubernetes_version", "an interface is in use")]
    assert managed.drive("upgrade_managed") == "not_upgraded"
    with pytest.raises(InvalidInput):
        managed.patch(EXTENDED)
    managed.patch({"kubernetes_version": "1.34"})
    assert managed.drive() == "changed"
    assert (managed.cluster.kubernetes_version, managed.condition(DEGRADED)) == ("1.34", "False")


def test_an_upgrade_that_has_failed_later_is_finished_before_the_next(managed: ManagedWorld) -> None:
    managed.provider.faults["addons"] = [VendorRefused("no")]
    failed = managed.patch(UPGRADE).operation_id
    assert managed.drive("upgrade_managed") == "not_upgraded"
    assert managed.operation.error is not None
    assert managed.operation.error.error_type == "ClusterCouldNotBeUpgraded"
    for version in ("1.36", "1.34"):
        with pytest.raises(IllegalTransition, match=str(failed)):
            managed.patch({"kubernetes_version": version})
    resume_cluster(managed.world.services, managed.id, USER)
    assert managed.drive("upgrade_managed") == "upgraded"
    managed.patch({"kubernetes_version": "1.36"})
    assert managed.drive("upgrade_managed") == "upgraded"


def test_the_plan_neither_makes_nor_removes_what_stays_and_changes(
    managed: ManagedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan(cluster: Cluster, prices: PriceList) -> ClusterPlan:
        return ClusterPlan((("control plane", f"demo (Kubernetes {cluster.kubernetes_version})"),), ())

    monkeypatch.setattr(managed.provider, "plan", plan)
    planned = managed.plan(UPGRADE)
    assert (planned["creates"], planned["deletes"]) == ([], [])
    assert [line["pointer"] for line in planned["changes"]] == ["/kubernetes_version"]


def test_the_plan_says_what_is_made_changed_and_removed_and_what_it_costs(managed: ManagedWorld) -> None:
    batch = {"name": "batch", "role": "system", "instance_type": "m6i.large", "min_size": 2, "count": 2}
    change = managed.groups({"name": "system", "max_size": 4}, batch)
    change["settings"]["support"] = "extended"
    before = managed.cluster
    plan = managed.plan(change)
    assert managed.cluster == before
    assert plan["creates"] == [{"kind": "pool", "name": "batch"}]
    assert plan["deletes"] == [{"kind": "pool", "name": "l4"}]
    assert {line["pointer"]: (line["before"], line["after"]) for line in plan["changes"] if line["before"]} == {
        "/settings/node_groups/0/builtin": (True, None),
        "/settings/node_groups/0/max_size": (2, 4),
        "/settings/node_groups/0": (before.settings["node_groups"][0], None),
        "/settings/support": ("standard", "extended"),
    }
    # No node is there yet: now the control plane alone costs something.
    assert (plan["price_before"]["hour"], plan["price"]["hour"]) == (0.1, 1.2)
