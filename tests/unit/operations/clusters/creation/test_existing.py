"""A creation that is asked for twice: one cluster where nothing differs, else each field that does."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from stockyard.domain.records import Cluster
from stockyard.domain.values import times
from stockyard.errors import ClusterNameInUse, IllegalTransition, RequestInProgress
from stockyard.operations.clusters.creation.create import create_cluster, plan_creation
from stockyard.operations.clusters.removal.delete import delete_cluster
from stockyard.operations.listing import every
from stockyard.operations.quotas.limits import CLUSTERS, set_quota
from stockyard.ports import Replace
from tests.unit.operations.conftest import World

EARLIER: dict[str, Any] = {"tags": {"team": "a"}, "limits": {"usd_month": "900"}, "keep_failed": 30}


def ask(world: World, **fields: Any) -> Cluster:
    new_cluster = world.new_cluster("demo", **{**EARLIER, "accepts_existing": True, **fields})
    return create_cluster(world.services, new_cluster, "user:ann")[0]


def test_the_same_request_again_is_the_same_cluster_in_every_state(world: World) -> None:
    """Nothing is written, also when the quota is used up, its end is over, or it was upgraded since."""
    expires_at = times.to_text(world.clock.now() + timedelta(hours=3))
    cluster = ask(world, expires_at=expires_at)
    set_quota(world.services, CLUSTERS, 1, 0)
    world.clock.advance(4 * 3600)
    new_cluster = world.new_cluster("demo", **EARLIER, accepts_existing=True, expires_at=expires_at)
    for status in ("preparing", "ready", "failed"):
        current = world.cluster(cluster)
        changed = replace(current, status=status, kubernetes_version="9.99", version=current.version + 1)
        world.services.store.commit(Replace(changed))
        again, findings = create_cluster(world.services, new_cluster, "user:bob")
        assert (again, [finding.pointer for finding in findings]) == (world.cluster(cluster), ["/name"])
        assert status in findings[0].detail
        planned = plan_creation(world.services, new_cluster)
        assert ([line["pointer"] for line in planned["warnings"]], planned["creates"]) == (["/name"], [])
    assert len(list(every(world.services.store, Cluster))) == 1
    assert len(world.identity.clients) == 1


@pytest.mark.parametrize(
    ("fields", "pointers"),
    [
        ({"settings": {"etcd_volume_gib": 77}}, ["/settings/etcd_volume_gib"]),
        ({"tags": {}, "limits": {}}, ["/tags", "/limits"]),
        ({"keep_failed": 0, "description": "b"}, ["/description", "/keep_failed"]),
        ({"kubernetes_version": "9.99"}, ["/kubernetes_version"]),
        ({"expires_at": "2099-01-01T00:00:00.000Z"}, ["/expires_at"]),
        ({"cloud_account_id": 2}, ["/cloud_account_id"]),
    ],
)
def test_another_cluster_of_the_name_is_refused_at_each_field_and_apply_is_named(
    world: World, fields: dict[str, Any], pointers: list[str]
) -> None:
    cluster = ask(world)
    request = world.new_cluster("demo", **EARLIER, accepts_existing=True)
    settings = {**request.settings, **fields.pop("settings", {})}
    for attempt in (create_cluster, plan_creation):
        arguments = ["user:ann"] if attempt is create_cluster else []
        with pytest.raises(ClusterNameInUse, match="apply") as refused:
            attempt(world.services, replace(request, settings=settings, **fields), *arguments)
        assert [fault.pointer for fault in refused.value.errors] == pointers
        assert all(name in refused.value.detail for name in pointers)
    assert world.cluster(cluster) == cluster


def test_one_that_is_being_deleted_or_made_is_no_answer(world: World) -> None:
    cluster = ask(world)
    delete_cluster(world.services, cluster.id, "user:ann")
    with pytest.raises(IllegalTransition, match="deleted"):
        ask(world)
    current = world.cluster(cluster)
    lease = times.to_text(world.clock.now() + timedelta(minutes=1))
    accepting = replace(current, status="accepting", lease_expires_at=lease, version=current.version + 1)
    world.services.store.commit(Replace(accepting))
    with pytest.raises(RequestInProgress, match="Another request"):
        ask(world)
    with pytest.raises(ClusterNameInUse):
        ask(world, accepts_existing=False)
