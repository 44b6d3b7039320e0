"""The well-known labels of an EC2 instance type, by which Karpenter's users choose: facts of its name and size, and
what EC2 describes. The names and the meaning of each are those that Karpenter's AWS provider documents."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stockyard.domain.nodes.offers import InstanceOffer
from stockyard.domain.nodes.provider_kinds import LabelDomain

ZONE_ID = "topology.k8s.aws/zone-id"
"""The label that AWS' controllers and Karpenter have for the id of a node's zone."""
DOMAIN = "karpenter.k8s.aws"
PREFIX = f"{DOMAIN}/instance"
GPU_NAME = f"{PREFIX}-gpu-name"
"""The label of nodes with GPUs."""
_TENANCY = f"{DOMAIN}/tenancy"
"""The documented name; nodes of Karpenter have ``instance-tenancy``."""
_NAME = re.compile(r"(?P<category>[a-z]+)(-[0-9]+tb)?(?P<generation>[0-9]+)?[a-z0-9-]*\.(?P<size>[a-z0-9-]+)")
_OF_TYPES = (
    *("category", "family", "generation", "size", "capability-flex", "tenancy", "pods"),
    *("cpu", "cpu-manufacturer", "cpu-sustained-clock-speed-mhz", "memory"),
    *("ebs-bandwidth", "network-bandwidth", "hypervisor", "encryption-in-transit-supported", "local-nvme"),
    *("gpu-name", "gpu-manufacturer", "gpu-count", "gpu-memory"),
    *("accelerator-name", "accelerator-manufacturer", "accelerator-count"),
)
KNOWN_LABELS = frozenset(
    {
        *(f"{PREFIX}-{name}" for name in _OF_TYPES),
        _TENANCY,
        *(f"{DOMAIN}/capacity-reservation-{name}" for name in ("id", "type", "interruptible")),
        *(f"{DOMAIN}/placement-group-{name}" for name in ("id", "partition")),
    }
)
"""Every label of the domain that Karpenter's AWS provider knows; it refuses others. No machine of ours is in a
reservation of capacity or a placement group that these labels would name."""
LABEL_DOMAIN = LabelDomain(DOMAIN, KNOWN_LABELS)


def labels(offer: InstanceOffer, pods: int) -> dict[str, str]:
    """All labels of the type that are known, by key; ``pods`` are what its nodes take. Texts are lower case, amounts
    whole numbers: memory in MiB, bandwidth in Mbit/s, disks in GB."""
    named = {**dict(_of_name(offer)), **dict(_described(offer)), **dict(_devices(offer)), "pods": str(pods)}
    return {**{f"{PREFIX}-{name}": value for name, value in named.items()}, _TENANCY: named["tenancy"]}


def _of_name(offer: InstanceOffer) -> Iterator[tuple[str, str]]:
    yield "cpu", str(offer.vcpu)
    yield "memory", str(offer.memory_mib)
    yield "tenancy", "default"
    family = offer.name.partition(".")[0]
    yield "capability-flex", _truth("-flex" in family)
    parts = _NAME.fullmatch(offer.name)
    if parts is not None:
        yield "family", family
        yield "category", parts["category"]
        yield "size", parts["size"]
        if parts["generation"]:
            yield "generation", parts["generation"]


def _described(offer: InstanceOffer) -> Iterator[tuple[str, str]]:
    traits = offer.traits
    if traits is None:
        return
    # Bare metal has none, which is a value of this label, too.
    yield "hypervisor", traits.hypervisor or ""
    if traits.processor_manufacturer is not None:
        yield "cpu-manufacturer", _label(traits.processor_manufacturer)
    if traits.encrypts_in_transit is not None:
        yield "encryption-in-transit-supported", _truth(traits.encrypts_in_transit)
    amounts = {
        "cpu-sustained-clock-speed-mhz": traits.clock_mhz,
        "ebs-bandwidth": traits.volume_mbps,
        "network-bandwidth": traits.network_mbps,
        "local-nvme": traits.local_gb,
    }
    yield from ((name, str(amount)) for name, amount in amounts.items() if amount is not None)


def _devices(offer: InstanceOffer) -> Iterator[tuple[str, str]]:
    for gpu in offer.gpus[:1]:
        yield "gpu-name", _label(gpu.name)
        yield "gpu-manufacturer", _label(gpu.manufacturer)
        yield "gpu-count", str(sum(model.count for model in offer.gpus))
        yield "gpu-memory", str(gpu.memory_mib)
    accelerator = offer.traits.accelerator if offer.traits is not None else None
    if accelerator is not None:
        yield "accelerator-name", _label(accelerator.name)
        yield "accelerator-manufacturer", _label(accelerator.manufacturer)
        yield "accelerator-count", str(accelerator.count)


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _label(text: str) -> str:
    return text.lower().replace(" ", "-")
