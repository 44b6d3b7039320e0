"""The Kubernetes clusters of the local cloud, as ``kubeadm`` and kubelets would run them on its machines."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from local.kubernetes.cluster import Cluster, InitFailed, JoinFailed
from local.kubernetes.membership import Membership
from local.kubernetes.simulated import SimulatedCluster
from local.kubernetes.store import Key, Object

TICK_SECONDS = 0.2

Initialize = Callable[[Path, str, Path], Cluster]
"""(folder with a machine's ``kubeadm.yaml``, name of its node, log of its pods) -> the cluster, not started."""


class Clusters:
    """All clusters, by the endpoint of their API. The output of their pods goes to ``log``.

    ``initialize`` makes them; without it they are simulated.
    """

    def __init__(self, log: Path, initialize: Initialize = SimulatedCluster.initialized) -> None:
        self._log, self._initialize = log, initialize
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

    def restored(
        self, endpoint: str, objects: Mapping[Key, Object], keys: tuple[str, str], folder: Path
    ) -> SimulatedCluster:
        """The simulated cluster as a snapshot has it, without any member. One that is gone is made anew in ``folder``,
        with its authority's certificate and key. Raises ``InitFailed`` for a real one, which stays as it is."""
        cluster = self._clusters.get(endpoint)
        if cluster is not None and not isinstance(cluster, SimulatedCluster):
            raise InitFailed("snapshots of a real control plane are not restored in the local cloud")
        if cluster is None:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            cluster = SimulatedCluster(endpoint, "v1.0.0", folder, self._log, keys)
        cluster.stop()
        self._memberships[endpoint] = Membership()
        cluster.restore(objects)
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
                release = self.membership(cluster).release
                if release and isinstance(cluster, SimulatedCluster):
                    cluster.api.version = f"v{release}"
                cluster.work()
