"""Nodes that are hosts of a head node of NVIDIA Base Command Manager: the kind ``bcm``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stockyard.domain.nodes.provider_kinds import Document, ProviderKind, secret_account, written_limit
from stockyard.providers.descriptors import NodeSourceDescriptor, SourceTools

if TYPE_CHECKING:
    from stockyard.ports.nodes import NodeSource


def limit(entry: Document) -> int | None:
    """As many as the entry names machines; the machines of groups are not counted here."""
    if entry.get("nodes") and not entry.get("nodeGroups"):
        return len(entry["nodes"])
    return written_limit(entry)


def _make(tools: SourceTools) -> NodeSource:
    from stockyard.machines.sources import Sources
    from stockyard.providers.addresses import guard_of
    from stockyard.providers.clouds.bcm.access import Access
    from stockyard.providers.nodes.bcm.configuration import BcmNodesConfig
    from stockyard.providers.nodes.bcm.provider import BcmNodes

    settings = tools.settings
    sources = Sources(settings.packages_url, settings.archive_url, settings.image_mirror, settings.manifests_url)
    access = Access(tools.secrets, guard_of(settings), tools.site_transport)
    return BcmNodes(BcmNodesConfig(settings.api_url, settings.in_flight_seconds, sources), access)


KIND = ProviderKind(
    "bcm",
    f"{__name__}.document:BcmBlock",
    limit=limit,
    owned=True,
    account=secret_account,
    cloud="bcm",
    cloud_title="BCM",
)
DESCRIPTOR = NodeSourceDescriptor(KIND, _make)
