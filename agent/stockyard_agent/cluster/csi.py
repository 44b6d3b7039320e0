"""CSI drivers of volumes, and the number of volumes of each driver that a node takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..kubernetes import Kubernetes, Object

CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""Of classes whose volumes somebody makes by hand; they are attached to nothing."""
_PAGE = 500
_IN_TREE = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}
"""By the provisioner that was built into Kubernetes: the driver to which its CSI migration leads."""
_SOURCES = {
    "awsElasticBlockStore": ("ebs.csi.aws.com", "volumeID"),
    "gcePersistentDisk": ("pd.csi.storage.gke.io", "pdName"),
    "azureDisk": ("disk.csi.azure.com", "diskName"),
    "azureFile": ("file.csi.azure.com", "shareName"),
    "cinder": ("cinder.csi.openstack.org", "volumeID"),
    "vsphereVolume": ("csi.vsphere.vmware.com", "volumePath"),
    "portworxVolume": ("pxd.portworx.com", "volumeID"),
}
"""By the member of a volume's source: the same, and what names the volume."""
Handle = tuple[str, str]
"""A driver, and what names a volume there."""


def limits(kube: Kubernetes) -> dict[str, dict[str, int]]:
    """Number of volumes of each driver that a node takes, by the node's name. Raises ``Refused``, ``Unreachable``."""
    return dict(kube.collect(CSI_NODES, {}, _limits, _PAGE))


def _limits(item: Object) -> tuple[str, dict[str, int]] | None:
    counts = {
        driver["name"]: int(driver["allocatable"]["count"])
        for driver in (item.get("spec") or {}).get("drivers") or ()
        if (driver.get("allocatable") or {}).get("count") is not None
    }
    return (item["metadata"]["name"], counts) if counts else None


def driver_of(provisioner: str) -> str:
    """The driver of a class's volumes; empty for none."""
    return "" if provisioner == NO_PROVISIONER else _IN_TREE.get(provisioner, provisioner)


def handle_of(source: Mapping[str, Any]) -> Handle | None:
    """The volume of a PersistentVolume's specification; None where no driver serves it."""
    if csi := source.get("csi"):
        return str(csi["driver"]), str(csi["volumeHandle"])
    return next(_built_in(source), None)


def inline_volumes(pod: Object) -> tuple[Handle, ...]:
    """The volumes that the pod names itself, without a claim. As with kube-scheduler only those count that were built
    into Kubernetes: a CSI volume of a pod's own (``csi``) is attached to nothing."""
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    return tuple(handle for volume in volumes for handle in _built_in(volume))


def _built_in(source: Mapping[str, Any]) -> Iterator[Handle]:
    for member, (driver, name) in _SOURCES.items():
        if member in source:
            yield driver, str(source[member].get(name, ""))
