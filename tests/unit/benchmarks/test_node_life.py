"""The benchmark of a node's life, of ten nodes."""

from __future__ import annotations

import json

import pytest

from benchmarks import node_cost
from benchmarks.costs import node_life

CHANCE = 1.2
"""By how much ten lives may be above the mean: a deletion may overtake a creation in some of them."""


def test_a_life_takes_what_make_cost_says_of_it(capsys: pytest.CaptureFixture[str], soaking: bool) -> None:
    """The figures of ``node_cost`` are of ten lives that nothing overtakes."""
    code = node_life.main(["--lives", "40" if soaking else "10"])
    line = json.loads(capsys.readouterr().out)
    assert line["launched"] >= 1
    assert line["transitions"] == pytest.approx(node_cost.LIFE_TRANSITIONS, rel=0.3)
    assert sum(line["write units"].values()) == pytest.approx(node_cost.LIFE_WRITE_UNITS, rel=0.3)
    assert sum(line["read units"].values()) == pytest.approx(node_cost.LIFE_READ_UNITS, rel=0.3)
    assert line["life_usd"] == pytest.approx(sum(line["usd"].values()), abs=1e-6)
    assert line["life_usd"] <= node_cost.LIFE_GOAL * (1 if soaking else CHANCE)
    assert (code == 0) == (line["life_usd"] <= node_cost.LIFE_GOAL)
    assert line["invocations"].keys() == node_cost.LIFE_CALLS.keys()
