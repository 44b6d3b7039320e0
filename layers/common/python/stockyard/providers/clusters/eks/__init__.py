"""Clusters whose control plane is AWS EKS."""

from __future__ import annotations

from stockyard.domain.cloud_kinds import ClusterKind, ManifestKind
from stockyard.ports import ClusterDriver
from stockyard.providers.descriptors import ClusterDriverDescriptor, ProviderTools


def _make(tools: ProviderTools) -> ClusterDriver:
    import boto3

    from stockyard.providers.clusters.eks.provider import EksClusterDriver, EksConfig

    settings = tools.settings
    config = EksConfig(
        name_prefix=settings.name_prefix,
        api_url=settings.api_url,
        issuer=settings.issuer,
        visibility_seconds=settings.visibility_seconds,
        egress_addresses=tuple(filter(None, settings.egress_addresses.split(","))),
    )
    return EksClusterDriver(config, boto3.Session, secrets=tools.secrets)


KIND = ClusterKind(
    "eks",
    cloud="aws",
    cluster_type="k8s",
    settings=f"{__name__}.settings:EksSettings",
    rows="managed",
    profile_cloud="eks",
    image_family="al2023",
    groups=f"{__name__}.groups",
    default_version="1.36",
    followed_groups="node_groups",
    group_quota="nodes_per_eks_group",
    manifest=ManifestKind("infrastructure.modelplane.ai/v1alpha1", "EKSCluster", f"{__name__}.manifest"),
)
DESCRIPTOR = ClusterDriverDescriptor(KIND, _make)
