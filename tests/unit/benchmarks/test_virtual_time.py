"""The benchmark of the time to a node: its clock, its delays, and that its stories reach their ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.time_to_node import HOPS, figures, played
from benchmarks.virtual_time.delays import DELAYS, Delays
from benchmarks.virtual_time.engine import VirtualTime
from stockyard import wiring

SCALE = Path(__file__).resolve().parents[3] / "docs" / "scale.md"


def test_work_sleeps_by_the_clock_and_one_piece_runs_at_a_time():
    time, steps = VirtualTime(), []

    def work(name: str, seconds: float) -> None:
        for _ in range(2):
            time.sleep(seconds)
            steps.append((name, round(time.now, 1)))

    time.spawn(lambda: work("slow", 3.0))
    time.spawn(lambda: work("quick", 1.0), 0.5)
    assert not time.run(lambda: False, 100)
    assert steps == [("quick", 1.5), ("quick", 2.5), ("slow", 3.0), ("slow", 6.0)]


def test_work_that_waits_for_nothing_goes_on_at_once():
    time, moments = VirtualTime(), []

    def work():
        time.together([])
        moments.append(time.now)

    time.spawn(work, 1.0)
    time.run(lambda: False, 10.0)
    time.close()
    assert moments == [1.0]


def test_work_that_fails_ends_the_time():
    time = VirtualTime()
    time.spawn(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        time.run(lambda: False)


def test_the_table_of_delays_is_that_of_the_page():
    text = SCALE.read_text(encoding="utf-8")
    for row in DELAYS:
        assert f"| `{row.name}` | {row.low:g} to {row.high:g} | {row.meaning} | {row.source} |" in text


def test_a_delay_is_switched_by_its_name():
    delays = Delays.switched(1, ["stream=7-7"])
    assert delays.draw("stream") == 0.007
    with pytest.raises(ValueError, match="there is no delay strem"):
        Delays.switched(1, ["strem=7-7"])


@pytest.mark.parametrize("story", HOPS)
def test_a_story_reaches_its_end(story: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("STOCKYARD_TABLE", "that-of-an-earlier-test")
    wiring.configuration()  # which the process keeps, and the benchmark must not use
    run = played(story, 1, ["fleet=100"], {}, cold=False)
    seconds = run["seconds"]
    assert list(seconds) == [*(part for part, _ in HOPS[story]), "all"]
    assert 0 < seconds["all"] < 30
    assert figures([run])["cost"]["write units"] > 0
