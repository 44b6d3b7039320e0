"""The kind ``bcm``: its documents are stored and checked; nodes of it are not built yet."""

from __future__ import annotations

from stockyard.domain.nodes.provider_kinds import Document, ProviderKind, secret_account, written_limit
from stockyard.providers.descriptors import NodeSourceDescriptor


def limit(entry: Document) -> int | None:
    """As many as the entry names machines; the machines of groups are not counted here."""
    if entry.get("nodes") and not entry.get("nodeGroups"):
        return len(entry["nodes"])
    return written_limit(entry)


KIND = ProviderKind(
    "bcm",
    f"{__name__}.document:BcmBlock",
    limit=limit,
    owned=True,
    account=secret_account,
    cloud="bcm",
    cloud_title="BCM",
)
DESCRIPTOR = NodeSourceDescriptor(KIND)
