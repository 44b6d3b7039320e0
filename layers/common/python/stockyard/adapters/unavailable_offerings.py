"""Offerings that clouds refused a moment ago (``ports.refusals.UnavailableOfferings``), among the installation's own
records."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from stockyard.domain.nodes.offers import RefusedOffering
from stockyard.domain.records import Refusal
from stockyard.domain.values import times
from stockyard.ports import Put, Store

REMEMBERED_SECONDS = 180
"""As long as Karpenter's AWS provider keeps an offering that failed (systems change; minutes, not hours)."""
LONGEST_SECONDS = 540
"""For how long an offering counts at most that is refused again and again: who mends the cause waits no longer."""


class StoredUnavailableOfferings:
    """Keeps refusals in ``store``, the platform's, for so many ``seconds``. What has expired counts no more, whether it
    was dropped or not."""

    def __init__(self, store: Store, seconds: int = REMEMBERED_SECONDS) -> None:
        self._store, self._seconds = store, seconds

    def refused(self, scope: str, now: datetime) -> frozenset[tuple[str, str, str]]:
        """See ``ports.refusals.UnavailableOfferings.refused``."""
        return frozenset((each.type, each.capacity_type, each.zone) for each in self.remembered(scope, now))

    def remembered(self, scope: str, now: datetime) -> Sequence[RefusedOffering]:
        """See ``ports.refusals.UnavailableOfferings.remembered``."""
        offerings: list[RefusedOffering] = []
        after: str | None = None
        while True:
            page = self._store.list(Refusal, prefix=f"{scope}/", after=after, limit=200)
            for refusal in page.items:
                if _until(refusal) > times.epoch(now):
                    name, capacity_type, zone = refusal.id.removeprefix(f"{scope}/").rsplit("/", 2)
                    until = times.to_text(datetime.fromtimestamp(_until(refusal), UTC))
                    offerings.append(
                        RefusedOffering(name, capacity_type, zone, refusal.reason, refusal.refused_at, until)
                    )
            if page.next_id is None:
                return offerings
            after = page.next_id

    def remember(
        self,
        scope: str,
        refused: Sequence[tuple[str, str, str]],
        reason: str,
        now: datetime,
        *,
        growing: bool = False,
    ) -> None:
        """See ``ports.refusals.UnavailableOfferings.remember``."""
        records = [
            self._refusal(f"{scope}/{'/'.join(offering)}", reason, now, growing=growing)
            for offering in dict.fromkeys(refused)
        ]
        for start in range(0, len(records), 100):
            self._store.commit(*(Put(record) for record in records[start : start + 100]))

    def _refusal(self, refusal_id: str, reason: str, now: datetime, *, growing: bool) -> Refusal:
        stamp, begins = times.to_text(now), times.epoch(now)
        if not growing:
            return Refusal(refusal_id, stamp, begins + self._seconds, reason)
        seconds = self._seconds
        last = self._store.get(Refusal, refusal_id)
        if last is not None and last.expires_at > begins:
            seconds = _until(last) - times.epoch(times.from_text(last.refused_at))
            # Claims that were launched together are refused together: that is one refusal.
            seconds = seconds if _until(last) > begins else min(2 * seconds, LONGEST_SECONDS)
        return Refusal(refusal_id, stamp, begins + 2 * seconds, reason, begins + seconds)


def _until(refusal: Refusal) -> int:
    return refusal.expires_at if refusal.until is None else refusal.until
