"""Answers that are kept: the same as those of the search, found once, and not for ever."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stockyard.scheduling.packing.price import Answers, FreeProblem, Offer, Shape, Space, answers, lower_bound, solve

PROBLEM = FreeProblem(
    (Shape((3, 2), 5), Shape((1, 1), 7)),
    (Offer("small", (4, 4), 10), Offer("large", (8, 8), 19)),
    (Space("web-1", (2, 2)), Space("web-2", (0, 1))),
)


def test_problems_that_differ_in_names_of_spaces_have_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    memory, calls = Answers(), list[str]()
    monkeypatch.setattr(answers, "solve", lambda *each: (calls.append("solve"), solve(*each))[1])
    monkeypatch.setattr(answers, "lower_bound", lambda each: (calls.append("bound"), lower_bound(each))[1])
    renamed = replace(PROBLEM, spaces=tuple(Space(f"{space.name}-b", space.room) for space in PROBLEM.spaces))
    assert memory.solve(PROBLEM, 10_000) == memory.solve(renamed, 10_000) == solve(PROBLEM, 10_000)
    assert memory.lower_bound(renamed) == memory.lower_bound(PROBLEM) == lower_bound(PROBLEM)
    assert calls == ["solve", "bound"]
    roomier = replace(PROBLEM, spaces=(Space("web-1", (4, 4)), PROBLEM.spaces[1]))
    for problem, steps in ((PROBLEM, 9_000), (roomier, 10_000)):
        assert memory.solve(problem, steps) == solve(problem, steps)
    assert calls == ["solve", "bound", "solve", "solve"]


def test_of_too_many_answers_those_asked_for_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    memory, calls = Answers(most=2), list[int]()
    monkeypatch.setattr(answers, "solve", lambda problem, steps: (calls.append(steps), solve(problem, steps))[1])
    for steps in (1000, 2000, 1000, 3000, 1000, 2000):
        memory.solve(PROBLEM, steps)
    assert calls == [1000, 2000, 3000, 2000]
