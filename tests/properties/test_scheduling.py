"""The core against brute force: every choice, every alternative and every explanation of random problems."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from stockyard.scheduling.explain import explain
from stockyard.scheduling.index import Index
from stockyard.scheduling.match import Choice, State, choose, choose_all
from tests.properties import oracle, problems

FULL_COUNT, FEW = 20_000, 400
MANY = 1000
"""Alternatives: more than there are."""


def way(choice: Any) -> oracle.Way:
    return choice.kind.name, choice.capacity_type, choice.zones


def ways(choice: Choice | None) -> list[oracle.Way]:
    return [] if choice is None else [way(choice), *(way(one) for one in choice.alternatives)]


def mismatch(data: dict[str, Any]) -> str | None:
    """What the core answers otherwise than the oracle; None when nothing."""
    index, wanted, state = Index.build(problems.kinds_of(data)), problems.wanted_of(data), problems.state_of(data)
    expected = oracle.solve(data)
    chosen = choose_all(index, wanted, state, candidates=MANY)
    for number, (choice, right) in enumerate(zip(chosen, expected, strict=True)):
        if ways(choice) != right:
            return f"claim {number}: {ways(choice)}, the oracle says {right}"
    plain = [None if choice is None else way(choice) for choice in choose_all(index, wanted, state)]
    if plain != [right[0] if right else None for right in expected]:
        return f"without alternatives: {plain}"
    return None


def explained(data: dict[str, Any]) -> str | None:
    """Where ``explain`` and ``choose`` differ; None when nowhere."""
    index, state = Index.build(problems.kinds_of(data)), problems.state_of(data)
    for number, wanted in enumerate(problems.wanted_of(data)):
        first = choose(index, wanted, state)
        every = choose(index, wanted, state, candidates=MANY)
        verdicts = explain(index, wanted, state)
        fitting = [(one.kind.name, one.capacity_type, one.zones) for one in verdicts if one.rule is None]
        if len(verdicts) != len(data["kinds"]) or [one.chosen for one in verdicts].count(True) != bool(fitting):
            return f"claim {number}: {len(verdicts)} verdicts"
        if fitting[:1] != ways(first):
            return f"claim {number}: explain says {fitting[:1]}, choose {ways(first)}"
        cheapest: dict[str, oracle.Way] = {}
        for one in ways(every):
            cheapest.setdefault(one[0], one)
        if fitting != list(cheapest.values()):
            return f"claim {number}: explain lists {fitting}, choose {ways(every)}"
    return None


def test_every_choice_is_the_oracles(soaking, seed, record_property):
    chance, count, claims, placed = Random(seed), FULL_COUNT if soaking else FEW, 0, 0
    for number in range(count):
        data = problems.problem(chance)
        found = mismatch(data) or explained(data)
        assert found is None, f"problem {number} of seed {seed}: {found}\n{data}"
        claims += len(data["claims"])
        placed += sum(bool(one) for one in oracle.solve(data))
    assert placed > claims // 10, "the problems must not be hopeless"
    record_property("figure:scheduling_oracle", {"problems": count, "claims": claims, "placed": placed})


def test_every_rule_is_met_by_the_problems(seed):
    """The problems are worth something: each rule is the first one against some kind."""
    chance, rules = Random(seed), Counter[str | None]()
    for _ in range(FEW):
        data = problems.problem(chance)
        index, state = Index.build(problems.kinds_of(data)), problems.state_of(data)
        rules.update(one.rule for wanted in problems.wanted_of(data) for one in explain(index, wanted, state))
    few = {rule: rules[rule] for rule in (None, *_rules()) if rules[rule] < 10}
    assert not few


def _rules() -> tuple[str, ...]:
    from stockyard.scheduling.explain import RULES

    return RULES


def test_what_is_taken_is_never_more_than_is_free(seed):
    chance = Random(seed)
    for _ in range(FEW):
        data = problems.problem(chance)
        data["claims"] *= 4
        limited = {kind["name"] for kind in data["kinds"] if kind["limited"]}
        state = problems.state_of(data)
        chosen = choose_all(Index.build(problems.kinds_of(data)), problems.wanted_of(data), state)
        taken = Counter(one.kind.name for one in chosen if one is not None)
        assert all(count <= state.free.get(name, 0) for name, count in taken.items() if name in limited)


def test_the_order_of_the_catalogue_does_not_matter(seed):
    chance = Random(seed)
    for _ in range(FEW):
        data = problems.problem(chance)
        kinds, wanted, state = problems.kinds_of(data), problems.wanted_of(data), problems.state_of(data)
        before = choose_all(Index.build(kinds), wanted, state)
        chance.shuffle(kinds)
        assert choose_all(Index.build(kinds), wanted, state) == before


@pytest.mark.parametrize("provider", [None, "p"])
def test_nothing_is_kept_between_calls(seed, provider):
    """One index for many calls answers as a fresh one does."""
    chance = Random(seed)
    data = problems.problem(chance)
    kinds = problems.kinds_of(data)
    index = Index.build(kinds, [provider])
    for _ in range(50):
        state = State({kind.name: chance.randint(0, 2) for kind in kinds})
        wanted = [replace(problems.wanted_of({"claims": [problems.claim(chance)]})[0], provider=provider)]
        assert choose_all(index, wanted, state) == choose_all(Index.build(kinds), wanted, state)
