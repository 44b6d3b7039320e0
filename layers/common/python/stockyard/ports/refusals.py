"""Port to the memory of offerings that clouds refused."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from stockyard.domain.nodes.offers import RefusedOffering


class UnavailableOfferings(Protocol):
    """Offerings that clouds refused a moment ago, remembered for all tenants."""

    def refused(self, scope: str, now: datetime) -> frozenset[tuple[str, str, str]]:
        """Type, capacity type and zone (``*``: all) of what was refused in the scope and is not forgotten yet."""

    def remembered(self, scope: str, now: datetime) -> Sequence[RefusedOffering]:
        """The same, each with why, since when, and until when it is remembered."""

    def remember(
        self,
        scope: str,
        refused: Sequence[tuple[str, str, str]],
        reason: str,
        now: datetime,
        *,
        growing: bool = False,
    ) -> None:
        """Keep it for some minutes; said again, it counts from then. With ``growing`` an offering that is refused again
        soon after it was forgotten is kept twice as long as the last time, nine minutes at most."""
