"""One who measures is alone, and is not kept waiting by those who come later."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.silence import Silence

WAIT = 30.0
"""Seconds after which a wait is a failure."""


def test_who_measures_is_alone(tmp_path: Path) -> None:
    events: list[str] = []
    first_runs, first_may_end, measures = threading.Event(), threading.Event(), threading.Event()

    def first(silence: Silence) -> None:
        with silence.test():
            first_runs.set()
            assert first_may_end.wait(WAIT)
            events.append("the first ends")

    def measuring(silence: Silence) -> None:
        with silence.test():
            assert first_runs.wait(WAIT)
            with silence.alone():
                events.append("alone")
                measures.set()
                assert not late.done()
                events.append("not alone any more")

    def start_another(silence: Silence) -> None:
        assert measures.wait(WAIT)
        with silence.test():
            events.append("the next begins")

    silences = [Silence(tmp_path / "run") for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        running = [pool.submit(first, silences[0]), pool.submit(measuring, silences[1])]
        late = pool.submit(start_another, silences[2])
        assert first_runs.wait(WAIT)
        assert not measures.wait(0.05), "it measured beside another test"
        first_may_end.set()
        for future in (*running, late):
            future.result(WAIT)
    assert events == ["the first ends", "alone", "not alone any more", "the next begins"]
    for silence in silences:
        silence.close()
