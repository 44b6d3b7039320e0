"""The snapshots of a cluster's etcd in its cloud: which there are, whether one is overdue, and which old ones go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stockyard.domain.clusters import snapshots
from stockyard.domain.records import CloudAccount, Cluster
from stockyard.domain.values import times
from stockyard.domain.values.states import Truth
from stockyard.errors import CredentialsRevoked, IllegalTransition
from stockyard.lifecycle.clusters.cluster import MOVES
from stockyard.operations.engine.advance import WORKFLOW_ACTOR, until_written
from stockyard.operations.engine.ledger import Owner, StoreLedger
from stockyard.operations.engine.tell import tell
from stockyard.operations.machines.snapshot_reports import memory_of, put
from stockyard.operations.services import Services
from stockyard.ports import CloudWork, Replace
from stockyard.ports.snapshots import KeepsSnapshots, Snapshot

CURRENT = "EtcdSnapshots"
"""The condition of a cluster: whether its snapshots are as its settings ask for."""
IDENTITY = "identity"
"""The phase by whose lines a driver knows what is there for them."""


def keeper_of(services: Services, cluster: Cluster) -> KeepsSnapshots:
    """The driver that keeps the cluster's snapshots. ``IllegalTransition`` where there are none to be."""
    driver = services.cluster_drivers.get(cluster.driver)
    keeper = driver.snapshot_keeper if driver is not None else None
    if keeper is None:
        raise IllegalTransition(f"Clusters made by the driver {cluster.driver} have no snapshots in their cloud.")
    if snapshots.schedule_of(cluster.settings) is None:
        text = f"The cluster has no snapshots in its cloud: its setting {snapshots.SETTING} asks for none."
        raise IllegalTransition(text)
    return keeper


def snapshot_work(services: Services, cluster: Cluster) -> CloudWork:
    """Work for a driver beside any phase. ``CredentialsRevoked`` without the account."""
    account = services.store.get(CloudAccount, str(cluster.cloud_account_id))
    if account is None:
        raise CredentialsRevoked(f"Cloud account {cluster.cloud_account_id} is not registered any more.")
    ledger = StoreLedger(services, Owner.of_cluster(cluster, "snapshots", 0), IDENTITY)
    session = f"snapshots-{cluster.id}"
    return CloudWork(services.tenant, services.installation, cluster, account, ledger, services.clock.now(), session)


def listed(services: Services, cluster: Cluster) -> Sequence[Snapshot]:
    """Snapshots that are there, the newest first, as the cloud says."""
    return keeper_of(services, cluster).snapshots(snapshot_work(services, cluster))


def snapshots_view(services: Services, cluster: Cluster) -> dict[str, Any]:
    """The snapshots of a cluster as a ``SnapshotsView`` document."""
    store = keeper_of(services, cluster).snapshot_store(cluster)
    schedule = snapshots.schedule_of(cluster.settings)
    failure = memory_of(services, cluster.id).get("failure")
    return {
        "items": [
            {
                "id": snapshot.id,
                "taken_at": times.to_text(snapshots.moment(snapshot.id)),
                "stored_at": snapshot.stored_at,
                "size": snapshot.size,
            }
            for snapshot in listed(services, cluster)
        ],
        "place": store.url if store is not None else "",
        "interval_hours": schedule.interval_hours if schedule is not None else 0,
        "keep": schedule.keep if schedule is not None else 0,
        "failure": failure,
    }


def look_at_snapshots(services: Services, cluster_id: str) -> str | None:
    """Say by the condition whether snapshots are as wanted; what has changed, None for nothing. No cloud is asked."""
    cluster = services.store.get(Cluster, cluster_id)
    if cluster is None or cluster.status != "ready":
        return None
    schedule, memory = snapshots.schedule_of(cluster.settings), memory_of(services, cluster.id)
    now = services.clock.now()
    if schedule is None:
        if memory.get("since"):
            put(services, cluster.id, {})
        return _judged(services, cluster.id, "Unknown", "Off", "The settings ask for no snapshots.")
    if not memory.get("since"):
        put(services, cluster.id, {**memory, "since": services.now()})
        return None
    overdue = schedule.overdue_since(cluster.last_snapshot, times.from_text(str(memory["since"])), now)
    if overdue:
        return _judged(services, cluster.id, "False", "Overdue", _words(cluster, overdue, memory))
    return (
        _judged(services, cluster.id, "True", "Current", "Snapshots are as wanted.") if cluster.last_snapshot else None
    )


def _words(cluster: Cluster, overdue: str, memory: dict[str, Any]) -> str:
    last = times.to_text(snapshots.moment(cluster.last_snapshot)) if cluster.last_snapshot else "never"
    failure = memory.get("failure")
    why = (
        f"A member has failed at {failure['at']}: {failure['message']}"
        if failure
        else "No member has taken one. Members of an earlier release take none: a repave replaces them."
    )
    return f"A snapshot of etcd is overdue since {overdue}; the last was taken: {last}. {why}"


@until_written("cluster changes too often for its condition to be written")
def _judged(services: Services, cluster_id: str, status: Truth, reason: str, message: str) -> str | None:
    cluster = services.store.get(Cluster, cluster_id)
    if cluster is None:
        return None
    current = next((condition for condition in cluster.conditions if condition.type == CURRENT), None)
    if (current is None and status == "Unknown") or (current is not None and current.reason == reason):
        return None
    changed = MOVES.touch(cluster, services.now(), sequence=cluster.sequence + 1)
    changed = MOVES.condition(changed, CURRENT, status, reason, message, services.now())
    transition = MOVES.transition(cluster.status, cluster.status, f"Snapshots{reason}", message)
    services.store.commit(Replace(changed), *tell(services, WORKFLOW_ACTOR, changed, transition))
    return f"snapshots {reason.lower()}"


def prune(services: Services, cluster_id: str) -> str | None:
    """Remove old snapshots, once for each new one; what was done, None for nothing."""
    cluster = services.store.get(Cluster, cluster_id)
    driver = services.cluster_drivers.get(cluster.driver) if cluster is not None else None
    keeper = driver.snapshot_keeper if driver is not None else None
    schedule = snapshots.schedule_of(cluster.settings) if cluster is not None else None
    if cluster is None or schedule is None or keeper is None or cluster.status != "ready":
        return None
    pruned = f"{cluster.last_snapshot}/{schedule.keep}"
    if not cluster.last_snapshot or memory_of(services, cluster.id).get("pruned") == pruned:
        return None
    work = snapshot_work(services, cluster)
    old = schedule.surplus(snapshot.id for snapshot in keeper.snapshots(work))
    if old:
        keeper.remove_snapshots(work, old)
    put(services, cluster.id, {**memory_of(services, cluster.id), "pruned": pruned})
    return f"{len(old)} old snapshots removed" if old else None
