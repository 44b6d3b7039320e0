"""Sizes of a machine type of Cudo, and the cost of a machine: vCPUs, memory, GPUs, disks are priced apart.

The bounds are those that Cudo lists with each type; its free figures are what one machine may still have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from stockyard.providers.clouds.cudo.values import MachineType


@dataclass(frozen=True, slots=True)
class Size:
    """Size that is asked of a machine. ``disk_gib`` is all of its disks, ``gpu_model`` empty where any will do."""

    vcpus: int
    memory_gib: int
    disk_gib: int
    gpus: int = 0
    gpu_model: str = ""


def price_parts(machine_type: MachineType, size: Size) -> list[tuple[str, Decimal]]:
    """Price of such a machine, in USD an hour, by part; the parts that it has none of are left out."""
    parts = [
        (f"{size.vcpus} vCPUs", machine_type.vcpu_price * size.vcpus),
        (f"{size.memory_gib} GiB of memory", machine_type.memory_gib_price * size.memory_gib),
        (f"{size.disk_gib} GiB of disk", machine_type.storage_gib_price * size.disk_gib),
        ("public IPv4 address", machine_type.ipv4_price),
    ]
    if size.gpus:
        parts.append((f"{size.gpus} {machine_type.gpu_model}", machine_type.gpu_price * size.gpus))
    return parts


def price(machine_type: MachineType, size: Size) -> Decimal:
    """All of it, in USD an hour."""
    return sum((amount for _, amount in price_parts(machine_type, size)), Decimal(0))


def bounds_faults(machine_type: MachineType, size: Size) -> Iterator[tuple[str, str]]:
    """Reasons why the type is never sold in that size: the field of a node group that is wrong, and the words."""
    name = machine_type.name
    if size.vcpus < machine_type.min_vcpu:
        yield "vcpus", f"{name} has at least {machine_type.min_vcpu:g} vCPUs."
    if size.memory_gib < machine_type.min_memory_gib:
        yield "memory_gib", f"{name} has at least {machine_type.min_memory_gib:g} GiB of memory."
    least, most = machine_type.memory_gib_per_vcpu
    ratio = size.memory_gib / size.vcpus
    if ratio < least or (most and ratio > most):
        until = f" to {most:g}" if most else " or more"
        yield "memory_gib", f"{name} has {least:g}{until} GiB of memory for each vCPU."
    if size.gpus and not machine_type.gpu_model:
        yield "gpus", f"{name} has no GPUs."
        return
    if size.gpu_model and size.gpu_model not in (machine_type.gpu_model, machine_type.gpu_model_id):
        yield "gpu_model", f"The GPUs of {name} are {machine_type.gpu_model}."
    if machine_type.gpu_model and not size.gpus:
        yield "gpus", f"{name} is sold with GPUs alone: ask for 1 or more {machine_type.gpu_model}."
    elif size.gpus:
        least, most = machine_type.vcpu_per_gpu
        if size.vcpus < least * size.gpus or (most and size.vcpus > most * size.gpus):
            yield "vcpus", f"{name} has {least:g} to {most:g} vCPUs for each GPU."


def shortages(machine_type: MachineType, size: Size) -> Iterator[tuple[str, str]]:
    """Parts of the size that are not free just now: the field, and the words."""
    figures = (
        ("vcpus", size.vcpus, machine_type.max_vcpu_free, "vCPUs"),
        ("memory_gib", size.memory_gib, machine_type.max_memory_gib_free, "GiB of memory"),
        ("gpus", size.gpus, machine_type.max_gpu_free, machine_type.gpu_model),
        ("boot_disk_size_gib", size.disk_gib, machine_type.max_storage_gib_free, "GiB of disk"),
    )
    for field, asked_for, free, noun in figures:
        if asked_for > free:
            subject = f"{machine_type.name} in {machine_type.data_center}"
            yield field, f"{subject} has {free} {noun} free for one machine just now, and {asked_for} are asked for."


def can_be_had(machine_type: MachineType, size: Size) -> bool:
    """Whether a machine of that size can be had now."""
    return not any(bounds_faults(machine_type, size)) and not any(shortages(machine_type, size))


def cheapest(types: Sequence[MachineType], data_center: str, size: Size) -> MachineType | None:
    """The cheapest type of the data center that can be had in that size; of equals the first by name."""
    candidates = [kind for kind in types if kind.data_center == data_center and can_be_had(kind, size)]
    return min(candidates, key=lambda kind: (price(kind, size), kind.name), default=None)
