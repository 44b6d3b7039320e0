"""What clouds refused a moment ago (``ports.nodes.UnavailableOfferings``), among the installation's own records."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from stockyard.domain.records import Refusal
from stockyard.domain.values import times
from stockyard.ports import Put, Store

REMEMBERED_SECONDS = 180
"""As long as Karpenter's AWS provider keeps an offering that failed (systems change; minutes, not hours)."""


class StoredUnavailableOfferings:
    """Keeps refusals in ``store``, the platform's, for so many ``seconds``. What has expired counts no more, whether it
    was dropped or not."""

    def __init__(self, store: Store, seconds: int = REMEMBERED_SECONDS) -> None:
        self._store, self._seconds = store, seconds

    def refused(self, scope: str, now: datetime) -> frozenset[tuple[str, str, str]]:
        """See ``ports.nodes.UnavailableOfferings.refused``."""
        offerings: set[tuple[str, str, str]] = set()
        after: str | None = None
        while True:
            page = self._store.list(Refusal, prefix=f"{scope}/", after=after, limit=200)
            for refusal in page.items:
                if refusal.expires_at > times.epoch(now):
                    name, capacity_type, zone = refusal.id.removeprefix(f"{scope}/").rsplit("/", 2)
                    offerings.add((name, capacity_type, zone))
            if page.next_id is None:
                return frozenset(offerings)
            after = page.next_id

    def remember(
        self,
        scope: str,
        refused: Sequence[tuple[str, str, str]],
        reason: str,
        now: datetime,
        seconds: int | None = None,
    ) -> None:
        """See ``ports.nodes.UnavailableOfferings.remember``."""
        expires = times.epoch(now + timedelta(seconds=self._seconds if seconds is None else seconds))
        stamp = times.to_text(now)
        records = [
            Refusal(f"{scope}/{'/'.join(offering)}", stamp, expires, reason) for offering in dict.fromkeys(refused)
        ]
        for start in range(0, len(records), 100):
            self._store.commit(*(Put(record) for record in records[start : start + 100]))
