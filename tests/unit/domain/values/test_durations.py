"""Durations as Go writes them."""

from __future__ import annotations

import pytest

from stockyard.domain.values import durations


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


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("-.5m", -30),
        ("+300ms", 0.3),
        ("1h1us1\u00b5s1ns", 3600.000002001),
        ("0", 0),
        ("-0", 0),
        ("2562047h", 2562047 * 3600),
    ],
)
def test_all_that_go_reads(text: str, seconds: float) -> None:
    assert durations.go_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "s", ".s", "1d", "1h ", "1.2.3h", "--1s", "true", "2562048h", "1s" * 65])
def test_what_go_does_not_read_is_none(text: str) -> None:
    assert durations.go_seconds(text) is None
