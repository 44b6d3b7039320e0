"""The records of sites: places that only their own connector reaches, and the requests that it carries out there."""

from __future__ import annotations

from dataclasses import field

from stockyard.domain.nodes.records import VersionedRecord
from stockyard.domain.values.frozen import dataclass

READ_SECONDS = 90
"""How long a request that only reads is given out: longer than an idle connector stays away."""
WRITE_SECONDS = 40
"""How long any other request is given out. With what its carrying out takes it is over before anybody believes that
what a worker began cannot appear any more (``Settings.in_flight_seconds``)."""
AGAIN_SECONDS = 30
"""A request that a connector took and did not answer for so long is given out again."""
BUSY_SECONDS = 120
"""A site is in use while its last request is younger: claims in hand ask at least each minute."""
READY, DELETING = "Ready", "Deleting"
"""States of sites."""
READS = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class Site(VersionedRecord):
    """A place of a tenant's own, such as a machine room, whose connector asks for requests and carries them out.

    ``state`` is ``Ready``, or ``Deleting`` from when its connector is answered nothing any more.
    """

    name: str
    description: str
    client_id: str
    created_at: str
    updated_at: str
    created_by: str = ""
    state: str = READY
    contact_at: str | None = None
    """When its connector last spoke, exact to some minutes; None before."""
    connector_version: str | None = None
    allowed: tuple[str, ...] = ()
    """What its connector carries out, as its owner has installed there: a line each. Shown, and trusted for nothing."""
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class SiteRequest(VersionedRecord):
    """A request for a site. ``id`` is ``site id/ULID``, in order of time. Its connector is given it until ``ends_at``.

    Nothing reads it after that, and the table drops it.
    """

    method: str
    path: str
    """With its query, as it is sent."""
    sealed: str | None = field(repr=False)
    """Headers and body, see ``site_content``; None once it is answered."""
    created_at: str
    ends_at: str
    attempts: int = 0
    """How often it was given out."""
    taken_at: str | None = None
    """When it was last given out."""
    answered_at: str | None = None


@dataclass(frozen=True, slots=True)
class SiteAnswer(VersionedRecord):
    """The answer of a site's connector to the request of the same id: the first one is kept."""

    sealed: str = field(repr=False)
    """Status, headers and body, or why there are none; see ``site_content``."""
    created_at: str
