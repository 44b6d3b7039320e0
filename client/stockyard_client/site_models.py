"""Answers of the API about sites."""

from __future__ import annotations

from pydantic import Field

from stockyard_client.models import Model, Resource


class Site(Resource):
    """A place of the tenant's own that only a connector there reaches. ``contact_at`` is when the connector last
    spoke."""

    id: str
    name: str
    description: str = ""
    client_id: str = ""
    state: str = ""
    contact_at: str | None = None
    connector_version: str | None = None
    allowed: tuple[str, ...] = ()
    created_by: str = ""
    created_at: str | None = None
    updated_at: str | None = None


class SiteCredentials(Model):
    """Credentials of a site's connector, shown this once."""

    client_id: str
    client_secret: str = Field(repr=False)
    token_url: str = ""
    api_url: str = ""
