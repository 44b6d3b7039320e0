"""The kind ``kubeVirt``: nodes that are virtual machines in a namespace of a Kubernetes host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stockyard.domain.nodes.provider_kinds import ProviderKind, host_cluster
from stockyard.providers.descriptors import NodeSourceDescriptor, SourceTools
from stockyard.providers.nodes.kubevirt.templates import resources

if TYPE_CHECKING:
    from stockyard.ports.nodes import NodeSource


def _make(tools: SourceTools) -> NodeSource:
    from stockyard.machines.sources import Sources
    from stockyard.providers.addresses import guard_of
    from stockyard.providers.clouds.kubernetes.access import Access
    from stockyard.providers.nodes.kubevirt.launch import KubeVirtConfig
    from stockyard.providers.nodes.kubevirt.provider import KubeVirtNodes

    settings = tools.settings
    sources = Sources(settings.packages_url, settings.archive_url, settings.image_mirror, settings.manifests_url)
    config = KubeVirtConfig(settings.api_url, settings.in_flight_seconds, sources)
    return KubeVirtNodes(config, Access(tools.secrets, guard_of(settings), tools.site_transport), tools.store_of)


KIND = ProviderKind(
    "kubeVirt",
    f"{__name__}.document:KubeVirtBlock",
    resources=resources,
    owned=True,
    account=host_cluster,
    cloud="kubernetes",
    cloud_title="Kubernetes",
)
DESCRIPTOR = NodeSourceDescriptor(KIND, _make)
