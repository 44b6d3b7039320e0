"""Answers of the API about sites.

Made from the contract by ``local.openapi``.
"""

from __future__ import annotations

from pydantic import Field

from stockyard_client.base_models import Model, Resource


class Site(Resource):
    """A place of the tenant's own, reached through its connector alone."""

    id: str
    """The id of the site."""
    name: str
    """The name of the site, unique in the tenant."""
    description: str = ""
    """Free text for people."""
    client_id: str = ""
    """The client of the realm that the site's connector is."""
    state: str = ""
    """`Ready`, or `Deleting` from when its connector is answered nothing any more."""
    contact_at: str | None = None
    """When its connector last spoke, ten minutes late at most; null before."""
    connector_version: str | None = None
    """The version of the connector that last spoke; null before."""
    allowed: tuple[str, ...] = ()
    """What the connector carries out, as the site's owner has installed there: methods and a path a line. It is shown
    only: the connector decides."""
    created_by: str = ""
    """Who made it."""
    created_at: str | None = None
    """When it was made: RFC 3339 in UTC."""
    updated_at: str | None = None
    """When it was changed last: RFC 3339 in UTC."""


class SiteCredentials(Model):
    """Credentials of a site's connector. They are shown this once."""

    client_id: str
    """The client of the realm."""
    client_secret: str = Field(repr=False)
    """Its secret; the one before is no good any more."""
    token_url: str = ""
    """Where the connector gets its tokens."""
    api_url: str = ""
    """Where the connector asks for requests."""
