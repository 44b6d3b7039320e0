"""Until when a pod or a node may not be disrupted, by its annotation ``karpenter.sh/do-not-disrupt``."""

from __future__ import annotations

from datetime import timedelta

from stockyard.domain.values import times
from stockyard.domain.values.durations import go_seconds

DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
FOREVER = "9999-12-31T23:59:59.999Z"
"""Later than every moment."""


def do_not_disrupt(annotation: str | None, started_at: str | None, now: str) -> str | None:
    """Until when the annotation protects: a moment as records have it, ``FOREVER``, or None where it does not.

    ``true`` protects for ever, a duration of Go from the start on. Any other text, and a duration that is not above
    zero, is ignored, as in Karpenter. What has not started is protected: at least for the duration from now on.
    """
    if annotation == "true":
        return FOREVER
    seconds = go_seconds(annotation) if annotation is not None else None
    if seconds is None or seconds <= 0:
        return None
    if started_at is None:
        return _later(now, seconds)
    until = _later(started_at, seconds)
    return until if now < until else None


def _later(moment: str, seconds: float) -> str:
    try:
        return times.to_text(times.from_text(moment) + timedelta(seconds=seconds))
    except OverflowError:
        return FOREVER
