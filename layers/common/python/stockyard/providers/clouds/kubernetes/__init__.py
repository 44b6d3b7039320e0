"""Kubernetes hosts: accounts by the API of a cluster in whose namespaces machines are objects."""

from __future__ import annotations

from stockyard.domain.cloud_kinds import CloudKind
from stockyard.ports import Cloud
from stockyard.providers.descriptors import CloudDescriptor, ProviderTools


def _make(tools: ProviderTools) -> Cloud:
    from stockyard.providers.addresses import guard_of
    from stockyard.providers.clouds.kubernetes.access import Access
    from stockyard.providers.clouds.kubernetes.cloud import KubernetesHosts

    return KubernetesHosts(Access(tools.secrets, guard_of(tools.settings), tools.site_transport))


_MODELS = f"{__name__}.attributes"
KIND = CloudKind(
    "kubernetes",
    "a Kubernetes host",
    f"{_MODELS}:KubernetesAttributes",
    f"{_MODELS}:KubernetesAttributesPatch",
    secrets=("token", "client_key"),
)
DESCRIPTOR = CloudDescriptor(KIND, _make)
