"""The benchmark of the sweep over cloud accounts, of two accounts."""

from __future__ import annotations

import json

import pytest

from benchmarks.costs import account_sweeps


def test_listings_side_by_side_take_less_time_and_the_same_calls(capsys: pytest.CaptureFixture[str]) -> None:
    lines = []
    for lanes in (1, 8):
        assert account_sweeps.main(["--accounts", "2", "--nodes", "2", "--lanes", str(lanes)]) == 0
        lines.append(json.loads(capsys.readouterr().out))
    single, many = lines
    assert single["calls_of_an_account"] == many["calls_of_an_account"] > 15
    assert single["place_seconds"]["n"] == many["place_seconds"]["n"] == 2
    assert many["place_mean_seconds"] < single["place_mean_seconds"] / 2
    assert 0 < many["turn_mean_seconds"] < 5
