"""Turns to wait for news, or to have a question answered: so many requests of a tenant, and of the installation, hold
a function at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta

from stockyard.domain.platform import PLATFORM
from stockyard.domain.values import times
from stockyard.domain.wait_records import WAITERS, Waiters
from stockyard.errors import Conflict, StoreError
from stockyard.ports import Clock, Create, Replace, Store

TRIES = 4
MARGIN = 10
"""Seconds for which a turn counts beyond its own end, unless it is given back: the last look may take long."""


class WaitTurns:
    """``tenant_limit`` requests of one tenant may wait at a time, ``limit`` of all; 0 lets nobody wait. ``kind`` is the
    record that counts them."""

    def __init__(
        self, store_of: Callable[[str], Store], clock: Clock, tenant_limit: int, limit: int, kind: str = WAITERS
    ) -> None:
        self._kind = kind
        self._store_of, self._clock = store_of, clock
        self._tenant_limit, self._limit = tenant_limit, limit

    @contextmanager
    def take(self, tenant: str, seconds: int) -> Iterator[bool]:
        """Whether the tenant may hold a function for ``seconds``. The turn is given back at the end of the block.

        To wait is a wish: it is not granted either while the table does not answer, or is busy with others' turns.
        """
        name = self._clock.randomness(8).hex()
        stores: list[Store] = []
        for owner, most in {tenant: self._tenant_limit, PLATFORM: self._limit}.items():
            store = self._store_of(owner)
            if not self._begin(store, name, seconds, most):
                self._give_back(stores, name)
                stores = []
                break
            stores.append(store)
        try:
            yield bool(stores)
        finally:
            self._give_back(stores, name)

    def _begin(self, store: Store, name: str, seconds: int, most: int) -> bool:
        until = times.to_text(self._clock.now() + timedelta(seconds=seconds + MARGIN))

        def with_one(leases: Mapping[str, str]) -> dict[str, str] | None:
            return {**leases, name: until} if len(leases) < most else None

        with suppress(StoreError):
            return self._change(store, with_one)
        return False

    def _give_back(self, stores: list[Store], name: str) -> None:
        for store in stores:
            with suppress(StoreError):
                self._change(store, lambda leases: {key: end for key, end in leases.items() if key != name})

    def _change(self, store: Store, leases_after: Callable[[Mapping[str, str]], dict[str, str] | None]) -> bool:
        """Whether the leases were changed; those that are over go with it."""
        for _ in range(TRIES):
            now = times.to_text(self._clock.now())
            record = store.get(Waiters, self._kind)
            running = {name: end for name, end in record.leases.items() if end > now} if record else {}
            leases = leases_after(running)
            if leases is None:
                return False
            with suppress(Conflict):
                if record is None:
                    store.commit(Create(Waiters(self._kind, leases=leases)))
                else:
                    store.commit(Replace(replace(record, leases=leases, version=record.version + 1)))
                return True
        return False
