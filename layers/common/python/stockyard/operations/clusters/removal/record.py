"""Removes the record of a cluster, with everything that was told of it."""

from __future__ import annotations

from stockyard.domain.pools.disruption_records import ClusterDisruption
from stockyard.domain.records import Cluster, Fact, Name
from stockyard.operations.clusters.await_report import AUTHORITY
from stockyard.operations.clusters.removal.usage import cluster_usage
from stockyard.operations.clusters.snapshots.restoring import RESTORE
from stockyard.operations.engine.console import CONSOLE
from stockyard.operations.machines.attest import TOKEN_FACT
from stockyard.operations.machines.boot import BOOT
from stockyard.operations.machines.first_node import FIRST_NODE, FIRST_ROOM
from stockyard.operations.machines.member_plan import PLAN
from stockyard.operations.machines.mirror import MIRROR
from stockyard.operations.machines.observe import ATTENDED, OBSERVED
from stockyard.operations.machines.overlay import TABLE, VERSION
from stockyard.operations.machines.overlay_paths import DIGEST, REPORTS
from stockyard.operations.machines.pending_pods import forgetting
from stockyard.operations.machines.snapshot_reports import SNAPSHOTS
from stockyard.operations.profiles.resolve import removal_writes
from stockyard.operations.quotas.limits import CLUSTERS
from stockyard.operations.services import Services
from stockyard.ports import Add, Remove, Write

FACTS = (
    "reported_ready", "task_token", "bootstrapped", AUTHORITY, BOOT, CONSOLE, OBSERVED, PLAN, FIRST_NODE, FIRST_ROOM,
    MIRROR, ATTENDED, TOKEN_FACT, SNAPSHOTS, RESTORE, TABLE, VERSION, REPORTS, DIGEST,
)  # fmt: skip


def removal(services: Services, cluster: Cluster) -> list[Write]:
    """The removal of a cluster's record, and with it of the name, the quota use, and what was told of it."""
    record = Remove(Cluster, cluster.id, version=cluster.version)
    facts = [Remove(Fact, f"{cluster.id}/{name}") for name in FACTS]
    told_facts: list[Write] = [*facts, *forgetting(cluster.id), Remove(ClusterDisruption, cluster.id)]
    told_facts += [*removal_writes(services, cluster.id), *cluster_usage(services, cluster)]
    return [record, Remove(Name, f"cluster/{cluster.name}"), Add(f"quota/{CLUSTERS}", -1), *told_facts]
