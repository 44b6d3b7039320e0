"""A site in virtual time: requests as records, the exchange of the product, and the connector's own code.

Whoever waits lets time pass; the connector's rounds come in between when they are due.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any

import httpx

from agent.stockyard_agent.transport import HttpRequest, HttpResponse, Unreachable
from agent.stockyard_site.allowed import AllowList, read
from agent.stockyard_site.connector import Connector
from agent.stockyard_site.site_api import SiteApi
from agent.stockyard_site.target import Target
from local.testing.memory_store import MemoryRegistry
from stockyard.adapters.site_requests import StoredSiteRequests
from stockyard.domain.models.sites import ExchangeAnswer, SiteMessage
from stockyard.domain.records import Site, SiteRequest
from stockyard.domain.site_content import SiteCall, SiteReply, packed_call
from stockyard.domain.site_records import WRITE_SECONDS
from stockyard.domain.values import ids, times
from stockyard.operations.services import Services
from stockyard.operations.sites.exchange import ConnectorMessage, Exchange
from stockyard.operations.sites.sites import create_site
from stockyard.ports import Create
from stockyard.providers.sites import SiteTransport
from tests.harness.worlds.memory import FixedClock, MemorySecrets
from tests.harness.worlds.ports import memory_services

TOKEN = "canary-of-the-sites-own-credential"
ALLOWED = "GET,PUT,PATCH,DELETE /things/*\nGET /things?limit"


class Killed(BaseException):
    """The connector's process ends here."""


@contextmanager
def no_turn(_seconds: int) -> Iterator[bool]:
    """Nobody waits in an exchange: virtual time has one thread."""
    yield False


@dataclass
class Host:
    """The one host of the site: things by path. ``arrivals`` has every request that reached it."""

    things: dict[str, bytes] = field(default_factory=dict)
    arrivals: list[HttpRequest] = field(default_factory=list)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        self.arrivals.append(request)
        path = request.url.removeprefix("https://host").partition("?")[0]
        if request.method in ("PUT", "PATCH"):
            self.things[path] = request.body or b""
        if request.method == "DELETE":
            self.things.pop(path, None)
        body = self.things.get(path)
        status = 404 if body is None else 200
        return HttpResponse(status, {"content-type": "text/plain"}, body or b"")


@dataclass
class SiteWorld:
    """One tenant with one site and its connector, which polls by itself while somebody waits."""

    services: Services
    secrets: MemorySecrets
    clock: FixedClock
    site: Site
    host: Host
    allowed: AllowList = field(default_factory=lambda: read(ALLOWED))
    due: float = 0.0
    kill: Callable[[str], None] = lambda _point: None
    """Called at each point of the connector's life; raises ``Killed`` where it is to die."""
    restart_seconds: float = 5.0
    logs: list[str] = field(default_factory=list)
    connector: Connector | None = None
    lost: bool = False
    """Whether Stockyard cannot be reached."""

    @classmethod
    def make(cls, clock: FixedClock | None = None) -> SiteWorld:
        """A new world; with a system's clock in real time, for a connector in a process of its own."""
        registry, clock, secrets = MemoryRegistry(), clock or FixedClock(), MemorySecrets()
        services = memory_services(registry, clock, secrets=secrets)
        site = create_site(services, name="room", description="", actor="user:ann", id=services.new_id("sit"))
        return cls(services, secrets, clock, site, Host())

    def monotonic(self) -> float:
        return self.clock.now().timestamp()

    def client(self) -> httpx.Client:
        requests = StoredSiteRequests(self.services.store, self.secrets, self.clock, self.pass_time)
        return httpx.Client(transport=SiteTransport(requests, "room"), base_url="https://anywhere")

    def pass_time(self, seconds: float) -> None:
        """Let time pass, with the connector's rounds in between."""
        self.clock.advance(seconds)
        if self.monotonic() < self.due:
            return
        if self.connector is None:
            self.connector = self._started()
        try:
            self.kill("before the round")
            pause = self.connector.round()
        except Killed:
            self.connector, pause = None, self.restart_seconds
        self.due = self.monotonic() + pause

    def _started(self) -> Connector:
        site_api = SiteApi(
            api_url="https://api.example",
            site_id=self.site.id,
            token_url="https://id.example/token",
            exchange=self._stockyard,
            credentials=lambda: ("the-client", "the-secret"),
            monotonic=self.monotonic,
        )
        target = Target("https://host", self._host, lambda: TOKEN, lambda: self.allowed)
        return Connector(
            site_api,
            target,
            lambda: self.allowed,
            monotonic=self.monotonic,
            jitter=lambda: 1.0,
            log=self.logs.append,
        )

    def _host(self, request: HttpRequest) -> HttpResponse:
        self.kill("before the host")
        response = self.host(request)
        self.kill("after the host")
        return response

    def _stockyard(self, request: HttpRequest) -> HttpResponse:
        if self.lost:
            raise Unreachable("no answer")
        if request.url.endswith("/token"):
            return HttpResponse(200, {}, json.dumps({"access_token": "x", "expires_in": 300}).encode())
        self.kill("before the exchange")
        answer = json.dumps(self.exchange(json.loads(request.body or b""))).encode()
        self.kill("after the exchange")
        return HttpResponse(200, {}, answer)

    def write(self, method: str = "GET") -> str:
        """A request for ``/things/a`` that nobody waits for: its id."""
        now = self.clock.now()
        request_id = f"{self.site.id}/{ids.ulid(now, self.clock.randomness(10))}"
        call = packed_call(SiteCall(method, "/things/a", {}, b""))
        sealed = self.secrets.seal(f"{self.services.tenant}/{request_id}/request", call)
        moments = times.to_text(now), times.to_text(now + timedelta(seconds=WRITE_SECONDS))
        self.services.store.commit(Create(SiteRequest(request_id, method, "/things/a", sealed, *moments)))
        return request_id

    def exchange(self, document: dict[str, Any]) -> dict[str, Any]:
        """As the route does it, through its models."""
        site = self.services.store.get(Site, self.site.id)
        assert site is not None
        body = SiteMessage.model_validate(document)
        answers = [
            (each.id, SiteReply(each.status, dict(each.headers), base64.b64decode(each.body), each.failure))
            for each in body.answers
        ]
        exchange = Exchange(self.services, self.secrets, site, no_turn, time.sleep)
        batch, seconds = exchange.answer(ConnectorMessage(body.version, tuple(body.allowed), answers, body.wants))
        requests = [
            {**asdict(each.call), "body": base64.b64encode(each.call.body).decode(), "id": each.id, "seconds": 1.0}
            for each in batch
        ]
        view = ExchangeAnswer.model_validate({"requests": requests, "interval_seconds": seconds})
        return view.model_dump()
