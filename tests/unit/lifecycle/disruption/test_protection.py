"""Until when a pod may not be disrupted."""

from __future__ import annotations

import pytest

from stockyard.lifecycle.disruption.protection import FOREVER, do_not_disrupt

START = "2026-01-01T00:00:00.000Z"
NOW = "2026-01-01T00:10:00.000Z"


@pytest.mark.parametrize(
    ("annotation", "started_at", "until"),
    [
        (None, START, None),
        ("true", START, FOREVER),
        ("true", None, FOREVER),
        ("True", START, None),
        ("false", START, None),
        ("", START, None),
        ("soon", START, None),
        ("5", START, None),
        ("0", START, None),
        ("0s", None, None),
        ("-5m", START, None),
        ("5m", START, None),
        ("10m", START, None),
        ("10m1ms", START, "2026-01-01T00:10:00.001Z"),
        ("1.5h", START, "2026-01-01T01:30:00.000Z"),
        ("5m", None, "2026-01-01T00:15:00.000Z"),
        ("2562047h", START, "2318-04-12T23:00:00.000Z"),
        ("2562048h", START, None),
    ],
)
def test_the_annotation_of_a_pod(annotation: str | None, started_at: str | None, until: str | None) -> None:
    assert do_not_disrupt(annotation, started_at, NOW) == until


def test_a_moment_that_no_calendar_holds_is_for_ever() -> None:
    assert do_not_disrupt("2562047h", "9990-01-01T00:00:00.000Z", NOW) == FOREVER
    assert NOW < FOREVER
