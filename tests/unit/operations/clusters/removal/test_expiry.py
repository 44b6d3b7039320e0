"""A cluster whose time ends: told a day before, deleted at the time, and kept by whoever gives it more time."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from stockyard.domain.clusters.change import ClusterChange, Expiry
from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.patch import ClusterPatch
from stockyard.domain.records import AuditRecord, Cluster, Event
from stockyard.domain.values import times
from stockyard.errors import IllegalTransition, InvalidInput
from stockyard.operations.clusters.changes.change import change_cluster
from stockyard.operations.clusters.creation.create import create_cluster, plan_creation
from stockyard.operations.clusters.removal import delete, expiry
from stockyard.operations.listing import every
from stockyard.operations.sweep.records import sweep_cluster
from stockyard.ports import Replace
from tests.unit.operations.conftest import World

DAY = 86_400.0
USER = "user:ann"


def at(world: World, seconds: float) -> str:
    return times.to_text(world.clock.now() + timedelta(seconds=seconds))


def expiring(world: World, seconds: float) -> Cluster:
    cluster, _ = create_cluster(world.services, world.new_cluster("brief", expires_at=at(world, seconds)), USER)
    return cluster


def sweep(world: World, cluster: Cluster) -> str | None:
    return expiry.look_at_expiry(world.services, world.cluster(cluster))


def extend(world: World, cluster: Cluster, expires_at: str | None) -> None:
    change = ClusterChange(expiry=Expiry(expires_at))
    version = world.cluster(cluster).version
    change_cluster(world.services, cluster.id, version, change, actor=USER, request_id="r")


def reasons(world: World) -> list[str]:
    about = [event for event in every(world.services.store, Event) if event.reason in ("Expiring", "Expired")]
    return [event.reason for event in about]


def test_the_end_is_announced_a_day_before_once_and_then_the_deletion_begins(world: World) -> None:
    cluster = expiring(world, 2 * DAY)
    assert sweep(world, cluster) is None
    world.clock.advance(DAY)
    assert sweep(world, cluster) == "announced"
    assert sweep(world, cluster) is None
    world.clock.advance(DAY - 1)
    assert sweep(world, cluster) is None
    assert world.cluster(cluster).status == "preparing"
    world.clock.advance(1)
    assert sweep_cluster(world.services, world.cluster(cluster)) == "expired"
    assert world.cluster(cluster).status == "deleting"
    assert sweep(world, cluster) is None
    assert reasons(world) == ["Expiring", "Expired"]
    (audit,) = [record for record in every(world.services.store, AuditRecord) if record.action == "DeleteCluster"]
    assert (audit.actor, audit.subject) == ("stockyard", cluster.id)
    assert cluster.expires_at is not None
    assert cluster.expires_at in audit.detail
    with pytest.raises(IllegalTransition):
        extend(world, cluster, None)


def test_more_time_is_announced_again_and_none_keeps_the_cluster(world: World) -> None:
    cluster = expiring(world, DAY / 2)
    assert sweep(world, cluster) == "announced"
    extend(world, cluster, at(world, DAY))
    assert sweep(world, cluster) == "announced"
    extend(world, cluster, None)
    world.clock.advance(9 * DAY)
    assert sweep(world, cluster) is None
    assert world.cluster(cluster).status == "preparing"
    assert reasons(world) == ["Expiring", "Expiring"]


def test_a_cluster_that_gets_more_time_in_between_stays(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = expiring(world, DAY)
    world.clock.advance(DAY)
    begin = delete.delete_expired

    def late(services: Any, cluster_id: str) -> bool:
        extend(world, cluster, at(world, DAY))
        return begin(services, cluster_id)

    monkeypatch.setattr(expiry, "delete_expired", late)
    assert sweep(world, cluster) is None
    assert world.cluster(cluster).status == "preparing"


def test_a_time_that_is_over_or_none_is_refused_at_the_field(world: World) -> None:
    services, new_cluster = world.services, world.new_cluster("brief", expires_at=at(world, 0))
    cluster = expiring(world, DAY)
    for attempt in (
        lambda: plan_creation(services, world.new_cluster("other", expires_at=at(world, -1))),
        lambda: create_cluster(services, new_cluster, USER),
        lambda: extend(world, cluster, at(world, -5)),
        lambda: read(ClusterPatch, {"expires_at": "2027-02-30T00:00:00Z"}),
        lambda: read(ClusterPatch, {"expires_at": "2027-01-01T00:00:00"}),
        lambda: read(ClusterPatch, {"expires_at": "0001-01-01T00:00:00+23:59"}),
        lambda: read(ClusterPatch, {"expires_at": "tomorrow"}),
        lambda: read(ClusterPatch, {"expires_at": ""}),
    ):
        with pytest.raises(InvalidInput) as refused:
            attempt()
        assert [fault.pointer for fault in refused.value.errors] == ["/expires_at"]
    # the time that it has may be sent again, also when it is over
    world.clock.advance(2 * DAY)
    extend(world, cluster, cluster.expires_at)


def test_a_patch_says_a_time_none_or_nothing(world: World) -> None:
    change = read(ClusterPatch, {}).change_of(world.create())
    assert (change.expiry, change.fields()) == (None, {})
    patch = read(ClusterPatch, {"expires_at": "2027-01-01t01:30:00.5+01:30"})
    assert patch.expires_at == "2027-01-01T00:00:00.500Z"
    assert patch.document() == {"expires_at": patch.expires_at}
    assert read(ClusterPatch, {"expires_at": None}).document() == {"expires_at": None}


@pytest.mark.parametrize("is_protected", [True, False])
def test_the_protection_of_the_cloud_does_not_keep_a_cluster_past_its_end_and_events_say_so(
    world: World, is_protected: bool
) -> None:
    cluster = expiring(world, DAY / 2)
    protected = replace(cluster, settings={**cluster.settings, delete.PROTECTION: is_protected})
    world.services.store.commit(Replace(replace(protected, version=cluster.version + 1)))
    warnings = delete.plan_deletion(world.services, cluster.id)["warnings"]
    assert ["/settings/deletion_protection"] * is_protected == [warning["pointer"] for warning in warnings]
    assert sweep(world, cluster) == "announced"
    world.clock.advance(DAY / 2)
    assert sweep(world, cluster) == "expired"
    about = [event for event in every(world.services.store, Event) if event.reason in ("Expiring", "Expired")]
    assert ["deletion_protection" in event.message for event in about] == [is_protected] * 2
