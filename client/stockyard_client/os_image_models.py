"""Answers of the API about images of operating systems.

Made from the contract by ``local.openapi``.
"""

from __future__ import annotations

from stockyard_client.base_models import Resource


class OSImage(Resource):
    """An image of an operating system."""

    id: str
    """The id of the image."""
    name: str
    """The name of the image, unique in the tenant."""
    url: str = ""
    """Where whoever writes a disk reads the image."""
    checksum: str | None = None
    """The image's digest, or the URL of a file with it; null where it has none."""
    checksum_type: str | None = None
    """What the digest is made by; null where its length tells."""
    format: str | None = None
    """The format of the image; null where whoever writes it finds out."""
    description: str = ""
    """Free text for people."""
    created_by: str = ""
    """Who entered it."""
    created_at: str | None = None
    """When it was made: RFC 3339 in UTC."""
    updated_at: str | None = None
    """When it was changed last: RFC 3339 in UTC."""
