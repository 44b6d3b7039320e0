"""The exchange with a site's connector: it brings answers, and is given requests and how soon to come again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import timedelta

from stockyard.domain.records import Site, SiteAnswer, SiteRequest
from stockyard.domain.site_content import SiteCall, SiteReply, packed_reply, unpacked_call
from stockyard.domain.site_records import AGAIN_SECONDS, BUSY_SECONDS
from stockyard.domain.values import times
from stockyard.errors import Conflict, VendorRefused
from stockyard.operations.services import Services
from stockyard.operations.sites.sites import answer_name, recent_requests, waiting_requests
from stockyard.ports import Create, Replace
from stockyard.ports.sites import Seals

BUSY_INTERVAL, HELD_INTERVAL = 1, 0
"""Seconds until the connector comes again: while something is done at the site, and while requests follow each other,
when it waits here instead. The setting ``site_idle_seconds`` says how soon it comes while nothing is done."""
HELD_SECONDS = 10
"""A connector waits here while the last request is younger: what a provider does takes several requests."""
HOLD_SECONDS = 15.0
PACE = 0.25
CONTACT_SECONDS = 600
"""How exact a site knows when its connector spoke last: each time it is noted costs a write."""
MOST_REQUESTS = 10
MOST_BYTES = 3_000_000
"""Of all bodies that are given out at once. One is always given out."""


@dataclass(frozen=True, slots=True)
class ConnectorMessage:
    """Message of a connector: its version, what it allows, its answers by request, and how many requests it wants."""

    version: str
    allowed: tuple[str, ...]
    answers: Sequence[tuple[str, SiteReply]]
    wants: int


@dataclass(frozen=True, slots=True)
class GivenRequest:
    """A request that is given out, and for how many seconds more it may be begun."""

    id: str
    call: SiteCall
    seconds: float


@dataclass(frozen=True, slots=True)
class Exchange:
    """Exchanges with the connector of one site. ``turn`` lets a connector wait, or does not; ``sleep`` is given by
    tests."""

    services: Services
    seals: Seals
    site: Site
    turn: Callable[[int], AbstractContextManager[bool]]
    sleep: Callable[[float], object]

    def answer(self, message: ConnectorMessage) -> tuple[list[GivenRequest], int]:
        """The requests that the connector is to carry out, and the seconds after which it comes again."""
        self._note(message)
        for request_id, reply in message.answers:
            self._keep(request_id, reply)
        batch, age = self._take(message.wants)
        if batch or not message.wants:
            return batch, HELD_INTERVAL
        if age >= HELD_SECONDS:
            return [], BUSY_INTERVAL if age < BUSY_SECONDS else self.services.settings.site_idle_seconds
        with self.turn(int(HOLD_SECONDS)) as allowed:
            end = self.services.clock.now() + timedelta(seconds=HOLD_SECONDS if allowed else 0)
            while not batch and self.services.clock.now() < end:
                self.sleep(PACE)
                batch, _ = self._take(message.wants)
        return batch, HELD_INTERVAL if batch else BUSY_INTERVAL

    def _note(self, message: ConnectorMessage) -> None:
        site = self.site
        is_same = (site.connector_version, site.allowed) == (message.version, message.allowed)
        if is_same and site.contact_at and self.services.seconds_since(site.contact_at) < CONTACT_SECONDS:
            return
        changed = replace(
            site,
            contact_at=self.services.now(),
            connector_version=message.version,
            allowed=message.allowed,
            version=site.version + 1,
        )
        try:
            self.services.store.commit(Replace(changed))
        except Conflict:
            return  # the next exchange notes it

    def _keep(self, ulid: str, reply: SiteReply) -> None:
        """Keep the answer. One to a request that has one, or that is not this site's, changes nothing."""
        request = self.services.store.get(SiteRequest, f"{self.site.id}/{ulid}")
        if request is None or request.answered_at is not None:
            return
        try:
            content = packed_reply(reply)
        except VendorRefused as refused:
            content = packed_reply(SiteReply(0, {}, b"", refused.detail))
        sealed = self.seals.seal(answer_name(self.services.tenant, request.id), content)
        now = self.services.now()
        answered = replace(request, answered_at=now, sealed=None, version=request.version + 1)
        try:
            self.services.store.commit(Replace(answered), Create(SiteAnswer(request.id, sealed, now)))
        except Conflict as conflict:
            if conflict.index == 0:
                self._keep(ulid, reply)  # it was given out again meanwhile, or answered

    def _take(self, wants: int) -> tuple[list[GivenRequest], float]:
        """Requests that are given out now, and the seconds since the site's last request."""
        recent = list(recent_requests(self.services, self.site.id, BUSY_SECONDS))
        age = self.services.seconds_since(recent[-1].created_at) if recent else float("inf")
        batch: list[GivenRequest] = []
        size = 0
        for request in waiting_requests(self.services, recent):
            if len(batch) >= min(wants, MOST_REQUESTS):
                break
            if request.taken_at is not None and self.services.seconds_since(request.taken_at) < AGAIN_SECONDS:
                continue
            name = f"{self.services.tenant}/{request.id}/request"
            call = unpacked_call(request.method, request.path, self.seals.unseal(name, request.sealed or ""))
            size += len(call.body)
            if batch and size > MOST_BYTES:
                break
            if self._taken_over(request):
                remaining = times.from_text(request.ends_at) - self.services.clock.now()
                batch.append(GivenRequest(request.id.partition("/")[2], call, remaining.total_seconds()))
        return batch, age

    def _taken_over(self, request: SiteRequest) -> bool:
        """Whether the request is this exchange's to give out."""
        taken_request = replace(
            request, taken_at=self.services.now(), attempts=request.attempts + 1, version=request.version + 1
        )
        try:
            self.services.store.commit(Replace(taken_request))
        except Conflict:
            return False
        return True
