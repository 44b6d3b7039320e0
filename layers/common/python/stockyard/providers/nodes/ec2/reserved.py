"""What of an instance is left for pods.

The shares of cpu (6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % of the rest) and of memory
(255 MiB and 11 MiB a pod for the kubelet, 100 MiB before it evicts) are those that EKS's own images reserve; 7.5 % of
memory are not seen by a machine at all, as Karpenter's AWS provider assumes until it has seen one. Storage: what the
kubelet keeps free by default, and one GiB for itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from stockyard.domain.offers import InstanceOffer

DISK_GIB = 50
"""Root volume of a node."""
MOST_PODS = 110
"""What a kubelet takes unless it is told otherwise."""
_CORES: tuple[tuple[int, int], ...] = ((1, 60), (1, 10), (2, 5))
"""How many cores, and the thousandths that are reserved of each."""
_OTHER_CORES = 2.5
_UNSEEN = 0.075
_KUBELET_MIB, _POD_MIB, _EVICTION_MIB = 255, 11, 100
_DISK_KUBELET_GIB, _DISK_FREE = 1, 0.1


def pods(offer: InstanceOffer) -> int:
    """How many pods a node takes: no more than have an address of the VPC, nor than a kubelet takes."""
    return min(offer.max_pods, MOST_PODS) if offer.max_pods else MOST_PODS


def pods_with_addresses(offer: InstanceOffer) -> int:
    """How many pods a node takes where each has an address of the VPC and the kubelet is told so, as with EKS's CNI."""
    return offer.max_pods or MOST_PODS


def capacity(offer: InstanceOffer, most_pods: int | None = None) -> dict[str, str | float]:
    """What the type has, as Kubernetes quantities; ``most_pods`` where it is not what ``pods`` says."""
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
    return quantities


def overhead(offer: InstanceOffer, most_pods: int | None = None) -> Mapping[str, str | float]:
    """What of it pods cannot have, as Kubernetes quantities; see ``capacity``."""
    reserved_for = pods(offer) if most_pods is None else most_pods
    unseen = math.ceil(offer.memory_mib * _UNSEEN)
    memory = unseen + _KUBELET_MIB + _POD_MIB * reserved_for + _EVICTION_MIB
    storage = _DISK_KUBELET_GIB + math.ceil(DISK_GIB * _DISK_FREE)
    return {"cpu": f"{_reserved_cpu(offer.vcpu)}m", "memory": f"{memory}Mi", "ephemeral-storage": f"{storage}Gi"}


def kubelet_args(offer: InstanceOffer) -> dict[str, str]:
    """The kubelet's flags that keep from pods what ``overhead`` subtracts; what a machine does not see at all is no
    part of them. A flag of evictions replaces all defaults, so those of the disk stand here again."""
    reserved = {
        "cpu": f"{_reserved_cpu(offer.vcpu)}m",
        "memory": f"{_KUBELET_MIB + _POD_MIB * pods(offer)}Mi",
        "ephemeral-storage": f"{_DISK_KUBELET_GIB}Gi",
    }
    free = f"{_DISK_FREE:.0%}"
    evictions = f"memory.available<{_EVICTION_MIB}Mi,nodefs.available<{free},nodefs.inodesFree<5%,imagefs.available<15%"
    return {
        "eviction-hard": evictions,
        "kube-reserved": ",".join(f"{name}={quantity}" for name, quantity in reserved.items()),
        "max-pods": str(pods(offer)),
    }


def _reserved_cpu(cores: int) -> int:
    thousandths, remaining = 0.0, cores
    for count, share in _CORES:
        reserved = min(remaining, count)
        thousandths += reserved * share
        remaining -= reserved
    return math.ceil(thousandths + remaining * _OTHER_CORES)
