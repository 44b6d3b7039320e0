"""The kind ``metal3``: nodes that are hosts of bare metal, lent by the owner of a Kubernetes host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stockyard.domain.nodes.provider_kinds import ProviderKind, host_cluster
from stockyard.providers.descriptors import NodeSourceDescriptor, SourceTools

if TYPE_CHECKING:
    from stockyard.ports.nodes import NodeSource


def _make(tools: SourceTools) -> NodeSource:
    from stockyard.machines.sources import Sources
    from stockyard.providers.addresses import guard_of
    from stockyard.providers.clouds.kubernetes.access import Access
    from stockyard.providers.nodes.metal3.launch import Metal3Config
    from stockyard.providers.nodes.metal3.provider import Metal3Nodes

    settings = tools.settings
    config = Metal3Config(
        settings.api_url,
        settings.in_flight_seconds,
        Sources(settings.packages_url, settings.archive_url, settings.image_mirror, settings.manifests_url),
    )
    access = Access(tools.secrets, guard_of(settings), tools.site_transport)
    return Metal3Nodes(config, access, tools.store_of)


KIND = ProviderKind(
    "metal3",
    f"{__name__}.document:Metal3Block",
    owned=True,
    account=host_cluster,
    cloud="kubernetes",
    cloud_title="Kubernetes",
)
DESCRIPTOR = NodeSourceDescriptor(KIND, _make)
