"""Head nodes of NVIDIA Base Command Manager: accounts by a client certificate, direct or through a site."""

from __future__ import annotations

from stockyard.domain.cloud_kinds import CloudKind
from stockyard.ports import Cloud
from stockyard.providers.descriptors import CloudDescriptor, ProviderTools


def _make(tools: ProviderTools) -> Cloud:
    from stockyard.providers.addresses import guard_of
    from stockyard.providers.clouds.bcm.access import Access
    from stockyard.providers.clouds.bcm.cloud import HeadNodes

    return HeadNodes(Access(tools.secrets, guard_of(tools.settings), tools.site_transport))


_MODELS = f"{__name__}.attributes"
KIND = CloudKind(
    "bcm", "a BCM head node", f"{_MODELS}:BcmAttributes", f"{_MODELS}:BcmAttributesPatch", secrets=("client_key",)
)
DESCRIPTOR = CloudDescriptor(KIND, _make)
