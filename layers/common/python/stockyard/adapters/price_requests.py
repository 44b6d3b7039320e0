"""Prices of a region that somebody has named (``ports.PriceRequests``): the catalogue's function fetches them at once.

A record of the platform says that they are being fetched, so that many who name a region at once have it fetched once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from stockyard.adapters.catalog import OFFLINE_REGION, Ec2PriceList, StoredPriceSheets
from stockyard.domain.records import PriceRequest
from stockyard.domain.values import times
from stockyard.errors import Conflict, VendorError
from stockyard.ports import Create, Replace, Store

OLD = timedelta(hours=25)
"""Prices that are older are fetched anew. The schedule refreshes those of regions in use before."""
AGAIN = timedelta(minutes=5)
"""How long a region is not fetched again that could not be, or whose prices are on their way."""
MOST_SECONDS = 10.0
"""How long a request waits at most for all regions that it names: it has 29 seconds."""
BATCH_SECONDS = 30.0
"""After so long a process waits for another request, and has all of that time again."""
PAUSE = 0.25
"""Seconds between two looks."""


class StoredPriceRequests:
    """``store`` is the platform's, ``invoke`` gives an event to the function that fetches, ``regions`` are those that
    the cloud has. ``monotonic`` counts seconds, ``pause`` lets some pass."""

    def __init__(
        self,
        store: Store,
        prices: Ec2PriceList,
        invoke: Callable[[Mapping[str, Any]], None],
        regions: Callable[[], Collection[str]],
        now: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store, self._sheets, self._prices, self._invoke = store, StoredPriceSheets(store), prices, invoke
        self._regions, self._now, self._monotonic, self._pause = regions, now, monotonic, pause
        self._batch_at: float | None = None

    def request(self, region: str) -> None:
        """See ``ports.PriceRequests.request``."""
        if not self._lacks(region) or region not in self._regions():
            return
        record, now = self._store.get(PriceRequest, region), self._now()
        if record is not None and now - times.from_text(record.requested_at) < AGAIN:
            return
        version = 1 if record is None else record.version + 1
        request = PriceRequest(region, times.to_text(now), version=version)
        try:
            self._store.commit(Create(request) if record is None else Replace(request))
        except Conflict:
            return  # somebody else has just begun it
        try:
            self._invoke({"prices_of": region})
        except VendorError as error:
            self._sheets.end_request(region, times.to_text(now), f"{error.error_type}: {error.detail}")

    def wait(self, region: str) -> None:
        """See ``ports.PriceRequests.wait``."""
        self.request(region)
        if not self._lacks(region):
            return
        ends = self._batch_began() + MOST_SECONDS
        while self._is_pending(region) and self._monotonic() < ends:
            self._pause(PAUSE)
        self._prices.forget(region)

    def _lacks(self, region: str) -> bool:
        if region in ("", OFFLINE_REGION):
            return False
        sheet = self._prices.region(region)
        is_old = sheet is None or self._now() - times.from_text(sheet.as_of) > OLD
        return is_old or self._prices.spot(region) is None

    def _is_pending(self, region: str) -> bool:
        record = self._store.get(PriceRequest, region)
        if record is None or record.ended_at is not None:
            return False
        return self._now() - times.from_text(record.requested_at) < AGAIN

    def _batch_began(self) -> float:
        """Moment when the request that is being served began to wait: the first wait after a while is another
        request's."""
        now = self._monotonic()
        if self._batch_at is None or now - self._batch_at > BATCH_SECONDS:
            self._batch_at = now
        return self._batch_at


def connected(
    store: Store, prices: Ec2PriceList, invoke: Callable[[Mapping[str, Any]], None], now: Callable[[], datetime]
) -> StoredPriceRequests:
    """The requests of this process, for the regions that its cloud tells once."""
    from stockyard.adapters import own_account

    return StoredPriceRequests(store, prices, invoke, cache(own_account.regions), now)
