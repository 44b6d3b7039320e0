"""The rule by which functions have their memory, and the sizes of the stage."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from benchmarks import cold_start
from benchmarks.costs import memory_sizes
from benchmarks.costs.memory_sizes import Use, failures, rows, size_of
from stacks.functions import FUNCTIONS

SPECS = {spec.name: spec for spec in FUNCTIONS}
LIGHT = Use(imported=0.1, first=0.2, warm=0.01, waited=0.02, memory=60.0)


def test_a_size_has_room_and_keeps_nobody_waiting() -> None:
    for name, use, memory in (
        ("records", LIGHT, 512),
        ("records", replace(LIGHT, first=0.4), 1024),
        ("records", replace(LIGHT, warm=0.1), 1024),
        ("records", replace(LIGHT, waited=9.0), 512),  # no memory makes AWS faster
        ("records", replace(LIGHT, memory=300.0), 1024),
        ("relay", replace(LIGHT, first=0.4, warm=0.1), 512),
        ("relay", replace(LIGHT, memory=5000.0), 1769),
    ):
        assert size_of(SPECS[name], use) == memory, (name, use)


def test_more_memory_costs_more_below_a_whole_core() -> None:
    first, second = LIGHT.usd(512), LIGHT.usd(1024)
    assert second > first
    computing = replace(LIGHT, waited=0.0)
    assert computing.usd(512) == pytest.approx(computing.usd(1024)), "what is computed costs the same"


def test_a_size_that_is_not_the_least_has_a_reason() -> None:
    table = rows({"records": LIGHT, "scheduler": LIGHT, "clusters": LIGHT})
    assert failures(table) == ["clusters: 1024 MB, 512 would do"]
    assert set(memory_sizes.REASONS) <= set(SPECS) == set(cold_start.handlers())


def test_it_measures_a_function(capsys: pytest.CaptureFixture[str]) -> None:
    assert memory_sizes.main(["--runs", "1", "--clusters", "0", "--functions", "relay"]) == 0
    (row,) = json.loads(capsys.readouterr().out.splitlines()[-1])["rows"]
    assert 20 < row["used_mb"] < 256
    assert row["warm_ms"] < row["first_ms"]
