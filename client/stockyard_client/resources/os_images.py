"""Images of operating systems as Python calls."""

from __future__ import annotations

from collections.abc import Iterator

from stockyard_client.following import OnTrouble
from stockyard_client.models import Operation, Plan
from stockyard_client.os_image_models import OSImage
from stockyard_client.resources.base import Body, Collection, path


class OSImages(Collection):
    """Images that machines of one's own are written from."""

    name = "os-images"

    def create(self, body: Body, *, idempotency_key: str | None = None) -> OSImage:
        """Enters an image."""
        answer = self._transport.send("POST", path(self.name), body=body, idempotency_key=idempotency_key)
        return self._record(OSImage, answer)

    def plan_create(self, body: Body) -> Plan:
        """Plans what :meth:`create` would do."""
        return self._plan("POST", path(self.name), body)

    def list(self, *, page_size: int | None = None) -> Iterator[OSImage]:
        """All images of the tenant, page by page."""
        return self._pages(OSImage, {}, page_size)

    def get(self, image: str) -> OSImage:
        """One image by id or name."""
        return self._read(OSImage, image)

    def watch(self, image: str, *, on_trouble: OnTrouble | None = None) -> Iterator[OSImage]:
        """The image as it is, and again after each change, until it is gone (:class:`ApiError`, 404)."""
        return self._watch(OSImage, path(self.name, image), on_trouble)

    def update(self, image: OSImage | str, changes: Body) -> OSImage:
        """A JSON merge patch, guarded by the record's ETag (412 when it has changed)."""
        return self._update(OSImage, image, changes)

    def plan_update(self, image: OSImage, changes: Body) -> Plan:
        """Plans what :meth:`update` would change."""
        return self._plan_update(image, changes)

    def delete(self, image: str) -> Operation:
        """Removes an image; 409 while node providers name it."""
        return self._started(self._transport.send("DELETE", path(self.name, image)))

    def plan_delete(self, image: str) -> Plan:
        """Plans what :meth:`delete` would do."""
        return self._plan("DELETE", path(self.name, image))
