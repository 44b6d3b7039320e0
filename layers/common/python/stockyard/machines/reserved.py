"""Part of a node's resources that its system and its kubelet keep from pods: for the scheduler, which subtracts it, and
for the kubelet.

The shares of cpu (6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % of the rest) and of memory
(255 MiB and 11 MiB a pod for the kubelet, 100 MiB before it evicts) are those that EKS's own images reserve. Storage:
what the kubelet keeps free by default, and one GiB for itself.
"""

from __future__ import annotations

import math

from stockyard.domain.nodes.disks import FREE, KUBELET_GIB

MOST_PODS = 110
"""What a kubelet takes unless it is told otherwise."""
KUBELET_MIB, POD_MIB, EVICTION_MIB = 255, 11, 100
_CORES: tuple[tuple[int, int], ...] = ((1, 60), (1, 10), (2, 5))
"""How many cores, and the thousandths that are reserved of each."""
_OTHER_CORES = 2.5


def cpu(cores: int) -> int:
    """Thousandths of a core that are reserved on a machine with so many."""
    thousandths, remaining = 0.0, cores
    for count, share in _CORES:
        reserved = min(remaining, count)
        thousandths += reserved * share
        remaining -= reserved
    return math.ceil(thousandths + remaining * _OTHER_CORES)


def memory_mib(pods: int) -> int:
    """MiB that the kubelet has for itself on a node of so many pods."""
    return KUBELET_MIB + POD_MIB * pods


def kubelet_args(cores: int, pods: int) -> dict[str, str]:
    """The kubelet's flags that keep the same from pods. A flag of evictions replaces all defaults, so those of the disk
    stand here again."""
    reserved = {
        "cpu": f"{cpu(cores)}m",
        "memory": f"{memory_mib(pods)}Mi",
        "ephemeral-storage": f"{KUBELET_GIB}Gi",
    }
    free = f"{FREE:.0%}"
    evictions = f"memory.available<{EVICTION_MIB}Mi,nodefs.available<{free},nodefs.inodesFree<5%,imagefs.available<15%"
    return {
        "eviction-hard": evictions,
        "kube-reserved": ",".join(f"{name}={quantity}" for name, quantity in reserved.items()),
        "max-pods": str(pods),
    }
