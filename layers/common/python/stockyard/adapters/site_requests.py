"""Requests for sites (``ports.sites.SiteRequests``) as records of the tenant's: written, and looked at until the
connector's answer is there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from stockyard.domain.records import Name, SiteAnswer, SiteRequest
from stockyard.domain.site_content import SiteCall, SiteReply, packed_call, unpacked_reply
from stockyard.domain.site_records import READ_SECONDS, READS, WRITE_SECONDS
from stockyard.domain.values import ids, times
from stockyard.errors import VendorNotFound
from stockyard.ports import Clock, Create, Store
from stockyard.ports.sites import WAIT_SECONDS, Seals

PACE = 0.25
"""Seconds between two looks for the answer: each is one small read."""


class StoredSiteRequests:
    """Requests of the tenant of ``store``. ``sleep`` is given by tests."""

    def __init__(self, store: Store, seals: Seals, clock: Clock, sleep: Callable[[float], None]) -> None:
        self._store, self._seals, self._clock, self._sleep = store, seals, clock, sleep

    def ask(self, site: str, call: SiteCall, seconds: float = WAIT_SECONDS) -> SiteReply | None:
        """See ``ports.sites.SiteRequests.ask``."""
        name = self._store.get(Name, f"site/{site}")
        if name is None:
            raise VendorNotFound(f"there is no site {site}", code="NoSite")
        request_id = self._write(name.owner, call)
        end = self._clock.now() + timedelta(seconds=seconds)
        while (remaining := (end - self._clock.now()).total_seconds()) > 0:
            self._sleep(min(PACE, remaining))
            answer = self._store.get(SiteAnswer, request_id)
            if answer is not None:
                return unpacked_reply(self._seals.unseal(self._sealed_name(request_id, "answer"), answer.sealed))
        return None

    def _write(self, site_id: str, call: SiteCall) -> str:
        now = self._clock.now()
        request_id = f"{site_id}/{ids.ulid(now, self._clock.randomness(10))}"
        sealed = self._seals.seal(self._sealed_name(request_id, "request"), packed_call(call))
        life = READ_SECONDS if call.method in READS else WRITE_SECONDS
        ends_at = times.to_text(now + timedelta(seconds=life))
        self._store.commit(Create(SiteRequest(request_id, call.method, call.path, sealed, times.to_text(now), ends_at)))
        return request_id

    def _sealed_name(self, request_id: str, part: str) -> str:
        return f"{self._store.tenant}/{request_id}/{part}"
