"""Hours of clusters in which people act, under the product's own decisions, and what the judges say.

``STOCKYARD_SOAK`` raises the hours to 10,000 in ten parts, each of which can be run by itself:
``-k 'people and part3'``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from time import process_time

import pytest

from tests.harness.hours.traces import trace_of
from tests.harness.hours.world import Hours
from tests.harness.people.acts import ACTS, FOLLOWING, OF_VENDOR
from tests.harness.people.mutants import MUTANTS
from tests.harness.people.traces import with_people

PARTS = 10
SOAK_RUNS, RUNS = (10, 100), (3, 9)
"""How many runs of a part, and the hours of each. Without soak there is one part."""
SIZES = (1.0, 0.5, 0.7, 0.5, 0.6)
"""How large the clusters are, in turn: with 1 some have ten nodes, and more than twice the hours pass in the same time
with the smaller ones."""
KINDS = (*ACTS, *OF_VENDOR, *FOLLOWING)
LEAST = 30
"""Acts of each kind in each part: 300 in all. Each run draws all kinds in turn, so it needs no luck."""
WRONG = (
    "budget", "forbidden", "homeless", "runaway", "silent", "kept out", "held", "ghost", "lost", "endless", "imageless",
    "hopeless",
)  # fmt: skip
COMPARED = 5
"""Every so many-th run passes without people too, for the money."""


@pytest.mark.parametrize("part", range(PARTS), ids="part{}".format)
def test_people_find_nobody_without_room_or_a_word(
    part: int, seed: int, soaking: bool, record_property: Callable[[str, object], None]
) -> None:
    if part and not soaking:
        pytest.skip("parts beside the first are for soak")
    runs, hours = SOAK_RUNS if soaking else RUNS
    counts: Counter[str] = Counter()
    usd = {"with people": 0.0, "without": 0.0}
    compared = 0
    wrong: list[str] = []
    begin = process_time()
    for number in range(seed + part * runs, seed + (part + 1) * runs):
        trace = with_people(trace_of(number, hours, size=SIZES[number % len(SIZES)] if soaking else SIZES[-1]))
        world = Hours(trace).run()
        counts += world.judge.counts
        wrong += [f"{trace.number}: {text}" for text in world.judge.wrong]
        if (number - seed) % COMPARED == 0:
            alone = Hours(replace(trace, acts=[])).run()
            wrong += [f"{trace.number} without people: {text}" for text in alone.judge.wrong]
            usd["with people"] += world.usd
            usd["without"] += alone.usd
            compared += hours
    acts = {kind: counts[f"act {kind}"] for kind in KINDS}
    figures = {
        "hours": runs * hours,
        "seeds": [seed + part * runs, seed + (part + 1) * runs - 1],
        "acts": sum(acts.values()),
        **acts,
        "evictions": counts["pods evict"],
        "decisions": counts["decisions Replacing"],
        **{kind: counts[kind] for kind in WRONG},
        "hours compared": compared,
        **{f"usd {owner}": round(amount, 2) for owner, amount in usd.items()},
        "seconds": round(process_time() - begin),
    }
    record_property(f"figure:hours_with_people_{part}", figures)
    assert wrong == []
    assert sum(acts[kind] for kind in ACTS) >= runs * hours
    assert min(acts.values()) >= (LEAST if soaking else 1), acts


@pytest.mark.parametrize("mend", MUTANTS)
def test_each_mend_that_is_taken_out_again_is_found(mend: str) -> None:
    scene, taken_out = MUTANTS[mend]
    assert scene.play().judge.wrong == []
    with taken_out():
        assert scene.play().judge.wrong != [], "the judge finds nothing"
