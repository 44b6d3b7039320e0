"""Requirements of control plane machines, for the code that launches them and for the code that prices them."""

from __future__ import annotations

DISK_GIB = 50
"""Size of the root disk."""
LEAST_VCPU = 2
LEAST_MEMORY_MIB = 1700
"""kubeadm refuses to start a control plane on less than this."""
