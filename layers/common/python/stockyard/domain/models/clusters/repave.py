"""Whether nodes are replaced, as callers say it."""

from __future__ import annotations

from stockyard.domain.models.base import Input


class RepavePatch(Input):
    """The decision on a change that waits for approval: it goes on, or the settings become what they were."""

    approved: bool
    """True: the change goes on. False: the settings become what they were."""
