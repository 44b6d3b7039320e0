"""Self-managed Kubernetes clusters on machines of Cudo Compute."""

from __future__ import annotations

from stockyard.domain.cloud_kinds import ClusterKind
from stockyard.ports import ClusterDriver
from stockyard.providers.descriptors import ClusterDriverDescriptor, ProviderTools


def _make(tools: ProviderTools) -> ClusterDriver:
    from stockyard.machines.sources import Sources
    from stockyard.providers.addresses import guard_of
    from stockyard.providers.clouds.cudo.access import Access
    from stockyard.providers.clusters.cudo.configuration import CudoConfig
    from stockyard.providers.clusters.cudo.provider import CudoClusterDriver

    settings = tools.settings
    config = CudoConfig(
        name_prefix=settings.name_prefix,
        api_url=settings.api_url,
        issuer=settings.issuer,
        dns_suffix=settings.cudo_dns_suffix,
        in_flight_seconds=settings.in_flight_seconds,
        sources=Sources(settings.packages_url, settings.archive_url, settings.image_mirror, settings.manifests_url),
    )
    access = Access(tools.secrets, settings.cudo_url, vault_url=settings.vault_url, guard=guard_of(settings))
    return CudoClusterDriver(config, access)


KIND = ClusterKind(
    "cudo",
    cloud="cudo",
    cluster_type="k8s",
    settings=f"{__name__}.settings:CudoSettings",
    rows="standalone",
    groups=f"{__name__}.groups",
)
DESCRIPTOR = ClusterDriverDescriptor(KIND, _make)
