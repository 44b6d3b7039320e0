"""Replacements of single nodes, whatever they cost."""

from __future__ import annotations

from random import Random

from stockyard.scheduling.consolidation.forced import Replacements
from stockyard.scheduling.consolidation.places import is_easy
from tests.unit.scheduling.consolidation.test_search import LARGE, TYPES, fleet, pod, running


def test_the_room_of_others_is_used_where_it_will_do() -> None:
    old = running("old", LARGE, pod(1000))
    decision = Replacements(fleet(old, running("other", LARGE, pod(3000)), types=TYPES[1:])).of(old, "Drifted")
    assert decision is not None
    assert (decision.reason, decision.nodes, decision.replacements) == ("Drifted", (old,), ())


def test_a_new_node_comes_where_pods_could_be_spread_so_that_one_is_left_over() -> None:
    """Two nodes have 2 cores each for four pods of a half and one of 2, which has no place once each took two."""
    old = running("old", LARGE, *[pod(500, "small")] * 4, pod(2000, "big"))
    half_full = [running(name, LARGE, pod(6000, "rest")) for name in "ab"]
    decision = Replacements(fleet(old, *half_full, types=TYPES[1:])).of(old, "Drifted")
    assert decision is not None
    assert [replacement.claim.price for replacement in decision.replacements] == [0.36]


def test_a_node_whose_pods_fit_nothing_stays() -> None:
    old = running("old", LARGE, pod(7000))
    assert Replacements(fleet(old, types=TYPES[:1])).of(old, "Expired") is None


def test_every_plan_passes_the_check_that_is_made_before_the_node_leaves() -> None:
    chance, plans = Random(7), 0
    for _ in range(60):
        nodes = []
        for number in range(chance.randint(2, 5)):
            pods, room = [], 8000
            while room >= 500 and chance.random() < 0.9:
                cores = min(room, chance.randrange(300, 3900, 100))
                pods.append(pod(cores, f"app-{len(pods)}"))
                room -= cores
            nodes.append(running(f"n{number}", LARGE, *pods))
        there = fleet(*nodes)
        decision = Replacements(there).of(nodes[0], "Drifted")
        if decision is not None:
            plans += 1
            assert is_easy(there, decision)
    assert plans > 40


def test_no_node_comes_where_none_may_be_made() -> None:
    old = running("old", LARGE, pod(1000))
    assert Replacements(fleet(old, most_new=0)).of(old, "Drifted") is None
    with_room = fleet(old, running("other", LARGE, pod(3000)), most_new=0)
    assert Replacements(with_room).of(old, "Drifted") is not None
