"""The kind ``metal3``: its documents are stored and checked; nodes of it are not built yet."""

from __future__ import annotations

from stockyard.domain.nodes.provider_kinds import ProviderKind, host_cluster
from stockyard.providers.descriptors import NodeSourceDescriptor

KIND = ProviderKind(
    "metal3",
    f"{__name__}.document:Metal3Block",
    owned=True,
    account=host_cluster,
    cloud="kubernetes",
    cloud_title="Kubernetes",
)
DESCRIPTOR = NodeSourceDescriptor(KIND)
