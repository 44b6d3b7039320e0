"""The node types of a project on Cudo: sizes of its machine types, priced by part.

Within a machine type vCPUs and memory are chosen freely. Sizes are steps of both, close enough that a claim pays for
little that it has not asked for, and few enough that a catalogue stays small.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from stockyard.domain.node_types import ON_DEMAND, Declaration, NodeType, Offering, node_type_of
from stockyard.machines import reserved
from stockyard.providers.clouds.cudo import sizing
from stockyard.providers.clouds.cudo.sizing import Size
from stockyard.providers.clouds.cudo.values import MachineType

VCPUS = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192)
GIB_PER_VCPU = (1, 2, 4, 8)
GPUS = (1, 2, 4, 8)
GPU = "nvidia.com/gpu"
LABELS = "cudocompute.com"
"""Before the labels that are Cudo's own: machine type, GPU's model."""


def node_types(provider: str, types: Sequence[MachineType], disk_gib: int) -> tuple[NodeType, ...]:
    """The node types of the provider: each size of each machine type, with the data centers that sell it.

    What is not free now in a data center is no offering there; a size that is free nowhere is not available.
    """
    by_name: dict[str, list[MachineType]] = {}
    for kind in types:
        by_name.setdefault(kind.name, []).append(kind)
    return tuple(
        _node_type(provider, kinds, size)
        for _, kinds in sorted(by_name.items())
        for size in sorted({size for kind in kinds for size in sizes(kind, disk_gib)}, key=_order)
    )


def sizes(kind: MachineType, disk_gib: int) -> Iterator[Size]:
    """The sizes in which a machine type is sold at all."""
    for gpus in GPUS if kind.gpu_model else (0,):
        for vcpus in VCPUS:
            for ratio in GIB_PER_VCPU:
                size = Size(vcpus, max(vcpus * ratio, math.ceil(kind.min_memory_gib)), disk_gib, gpus)
                if not any(sizing.bounds_faults(kind, size)):
                    yield size


def type_name(machine_type: str, size: Size) -> str:
    """The node type's name, without its provider: ``intel-broadwell-v100-8x32-1g`` has 8 vCPUs, 32 GiB and 1 GPU."""
    return f"{machine_type}-{size.vcpus}x{size.memory_gib}" + (f"-{size.gpus}g" if size.gpus else "")


def _node_type(provider: str, kinds: Sequence[MachineType], size: Size) -> NodeType:
    sellers = [kind for kind in kinds if not any(sizing.bounds_faults(kind, size))]
    free = [kind for kind in sellers if not any(sizing.shortages(kind, size))]
    offerings = tuple(
        Offering(ON_DEMAND, (kind.data_center,), float(sizing.price(kind, size)))
        for kind in sorted(free or sellers, key=lambda kind: kind.data_center)
    )
    return node_type_of(
        Declaration(
            provider=provider,
            name=type_name(kinds[0].name, size),
            resources=_resources(size),
            overhead=_overhead(size),
            properties=_labels(kinds[0]),
            instance_type=kinds[0].name,
            arch="amd64",
            available=bool(free),
            offerings=offerings,
        )
    )


def _order(size: Size) -> tuple[int, int, int]:
    return size.gpus, size.vcpus, size.memory_gib


def _resources(size: Size) -> dict[str, str | float]:
    gpus = {GPU: size.gpus} if size.gpus else {}
    return {
        "cpu": size.vcpus,
        "memory": f"{size.memory_gib}Gi",
        "ephemeral-storage": f"{size.disk_gib}Gi",
        "pods": reserved.MOST_PODS,
        **gpus,
    }


def _overhead(size: Size) -> Mapping[str, str | float]:
    return {
        "cpu": f"{reserved.cpu(size.vcpus)}m",
        "memory": f"{reserved.memory_mib(reserved.MOST_PODS) + reserved.EVICTION_MIB}Mi",
        "ephemeral-storage": f"{reserved.storage_gib(size.disk_gib)}Gi",
    }


def _labels(kind: MachineType) -> dict[str, str]:
    gpu = {f"{LABELS}/gpu-model": kind.gpu_model_id} if kind.gpu_model_id else {}
    return {f"{LABELS}/machine-type": kind.name, **gpu}
