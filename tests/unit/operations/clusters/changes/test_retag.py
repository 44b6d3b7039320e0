"""A change of tags reaches what stands in the cloud: in the background, of several the last, whatever comes between."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.clusters.change import ClusterChange
from stockyard.domain.records import Cluster, Event, Operation, Outbox
from stockyard.errors import (
    Fenced,
    IllegalTransition,
    PermissionDenied,
    PreconditionFailed,
    VendorThrottled,
    VendorTimeout,
)
from stockyard.lifecycle.clusters.cluster import MOST_STALE_KEYS
from stockyard.lifecycle.phases import DEGRADED, RETAG_CLUSTER, TAGS_APPLIED
from stockyard.operations.clusters.changes import retag
from stockyard.operations.clusters.changes.change import change_cluster
from stockyard.operations.clusters.phases import RUNNER
from stockyard.operations.clusters.removal.delete import delete_cluster
from stockyard.operations.engine.advance import Fence
from stockyard.operations.engine.run_phase import run_phase
from stockyard.operations.listing import every
from stockyard.operations.sweep.records import sweep_cluster
from stockyard.ports import Remove
from tests.harness.sent import waiting
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes


@pytest.fixture
def cluster(world: World) -> Cluster:
    """A ready cluster with tags."""
    cluster = world.create()
    send(world, cluster, {"team": "a", "stage": "one"})
    assert world.drive(cluster, "provision_cluster") == "ready"
    assert world.drive(cluster, "retag_cluster") == "retagged"
    return world.cluster(cluster)


def send(world: World, cluster: Cluster, tags: dict[str, str], version: int | None = None) -> Cluster:
    """A PATCH of the tags."""
    version = world.cluster(cluster).version if version is None else version
    changed, _ = change_cluster(
        world.services, cluster.id, version, ClusterChange(tags=tags), actor="user:ann", request_id="r"
    )
    return changed


def carried(world: World) -> list[dict[str, str]]:
    """The different tags of what stands in the cloud."""
    different = {tuple(sorted(world.provider.tags[thing].items())) for thing in world.provider.things}
    return [dict(pairs) for pairs in sorted(different)]


def condition(world: World, cluster: Cluster, name: str = TAGS_APPLIED) -> tuple[str, str]:
    conditions = {each.type: (each.status, each.reason) for each in world.cluster(cluster).conditions}
    return conditions.get(name, ("", ""))


def operation(world: World, cluster: Cluster) -> Operation:
    current = world.services.store.get(Operation, str(world.cluster(cluster).operation_id))
    assert current is not None
    return current


def test_change_of_tags_starts_an_operation_and_reaches_everything(world: World, cluster: Cluster) -> None:
    changed = send(world, cluster, {"stage": "two", "cost": "7"})
    assert (changed.status, changed.phase, changed.version) == ("ready", "tags", cluster.version + 1)
    assert changed.operation_id != cluster.operation_id
    assert operation(world, cluster).kind == RETAG_CLUSTER
    assert carried(world) == [{"team": "a", "stage": "one"}], "not while the request is answered"
    workflows = waiting(world.services.store, "workflow")
    assert workflows[-1]["workflow"] == "retag-cluster"
    assert world.drive(cluster, "retag_cluster") == "retagged"
    assert carried(world) == [{"stage": "two", "cost": "7"}]
    assert condition(world, cluster) == ("True", "Succeeded")
    after = world.cluster(cluster)
    assert (after.status, after.phase, after.tag_change) == ("ready", None, None)
    assert operation(world, cluster).status == "succeeded"


def test_change_of_description_touches_nothing(world: World, cluster: Cluster) -> None:
    changed, _ = change_cluster(
        world.services, cluster.id, cluster.version, ClusterChange(description="new"), actor="ann", request_id="r"
    )
    assert (changed.operation_id, changed.tag_change) == (cluster.operation_id, None)


def test_same_tags_mend_what_has_lost_them(world: World, cluster: Cluster) -> None:
    next(iter(world.provider.tags.values())).clear()
    send(world, cluster, cluster.tags)
    assert world.drive(cluster, "retag_cluster") == "retagged"
    assert carried(world) == [{"team": "a", "stage": "one"}]


def test_last_of_two_changes_wins(world: World, cluster: Cluster) -> None:
    """The second comes while the first is being worked on: no second operation, and no tag of the first stays."""
    first = send(world, cluster, {"first": "1"})
    original = world.provider.retag
    answers: list[Cluster] = []

    def retag(work: Any, stale_keys: Any) -> Any:
        if not answers:
            answers.append(send(world, cluster, {"second": "2"}))
        return original(work, stale_keys)

    world.provider.retag = retag
    assert world.drive(cluster, "retag_cluster") == "retagged"
    assert answers[0].operation_id == first.operation_id
    assert carried(world) == [{"second": "2"}]
    assert world.cluster(cluster).tag_change is None


def test_stale_version_changes_no_tags(world: World, cluster: Cluster) -> None:
    send(world, cluster, {"a": "b"})
    with pytest.raises(PreconditionFailed):
        send(world, cluster, {"c": "d"}, cluster.version)
    assert world.cluster(cluster).tags == {"a": "b"}


@pytest.mark.parametrize("when", ["faults", "late"])
@pytest.mark.parametrize("error", [VendorThrottled("slow down"), VendorTimeout("no answer")])
def test_passing_failure_is_tried_again(world: World, cluster: Cluster, when: str, error: Exception) -> None:
    getattr(world.provider, when)["retag"] = [error, error, error]
    send(world, cluster, {"a": "b"})
    assert world.drive(cluster, "retag_cluster") == "retagged"
    assert carried(world) == [{"a": "b"}]


def test_lasting_refusal_is_told_and_the_next_change_finishes(world: World, cluster: Cluster) -> None:
    denied = PermissionDenied("volume vol-1: no (UnauthorizedOperation)", code="UnauthorizedOperation")
    world.provider.late["retag"] = [denied] * 60
    send(world, cluster, {"a": "b"})
    assert world.drive(cluster, "retag_cluster") == "not_retagged"
    failed = operation(world, cluster)
    assert failed.error is not None
    assert (failed.error.error_type, failed.error.cause_type) == ("ClusterCouldNotBeRetagged", "PermissionDenied")
    assert "UnauthorizedOperation" in failed.error.cause
    assert "GET /v1/cloud-accounts/{id}/template" in failed.error.hint
    assert condition(world, cluster) == ("False", "ClusterCouldNotBeRetagged")
    assert condition(world, cluster, DEGRADED)[0] == "True"
    assert world.cluster(cluster).status == "ready"
    reasons = [event.reason for event in every(world.services.store, Event) if event.subject == cluster.id]
    assert "ClusterCouldNotBeRetagged" in reasons
    world.provider.late.clear()
    assert sweep_cluster(world.services, world.cluster(cluster)) is None, "a person has to do something first"
    send(world, cluster, {"a": "b"})
    assert world.drive(cluster, "retag_cluster") == "retagged"
    assert carried(world) == [{"a": "b"}], "also what the failed one should have removed is gone"
    assert condition(world, cluster, DEGRADED)[0] == "False"


def test_right_that_is_not_known_yet_is_waited_for(world: World, cluster: Cluster) -> None:
    world.provider.faults["retag"] = [PermissionDenied("no")]
    send(world, cluster, {"a": "b"})
    assert world.drive(cluster, "retag_cluster") == "retagged"


def created_while_tags_change(world: World) -> Cluster:
    """A cluster whose tags were changed after some of it had been made."""
    cluster, original = world.create(), world.provider.ensure

    def ensure(phase: str, work: Any) -> Any:
        if phase == "endpoint" and not world.cluster(cluster).tags:
            sent = send(world, cluster, {"a": "b"})
            assert sent.operation_id == cluster.operation_id
            assert condition(world, cluster) == ("Unknown", "Pending")
        return original(phase, work)

    world.provider.ensure = ensure
    assert world.drive(cluster, "provision_cluster") == "ready"
    assert {} in carried(world)
    return world.cluster(cluster)


def test_tags_of_a_cluster_that_is_being_made_follow_when_it_is_ready(world: World) -> None:
    cluster = created_while_tags_change(world)
    assert operation(world, cluster).kind == RETAG_CLUSTER
    assert world.drive(cluster, "retag_cluster") == "retagged"
    assert carried(world) == [{"a": "b"}]


def test_sweep_begins_what_a_crash_has_left(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(retag, "start_if_due", lambda *_: False)
        cluster = created_while_tags_change(world)
    assert sweep_cluster(world.services, cluster) == "retagging"
    assert sweep_cluster(world.services, world.cluster(cluster)) is None
    assert world.drive(cluster, "retag_cluster") == "retagged"
    assert carried(world) == [{"a": "b"}]


def test_sweep_begins_with_tags_that_came_after_those_that_were_refused(world: World, cluster: Cluster) -> None:
    send(world, cluster, {"a": "b"})
    world.clock.advance(100)
    send(world, cluster, {"c": "d"})
    world.provider.faults["retag"] = [PermissionDenied("no")] * 60
    world.clock.advance(100)
    assert world.drive(cluster, "retag_cluster") == "not_retagged"
    world.provider.faults.clear()
    assert sweep_cluster(world.services, world.cluster(cluster)) == "retagging"
    assert world.drive(cluster, "retag_cluster") == "retagged"
    assert carried(world) == [{"c": "d"}]


def test_deletion_overtakes_the_tags(world: World, cluster: Cluster) -> None:
    send(world, cluster, {"a": "b"})
    fence = Fence.of(world.cluster(cluster))
    deleting = delete_cluster(world.services, cluster.id, "user:ann")
    with pytest.raises(Fenced):
        run_phase(RUNNER, world.services, fence, "tags")
    with pytest.raises(IllegalTransition):
        send(world, cluster, {"c": "d"})
    assert world.drive(deleting, "delete_cluster") == "gone"
    assert not world.provider.things


def test_lost_execution_is_closed_and_told(world: World, cluster: Cluster) -> None:
    send(world, cluster, {"a": "b"})
    world.clock.advance(world.services.settings.stuck_seconds + 1)
    assert sweep_cluster(world.services, world.cluster(cluster)) == "closed"
    assert operation(world, cluster).status == "failed"
    send(world, cluster, {"a": "b"})
    assert world.drive(cluster, "retag_cluster") == "retagged"


def test_machines_that_are_being_made_are_looked_at_again(world: World, cluster: Cluster) -> None:
    """A worker may have read the tags before the change, and make its machine after the first look."""
    nodes = Nodes.of(world.registry, world.services, world.clock)
    nodes.provider("lab", {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}})
    nodes.claim("a", cluster_ref="demo")
    for item in list(every(world.services.store, Outbox)):
        world.services.store.commit(Remove(Outbox, item.id))
    nodes.schedule()
    looks: list[float] = []
    original = world.provider.retag

    def retag(work: Any, stale_keys: Any) -> Any:
        looks.append(world.services.seconds_since(str(work.cluster.tag_change.time)))
        outcome = original(work, stale_keys)
        if len(looks) == 1:
            world.provider.things["late"], world.provider.tags["late"] = "machine", {"team": "a"}
        return outcome

    world.provider.retag = retag
    send(world, cluster, {"b": "c"})
    assert world.drive(cluster, "retag_cluster") == "retagged"
    assert looks[0] < 10
    assert looks[-1] >= world.services.settings.in_flight_seconds
    assert carried(world) == [{"b": "c"}]


def test_removed_keys_are_bounded(world: World, cluster: Cluster) -> None:
    for number in range(MOST_STALE_KEYS - 1):
        send(world, cluster, {f"key-{number}": "v"})
    with pytest.raises(IllegalTransition, match=TAGS_APPLIED):
        send(world, cluster, {"last": "v"})
    assert world.drive(cluster, "retag_cluster") == "retagged"
    send(world, cluster, {"last": "v"})
    assert world.drive(cluster, "retag_cluster") == "retagged"
    assert carried(world) == [{"last": "v"}]
