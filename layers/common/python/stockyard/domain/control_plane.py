"""What every control plane's machine has and needs, whoever makes it or prices it."""

from __future__ import annotations

DISK_GIB = 50
"""Size of the root disk."""
LEAST_VCPU = 2
LEAST_MEMORY_MIB = 1700
"""kubeadm refuses to start a control plane on less than this."""
