"""A cluster's life through the real workflow documents, with everything outside in memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from stockyard.domain.clusters.change import ClusterChange
from stockyard.domain.models.base import read
from stockyard.domain.models.pools.pending_pods import PendingPods
from stockyard.domain.nodes.records import NewClaim
from stockyard.domain.records import (
    Cluster,
    Counter,
    Event,
    Name,
    Operation,
    Outbox,
    Placement,
    Resource,
    WorkloadPart,
    WorkloadReport,
)
from stockyard.errors import (
    ClusterNameInUse,
    Conflict,
    Fenced,
    IllegalTransition,
    InvalidInput,
    NotFound,
    PermissionDenied,
    PreconditionFailed,
    QuotaExceeded,
    RequestInProgress,
    UnexpectedBehavior,
    VendorRefused,
    VendorThrottled,
    VendorUnavailable,
)
from stockyard.lifecycle.operation import phase_of, progress
from stockyard.lifecycle.phases import CREATE_CLUSTER, PROCEDURES, procedure_of
from stockyard.lifecycle.procedure import ENSURE
from stockyard.operations.clusters.await_report import await_report
from stockyard.operations.clusters.changes.change import change_cluster
from stockyard.operations.clusters.changes.resume import resume_cluster
from stockyard.operations.clusters.creation.create import create_cluster, plan_creation
from stockyard.operations.clusters.phases import RUNNER
from stockyard.operations.clusters.removal.delete import delete_cluster, plan_deletion
from stockyard.operations.engine.advance import Fence
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.engine.run_phase import run_phase
from stockyard.operations.listing import every
from stockyard.operations.machines.pending_pods import receive
from stockyard.operations.node_claims.create import create_claim
from stockyard.operations.relay.outbox import Relay
from stockyard.operations.sweep.records import sweep_cluster, sweep_lease
from stockyard.ports import Replace

CREATION = procedure_of(PROCEDURES, CREATE_CLUSTER)


def operation_of(world, cluster):
    return world.services.store.get(Operation, world.cluster(cluster).operation_id)


def nothing_left(world):
    store = world.services.store
    lines = [r for r in store.list(Resource, limit=200).items if r.state != "gone"]
    return (
        not world.provider.things
        and not world.identity.clients
        and not world.secrets.names("")
        and not store.list(Cluster).items
        and not store.list(Name).items
        and not lines
        and getattr(store.get(Counter, "quota/clusters"), "value", 0) == 0
    )


def test_cluster_becomes_ready_and_deletion_leaves_nothing(world):
    cluster = world.create()
    assert cluster.status == "preparing"
    assert world.drive(cluster, "provision_cluster") == "ready"
    ready = world.cluster(cluster)
    assert (ready.status, ready.phase, ready.endpoint) == ("ready", None, "nlb.example")
    operation = operation_of(world, cluster)
    assert operation.status == "succeeded"
    assert progress(operation) == 100
    assert {p.state for p in operation.phases if p.name != "profile"} == {"succeeded"}
    assert phase_of(operation, "profile").state == "skipped"
    assert {c.status for c in ready.conditions} == {"True"}
    assert len(world.deployer.calls) == 1
    body = {"sequence": 1, "observed_at": world.services.now(), "agent_version": "1", "groups": {}, "pending": {}}
    receive(world.services, ready, read(PendingPods, body).model_dump())
    deleting = delete_cluster(world.services, "demo", "ann")
    assert world.drive(deleting, "delete_cluster") == "gone"
    assert nothing_left(world)
    assert not [*every(world.services.store, WorkloadReport), *every(world.services.store, WorkloadPart)]
    operations = {(each.kind, each.subject_name) for each in every(world.services.store, Operation)}
    assert operations == {("create_cluster", "demo"), ("delete_cluster", "demo")}, "they say which cluster it was"
    assert world.services.store.get(Operation, deleting.operation_id).status == "succeeded"
    assert world.create("demo").status == "preparing"


def test_event_sequences_rise_by_one_per_subject(world):
    cluster = world.create()
    world.drive(cluster, "provision_cluster")
    events = world.services.store.list(Event, limit=200).items
    for subject in {event.subject for event in events}:
        assert sorted(e.sequence for e in events if e.subject == subject) == list(
            range(1, 1 + sum(e.subject == subject for e in events))
        )


@pytest.mark.parametrize("phase", [phase.name for phase in CREATION.phases if phase.runs == ENSURE])
def test_refused_phase_fails_creation_which_can_be_resumed(world, phase):
    world.provider.faults[phase] = [VendorRefused("no such thing")]
    cluster = world.create()
    assert world.drive(cluster, "provision_cluster") == "not_deployed"
    failed = world.cluster(cluster)
    assert failed.status == "failed"
    error = operation_of(world, cluster).error
    assert (error.error_type, error.phase, error.cause) == ("ClusterCouldNotBeDeployed", phase, "no such thing")
    assert error.hint
    assert phase not in world.provider.things.values()
    resumed = resume_cluster(world.services, cluster.id, "ann")
    assert (resumed.attempt, resumed.phase) == (2, phase)
    assert world.drive(resumed, "provision_cluster") == "ready"


def test_lost_answer_creates_resource_once(world):
    world.provider.late["network"] = [VendorUnavailable("lost"), VendorThrottled("slow")]
    cluster = world.create()
    assert world.drive(cluster, "provision_cluster") == "ready"
    assert list(world.provider.things.values()).count("network") == 1


@pytest.mark.parametrize(
    ("error", "expected"), [(VendorThrottled("slow"), "ready"), (VendorUnavailable("away"), "not_deployed")]
)
def test_throttled_calls_are_tried_longer_than_others(world, error, expected):
    """A vendor's bucket refills slowly: ten times, others seven."""
    world.provider.faults["network"] = [error] * 9
    assert world.drive(world.create(), "provision_cluster") == expected


def test_machine_without_report_is_replaced_on_resume(world):
    cluster = world.create()
    assert world.drive(cluster, "provision_cluster", report=False) == "not_deployed"
    assert "control_plane" not in world.provider.things.values()
    resumed = resume_cluster(world.services, cluster.id, "ann")
    assert resumed.phase == "control_plane"
    assert world.drive(resumed, "provision_cluster") == "ready"


def test_refusal_of_vdeployer_keeps_machine_and_resume_retries(world):
    world.deployer.faults.before("deploy", VendorRefused("bad settings"))
    cluster = world.create()
    assert world.drive(cluster, "provision_cluster") == "not_deployed"
    assert "control_plane" in world.provider.things.values()
    assert world.drive(resume_cluster(world.services, cluster.id, "ann"), "provision_cluster") == "ready"


def test_deletion_fences_running_creation(world):
    cluster = world.create()
    fence = Fence(Cluster, cluster.id, cluster.operation_id, 1)
    run_phase(RUNNER, world.services, fence, "account")
    run_phase(RUNNER, world.services, fence, "network")
    deleting = delete_cluster(world.services, cluster.id, "ann")
    with pytest.raises(Fenced):
        run_phase(RUNNER, world.services, fence, "security")
    assert world.services.store.get(Operation, cluster.operation_id).status == "failed"
    assert delete_cluster(world.services, cluster.id, "ann").operation_id == deleting.operation_id
    assert world.drive(deleting, "delete_cluster") == "gone"
    assert nothing_left(world)


def test_blocked_deletion_lists_remaining_resources_and_finishes_later(world):
    cluster = world.create()
    world.drive(cluster, "provision_cluster")
    world.provider.faults["remove network"] = [PermissionDenied("ec2:DeleteVpc is not allowed")]
    deleting = delete_cluster(world.services, cluster.id, "ann")
    assert world.drive(deleting, "delete_cluster") == "blocked"
    blocked = world.cluster(cluster)
    assert blocked.status == "deleting"
    assert [r for r in blocked.remaining if r.startswith("network ")]
    assert operation_of(world, cluster).error.cause == "ec2:DeleteVpc is not allowed"
    assert sweep_cluster(world.services, world.cluster(cluster)) is None
    world.clock.advance(world.services.settings.retry_deletion_seconds + 1)
    assert sweep_cluster(world.services, world.cluster(cluster)) == "retried"
    assert world.drive(world.cluster(cluster), "delete_cluster") == "gone"
    assert nothing_left(world)


def test_a_blocked_deletion_that_is_asked_for_again_is_tried_again_at_once(world):
    cluster = world.create()
    world.drive(cluster, "provision_cluster")
    world.provider.faults["remove network"] = [PermissionDenied("ec2:DeleteVpc is not allowed")]
    deleting = delete_cluster(world.services, cluster.id, "ann")
    assert delete_cluster(world.services, cluster.id, "ann") == deleting, "nothing is blocked yet"
    assert world.drive(deleting, "delete_cluster") == "blocked"
    again = delete_cluster(world.services, cluster.id, "ann")
    assert again.operation_id == deleting.operation_id
    assert operation_of(world, cluster).error is None
    assert world.drive(again, "delete_cluster") == "gone"
    assert nothing_left(world)


@pytest.mark.parametrize("late", [False, True])
def test_failure_of_keycloak_leaves_nothing(world, late):
    plan = world.identity.faults.after if late else world.identity.faults.before
    plan("create_client", VendorUnavailable("down"))
    with pytest.raises(UnexpectedBehavior):
        world.create()
    assert nothing_left(world)


def test_sweep_undoes_expired_acceptance(world):
    world.identity.faults.after("create_client", VendorUnavailable("down"))
    world.identity.faults.before("delete_client", VendorUnavailable("down"))
    with pytest.raises(UnexpectedBehavior):
        world.create()
    with pytest.raises(NotFound):
        find_cluster(world.services, "demo")
    assert world.registry.due(Cluster, world.clock.now()) == []
    moment = world.clock.now() + timedelta(seconds=world.services.settings.lease_seconds + 1)
    [(tenant, cluster)] = world.registry.due(Cluster, moment)
    assert tenant == "acme"
    with pytest.raises(NotFound):
        delete_cluster(world.services, "demo", "ann")
    assert sweep_lease(world.services, cluster) == "undone"
    assert nothing_left(world)


def test_creation_of_same_name_finishes_interrupted_undo(world):
    world.identity.faults.after("create_client", VendorUnavailable("down"))
    world.identity.faults.before("delete_client", VendorUnavailable("down"))
    with pytest.raises(UnexpectedBehavior):
        world.create()
    with pytest.raises(RequestInProgress) as caught:
        world.create()
    assert caught.value.retry_after == 1
    assert nothing_left(world)
    assert world.create().status == "preparing"


def test_creation_refuses_taken_name_and_exceeded_quota(world):
    world.create()
    with pytest.raises(ClusterNameInUse):
        world.create()
    for number in range(19):
        world.create(f"c{number}")
    with pytest.raises(QuotaExceeded, match="'clusters' allows 20"):
        world.create("one-too-many")
    with pytest.raises(QuotaExceeded, match="'clusters' allows 20"):
        plan_creation(world.services, world.new_cluster("one-too-many"))
    assert len(world.identity.clients) == 20


def test_invalid_input_names_field(world):
    with pytest.raises(InvalidInput) as caught:
        create_cluster(world.services, world.new_cluster(settings={"control_plane_instance_type": "x9.none"}), "ann")
    assert [e.pointer for e in caught.value.errors] == ["/settings/control_plane_instance_type"]
    request = world.new_cluster()
    with pytest.raises(InvalidInput) as caught:
        create_cluster(world.services, type(request)(request.name, "", 7, "k8s", request.settings), "ann")
    assert [e.pointer for e in caught.value.errors] == ["/cloud_account_id"]
    assert nothing_left(world)


def test_plan_has_prices_and_writes_nothing(world):
    plan = plan_creation(world.services, world.new_cluster())
    price = plan["price"]
    assert price["complete"]
    assert price["hour"] == pytest.approx(sum(item["hour"] for item in price["items"]), abs=1e-5)
    assert price["month"] == pytest.approx(price["hour"] * 730, abs=0.01)
    assert nothing_left(world)
    assert not world.services.store.list(Outbox).items
    cluster = world.create()
    world.drive(cluster, "provision_cluster")
    deletes = plan_deletion(world.services, cluster.id)["deletes"]
    assert len(deletes) == 1 + len(world.provider.things)
    assert not [
        thing for thing in deletes if thing["kind"] in thing["name"].split() or "cloud account" in thing["name"]
    ]
    verdict = plan_deletion(world.services, cluster.id)["verdict"]
    assert verdict.startswith(f"{len(deletes)} things, in us-east-1 of cloud account 1, would be removed; it saves ")


def test_plan_of_deletion_includes_claims_and_their_price(world):
    cluster = world.create()
    alone = plan_deletion(world.services, cluster.id)
    waiting = create_claim(world.services, NewClaim(name="waits", cluster_ref="demo"), "user:ann")
    create_claim(world.services, NewClaim(name="elsewhere"), "user:ann")
    placed = Placement("npr_1", "lab.small", "on-demand", ("a",), 28, waiting.created_at, usd_hour=0.25)
    claim = create_claim(world.services, NewClaim(name="one", cluster_ref="demo"), "user:ann")
    world.services.store.commit(Replace(replace(claim, placement=placed, version=claim.version + 1)))
    plan = plan_deletion(world.services, cluster.id)
    added = [thing for thing in plan["deletes"] if thing not in alone["deletes"]]
    assert added == [{"kind": "node-claim", "name": "waits"}, {"kind": "node-claim", "name": "one"}]
    assert plan["price"]["hour"] == pytest.approx(alone["price"]["hour"] + 0.25)


def test_change_requires_current_version(world):
    cluster = world.create()
    changed, _ = change_cluster(
        world.services, "demo", cluster.version, ClusterChange(description="new"), actor="ann", request_id="r"
    )
    assert (changed.description, changed.version) == ("new", cluster.version + 1)
    with pytest.raises(PreconditionFailed):
        change_cluster(
            world.services, "demo", cluster.version, ClusterChange(description="x"), actor="ann", request_id="r"
        )


def test_resume_requires_failed_cluster(world):
    cluster = world.create()
    with pytest.raises(IllegalTransition):
        resume_cluster(world.services, cluster.id, "ann")


def test_sweep_closes_operation_of_lost_workflow(world):
    cluster = world.create()
    world.clock.advance(world.services.settings.stuck_seconds + 1)
    assert sweep_cluster(world.services, world.cluster(cluster)) == "closed"
    assert world.cluster(cluster).status == "failed"


def test_relay_sends_all_and_keeps_failed_messages(world):
    world.create()
    relay = Relay(world.registry, lambda: world.workflows, lambda: world.bus, world.clock, world.services.telemetry)
    waiting = len(world.services.store.list(Outbox, limit=200).items)
    world.bus.faults.before("publish", VendorUnavailable("down"))
    moment = world.clock.now() + timedelta(seconds=1)
    first = relay.resend(moment, lambda: 1.0)
    assert first.sent + first.failed == waiting
    assert first.failed > 0
    assert relay.resend(moment, lambda: 1.0).sent == 0
    assert relay.resend(moment + timedelta(minutes=2), lambda: 1.0).sent == first.failed
    assert not world.services.store.list(Outbox).items


def test_stale_write_is_refused(world):
    cluster = world.create()
    world.services.store.commit(Replace(replace(cluster, version=cluster.version + 1)))
    with pytest.raises(Conflict):
        world.services.store.commit(Replace(replace(cluster, version=cluster.version + 1)))


def test_retry_continues_interrupted_acceptance(world):
    cluster_id = world.services.new_id("clu")
    world.identity.faults.after("create_client", RuntimeError("the process died"))
    with pytest.raises(RuntimeError):
        create_cluster(world.services, world.new_cluster(), "ann", cluster_id)
    assert world.services.store.get(Cluster, cluster_id).status == "accepting"
    again, _ = create_cluster(world.services, world.new_cluster(), "ann", cluster_id)
    third, _ = create_cluster(world.services, world.new_cluster(), "ann", cluster_id)
    assert (again.id, again.status, third) == (cluster_id, "preparing", again)
    assert len(world.identity.clients) == 1
    assert world.services.store.get(Counter, "quota/clusters").value == 1


def test_repeated_last_phase_changes_nothing(world):
    cluster = world.create()
    assert world.drive(cluster, "provision_cluster") == "ready"
    ready, operation = world.cluster(cluster), operation_of(world, cluster)
    events = len(world.services.store.list(Event, limit=200).items)
    for phase in ("complete", "deploy"):
        assert run_phase(RUNNER, world.services, Fence(Cluster, cluster.id, operation.id, ready.attempt), phase).done
    assert (world.cluster(cluster), operation_of(world, cluster)) == (ready, operation)
    assert len(world.services.store.list(Event, limit=200).items) == events


def test_late_worker_does_not_change_failed_operation(world):
    cluster = world.create()
    world.provider.faults["network"] = [PermissionDenied("no")]
    world.drive(cluster, "provision_cluster")
    failed, operation = world.cluster(cluster), operation_of(world, cluster)
    assert operation.status == "failed"
    fence = Fence(Cluster, cluster.id, operation.id, failed.attempt)
    assert run_phase(RUNNER, world.services, fence, "account").done, "it was done before"
    for phase in ("network", "security", "complete"):
        with pytest.raises(Fenced):
            run_phase(RUNNER, world.services, fence, phase)
    with pytest.raises(Fenced):
        await_report(world.services, fence, "token")
    assert set(world.provider.things.values()) <= {"account"}
    assert (world.cluster(cluster), operation_of(world, cluster)) == (failed, operation)
