"""Refusals of virt-api of a VirtualMachine that fits its schema: of its documents and its source, not seen here.

A machine that its API takes and that never comes up is worse than one that is refused, so this is as strict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

WEBHOOK = "virtualmachine-validator.kubevirt.io"
STRATEGIES = frozenset({"Always", "Halted", "Manual", "RerunOnFailure", "Once", "WaitAsReceiver"})
_BINDINGS = frozenset({"bridge", "masquerade", "sriov", "macvtap", "passt", "passtBinding", "slirp", "binding"})
_MOST_INLINE = 2048
"""Bytes of user data within the object itself."""
_SPEC = "spec.template.spec"
Fault = tuple[str, str]
"""A field, and why it is refused."""


def virtual_machine_faults(document: Mapping[str, Any]) -> list[Fault]:
    """All faults of a VirtualMachine that fits its schema."""
    spec = document["spec"]
    machine = spec["template"].get("spec") or {}
    domain = machine.get("domain") or {}
    devices = domain.get("devices") or {}
    return [
        *_of_strategy(spec),
        *_of_memory(domain),
        *_of_disks(devices.get("disks") or (), machine.get("volumes") or ()),
        *_of_volumes(machine.get("volumes") or ()),
        *_of_networks(devices.get("interfaces") or (), machine.get("networks") or ()),
        *_of_data_volumes(spec.get("dataVolumeTemplates") or (), machine.get("volumes") or ()),
    ]


def _of_strategy(spec: Mapping[str, Any]) -> Iterator[Fault]:
    strategy = spec.get("runStrategy")
    if strategy is not None and spec.get("running") is not None:
        yield "spec.running", "Running and RunStrategy are mutually exclusive"
    elif strategy is None and spec.get("running") is None:
        yield "spec.running", "One of Running or RunStrategy must be specified"
    elif strategy is not None and strategy not in STRATEGIES:
        yield "spec.runStrategy", f"Invalid RunStrategy ({strategy})"


def _of_memory(domain: Mapping[str, Any]) -> Iterator[Fault]:
    requests = (domain.get("resources") or {}).get("requests") or {}
    memory = domain.get("memory") or {}
    if not (requests.get("memory") or memory.get("guest") or memory.get("hugepages")):
        text = "no memory requested, at least one of memory.guest, memory.hugepages.size or resources.requests.memory"
        yield f"{_SPEC}.domain.memory.guest", f"{text} must be set"


def _of_disks(disks: Sequence[Mapping[str, Any]], volumes: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    names = {volume["name"] for volume in volumes}
    counts = Counter(disk["name"] for disk in disks)
    orders: Counter[int] = Counter(disk["bootOrder"] for disk in disks if "bootOrder" in disk)
    for index, disk in enumerate(disks):
        here = f"{_SPEC}.domain.devices.disks[{index}]"
        if disk["name"] not in names:
            yield f"{here}.name", f"{here}.name '{disk['name']}' not found."
        if counts[disk["name"]] > 1:
            yield f"{here}.name", f"{here} and another disk must not have the same Name."
        if len(disk.keys() & {"disk", "lun", "cdrom"}) > 1:
            yield here, f"{here} can only have a single target type defined"
        if orders[disk.get("bootOrder", 0)] > 1:
            yield f"{here}.bootOrder", f"Boot order for {here}.bootOrder already set for a different device."


def _of_volumes(volumes: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    counts = Counter(volume["name"] for volume in volumes)
    for index, volume in enumerate(volumes):
        here = f"{_SPEC}.volumes[{index}]"
        if counts[volume["name"]] > 1:
            yield f"{here}.name", f"{here} and another volume must not have the same Name."
        if len(volume.keys() - {"name"}) != 1:
            yield here, f"{here} must have exactly one source type set"
        cloud_init = volume.get("cloudInitNoCloud") or volume.get("cloudInitConfigDrive")
        if cloud_init is not None:
            yield from _of_cloud_init(cloud_init, f"{here}.cloudInitNoCloud")


def _of_cloud_init(cloud_init: Mapping[str, Any], here: str) -> Iterator[Fault]:
    sources = [name for name in ("secretRef", "userData", "userDataBase64") if cloud_init.get(name)]
    if len(sources) > 1:
        yield here, f"{here} must have only one userdatasource set."
    if len(cloud_init.get("userData", "")) > _MOST_INLINE:
        yield f"{here}.userData", f"{here} userdata exceeds {_MOST_INLINE} byte limit. Should use UserDataSecretRef"


def _of_networks(interfaces: Sequence[Mapping[str, Any]], networks: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    kinds = {network["name"]: network.keys() - {"name"} for network in networks}
    names = {interface["name"] for interface in interfaces}
    for index, interface in enumerate(interfaces):
        here = f"{_SPEC}.domain.devices.interfaces[{index}]"
        if interface["name"] not in kinds:
            yield f"{here}.name", f"{here}.name '{interface['name']}' not found."
        elif "masquerade" in interface and "pod" not in kinds[interface["name"]]:
            yield f"{here}.name", "Masquerade interface only implemented with pod network"
        if len(interface.keys() & _BINDINGS) > 1:
            yield here, f"{here} must have only one binding"
    for index, network in enumerate(networks):
        here = f"{_SPEC}.networks[{index}]"
        if network["name"] not in names:
            yield f"{here}.name", f"{here}.name '{network['name']}' not found."
        if len(kinds[network["name"]]) != 1:
            yield here, "should have only one network type"


def _of_data_volumes(templates: Sequence[Mapping[str, Any]], volumes: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    used = {(volume.get("dataVolume") or {}).get("name") for volume in volumes}
    used |= {(volume.get("persistentVolumeClaim") or {}).get("claimName") for volume in volumes}
    for index, template in enumerate(templates):
        here = f"spec.dataVolumeTemplates[{index}]"
        name = (template.get("metadata") or {}).get("name")
        inner = template["spec"]
        if not name:
            yield f"{here}.metadata.name", "name is required"
        elif name not in used:
            yield here, f"DataVolumeTemplate entry {here} must be referenced in the VMI template's 'volumes' list"
        if (inner.get("storage") is None) == (inner.get("pvc") is None):
            yield f"{here}.spec", "exactly one of pvc and storage must be set"
        if (inner.get("source") is None) == (inner.get("sourceRef") is None):
            yield f"{here}.spec", "exactly one of source and sourceRef must be set"
