"""Cudo Compute: accounts by project and API key, and what drivers and sources in Cudo share."""

from __future__ import annotations

from stockyard.domain.cloud_kinds import CloudKind
from stockyard.ports import Cloud
from stockyard.providers.descriptors import CloudDescriptor, ProviderTools


def _make(tools: ProviderTools) -> Cloud:
    from stockyard.providers.addresses import guard_of
    from stockyard.providers.clouds.cudo.access import Access
    from stockyard.providers.clouds.cudo.cloud import CudoCloud

    settings = tools.settings
    return CudoCloud(Access(tools.secrets, settings.cudo_url, vault_url=settings.vault_url, guard=guard_of(settings)))


_MODELS = f"{__name__}.attributes"
KIND = CloudKind(
    "cudo",
    "Cudo Compute",
    f"{_MODELS}:CudoAttributes",
    f"{_MODELS}:CudoAttributesPatch",
    secrets=("api_key", "vault_secret_id"),
)
DESCRIPTOR = CloudDescriptor(KIND, _make)
