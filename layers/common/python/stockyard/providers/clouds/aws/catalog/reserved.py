"""Part of an instance that is left for pods: see ``machines.reserved``. 7.5 % of memory are not seen by a machine at
all, as Karpenter's AWS provider assumes until it has seen one."""

from __future__ import annotations

import math
from collections.abc import Mapping

from stockyard.domain.nodes.disks import USUAL_GIB, kept_gib
from stockyard.domain.nodes.offers import InstanceOffer
from stockyard.machines import reserved

DISK_GIB = USUAL_GIB
"""Root volume of a node."""
EKS_DISK_GIB = 20
"""Root volume of a machine of a node group that names none: EKS's own."""
_UNSEEN = 0.075
_NEURON, _NEURON_CORE = "aws.amazon.com/neuron", "aws.amazon.com/neuroncore"
"""The resources of AWS's own accelerators: devices, and their cores."""
_SMALL_VCPUS, _MOST_OF_LARGE = 30, 250
"""Managed node groups of EKS tell kubelets of machines with fewer vCPUs at most 110 pods, and others at most 250."""


def pods(offer: InstanceOffer) -> int:
    """Number of pods that a node takes: no more than have an address of the VPC, nor than a kubelet takes."""
    return min(offer.max_pods, reserved.MOST_PODS) if offer.max_pods else reserved.MOST_PODS


def pods_with_addresses(offer: InstanceOffer) -> int:
    """Number of pods that a node takes where each has an address of the VPC and the kubelet is told so, as with EKS's
    CNI."""
    return offer.max_pods or reserved.MOST_PODS


def pods_on_eks(offer: InstanceOffer) -> int:
    """Number of pods that a node of EKS takes: no more than have an address of the VPC, nor than EKS tells a
    kubelet."""
    most = reserved.MOST_PODS if offer.vcpu < _SMALL_VCPUS else _MOST_OF_LARGE
    return min(pods_with_addresses(offer), most)


def capacity(offer: InstanceOffer, most_pods: int | None = None) -> dict[str, str | float]:
    """Capacity of the type, as Kubernetes quantities; ``most_pods`` where it is not what ``pods`` says."""
    quantities: dict[str, str | float] = {
        "cpu": offer.vcpu,
        "memory": f"{offer.memory_mib}Mi",
        "ephemeral-storage": f"{DISK_GIB}Gi",
        "pods": pods(offer) if most_pods is None else most_pods,
    }
    for gpu in offer.gpus:
        if gpu.count:
            name = f"{gpu.manufacturer.lower()}.com/gpu"
            quantities[name] = int(quantities.get(name, 0)) + gpu.count
    accelerator = offer.traits.accelerator if offer.traits is not None else None
    if accelerator is not None and accelerator.cores:
        quantities |= {_NEURON: accelerator.count, _NEURON_CORE: accelerator.count * accelerator.cores}
    return quantities


def overhead(offer: InstanceOffer, most_pods: int | None = None) -> Mapping[str, str | float]:
    """Part of the capacity that pods cannot have, as Kubernetes quantities; see ``capacity``."""
    unseen = math.ceil(offer.memory_mib * _UNSEEN)
    memory = unseen + reserved.memory_mib(pods(offer) if most_pods is None else most_pods) + reserved.EVICTION_MIB
    return {
        "cpu": f"{reserved.cpu(offer.vcpu)}m",
        "memory": f"{memory}Mi",
        "ephemeral-storage": f"{kept_gib(DISK_GIB)}Gi",
    }


def kubelet_args(offer: InstanceOffer) -> dict[str, str]:
    """The kubelet's flags that keep from pods what ``overhead`` subtracts; what a machine does not see at all is no
    part of them."""
    return reserved.kubelet_args(offer.vcpu, pods(offer))
