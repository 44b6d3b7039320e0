"""The core against brute force: every choice, every alternative and every explanation of random problems."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from stockyard.domain.pools.bids import ABOVE_BID
from stockyard.scheduling.explain import explain
from stockyard.scheduling.index import Index
from stockyard.scheduling.match import Availability, SelectedOffering, choose, choose_all
from tests.properties import oracle, problems

FULL_COUNT, FEW = 20_000, 400
MANY = 1000
"""Alternatives: more than there are."""


def way(choice: Any) -> oracle.Way:
    return choice.node_type.name, choice.capacity_type, choice.zones


def ways(choice: SelectedOffering | None) -> list[oracle.Way]:
    return [] if choice is None else [way(choice), *(way(alternative) for alternative in choice.alternatives)]


def mismatch(data: dict[str, Any]) -> str | None:
    """Difference of the core's answer from the oracle's; None when nothing."""
    index, request, availability = (
        Index.build(problems.node_types_of(data)),
        problems.requests_of(data),
        problems.availability_of(data),
    )
    expected = oracle.solve(data)
    choices = choose_all(index, request, availability, candidates=MANY)
    for number, (choice, right) in enumerate(zip(choices, expected, strict=True)):
        if ways(choice) != right:
            return f"claim {number}: {ways(choice)}, the oracle says {right}"
    plain = [None if choice is None else way(choice) for choice in choose_all(index, request, availability)]
    if plain != [right[0] if right else None for right in expected]:
        return f"without alternatives: {plain}"
    return None


def explained(data: dict[str, Any]) -> str | None:
    """Difference between ``explain`` and ``choose``; None when nowhere."""
    index, availability = Index.build(problems.node_types_of(data)), problems.availability_of(data)
    for number, request in enumerate(problems.requests_of(data)):
        first = choose(index, request, availability)
        every = choose(index, request, availability, candidates=MANY)
        evaluations = explain(index, request, availability)
        fitting = [
            (evaluation.node_type.name, evaluation.capacity_type, evaluation.zones)
            for evaluation in evaluations
            if evaluation.rule is None
        ]
        if len(evaluations) != len(data["kinds"]) or [evaluation.selected for evaluation in evaluations].count(
            True
        ) != bool(fitting):
            return f"claim {number}: {len(evaluations)} evaluations"
        if fitting[:1] != ways(first):
            return f"claim {number}: explain says {fitting[:1]}, choose {ways(first)}"
        cheapest: dict[str, oracle.Way] = {}
        for way_found in ways(every):
            cheapest.setdefault(way_found[0], way_found)
        if fitting != list(cheapest.values()):
            return f"claim {number}: explain lists {fitting}, choose {ways(every)}"
    return None


def test_choices_equal_oracle(soaking, seed, record_property):
    chance, count, claims, placed = Random(seed), FULL_COUNT if soaking else FEW, 0, 0
    for number in range(count):
        data = problems.problem(chance)
        difference = mismatch(data) or explained(data)
        assert difference is None, f"problem {number} of seed {seed}: {difference}\n{data}"
        claims += len(data["claims"])
        placed += sum(bool(choice) for choice in oracle.solve(data))
    assert placed > claims // 10, "the problems must not be hopeless"
    record_property("figure:scheduling_oracle", {"problems": count, "claims": claims, "placed": placed})


def test_generated_problems_trigger_every_rule(seed):
    """The problems are worth something: each rule is the first one against some node type."""
    chance, rules = Random(seed), Counter[str | None]()
    for _ in range(FEW):
        data = problems.problem(chance)
        index, availability = Index.build(problems.node_types_of(data)), problems.availability_of(data)
        rules.update(
            evaluation.rule
            for request in problems.requests_of(data)
            for evaluation in explain(index, request, availability)
        )
    few = {rule: rules[rule] for rule in (None, *_rules()) if rules[rule] < 10}
    assert not few


def _rules() -> tuple[str, ...]:
    from stockyard.scheduling.explain import RULES

    # Bids are compared with explain by problems of their own: see tests/unit/scheduling/test_bidding.py.
    return tuple(rule for rule in RULES if rule != ABOVE_BID)


def test_choose_all_never_uses_more_than_free_nodes(seed):
    chance = Random(seed)
    for _ in range(FEW):
        data = problems.problem(chance)
        data["claims"] *= 4
        limited = {node_type["name"] for node_type in data["kinds"] if node_type["limited"]}
        availability = problems.availability_of(data)
        choices = choose_all(Index.build(problems.node_types_of(data)), problems.requests_of(data), availability)
        used = Counter(choice.node_type.name for choice in choices if choice is not None)
        assert all(count <= availability.free.get(name, 0) for name, count in used.items() if name in limited)


def test_choice_is_independent_of_catalogue_order(seed):
    chance = Random(seed)
    for _ in range(FEW):
        data = problems.problem(chance)
        node_types, request, availability = (
            problems.node_types_of(data),
            problems.requests_of(data),
            problems.availability_of(data),
        )
        before = choose_all(Index.build(node_types), request, availability)
        chance.shuffle(node_types)
        assert choose_all(Index.build(node_types), request, availability) == before


@pytest.mark.parametrize("provider", [None, "p"])
def test_choice_is_independent_of_earlier_calls(seed, provider):
    """One index for many calls answers as a fresh one does."""
    chance = Random(seed)
    data = problems.problem(chance)
    node_types = problems.node_types_of(data)
    index = Index.build(node_types, [provider])
    for _ in range(50):
        availability = Availability({node_type.name: chance.randint(0, 2) for node_type in node_types})
        request = [replace(problems.requests_of({"claims": [problems.claim(chance)]})[0], provider=provider)]
        assert choose_all(index, request, availability) == choose_all(Index.build(node_types), request, availability)
