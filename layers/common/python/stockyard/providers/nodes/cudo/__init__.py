"""Nodes on machines of Cudo Compute: the kind ``cudo``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stockyard.domain.nodes.provider_kinds import ProviderKind
from stockyard.providers.descriptors import NodeSourceDescriptor, SourceTools

if TYPE_CHECKING:
    from stockyard.ports.nodes import NodeSource


def _make(tools: SourceTools) -> NodeSource:
    from stockyard.machines.sources import Sources
    from stockyard.providers.clouds.cudo.access import Access
    from stockyard.providers.nodes.cudo.configuration import CudoNodesConfig
    from stockyard.providers.nodes.cudo.provider import CudoNodes

    settings = tools.settings
    config = CudoNodesConfig(
        name_prefix=settings.name_prefix,
        api_url=settings.api_url,
        in_flight_seconds=settings.in_flight_seconds,
        image_days=settings.image_days,
        sources=Sources(settings.packages_url, settings.archive_url, settings.image_mirror, settings.manifests_url),
    )
    return CudoNodes(config, Access(tools.secrets, settings.cudo_url))


KIND = ProviderKind(
    "cudo", f"{__name__}.document:CudoBlock", own=True, discovers=True, cloud="cudo", cloud_title="Cudo Compute"
)
DESCRIPTOR = NodeSourceDescriptor(KIND, _make)
