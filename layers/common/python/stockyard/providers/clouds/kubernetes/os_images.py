"""OSImages of a tenant, by the names that settings of node types have."""

from __future__ import annotations

from stockyard.domain.nodes.os_images import OSImage, os_image_name
from stockyard.domain.records import Name
from stockyard.ports import Store


def os_image(store: Store, name: str) -> OSImage | None:
    """The image of that name; None where the tenant has none."""
    owner = store.get(Name, os_image_name(name))
    return store.get(OSImage, owner.owner) if owner is not None else None
