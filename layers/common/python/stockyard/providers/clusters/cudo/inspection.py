"""Live checks of a new cluster's settings: what Cudo sells, and what of it is free. Nothing is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stockyard.ports import Finding
from stockyard.providers.clouds.cudo import sizing
from stockyard.providers.clouds.cudo.sizing import Size
from stockyard.providers.clouds.cudo.values import MachineType
from stockyard.providers.clusters.cudo.configuration import ControlPlane, control_plane

APART = "All machines of a cluster stand in one data center, where their network is, until there is an overlay."


def findings(types: Sequence[MachineType], settings: Mapping[str, Any], data_center: str) -> Iterator[Finding]:
    """Everything that is wrong. ``types`` are all that Cudo lists, ``data_center`` is the account's."""
    machine = control_plane(settings)
    data_center_id = machine.data_center or data_center
    for index, group in enumerate(settings["autoscaler_node_groups"]):
        at = f"/settings/autoscaler_node_groups/{index}"
        group_findings = list(_group(types, group, at))
        if group["data_center_id"] != data_center_id and not any(
            finding.pointer.endswith("_id") for finding in group_findings
        ):
            yield Finding(f"{at}/data_center_id", f"{APART} The control plane's is {data_center_id}.")
        yield from group_findings
    if machine.machine_type is None and choose(types, machine, data_center) is None:
        yield Finding(machine.pointer, nothing_free(machine, data_center))


def nothing_free(machine: ControlPlane, data_center: str) -> str:
    """Message that no type of the data center can be had for the machine now."""
    profile = machine.profile
    figures = f"{profile.vcpus} vCPUs, {profile.memory_gib} GiB of memory and {profile.disk_gib} GiB of disk"
    return f"No machine type in {data_center} has {figures} free for one machine just now."


def faults_of(types: Sequence[MachineType], machine: ControlPlane, data_center: str) -> Iterator[Finding]:
    """Reasons why a machine whose type is named can never be had there."""
    kind = choose(types, machine, data_center)
    if kind is None:
        yield Finding(machine.pointer, f"{data_center} has no {machine.machine_type}.")
        return
    for field, text in sizing.bounds_faults(kind, size_of(machine)):
        yield Finding(f"{machine.pointer}/{field}", text)


def choose(types: Sequence[MachineType], machine: ControlPlane, data_center: str) -> MachineType | None:
    """The type of the control plane: the one that its group names, else the cheapest in the account's data center that
    can be had. None where there is none."""
    if machine.machine_type is None:
        return sizing.cheapest(types, data_center, size_of(machine))
    type_key = (machine.machine_type, machine.data_center)
    return next((kind for kind in types if (kind.name, kind.data_center) == type_key), None)


def size_of(machine: ControlPlane) -> Size:
    """Size that the control plane's machine needs."""
    profile = machine.profile
    return Size(profile.vcpus, profile.memory_gib, profile.disk_gib, machine.gpus, machine.gpu_model)


def group_size(group: Mapping[str, Any]) -> Size:
    """Size that a node group asks of each of its machines."""
    figures = (group[name] for name in ("vcpus", "memory_gib", "boot_disk_size_gib", "gpus", "gpu_model"))
    return Size(*figures)


def _group(types: Sequence[MachineType], group: Mapping[str, Any], at: str) -> Iterator[Finding]:
    data_center, name = group["data_center_id"], group["machine_type"]
    here = [kind for kind in types if kind.data_center == data_center]
    if not here:
        data_centers = ", ".join(sorted({kind.data_center for kind in types})) or "none"
        yield Finding(f"{at}/data_center_id", f"Cudo has no machines in {data_center}. There are {data_centers}.")
        return
    kind = next((kind for kind in here if kind.name == name), None)
    if kind is None:
        names = ", ".join(sorted(kind.name for kind in here))
        yield Finding(f"{at}/machine_type", f"{data_center} has no {name}. It has {names}.")
        return
    size = group_size(group)
    faults = list(sizing.bounds_faults(kind, size))
    yield from (Finding(f"{at}/{field}", text) for field, text in faults)
    if not faults:
        # Nodes come later, when there may be room again; a control plane is made now.
        is_needed_now = group["role"] == "control" or group["min_size"] > 0
        for field, text in sizing.shortages(kind, size):
            yield Finding(f"{at}/{field}", text, warning=not is_needed_now)
