"""Machines that are ConfigMaps in a Kubernetes host: the kind ``configMap``, for tests and the local cloud alone.

It does to a host what kinds of real machines do, with the smallest of objects. No stage offers it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stockyard.domain.nodes.provider_kinds import ProviderKind, host_cluster
from stockyard.providers.descriptors import NodeSourceDescriptor, SourceTools

if TYPE_CHECKING:
    from stockyard.ports.nodes import NodeSource


def _make(tools: SourceTools) -> NodeSource:
    from stockyard.providers.addresses import guard_of
    from stockyard.providers.clouds.kubernetes.access import Access
    from stockyard.providers.nodes.config_maps.provider import ConfigMapNodes

    settings = tools.settings
    access = Access(tools.secrets, guard_of(settings), tools.site_transport)
    return ConfigMapNodes(access, tools.store_of, settings.in_flight_seconds, offered=settings.offers_trials)


KIND = ProviderKind(
    "configMap",
    f"{__name__}.document:ConfigMapBlock",
    own=True,
    account=host_cluster,
    cloud="kubernetes",
    cloud_title="Kubernetes",
)
DESCRIPTOR = NodeSourceDescriptor(KIND, _make)
