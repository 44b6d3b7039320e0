"""The node types of a project on Cudo: sizes of its machine types, priced by part.

Within a machine type vCPUs and memory are chosen freely. Sizes are steps of both, close enough that a claim pays for
little that it has not asked for, and few enough that a catalogue stays small; or those that a document asks for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from stockyard.domain.nodes.declared_types import DeclaredType, choosable, declared
from stockyard.domain.nodes.disks import kept_gib
from stockyard.domain.nodes.node_types import ON_DEMAND, Declaration, NodeType, Offering, node_type_of
from stockyard.domain.records import NodeProvider
from stockyard.domain.values.requirements import REGION
from stockyard.machines import reserved
from stockyard.providers.clouds.cudo import sizing
from stockyard.providers.clouds.cudo.labels import GPU, GPU_MODEL, GPUS_LABEL, MACHINE_TYPE, MEMORY_GIB, VCPUS_LABEL
from stockyard.providers.clouds.cudo.sizing import Size
from stockyard.providers.clouds.cudo.values import ID, MachineType
from stockyard.providers.nodes.cudo.configuration import data_center, disk_gib, is_named, own_sizes

VCPUS = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192)
GIB_PER_VCPU = (1, 2, 4, 8)
GPUS = (1, 2, 4, 8)
_NAME = re.compile(r"(?P<machine_type>.+)-(?P<vcpus>[0-9]+)x(?P<memory>[0-9]+)(?:-(?P<gpus>[0-9]+)g)?", re.ASCII)
_NO_LABEL = re.compile(r"[^A-Za-z0-9_.-]+", re.ASCII)


def node_types(provider: NodeProvider, types: Sequence[MachineType]) -> tuple[NodeType, ...]:
    """The node types of the provider: each size of each machine type that its data center sells and its document lets
    through.

    A size that is not free now is not available; it still has its price.
    """
    written = {declaration.name: declaration for declaration in declared(provider)}
    nothing = DeclaredType("")
    return tuple(
        _node_type(provider, kind, size, written.get(type_name(kind.name, size), nothing))
        for kind in matching(provider, types)
        for size in sorted(set(sizes(kind, disk_gib(provider), own_sizes(provider))), key=_order)
    )


def matching(provider: NodeProvider, types: Sequence[MachineType]) -> list[MachineType]:
    """The machine types of the provider's data center that its document lets through, in order of name. One whose name
    is no id could be no label, and could not be asked for."""
    here = (kind for kind in types if kind.data_center == data_center(provider) and ID.fullmatch(kind.name))
    return sorted((kind for kind in here if is_named(provider, kind.name)), key=lambda kind: kind.name)


def sizes(kind: MachineType, disk: int, asked_for: Sequence[Size] | None = None) -> Iterator[Size]:
    """The sizes in which a machine type is sold at all: the steps, or those of them that are asked for."""
    for size in _steps(kind, disk) if asked_for is None else asked_for:
        if not any(sizing.bounds_faults(kind, size)):
            yield size


def _steps(kind: MachineType, disk: int) -> Iterator[Size]:
    for gpus in GPUS if kind.gpu_model else (0,):
        for vcpus in VCPUS:
            for ratio in GIB_PER_VCPU:
                yield Size(vcpus, max(vcpus * ratio, math.ceil(kind.min_memory_gib)), disk, gpus)


def type_name(machine_type: str, size: Size) -> str:
    """The node type's name, without its provider: ``intel-broadwell-v100-8x32-1g`` has 8 vCPUs, 32 GiB and 1 GPU."""
    return f"{machine_type}-{size.vcpus}x{size.memory_gib}" + (f"-{size.gpus}g" if size.gpus else "")


def of_type_name(name: str, disk: int = 0) -> tuple[str, Size] | None:
    """Machine type and size of a name that ``type_name`` made; None for any other."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    return match["machine_type"], Size(int(match["vcpus"]), int(match["memory"]), disk, int(match["gpus"] or 0))


def is_step(size: Size) -> bool:
    """Whether a size is one of the steps. Memory that a machine type has at least is none of its own."""
    return size.vcpus in VCPUS and (size.gpus == 0 or size.gpus in GPUS)


def kubelet_args(size: Size) -> dict[str, str]:
    """The flags that keep from pods what the node type does not offer them."""
    return reserved.kubelet_args(size.vcpus, reserved.MOST_PODS)


def _node_type(provider: NodeProvider, kind: MachineType, size: Size, written: DeclaredType) -> NodeType:
    return node_type_of(
        Declaration(
            provider=provider.name,
            name=type_name(kind.name, size),
            resources=_resources(size),
            overhead=_overhead(size),
            provider_properties=choosable(provider.properties),
            properties={**_labels(kind, size), **choosable(written.properties)},
            cost=written.cost,
            unit_price=provider.price_per_cost_unit,
            limited=written.max_capacity is not None,
            instance_type=kind.name,
            arch="amd64",
            available=not any(sizing.shortages(kind, size)),
            offerings=(Offering(ON_DEMAND, (kind.data_center,), float(sizing.price(kind, size))),),
            boots=True,
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
        "ephemeral-storage": f"{kept_gib(size.disk_gib)}Gi",
    }


def _labels(kind: MachineType, size: Size) -> dict[str, str]:
    model = _NO_LABEL.sub("-", kind.gpu_model_id or kind.gpu_model.lower())[:63].strip("-_.")
    gpu = {GPU_MODEL: model} if model else {}
    return {
        REGION: kind.data_center,
        MACHINE_TYPE: kind.name,
        VCPUS_LABEL: str(size.vcpus),
        MEMORY_GIB: str(size.memory_gib),
        GPUS_LABEL: str(size.gpus),
        **gpu,
    }
