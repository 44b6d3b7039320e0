"""Answers of the API about images of operating systems."""

from __future__ import annotations

from stockyard_client.models import Resource


class OSImage(Resource):
    """An image that machines of one's own are written from. ``checksum_type`` is None where its length tells."""

    id: str
    name: str
    url: str = ""
    checksum: str | None = None
    checksum_type: str | None = None
    format: str | None = None
    description: str = ""
    created_by: str = ""
    created_at: str | None = None
    updated_at: str | None = None
