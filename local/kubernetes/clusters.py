"""The Kubernetes clusters of the local cloud, as ``kubeadm`` and kubelets would run them on its machines."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from local.kubernetes.cluster import Cluster, JoinFailed, Restored
from local.kubernetes.membership import Membership
from local.kubernetes.simulated import SimulatedCluster

TICK_SECONDS = 0.2

Initialize = Callable[[Path, str, Path], Cluster]
"""(folder with a machine's ``kubeadm.yaml``, name of its node, log of its pods) -> the cluster, not started."""
Restore = Callable[[str, Restored, Path, "Cluster | None"], Cluster]
"""(endpoint, what the member has, log of its pods, the cluster that is there) -> the cluster, not started."""


class Clusters:
    """All clusters, by the endpoint of their API. The output of their pods goes to ``log``.

    ``initialize`` makes them, ``restore`` begins them anew; without these they are simulated.
    """

    def __init__(
        self,
        log: Path,
        initialize: Initialize = SimulatedCluster.initialized,
        restore: Restore = SimulatedCluster.restored,
    ) -> None:
        self._log, self._initialize, self._restore = log, initialize, restore
        self._clusters: dict[str, Cluster] = {}
        self._memberships: dict[str, Membership] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True, name="kubelets")

    def start(self) -> None:
        """Start the kubelets' periodic work."""
        self._thread.start()

    def initialized(self, state: Path, node: str) -> Cluster:
        """The cluster after ``kubeadm init``, not started. The machine's ``kubeadm.yaml`` is in ``state``, its own node
        is to be called ``node``. Raises ``InitFailed``."""
        cluster = self._initialize(state, node, self._log)
        self.add(cluster)
        return cluster

    def add(self, cluster: Cluster) -> None:
        """Do the periodic work of a cluster too that no machine has initialized."""
        self._clusters[cluster.endpoint] = cluster

    def at(self, endpoint: str) -> Cluster:
        """The cluster behind an endpoint. Raises ``JoinFailed`` when nothing answers there."""
        cluster = self._clusters.get(endpoint)
        if cluster is None:
            raise JoinFailed(f"nothing answers at {endpoint}")
        return cluster

    def membership(self, cluster: Cluster) -> Membership:
        """The members of the cluster's etcd."""
        return self._memberships.setdefault(cluster.endpoint, Membership())

    def restored(self, endpoint: str, restored: Restored) -> Cluster:
        """The cluster behind the endpoint as a snapshot has it, without any member. Raises ``InitFailed``."""
        present = self._clusters.get(endpoint)
        cluster = self._restore(endpoint, restored, self._log, present)
        self._memberships[endpoint] = Membership()
        self.add(cluster)
        return cluster

    def switch(self, cluster: Cluster, name: str, *, on: bool) -> None:
        """The machine of a member was switched on or off: without a quorum the cluster's API does not answer.
        Raises ``InitFailed`` when it does not start."""
        members = self.membership(cluster)
        if self._clusters.get(cluster.endpoint) is not cluster:
            return
        members.switch(name, on=on)
        if members.has_quorum:
            cluster.start()
            cluster.power(name, on=on)
        else:
            cluster.power(name, on=on)
            cluster.stop()

    def remove_dead(self, cluster: Cluster) -> None:
        """Remove a cluster of whose members none has a machine any more."""
        if self._clusters.get(cluster.endpoint) is cluster and self.membership(cluster).is_dead:
            self.remove(cluster)

    def remove(self, cluster: Cluster) -> None:
        """Remove a cluster whose control plane machine is gone."""
        self._memberships.pop(cluster.endpoint, None)
        self._clusters.pop(cluster.endpoint, None)
        cluster.remove()

    @property
    def processes(self) -> list[int]:
        """The process ids of all programs and pods."""
        return [process for cluster in list(self._clusters.values()) for process in cluster.processes]

    def close(self) -> None:
        """Stop all clusters and end their processes."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(5)
        for cluster in list(self._clusters.values()):
            self.remove(cluster)

    def _work(self) -> None:
        while not self._stop.wait(TICK_SECONDS):
            for cluster in list(self._clusters.values()):
                if release := self.membership(cluster).release:
                    cluster.upgrade(release)
                cluster.work()
