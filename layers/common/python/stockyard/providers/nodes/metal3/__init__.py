"""The kind ``metal3``: its documents are stored and checked; nodes of it are not built yet."""

from __future__ import annotations

from stockyard.domain.nodes.provider_kinds import ProviderKind
from stockyard.providers.descriptors import NodeSourceDescriptor

DESCRIPTOR = NodeSourceDescriptor(ProviderKind("metal3", f"{__name__}.document:Metal3Block", owned=True))
