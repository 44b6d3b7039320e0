"""Limit of the requests of one tenant that a process serves: the others' are served beside them. Nothing is written for
it.

The gateway's limits are of all callers together. Each process of a function has buckets of its own, so what a tenant
may have grows with the processes that its load brings about; it never has all of one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from stockyard.errors import Throttled

MOST_TENANTS = 1000
"""Buckets that a process keeps. A tenant whose bucket was dropped begins with a full one."""


class TenantLimits:
    """A bucket for each tenant: ``rate`` requests a second, ``burst`` at once. A rate of 0 lets all through."""

    def __init__(self, rate: int, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._buckets: dict[str, tuple[float, float]] = {}
        """What each tenant had in its bucket, and when; the one that called last stands last."""

    def admit(self, tenant: str) -> None:
        """Take one from the tenant's bucket. ``Throttled`` when it is empty, with the seconds until it is not."""
        if not self._rate:
            return
        now = self._clock()
        amount, moment = self._buckets.pop(tenant, (float(self._burst), now))
        amount = min(float(self._burst), amount + (now - moment) * self._rate)
        allowed = amount >= 1
        self._buckets[tenant] = (amount - 1 if allowed else amount, now)
        if len(self._buckets) > MOST_TENANTS:
            del self._buckets[next(iter(self._buckets))]
        if not allowed:
            seconds = max(1, math.ceil((1 - amount) / self._rate))
            raise Throttled("The tenant sends more requests than its share just now.", retry_after=seconds)
