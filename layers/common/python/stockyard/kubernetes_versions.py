"""The versions of Kubernetes that a cluster may have: a closed list, each with what it was tested with.

A minor is on the list while its project supports it and kubeadm's and the agent's tests have passed with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tested:
    """A minor's release that machines install, and the oldest containerd that its kubelet may have."""

    release: str
    containerd: str


TESTED: Mapping[str, Tested] = {"1.34": Tested("1.34.4", "1.7"), "1.35": Tested("1.35.4", "1.7")}
"""By minor. 1.35 is the last minor whose kubelet takes containerd 1.7, which is what Ubuntu 24.04 began with."""
DEFAULT = "1.35"
"""Of clusters that name none, in a stage that names none."""
