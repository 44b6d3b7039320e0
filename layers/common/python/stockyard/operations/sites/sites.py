"""Sites: make, find, give credentials, delete."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta

from stockyard.domain.records import CloudAccount, Name, Operation, Site, SiteAnswer, SiteRequest
from stockyard.domain.site_content import SiteReply, packed_reply
from stockyard.domain.site_records import DELETING, READ_SECONDS, READY
from stockyard.domain.values import ids
from stockyard.errors import Conflict, IllegalTransition, InUse, NotFound, UnexpectedBehavior, VendorError
from stockyard.lifecycle.change import Transition
from stockyard.operations.engine.tell import tell
from stockyard.operations.listing import every
from stockyard.operations.quotas.limits import check_room, limit_of, refusal
from stockyard.operations.services import Services
from stockyard.ports import Add, Create, Remove, Replace
from stockyard.ports.sites import Seals

QUOTA = "sites"
SECRET_BYTES = 24
VIA = "via"
"""The attribute of a cloud account that names the site through which it is reached."""


@dataclass(frozen=True, slots=True)
class SiteCredentials:
    """Credentials of a site's connector, and where it uses them. They are shown once, and kept by the realm alone."""

    client_id: str
    client_secret: str = field(repr=False)
    token_url: str
    api_url: str


def find_site(services: Services, id_or_name: str) -> Site:
    """The site by id or name, else ``NotFound``."""
    site_id = id_or_name
    if not ids.is_id(id_or_name):
        name = services.store.get(Name, _name(id_or_name))
        site_id = name.owner if name else ""
    site = services.store.get(Site, site_id) if site_id else None
    if site is None:
        raise NotFound(f"There is no site {id_or_name}.")
    return site


def check_new(services: Services, name: str) -> None:
    """Refuse what ``create_site`` would refuse, by the same checks."""
    if services.store.get(Name, _name(name)) is not None:
        raise IllegalTransition(f"There is a site called {name}.")
    check_room(services, QUOTA)


def create_site(services: Services, *, name: str, description: str, actor: str, id: str) -> Site:
    """A new site. Its client is made with its first credentials. A second try of a request finds what the first one
    made. ``IllegalTransition`` for a name in use, ``QuotaExceeded``."""
    earlier = services.store.get(Site, id)
    if earlier is not None:
        return earlier
    check_new(services, name)
    now = services.now()
    client_id = ids.client_id(services.tenant, id, f"site-{name}")
    site = Site(id, name, description, client_id, now, now, created_by=actor, sequence=1)
    transition = Transition("Site", None, site.state, "Created", f"Site {name} was made.")
    limit = limit_of(services, QUOTA)
    count = Add(f"quota/{QUOTA}", 1, limit=limit)
    try:
        writes = tell(services, actor, site, transition)
        services.store.commit(Create(Name(_name(name), id)), count, Create(site), *writes)
    except Conflict as conflict:
        if conflict.index == 1:
            raise refusal(QUOTA, limit) from conflict
        raise IllegalTransition(f"There is a site called {name}.") from conflict
    return site


def renew_credentials(services: Services, site: Site) -> SiteCredentials:
    """New credentials of the site's connector; those before are no good any more. ``UnexpectedBehavior`` where the
    realm does not answer: to ask again does no harm."""
    if site.state != READY:
        raise IllegalTransition(f"The site is {site.state}; its connector gets no credentials.")
    secret = base64.urlsafe_b64encode(services.clock.randomness(SECRET_BYTES)).decode()
    try:
        services.identity.create_client(
            client_id=site.client_id, owner=site.id, tenant=services.tenant, secret=secret, people=False
        )
    except VendorError as error:
        raise UnexpectedBehavior(f"The Keycloak client could not be made ({error.error_type}).") from error
    return SiteCredentials(site.client_id, secret, services.settings.token_url, services.settings.api_url)


def users_of(services: Services, site: Site) -> list[str]:
    """Names of the accounts that are reached through the site."""
    accounts = every(services.store, CloudAccount)
    return [f"cloud account {account.id}" for account in accounts if account.attributes.get(VIA) == site.name]


def check_unused(services: Services, site: Site) -> None:
    """``InUse`` with the names of those that use the site."""
    users = users_of(services, site)
    if users:
        raise InUse(f"Site {site.name} is used by {', '.join(users)}.")


def delete_site(services: Services, seals: Seals, site: Site, actor: str) -> Operation:
    """Remove a site that no account uses. From its first write on its connector is answered nothing, and no request is
    taken; then its client goes, and those that wait are told. The operation is over when it is returned.

    ``InUse``, and ``UnexpectedBehavior`` where the realm does not answer: the site stays ``Deleting`` until it is
    deleted again.
    """
    check_unused(services, site)
    try:
        if site.state != DELETING:
            site = replace(site, state=DELETING, updated_at=services.now(), version=site.version + 1)
            named = Remove(Name, _name(site.name))
            services.store.commit(Replace(site), named)
        services.identity.delete_client(client_id=site.client_id, owner=site.id)
        end_requests(services, seals, site)
        return _remove(services, site, actor)
    except VendorError as error:
        raise UnexpectedBehavior(f"The Keycloak client could not be removed ({error.error_type}).") from error
    except Conflict as conflict:
        raise IllegalTransition("The site was changed by someone else just now. Send the request again.") from conflict


def _remove(services: Services, site: Site, actor: str) -> Operation:
    now, removed_site = services.now(), replace(site, sequence=site.sequence + 1, version=site.version + 1)
    operation = Operation(
        services.new_id(ids.OPERATION), "delete_site", site.id, "succeeded", (), now, now, actor, site.name
    )
    transition = Transition("Site", DELETING, None, "Deleted", f"Site {site.name} was removed.")
    services.store.commit(
        Remove(Site, site.id, version=site.version),
        Add(f"quota/{QUOTA}", -1),
        Create(operation),
        *tell(services, actor, removed_site, transition),
    )
    return operation


def end_requests(services: Services, seals: Seals, site: Site) -> None:
    """Answer those that wait for the site, so that nobody waits in vain."""
    content = packed_reply(SiteReply(0, {}, b"", "the site was deleted"))
    for request in waiting_requests(services, recent_requests(services, site.id, READ_SECONDS)):
        sealed = seals.seal(answer_name(services.tenant, request.id), content)
        try:
            ended_request = replace(request, answered_at=services.now(), sealed=None, version=request.version + 1)
            services.store.commit(Replace(ended_request), Create(SiteAnswer(request.id, sealed, services.now())))
        except Conflict:
            continue  # its answer has come meanwhile


def recent_requests(services: Services, site_id: str, seconds: float) -> Iterator[SiteRequest]:
    """Requests of the site of the last ``seconds``, the oldest first."""
    since = ids.ulid(services.clock.now() - timedelta(seconds=seconds), bytes(10))
    after: str | None = None
    while True:
        page = services.store.list(
            SiteRequest, prefix=f"{site_id}/", since=f"{site_id}/{since}", after=after, limit=100
        )
        yield from page.items
        if page.next_id is None:
            return
        after = page.next_id


def waiting_requests(services: Services, recent: Iterable[SiteRequest]) -> list[SiteRequest]:
    """Requests that a connector may still be given."""
    now = services.now()
    return [request for request in recent if request.answered_at is None and request.ends_at > now]


def answer_name(tenant: str, request_id: str) -> str:
    """The name that an answer is sealed for."""
    return f"{tenant}/{request_id}/answer"


def _name(name: str) -> str:
    return f"site/{name}"
