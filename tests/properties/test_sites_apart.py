"""A connector is given the requests of its own site alone, whatever it sends and whoever comes in between."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from local.testing.memory_store import MemoryRegistry
from stockyard.adapters.site_requests import StoredSiteRequests
from stockyard.domain.records import Site, SiteAnswer, SiteRequest
from stockyard.domain.site_content import SiteCall, SiteReply, unpacked_reply
from stockyard.errors import VendorRefused
from stockyard.operations.services import Services
from stockyard.operations.sites.exchange import ConnectorMessage, Exchange
from stockyard.operations.sites.sites import create_site, delete_site
from tests.harness.worlds.memory import FixedClock, MemorySecrets
from tests.harness.worlds.ports import memory_services
from tests.harness.worlds.site_world import no_turn

TENANTS = ("acme", "globex", "initech")
NAMES = ("room", "hall")
STEPS = 40


@dataclass
class Yard:
    """Three tenants with sites of the same names in one table, and connectors that try what they like."""

    chance: random.Random
    clock: FixedClock = field(default_factory=FixedClock)
    secrets: MemorySecrets = field(default_factory=MemorySecrets)
    registry: MemoryRegistry = field(default_factory=MemoryRegistry)
    ids: list[str] = field(default_factory=list)
    """Ids of requests that anybody was given; a connector answers to any of them."""
    count: int = 0

    def services(self, tenant: str) -> Services:
        own = memory_services(self.registry, self.clock, secrets=self.secrets)
        return Services(self.registry.store(tenant), own.clock, own.settings, own.factories)

    def step(self) -> None:
        tenant, name = self.chance.choice(TENANTS), self.chance.choice(NAMES)
        getattr(self, self.chance.choice(("ask", "ask", "come", "come", "come", "renew", "wait")))(tenant, name)

    def ask(self, tenant: str, name: str) -> None:
        """A request whose body says whose it is."""
        requests = StoredSiteRequests(self.registry.store(tenant), self.secrets, self.clock, lambda _: None)
        site = self._site(tenant, name)
        if site is not None:
            method = self.chance.choice(("GET", "PUT"))
            requests.ask(name, SiteCall(method, f"/{tenant}/{name}", {}, f"{tenant}/{site.id}".encode()), seconds=0)

    def come(self, tenant: str, name: str) -> None:
        """An exchange with answers to requests of everybody."""
        site = self._site(tenant, name)
        if site is None:
            return
        answers = [
            (self.chance.choice(self.ids), SiteReply(200, {}, f"{tenant}/{site.id}".encode()))
            for _ in range(self.chance.randrange(3) if self.ids else 0)
        ]
        exchange = Exchange(self.services(tenant), self.secrets, site, no_turn, self.clock.advance)
        batch, _ = exchange.answer(ConnectorMessage("1", (), answers, self.chance.randrange(4)))
        for request in batch:
            assert request.call.body.decode() == f"{tenant}/{site.id}"
            assert request.call.path == f"/{tenant}/{name}"
            self.ids.append(request.id)
            self.count += 1

    def renew(self, tenant: str, name: str) -> None:
        """A site is deleted, or made under a name that had another one."""
        site, services = self._site(tenant, name), self.services(tenant)
        if site is None:
            create_site(services, name=name, description="", actor="user:ann", id=services.new_id("sit"))
        elif self.chance.random() < 0.2:
            delete_site(services, self.secrets, site, "user:ann")

    def wait(self, *_: str) -> None:
        self.clock.advance(self.chance.choice((0.1, 5.0, 31.0)))

    def check(self) -> None:
        """Every answer that is kept came from the site whose request it answers."""
        for tenant in TENANTS:
            store = self.registry.store(tenant)
            for answer in store.list(SiteAnswer, limit=1000).items:
                site_id = answer.id.partition("/")[0]
                reply = unpacked_reply(self.secrets.unseal(f"{tenant}/{answer.id}/answer", answer.sealed))
                assert reply.failure == "the site was deleted" or reply.body.decode() == f"{tenant}/{site_id}"
                request = store.get(SiteRequest, answer.id)
                assert request is not None
                assert request.answered_at is not None

    def _site(self, tenant: str, name: str) -> Site | None:
        sites = self.registry.store(tenant).list(Site).items
        return next((site for site in sites if site.name == name), None)


def test_no_connector_is_given_what_is_anothers(soaking: bool, seed: int, record_property: Any):
    runs, count = 5_000 if soaking else 300, 0
    for number in range(runs):
        yard = Yard(random.Random(seed * 1_000_003 + number))
        for tenant in TENANTS:
            for name in NAMES:
                yard.renew(tenant, name)
        for _ in range(STEPS):
            yard.step()
        yard.check()
        count += yard.count
    assert count > runs
    record_property("figure:sites_apart", {"interleavings": runs, "requests": count, "anothers": 0})


def test_a_request_opens_for_its_own_tenant_alone():
    yard = Yard(random.Random(1))
    yard.renew("acme", "room")
    yard.ask("acme", "room")
    request = yard.registry.store("acme").list(SiteRequest).items[0]
    with pytest.raises(VendorRefused):
        yard.secrets.unseal(f"globex/{request.id}/request", request.sealed or "")
