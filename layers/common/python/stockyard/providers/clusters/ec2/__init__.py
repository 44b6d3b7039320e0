"""Self-managed Kubernetes clusters on EC2 machines."""

from __future__ import annotations

from stockyard.domain.cloud_kinds import ClusterKind, ManifestKind
from stockyard.ports import ClusterDriver
from stockyard.providers.descriptors import ClusterDriverDescriptor, ProviderTools


def _make(tools: ProviderTools) -> ClusterDriver:
    import boto3

    from stockyard.machines.sources import Sources
    from stockyard.providers.clusters.ec2.provider import Ec2ClusterDriver, Ec2Config

    settings = tools.settings
    config = Ec2Config(
        name_prefix=settings.name_prefix,
        api_url=settings.api_url,
        issuer=settings.issuer,
        visibility_seconds=settings.visibility_seconds,
        sources=Sources(settings.packages_url, settings.archive_url, settings.image_mirror, settings.manifests_url),
    )
    return Ec2ClusterDriver(config, boto3.Session, tools.secrets)


KIND = ClusterKind(
    "ec2",
    cloud="aws",
    cluster_type="k8s",
    settings=f"{__name__}.settings:AwsSettings",
    creation_settings=f"{__name__}.settings:AwsSettingsCreate",
    rows="balanced",
    profile_cloud="aws",
    image_family="ubuntu",
    groups=f"{__name__}.groups",
    followed_groups="autoscaler_node_groups",
    manifest=ManifestKind("spectrocloud.com/v1", "SpectroAwsCluster", f"{__name__}.spectro.spectro"),
)
DESCRIPTOR = ClusterDriverDescriptor(KIND, _make)
