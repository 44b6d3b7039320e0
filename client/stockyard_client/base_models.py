"""Bases of the answers of the API. Fields that this release does not know are kept and shown, so a newer API does no
harm; the modules of models are made from the contract."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, PrivateAttr

HOURS_A_MONTH = 730
"""What a price by the month is reckoned with."""
STATIC = "static"
GROUP = "group"
"""The form of a pool that is a node group of its cluster."""
READY = "Ready"
POOL_LABEL = "stockyard.dev/pool"
"""The label of the claims and nodes of a pool."""


class Model(BaseModel):
    """Base of all: frozen, lenient about unknown fields, exact in what it gives back."""

    model_config = ConfigDict(frozen=True, extra="allow", protected_namespaces=(), defer_build=True)

    def document(self) -> dict[str, Any]:
        """The record as the API sent it."""
        return self.model_dump(mode="json", exclude_unset=True)


class Resource(Model):
    """A record with a version. ``etag`` is what ``If-Match`` needs."""

    version: int = 1
    _etag: str | None = PrivateAttr(default=None)
    _location: str | None = PrivateAttr(default=None)

    @property
    def started_operation(self) -> str | None:
        """The id of the operation that the answer with this record pointed to; None where it began none."""
        front, _, identifier = (self._location or "").rpartition("/")
        return identifier if front.endswith("/operations") else None

    @property
    def etag(self) -> str:
        """The ``ETag`` the API sent with this record, else the quoted version."""
        return self._etag or f'"{self.version}"'

    def with_etag(self, etag: str | None) -> Self:
        """Remember the header that the record came with, and return the record."""
        self._etag = etag
        return self

    def with_location(self, location: str | None) -> Self:
        """Remember the location that the answer named, and return the record."""
        self._location = location
        return self
