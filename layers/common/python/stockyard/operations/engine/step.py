"""Answer of a phase to its workflow, and what a workflow says of an error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stockyard.domain.values.frozen import dataclass

HIDDEN_WAIT = 10
"""Seconds until the next look at what a cloud does not show yet."""
CAUSE_LIMIT = 1000
COMPENSATION_SECONDS = 3600
NAMED = 10
"""How many things that are left a hint names."""


@dataclass(frozen=True, slots=True)
class Step:
    """Answer to the workflow: go on, or come again after ``wait`` seconds."""

    done: bool
    wait: int
    message: str = ""
    events: int = 0
    """Of the execution's history so far; 0 where the document does not count them."""
    continued: bool = False
    """Whether the next execution goes on with the work, so that this one ends."""
    phase: str | None = None
    """The phase that is not done, where a call goes through several; else None."""

    @property
    def answer(self) -> dict[str, Any]:
        """Answer as the document reads it."""
        return {"done": self.done, "wait": self.wait, "events": self.events, "continued": self.continued}


def read_error(error: Mapping[str, Any]) -> tuple[str, str]:
    """(name, cause in words) of what a ``Catch`` caught. A Lambda's cause is JSON with ``errorMessage``."""
    name, cause = str(error.get("Error", "Unknown")), str(error.get("Cause", ""))
    try:
        document = json.loads(cause)
    except ValueError:
        document = None
    if isinstance(document, dict) and "errorMessage" in document:
        cause = str(document["errorMessage"])
    if name in ("States.Timeout", "Sandbox.Timedout"):
        cause = cause or "The phase did not answer in time."
    return name, cause[:CAUSE_LIMIT] or name
