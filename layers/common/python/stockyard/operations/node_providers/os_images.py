"""Images of operating systems: enter, find, change, remove."""

from __future__ import annotations

from dataclasses import replace

from stockyard.domain.nodes.declared_types import declared
from stockyard.domain.nodes.os_images import CONTENT, PROPERTY, OSImage, OSImageContent, os_image_name
from stockyard.domain.records import Name, NodeProvider, Operation
from stockyard.domain.values import ids
from stockyard.errors import Conflict, IllegalTransition, InUse, NotFound, PreconditionFailed
from stockyard.operations.listing import every
from stockyard.operations.quotas.limits import check_room, limit_of, refusal
from stockyard.operations.services import Services
from stockyard.ports import Add, Create, Remove, Replace

QUOTA = "os_images"


def find_os_image(services: Services, id_or_name: str) -> OSImage:
    """The image by id or name, else ``NotFound``."""
    image_id = id_or_name
    if not ids.is_id(id_or_name):
        name = services.store.get(Name, os_image_name(id_or_name))
        image_id = name.owner if name else ""
    image = services.store.get(OSImage, image_id) if image_id else None
    if image is None:
        raise NotFound(f"There is no OS image {id_or_name}.")
    return image


def check_new(services: Services, name: str) -> None:
    """Refuse what ``create_os_image`` would refuse, by the same checks."""
    if services.store.get(Name, os_image_name(name)) is not None:
        raise IllegalTransition(f"There is an OS image called {name}.")
    check_room(services, QUOTA)


def create_os_image(services: Services, name: str, content: OSImageContent, actor: str, id: str) -> OSImage:
    """A new image. A second try of a request finds what the first one made. ``IllegalTransition`` for a name in use,
    ``QuotaExceeded``."""
    earlier = services.store.get(OSImage, id)
    if earlier is not None:
        return earlier
    check_new(services, name)
    now, limit = services.now(), limit_of(services, QUOTA)
    fields = {field: getattr(content, field) for field in CONTENT}
    image = OSImage(id, name, **fields, created_at=now, updated_at=now, created_by=actor)
    try:
        services.store.commit(
            Create(Name(os_image_name(name), id)), Add(f"quota/{QUOTA}", 1, limit=limit), Create(image)
        )
    except Conflict as conflict:
        if conflict.index == 1:
            raise refusal(QUOTA, limit) from conflict
        raise IllegalTransition(f"There is an OS image called {name}.") from conflict
    return image


def changed_os_image(services: Services, image: OSImage, version: int, content: OSImageContent) -> OSImage:
    """Image that ``change_os_image`` would write, by the same checks."""
    if image.version != version:
        raise PreconditionFailed(f"The OS image is at version {image.version}, not {version}.")
    fields = {field: getattr(content, field) for field in CONTENT}
    return replace(image, **fields, updated_at=services.now(), version=version + 1)


def change_os_image(
    services: Services, image: OSImage, version: int, content: OSImageContent, actor: str, request_id: str
) -> OSImage:
    """The changed image, with its audit record. Machines that were written from it stay; they are seen as drifted."""
    changed = changed_os_image(services, image, version, content)
    fields = sorted(field for field in CONTENT if getattr(image, field) != getattr(changed, field))
    text = f"Changed: {', '.join(fields) or 'nothing'}."
    audit = services.audit_record(actor, "ChangeOsImage", image.id, request_id, text)
    try:
        services.store.commit(Replace(changed), Create(audit))
    except Conflict as conflict:
        raise PreconditionFailed("The OS image was changed by someone else just now.") from conflict
    return changed


def check_unused(services: Services, image: OSImage) -> None:
    """``InUse`` with the names of the providers that name the image."""
    users = [
        provider.name for provider in every(services.store, NodeProvider) if image.name in _names_of_images(provider)
    ]
    if users:
        raise InUse(f"OS image {image.name} is used by node provider {', '.join(sorted(users))}.")


def _names_of_images(provider: NodeProvider) -> set[str | None]:
    return {
        properties.get(PROPERTY) for properties in (provider.properties, *(t.properties for t in declared(provider)))
    }


def delete_os_image(services: Services, image: OSImage, actor: str) -> Operation:
    """Remove an image that no provider names. The operation is over when it is returned. ``InUse``."""
    check_unused(services, image)
    now = services.now()
    operation = Operation(
        services.new_id(ids.OPERATION), "delete_os_image", image.id, "succeeded", (), now, now, actor, image.name
    )
    try:
        services.store.commit(
            Remove(OSImage, image.id, version=image.version),
            Remove(Name, os_image_name(image.name)),
            Add(f"quota/{QUOTA}", -1),
            Create(operation),
        )
    except Conflict as conflict:
        raise IllegalTransition("The OS image was changed by someone else just now. Send it again.") from conflict
    return operation
