"""Nodes on EC2: the kind ``ec2``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stockyard.domain.nodes.provider_kinds import ProviderKind
from stockyard.providers.clouds.aws.catalog.type_labels import LABEL_DOMAIN
from stockyard.providers.descriptors import NodeSourceDescriptor, SourceTools

if TYPE_CHECKING:
    from stockyard.ports.nodes import NodeSource


def _make(tools: SourceTools) -> NodeSource:
    import boto3

    from stockyard.machines.sources import Sources
    from stockyard.providers.nodes.ec2.provider import Ec2Nodes, Ec2NodesConfig

    settings = tools.settings
    config = Ec2NodesConfig(
        name_prefix=settings.name_prefix,
        api_url=settings.api_url,
        visibility_seconds=settings.visibility_seconds,
        image_days=settings.image_days,
        issuer=settings.issuer,
        sources=Sources(settings.packages_url, settings.archive_url, settings.image_mirror, settings.manifests_url),
    )
    return Ec2Nodes(config, boto3.Session, tools.offers, tools.spot, tools.secrets)


KIND = ProviderKind(
    "ec2",
    f"{__name__}.document:Ec2Block",
    own=True,
    discovers=True,
    cloud="aws",
    cloud_title="AWS",
    label_domain=LABEL_DOMAIN,
)
DESCRIPTOR = NodeSourceDescriptor(KIND, _make)
