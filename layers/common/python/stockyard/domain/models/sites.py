"""Sites as callers send and see them, and the exchange with their connectors."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from stockyard.domain.models import fields
from stockyard.domain.models.base import Input, View
from stockyard.domain.models.view_fields import CreatedAt, UpdatedAt, Version

MOST_ANSWERS = 50
MOST_LINES = 200
MOST_WANTED = 10
_BASE64 = 4_000_004
SiteName = Annotated[str, StringConstraints(min_length=1, max_length=63), AfterValidator(fields.subdomain)]
RequestId = Annotated[str, StringConstraints(pattern=r"^[0-9A-HJKMNP-TV-Z]{26}$")]
Line = Annotated[str, StringConstraints(min_length=1, max_length=1_000)]
HeaderValue = Annotated[str, StringConstraints(max_length=1_000, pattern=r"^[ -~]*$")]
HeaderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,64}$")]


def _content(text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("is no base 64") from None
    return text


class SiteCreate(Input):
    """A site to make."""

    name: SiteName
    """The name of the site, unique in the tenant. Cloud accounts say it as ``via``."""
    description: fields.Description = ""


class SiteView(View):
    """A place of the tenant's own, reached through its connector alone."""

    id: str
    """The id of the site."""
    name: str
    """The name of the site, unique in the tenant."""
    description: str
    """Free text for people."""
    client_id: str
    """The client of the realm that the site's connector is."""
    state: str
    """``Ready``, or ``Deleting`` from when its connector is answered nothing any more."""
    contact_at: str | None
    """When its connector last spoke, ten minutes late at most; null before."""
    connector_version: str | None
    """The version of the connector that last spoke; null before."""
    allowed: list[str]
    """What the connector carries out, as the site's owner has installed there: methods and a path a line. It is shown
    only: the connector decides."""
    created_by: str
    """Who made it."""
    created_at: CreatedAt
    updated_at: UpdatedAt
    version: Version


class SiteCredentialsView(View):
    """Credentials of a site's connector. They are shown this once."""

    client_id: str
    """The client of the realm."""
    client_secret: str
    """Its secret; the one before is no good any more."""
    token_url: str
    """Where the connector gets its tokens."""
    api_url: str
    """Where the connector asks for requests."""


class SiteManifestView(View):
    """Text that installs a site's connector. No secret is in it."""

    form: str
    """``kubernetes`` or ``systemd``."""
    text: str
    """Objects for ``kubectl apply``, or a script for root on a machine with systemd."""


class BroughtAnswer(Input):
    """An answer that a connector brings."""

    id: RequestId
    """The request that it answers."""
    status: Annotated[int, Field(ge=0, le=599)]
    """The status of the answer; 0 with a ``failure``."""
    headers: Annotated[dict[HeaderName, HeaderValue], Field(max_length=20)] = Field(default_factory=dict)
    """Headers of the answer; a few are kept."""
    body: Annotated[str, StringConstraints(max_length=_BASE64), AfterValidator(_content)] = ""
    """The body of the answer, in base 64."""
    failure: Annotated[str, StringConstraints(min_length=1, max_length=1_000)] | None = None
    """Why nothing was answered there; null where something was."""


class SiteMessage(Input):
    """Message of a site's connector."""

    version: Annotated[str, StringConstraints(min_length=1, max_length=32)]
    """The version of the connector."""
    allowed: Annotated[list[Line], Field(max_length=MOST_LINES)] = Field(default_factory=list)
    """What it carries out: methods and a path a line."""
    answers: Annotated[list[BroughtAnswer], Field(max_length=MOST_ANSWERS)] = Field(default_factory=list)
    """Answers to requests that it was given. One that is brought twice changes nothing."""
    wants: Annotated[int, Field(ge=0, le=MOST_WANTED)]
    """How many requests it takes; with 0 it only brings answers."""


class GivenRequestView(View):
    """A request that a connector is to carry out, if its own list allows it."""

    id: str
    """The id of the request, by which it is answered."""
    method: str
    """The method of the request."""
    path: str
    """The path, with its query."""
    headers: dict[str, str]
    """The headers; no credential is among them."""
    body: str
    """The body, in base 64."""
    seconds: float
    """For how long it may be begun."""


class ExchangeAnswer(View):
    """Answer to a site's connector."""

    requests: list[GivenRequestView]
    """What it is to carry out. One that is not answered within 30 seconds is given out again."""
    interval_seconds: int
    """How soon it comes again: 60 while nothing is done at the site, 1 while something is, 0 while requests follow
    each other, when it waits for them here."""
