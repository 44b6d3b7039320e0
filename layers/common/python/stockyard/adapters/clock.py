"""The clock and randomness of a running process (``ports.Clock``)."""

from __future__ import annotations

import os
from datetime import UTC, datetime


class SystemClock:
    """``ports.Clock`` over the operating system."""

    def now(self) -> datetime:
        """The current moment in UTC."""
        return datetime.now(UTC)

    def randomness(self, size: int) -> bytes:
        """``size`` bytes fit for secrets."""
        return os.urandom(size)
