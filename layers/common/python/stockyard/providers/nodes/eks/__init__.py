"""Nodes of managed node groups of EKS: the kind ``eks``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stockyard.domain.nodes.provider_kinds import ProviderKind
from stockyard.providers.clouds.aws.catalog.type_labels import LABEL_DOMAIN
from stockyard.providers.descriptors import NodeSourceDescriptor, SourceTools

if TYPE_CHECKING:
    from stockyard.ports.nodes import NodeSource


def _make(tools: SourceTools) -> NodeSource:
    import boto3

    from stockyard.providers.nodes.eks.configuration import EksNodesConfig
    from stockyard.providers.nodes.eks.provider import EksNodes

    settings = tools.settings
    config = EksNodesConfig(name_prefix=settings.name_prefix, visibility_seconds=settings.visibility_seconds)
    return EksNodes(config, boto3.Session, tools.offers, tools.secrets)


KIND = ProviderKind(
    "eks",
    f"{__name__}.document:EksBlock",
    own=True,
    discovers=True,
    cloud="aws",
    cloud_title="AWS",
    label_domain=LABEL_DOMAIN,
)
DESCRIPTOR = NodeSourceDescriptor(KIND, _make)
