"""Rules of every control plane: for the code that launches and configures them, and for the code that checks and prices
them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

POD_CIDR = "10.244.0.0/16"
MOST_NODES = 512
"""Ranges of 128 addresses for pods in ``POD_CIDR``: the controller manager has no range for one node more, which never
becomes ready."""
SERVICE_CIDR = "10.96.0.0/12"
"""Where kubeadm puts services unless it is told otherwise."""
DISK_GIB = 50
"""Size of the root disk."""
LEAST_VCPU = 2
LEAST_MEMORY_MIB = 1700
"""kubeadm refuses to start a control plane on less than this."""
SIZES = (1, 3, 5)
"""How many members there may be."""
ROLE = "node-role.kubernetes.io/control-plane"
"""The label that kubeadm gives a member's node, and the key of the taint of one that takes no pods."""


def takes_pods(settings: Mapping[str, Any]) -> bool:
    """Whether members of the cluster's control plane take pods like any other node."""
    return bool(settings.get("control_plane_workloads"))


def size_fault(before: int, size: int) -> str | None:
    """Explain what is wrong with a change of the size; None when nothing is."""
    if size not in SIZES:
        return "the size of a control plane must be 1, 3 or 5"
    if size < before:
        return f"a control plane only grows: scaling it down from {before} to {size} is not supported"
    return None
