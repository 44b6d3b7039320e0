"""The versions of Kubernetes that a cluster may have: a closed list, each with what it was tested with.

A minor joins the list when a kubeadm of it or of the next one has taken what machines write. With the minors that
``make kubernetes`` builds all tests of real control planes have passed too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tested:
    """A minor's release that machines install, and the oldest containerd that its kubelet may have. ``end_day`` is the
    day on which the project stopped mending it, empty before: new clusters do not take it from then on."""

    release: str
    containerd: str
    end_day: str = ""


TESTED: Mapping[str, Tested] = {
    "1.34": Tested("1.34.4", "1.7", end_day="2026-10-27"),
    "1.35": Tested("1.35.4", "1.7"),
    "1.36": Tested("1.36.3", "1.7"),
    "1.37": Tested("1.37.2", "1.7"),
}
"""By minor. 1.37 is the last minor whose kubelet takes containerd 1.7, which is what Ubuntu 24.04 began with: its
source, like that of 1.36, falls back to kubelet's own cgroup driver until 1.38."""
NEW = tuple(minor for minor, tested in TESTED.items() if not tested.end_day)
"""The minors that new clusters may have."""
DEFAULT = "1.35"
"""Of clusters that name none, in a stage that names none."""
