"""Sources that machines fetch from at their first boot: the projects' own hosts, or mirrors that a stage names."""

from __future__ import annotations

from dataclasses import dataclass

from stockyard import kubernetes_versions
from stockyard.machines import manifests

NONE = "-"
"""Stands for no mirror in the arguments of the start script."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Addresses without a slash at their end. An empty ``archive`` or ``images`` is no mirror."""

    packages: str = "https://pkgs.k8s.io"
    """Of Kubernetes' packages. Whoever serves them, their key is checked."""
    archive: str = ""
    """Of Ubuntu's packages, instead of those in the image."""
    images: str = ""
    """A registry that has the images of others below the names of their hosts: ``{images}/registry.k8s.io/...``."""
    manifests: str = manifests.BASE
    """Of third parties' manifests. Whoever serves them, each file is checked."""

    def arguments(self, minor: str) -> str:
        """Arguments of every start script: the minor, its release, the oldest containerd that it takes, and the
        sources."""
        tested = kubernetes_versions.TESTED[minor]
        addresses = f"{self.packages} {self.archive or NONE} {self.images or NONE}"
        return f"{minor} {tested.release} {tested.containerd} {addresses}"


PUBLIC = Sources()
