"""Sites over HTTP, and the exchange with their connectors."""

from __future__ import annotations

import base64
import time
from dataclasses import asdict
from typing import Any

from stockyard import wiring
from stockyard.domain.records import Site
from stockyard.domain.site_content import SiteReply
from stockyard.domain.site_records import READY
from stockyard.domain.values import ids
from stockyard.domain.views import operation_view, site_view
from stockyard.edge.contract import Answer, Request
from stockyard.edge.http.query import Query
from stockyard.edge.identity import Roles
from stockyard.errors import NotFound
from stockyard.lifecycle.operation import progress
from stockyard.operations.services import Services
from stockyard.operations.sites import sites


def _site(request: Request, services: Services) -> Site:
    """The site that the path names by its id or name."""
    return sites.find_site(services, request.params["id"])


http = wiring.http("sites", site=_site)
lambda_handler = http.lambda_handler

VIEW = "sites:SiteView"
FORMS = ("kubernetes", "systemd")


def _answer(site: Site, status: int, **more: Any) -> Answer:
    return Answer(status, site_view(site), version=site.version, subject=site.id, **more)


@http.route(
    "POST /v1/sites",
    roles=Roles.ADMINISTRATORS,
    body="sites:SiteCreate",
    answers={201: VIEW, 200: "plan:PlanView"},
    idempotent=True,
    dry_run=True,
)
def create_site(request: Request, services: Services) -> Answer:
    """Make a site. A place of the tenant's own that only a connector there reaches."""
    body = request.body
    if request.dry_run:
        sites.check_new(services, body.name)
        return Answer.free_plan(creates=[{"kind": "site", "name": body.name}])
    site = sites.create_site(
        services,
        name=body.name,
        description=body.description,
        actor=request.caller.actor,
        id=request.stable_id(ids.SITE) or services.new_id(ids.SITE),
    )
    return _answer(site, 201, location=f"/v1/sites/{site.id}")


@http.route("GET /v1/sites", roles=Roles.READERS, answers={200: VIEW}, paged=True)
def list_sites(request: Request) -> Answer:
    """List sites. In the order in which they were made."""
    store = wiring.store(request.caller.tenant)
    return Answer.matching(
        request.page, lambda after, limit: store.list(Site, after=after, limit=limit), lambda _: True, site_view
    )


@http.route("GET /v1/sites/{id}", roles=Roles.READERS, answers={200: VIEW}, waits=True)
def get_site(request: Request, site: Site) -> Answer:
    """Get a site. By its id or its name."""
    return _answer(site, 200)


@http.route(
    "DELETE /v1/sites/{id}",
    roles=Roles.ADMINISTRATORS,
    answers={202: "operations:OperationView", 200: "plan:PlanView"},
    dry_run=True,
)
def delete_site(request: Request, services: Services, site: Site) -> Answer:
    """Remove a site. Only when no cloud account is reached through it. Its client ends, and requests that wait for it
    fail. The operation has succeeded when it is answered."""
    if request.dry_run:
        sites.check_unused(services, site)
        return Answer.free_plan(deletes=[{"kind": "site", "name": site.name}])
    operation = sites.delete_site(services, wiring.seals(), site, request.caller.actor)
    return Answer.accepted(operation_view(operation, progress(operation)), operation.id, subject=operation.subject)


@http.route("POST /v1/sites/{id}/credentials", roles=Roles.ADMINISTRATORS, answers={200: "sites:SiteCredentialsView"})
def renew_site_credentials(request: Request, services: Services, site: Site) -> Answer:
    """Make new credentials of a site's connector. They are shown this once, and those before end."""
    return Answer(200, asdict(sites.renew_credentials(services, site)), subject=site.id)


@http.route(
    "GET /v1/sites/{id}/manifest",
    roles=Roles.READERS,
    answers={200: "sites:SiteManifestView"},
    query=(Query("form", "What runs the connector; `kubernetes` without it.", values=FORMS),),
)
def get_site_manifest(request: Request, services: Services, site: Site) -> Answer:
    """The text that installs a site's connector. Credentials and the allow-list are installed beside it."""
    from agent import site_manifest

    form = request.query.get("form", FORMS[0])
    settings = site_manifest.Settings(
        services.settings.api_url,
        site.id,
        services.settings.token_url,
        services.settings.agent_image or site_manifest.IMAGE,
    )
    return Answer(200, {"form": form, "text": site_manifest.render(settings, form)}, subject=site.id)


@http.route(
    "POST /v1/sites/{id}/exchange",
    machine=True,
    body="sites:SiteMessage",
    answers={200: "sites:ExchangeAnswer"},
    audited=False,
    large=True,
    description="Only by the site's own client. While requests follow each other it is answered as soon as there is "
    "one, 15 seconds later at most.",
)
def exchange_with_site(request: Request, services: Services) -> Answer:
    """A site's connector brings answers, and is given requests."""
    from stockyard.operations.sites.exchange import ConnectorMessage, Exchange

    site = _own_site(services, request)
    body = request.body
    answers = [
        (each.id, SiteReply(each.status, dict(each.headers), base64.b64decode(each.body), each.failure))
        for each in body.answers
    ]
    exchange = Exchange(
        services,
        wiring.seals(),
        site,
        lambda seconds: wiring.wait_turns().take(services.tenant, seconds),
        time.sleep,
    )
    batch, seconds = exchange.answer(ConnectorMessage(body.version, tuple(body.allowed), answers, body.wants))
    requests = [
        {
            "id": each.id,
            "method": each.call.method,
            "path": each.call.path,
            "headers": dict(each.call.headers),
            "body": base64.b64encode(each.call.body).decode(),
            "seconds": each.seconds,
        }
        for each in batch
    ]
    return Answer(200, {"requests": requests, "interval_seconds": seconds}, subject=site.id)


def _own_site(services: Services, request: Request) -> Site:
    """The caller's own site, ``NotFound`` for any other, and for one that is on its way out."""
    site = services.store.get(Site, request.params["id"])
    if site is None or site.client_id != request.caller.client_id or site.state != READY:
        raise NotFound(f"There is no site {request.params['id']}.")
    return site
