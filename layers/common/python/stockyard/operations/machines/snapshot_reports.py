"""A member of a control plane asks whether a snapshot of etcd is due, takes it, and says how that went.

Whoever asks first gets the slot for some minutes, and the next one after that: so one member takes it, whichever is
healthy. Two that ask at one moment may both take it; the store keeps the first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from stockyard.domain.clusters import snapshots
from stockyard.domain.records import Cluster, Fact
from stockyard.domain.values import times
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.redaction import redact
from stockyard.errors import NotFound
from stockyard.operations.engine.advance import until_written
from stockyard.operations.machines.bootstrap import recorded_machine
from stockyard.operations.services import Services
from stockyard.ports import Put, Replace
from stockyard.ports.snapshots import SnapshotStore

SNAPSHOTS = "snapshots"
"""The fact of a cluster: ``since`` there should be snapshots; ``slot`` and ``until`` when a member has it; the last
``failure`` since the last one that was taken; ``pruned``, the newest one when old ones were looked for."""
SLOT_LIFE = timedelta(minutes=20)
"""How long a member may take for a snapshot before another one is asked."""


@dataclass(frozen=True, slots=True)
class Due:
    """The snapshot that the asking machine is to take, and where it goes."""

    id: str
    store: SnapshotStore

    def document(self) -> dict[str, str]:
        """As the machine is told it."""
        return {"id": self.id, **self.store.location(self.id)}


def answer_member(
    services: Services, cluster_id: str, proof: Mapping[str, Any], report: Mapping[str, Any] | None
) -> Due | None:
    """Keep the report, and say what is due; after a report nothing is. Repeatable.

    ``Unauthorized`` when the proof is not that of a recorded machine of the control plane, ``NotFound`` without the
    cluster.
    """
    cluster = services.store.get(Cluster, cluster_id)
    if cluster is None:
        raise NotFound("There is no cluster of that id.")
    recorded_machine(services, cluster, proof)
    if report is not None:
        _keep(services, cluster.id, report)
        return None
    return _due(services, cluster)


def _due(services: Services, cluster: Cluster) -> Due | None:
    schedule = snapshots.schedule_of(cluster.settings)
    driver = services.cluster_drivers.get(cluster.driver)
    keeper = driver.snapshot_keeper if driver is not None else None
    if schedule is None or cluster.status != "ready" or keeper is None:
        return None
    store = keeper.snapshot_store(cluster)
    now = services.clock.now()
    slot, memory = schedule.slot(now), memory_of(services, cluster.id)
    is_taken = cluster.last_snapshot >= slot
    is_leased = memory.get("slot") == slot and str(memory.get("until")) > times.to_text(now)
    if store is None or is_taken or is_leased:
        return None
    put(services, cluster.id, {**memory, "slot": slot, "until": times.to_text(now + SLOT_LIFE)})
    return Due(slot, store)


def _keep(services: Services, cluster_id: str, report: Mapping[str, Any]) -> None:
    memory = {name: value for name, value in memory_of(services, cluster_id).items() if name not in ("slot", "until")}
    if report.get("failure"):
        failure = {"at": services.now(), "message": redact(str(report["failure"]))}
        put(services, cluster_id, {**memory, "failure": failure})
        return
    _note(services, cluster_id, str(report["id"]))
    put(services, cluster_id, {name: value for name, value in memory.items() if name != "failure"})


@until_written("cluster changes too often for its snapshot to be noted")
def _note(services: Services, cluster_id: str, snapshot_id: str) -> None:
    cluster = services.store.get(Cluster, cluster_id)
    if cluster is None or cluster.last_snapshot >= snapshot_id:
        return
    services.store.commit(Replace(replace(cluster, last_snapshot=snapshot_id, version=cluster.version + 1)))


def memory_of(services: Services, cluster_id: str) -> dict[str, Any]:
    """Memory of the cluster's snapshots."""
    fact = services.store.get(Fact, f"{cluster_id}/{SNAPSHOTS}")
    memory: dict[str, Any] = json.loads(fact.value) if fact is not None else {}
    return memory


def put(services: Services, cluster_id: str, memory: Mapping[str, Any]) -> None:
    """Remember this."""
    services.store.commit(Put(Fact(f"{cluster_id}/{SNAPSHOTS}", json.dumps(dict(memory)), services.now())))
