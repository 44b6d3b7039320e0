"""Volumes of a played cluster: claims, volumes, the one class, and how many of them each node takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from agent.stockyard_agent.kubernetes import Object
from local.kubernetes.placing.volumes import Storage
from tests.harness.hours.pods import DRIVER, LATE, NAMESPACE, App

ZONE = "topology.kubernetes.io/zone"
CLASS: Object = {"metadata": {"name": LATE}, "provisioner": DRIVER, "volumeBindingMode": "WaitForFirstConsumer"}


@dataclass
class PlayedStorage:
    """``slots``: how many volumes each node takes; None: any number, and no CSINode says so."""

    slots: int | None = None
    binding: tuple[float, float] = (5.0, 20.0)
    """In how many seconds a volume is made for the first pod that wants it: so long the pod has its node and is not
    bound."""
    claims: dict[str, Object] = field(default_factory=dict)
    volumes: dict[str, Object] = field(default_factory=dict)

    def as_seen(self) -> Storage:
        """As the scheduler sees it."""
        return Storage(self.claims, self.volumes, {LATE: CLASS})

    def limits(self) -> dict[str, int]:
        """Volumes by driver that each node takes."""
        return {} if self.slots is None else {DRIVER: self.slots}

    def csi_node(self, name: str) -> Object:
        """Limits of a node's drivers."""
        driver = {"name": DRIVER, "nodeID": name, "allocatable": {"count": self.slots}}
        return {"metadata": {"name": name}, "spec": {"drivers": [driver]}}

    def claim_for(self, app: App, pod: Object) -> None:
        """Make the claim of a new pod, unless it is there."""
        for volume in pod["spec"].get("volumes") or ():
            name = volume["persistentVolumeClaim"]["claimName"]
            if f"{NAMESPACE}/{name}" not in self.claims:
                meta = {"namespace": NAMESPACE, "name": name}
                self.claims[f"{NAMESPACE}/{name}"] = {"metadata": meta, "spec": {"storageClassName": LATE}}
                if app.volume != LATE:
                    self.provide(name, app.volume)

    def provide(self, name: str, zone: str) -> None:
        """Make the volume of a claim in a zone."""
        zone_term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
        self.volumes[f"v-{name}"] = {
            "metadata": {"name": f"v-{name}"},
            "spec": {
                "csi": {"driver": DRIVER, "volumeHandle": f"v-{name}"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [zone_term]}},
            },
        }
        self.claims[f"{NAMESPACE}/{name}"]["spec"]["volumeName"] = f"v-{name}"

    def late(self, pod: Object) -> list[str]:
        """The pod's claims that have no volume yet."""
        names = [volume["persistentVolumeClaim"]["claimName"] for volume in pod["spec"].get("volumes") or ()]
        return [name for name in names if "volumeName" not in self.claims[f"{NAMESPACE}/{name}"]["spec"]]

    def drop(self, pod: Object) -> None:
        """The pod is gone, and a volume of its own with it."""
        for volume in pod["spec"].get("volumes") or ():
            name = volume["persistentVolumeClaim"]["claimName"]
            if name.startswith(pod["metadata"]["name"]):
                self.claims.pop(f"{NAMESPACE}/{name}", None)
                self.volumes.pop(f"v-{name}", None)

    def items(self, path: str, nodes: Iterable[str]) -> list[Object] | None:
        """Items of a list of the API; None for a path that is not of storage."""
        kind = path.rpartition("/")[2]
        if kind == "csinodes":
            return [] if self.slots is None else [self.csi_node(name) for name in nodes]
        lists = {
            "persistentvolumeclaims": list(self.claims.values()),
            "persistentvolumes": list(self.volumes.values()),
            "storageclasses": [CLASS],
        }
        return lists.get(kind)
