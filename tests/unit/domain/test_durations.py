"""Durations as Go writes them."""

from __future__ import annotations

import pytest

from stockyard.domain import durations


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("5m", 300), ("1h30m", 5400), ("0s", 0), ("720h", 2_592_000), ("1h1m1s", 3661), ("Never", None)],
)
def test_a_duration_in_seconds(text: str, seconds: int | None) -> None:
    assert durations.seconds(text) == seconds


def test_no_duration_is_no_time() -> None:
    assert durations.seconds("") is None


@pytest.mark.parametrize("text", ["s", "5", "5d", "-5s", "1.5h", "5s ", "5 s", "never", "1h x", "٣s", "1ms"])
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="such as 30s"):
        durations.seconds(text)


def test_what_go_cannot_hold_is_refused() -> None:
    assert durations.seconds("2562047h") is not None
    with pytest.raises(ValueError, match="292 years"):
        durations.seconds("2562048h")
