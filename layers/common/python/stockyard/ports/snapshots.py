"""Port to a driver that keeps snapshots of etcd outside of its clusters' machines."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from stockyard.domain.records import Cluster
from stockyard.domain.values.frozen import dataclass
from stockyard.ports.cloud_work import CloudWork


@dataclass(frozen=True, slots=True)
class SnapshotStore:
    """Location of a cluster's snapshots. A machine puts one at ``key`` by the rights of its role alone."""

    bucket: str
    region: str
    folder: str
    url: str
    """For people."""

    def key(self, snapshot_id: str) -> str:
        """The name of the object with that snapshot."""
        return f"{self.folder}{snapshot_id}.tar.gz"

    def location(self, snapshot_id: str) -> dict[str, str]:
        """Location of that snapshot, as a machine is told it."""
        return {"bucket": self.bucket, "region": self.region, "key": self.key(snapshot_id)}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One snapshot. ``kubernetes_version`` is the minor of the control plane that it is of, empty where it was not
    asked for."""

    id: str
    size: int
    stored_at: str
    kubernetes_version: str = ""


class KeepsSnapshots(Protocol):
    """A driver whose clusters' machines put snapshots of etcd into a store of the cloud."""

    def snapshot_store(self, cluster: Cluster) -> SnapshotStore | None:
        """Location of the cluster's snapshots; None where the cluster's settings ask for none. Makes no call."""
        ...

    def snapshots(self, work: CloudWork) -> Sequence[Snapshot]:
        """Snapshots that are there, the newest first; none where the store is not there. Writes nothing."""
        ...

    def snapshot(self, work: CloudWork, snapshot_id: str) -> Snapshot | None:
        """One of them, with its minor of Kubernetes; None when it is not there. Writes nothing."""
        ...

    def remove_snapshots(self, work: CloudWork, ids: Collection[str]) -> None:
        """Remove these. One that is gone is no error."""
        ...

    def open_snapshot(self, work: CloudWork, snapshot_id: str) -> None:
        """Let members of the control plane read that one snapshot, and no other."""
        ...

    def close_snapshots(self, work: CloudWork) -> None:
        """Let them read none any more."""
        ...

    def kept_snapshots(self, cluster: Cluster) -> Sequence[str]:
        """Snapshots that a deletion of the cluster leaves on purpose, in words; none where all go. Makes no call."""
        ...
