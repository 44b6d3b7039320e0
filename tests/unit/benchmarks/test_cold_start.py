"""The benchmark of cold starts knows an event for each function."""

from __future__ import annotations

from benchmarks.cold_start import EVENTS, handlers


def test_each_function_has_an_event():
    assert sorted(EVENTS) == list(handlers())
