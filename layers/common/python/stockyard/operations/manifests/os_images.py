"""Images of operating systems that documents ask for, compared with those that are there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from stockyard.domain.manifest_sets import Names, said_names
from stockyard.domain.nodes.manifests import FieldPath
from stockyard.domain.nodes.os_images import CONTENT, OS_IMAGE_KIND, OSImage, OSImageDocument
from stockyard.domain.values import ids
from stockyard.domain.values.field_changes import FieldChange, change_views, field_changes
from stockyard.errors import NotFound
from stockyard.operations.manifests.former import Former
from stockyard.operations.node_providers import os_images
from stockyard.operations.services import Services

_SPELT = {"checksum_type": "checksumType"}


@dataclass(frozen=True, slots=True)
class DesiredOSImage:
    """An image to enter, or with ``current`` to change by ``fields``."""

    path: FieldPath
    document: OSImageDocument
    current: OSImage | None
    fields: tuple[str, ...]
    names: Names = field(default_factory=dict)
    """Fields that the document says."""


def desired_os_image(path: FieldPath, document: OSImageDocument, former: Former) -> DesiredOSImage:
    """The image of a document, compared with the one of its name."""
    content = {name: getattr(document, name) for name in CONTENT}
    names = said_names(content)
    try:
        current = os_images.find_os_image(former.services, document.name)
    except NotFound:
        return DesiredOSImage(path, document, None, (), names)
    document = replace(document, **former.merge("os-image", current.id, current.created_at, content, current))
    fields = tuple(name for name in CONTENT if getattr(document, name) != getattr(current, name))
    return DesiredOSImage(path, document, current, fields, names)


def plan_os_image(desired: DesiredOSImage) -> dict[str, list[Any]]:
    """The part of a plan that the image is."""
    document, current = desired.document, desired.current
    if current is None:
        return {"creates": [{"kind": "os-image", "name": document.name}]}
    changes: list[FieldChange] = []
    for name in desired.fields:
        spelt = _SPELT.get(name, name)
        changes += field_changes(getattr(current, name), getattr(document, name), ("spec", spelt), spelt)
    return {"changes": change_views(changes, *desired.path, kind="os-image", name=document.name)}


def apply_os_image(services: Services, desired: DesiredOSImage, actor: str, request_id: str) -> dict[str, Any]:
    """Bring the image to its document, and tell the result. Raises ``PreconditionFailed`` when it was changed since it
    was read."""
    document, image, action = desired.document, desired.current, "unchanged"
    if image is None:
        new_id = services.new_id(ids.OS_IMAGE)
        image, action = os_images.create_os_image(services, document.name, document, actor, new_id), "created"
    elif desired.fields:
        image = os_images.change_os_image(services, image, image.version, document, actor, request_id)
        action = "changed"
    return {
        "kind": OS_IMAGE_KIND,
        "name": image.name,
        "id": image.id,
        "action": action,
        "warnings": [],
        "operation_id": None,
    }
