"""Machines of EKS's clusters: they run no script of ours, and are nodes of their cluster once they are up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend

from local.aws.corrections.eks.eks import eks_backends
from local.aws.corrections.eks.node_groups import CLUSTER_TAG, GROUP_TAG
from local.aws.corrections.eks.scaling_groups import LOCK
from local.kubernetes.cluster import InitFailed, Kubelet
from local.kubernetes.managed import ManagedCluster, ManagedClusters
from local.kubernetes.store import Object

EFFECTS = {"NO_SCHEDULE": "NoSchedule", "PREFER_NO_SCHEDULE": "PreferNoSchedule", "NO_EXECUTE": "NoExecute"}


Own = tuple[dict[str, str], list[Object]]
"""What a node registers with besides what every node has: labels and taints."""


@dataclass
class ManagedNode(ABC):
    """See ``Program``: what an instance of such a cluster does. ``log`` takes why it does not join."""

    account: str
    region: str
    instance: Any
    kubelet: Kubelet
    clusters: ManagedClusters
    log: Path
    _last_text: str = field(default="", init=False)
    _joined: ManagedCluster | None = field(default=None, init=False)
    _own: Own = field(default_factory=lambda: ({}, []), init=False)

    name: str = field(default="", init=False)
    """The node's: the private name that EC2 gives the instance while it lives."""

    @property
    @abstractmethod
    def cluster_name(self) -> str:
        """The cluster that the machine is to join."""

    @abstractmethod
    def own(self) -> Own | None:
        """Labels and taints that the node has of its own now; None when it cannot be told."""

    def refusal(self, _cluster: ManagedCluster | None) -> str:
        """Reason why the machine cannot join; empty where nothing is against it."""
        return ""

    def begin(self) -> bool:
        """See ``Program``: the kubelet registers its node."""
        self.name = str(self.instance.private_dns_name)
        cluster = self.clusters.at(self.account, self.region, self.cluster_name)
        own, refusal = self.own(), self.refusal(cluster)
        if cluster is None or own is None or refusal:
            self._say(refusal)
            return False
        try:
            cluster.admit(self.name, self.kubelet, {**self._labels(), **own[0]}, own[1])
        except InitFailed as error:
            self._say(str(error))
            return False
        self._joined, self._own = cluster, own
        return True

    def look(self) -> None:
        """Give the node the labels and taints that it should have now."""
        own = self.own()
        if self._joined is None or own is None or own == self._own:
            return
        removed_labels = [key for key in self._own[0] if key not in own[0]]
        self._joined.change(self.name, *own, removed_labels)
        self._own = own

    def switched(self, *, on: bool) -> None:
        """See ``Program``."""
        if self._joined is not None:
            self._joined.power(self.name, on=on)

    def end(self) -> None:
        """See ``Program``: the cloud's controller deletes the node of an instance that is gone."""
        if self._joined is not None:
            self._joined.forget(self.name, self.kubelet.provider_id)

    def _say(self, text: str) -> None:
        """One line to the log, unless it was the last one."""
        if text in ("", self._last_text):
            return
        self._last_text = text
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"{self.instance.id}: {text}\n")

    def _labels(self) -> dict[str, str]:
        """Labels that kubelets and the cloud's controller put on every node."""
        kind, zone = str(self.instance.instance_type), str(self.instance.placement.zone)
        zones = RegionsAndZonesBackend.zones.get(self.region, [])
        return {
            "kubernetes.io/os": "linux",
            "kubernetes.io/hostname": self.name,
            "node.kubernetes.io/instance-type": kind,
            "topology.kubernetes.io/region": self.region,
            "topology.kubernetes.io/zone": zone,
            "topology.k8s.aws/zone-id": next((entry.zone_id for entry in zones if entry.name == zone), ""),
        }


@dataclass
class GroupNode(ManagedNode):
    """An instance of a node group. ``tags`` are the instance's."""

    tags: Mapping[str, str]

    @property
    def cluster_name(self) -> str:
        """See ``ManagedNode``."""
        return self.tags[CLUSTER_TAG]

    def own(self) -> Own | None:
        """Labels and taints of the group; None when it is gone."""
        with LOCK:
            cluster = eks_backends[self.account][self.region].clusters.get(self.cluster_name)
            group = cluster.groups.get(self.tags[GROUP_TAG]) if cluster else None
            if group is None:
                return None
            return dict(group.document["labels"]), _taints(group.document["taints"])

    def _labels(self) -> dict[str, str]:
        capacity_types = {"spot": "SPOT", "capacity-block": "CAPACITY_BLOCK"}
        return {
            **super()._labels(),
            "eks.amazonaws.com/nodegroup": self.tags[GROUP_TAG],
            "eks.amazonaws.com/nodegroup-image": str(self.instance.image_id),
            "eks.amazonaws.com/capacityType": capacity_types.get(self.instance.lifecycle, "ON_DEMAND"),
        }


def _taints(taints: Sequence[Mapping[str, str]]) -> list[Object]:
    return [
        {"key": taint["key"], "value": taint.get("value", ""), "effect": EFFECTS[taint["effect"]]} for taint in taints
    ]
