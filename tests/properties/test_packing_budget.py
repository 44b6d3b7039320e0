"""A plan ends within its steps of work, is valid wherever it ends, and is the same on every machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from local.testing.packing_checker import faults
from stockyard.domain.nodes.node_types import NodeType, Offering
from stockyard.domain.values.requirements import HOSTNAME, ZONE
from stockyard.scheduling.packing.model import Pod, PodTerm, Pool, Problem, Selector, Settings, Spread, term
from stockyard.scheduling.packing.plan import Plan, grouped, pack
from stockyard.scheduling.packing.reasons import BUDGET, GANG
from tests.harness.stories.packing_problems import plan_document, problem_of, random_problem

FEW, MANY = 150, 3_000
BUDGETS = (1, 20, 60, 150, 400)
CALLS_A_STEP = 12
"""Calls of functions, those of C included, that a step of work may stand for."""
BEYOND = 3_000
"""Steps that the placing of one pod may take beyond the budget, in problems as small as these."""
ROOT = Path(__file__).parents[2]
DIGEST = """
from hashlib import sha256
from tests.harness.stories.packing_problems import plan_document, problem_of, random_problem
from stockyard.scheduling.packing.plan import pack
from stockyard.scheduling.packing.model import Settings
from dataclasses import replace
texts = []
for seed in range(40):
    document = random_problem(seed)
    for steps in (None, 100):
        plan = pack(replace(problem_of(document), settings=Settings(steps=steps)))
        texts.append(repr((plan_document(document, plan), plan.left_out, plan.steps)))
print(sha256("".join(texts).encode()).hexdigest())
"""


def hard(pods: int, steps: int | None = None) -> Problem:
    """Pods that all differ in size, in twenty groups that want to be spread."""
    chance = Random(pods)
    room = {"cpu": 64_000, "memory": 64_000_000, "pods": 110_000}
    ways = (Offering("on-demand", ("a", "b", "c"), 1.0),)
    sizes = [(n, {k: v // n for k, v in room.items()}) for n in range(1, 9)]
    kinds = tuple(NodeType(f"p.t{n}", "p", {}, size, size, 0, ways) for n, size in sizes)
    named = []
    for number in range(pods):
        labels = (("app", f"app-{number % 20}"),)
        selector = Selector(term([{"key": "app", "operator": "In", "values": [f"app-{number % 20}"]}]))
        size = (("cpu", chance.randint(50, 2000)), ("memory", chance.randint(64_000, 4_000_000)), ("pods", 1000))
        alone = (PodTerm(HOSTNAME, selector, frozenset({"one"})),) if number % 2 else ()
        named.append(
            (f"pod-{number}", Pod("one", labels, size, spreads=(Spread(ZONE, 1, selector),), anti_affinity=alone))
        )
    return Problem(grouped(named), (Pool("pool", kinds),), settings=Settings(steps=steps))


def left_out(plan: Plan) -> list[str]:
    return [name for item in plan.left_out for name in item.pods]


def test_a_plan_that_ends_early_obeys_the_rules_and_says_why(soaking: bool, seed: int) -> None:
    chance, cut, explained = Random(seed), 0, 0
    for _ in range(MANY if soaking else FEW):
        number = chance.getrandbits(48)
        document = random_problem(number)
        problem = problem_of(document)
        whole = pack(problem)
        for steps in BUDGETS:
            plan = pack(replace(problem, settings=Settings(steps=steps)))
            assert faults(document, plan_document(document, plan)) == [], (number, steps)
            names = sorted([*plan.order, *left_out(plan)])
            assert names == sorted(pod["name"] for pod in document["pods"]), (number, steps)
            assert plan.steps <= steps + BEYOND, (number, steps)
            assert all(item.reasons for item in plan.left_out), (number, steps)
            if not set(left_out(plan)) <= set(left_out(whole)):
                cut += 1
                explained += any(reason.rule in (BUDGET, GANG) for item in plan.left_out for reason in item.reasons)
    assert cut > FEW
    assert explained > 0.9 * cut


def test_pods_that_no_pool_can_hold_are_not_said_to_have_had_no_turn() -> None:
    named = [("big", Pod("one", (), (("cpu", 10**9), ("pods", 1000)))), ("small", Pod("one", (), (("cpu", 1),)))]
    problem = replace(hard(300, steps=1), groups=(*hard(300).groups, *grouped(named)))
    rules = {name: item.reasons[0].rule for item in pack(problem).left_out for name in item.pods}
    assert rules["big"] == "Resource"
    assert rules["small"] == BUDGET


def test_more_steps_place_more_pods_of_a_hard_problem() -> None:
    placed = [len(pack(hard(300, steps)).order) for steps in (1, 1_000, 3_000, 100_000)]
    assert placed == sorted(placed)
    assert placed[0] < placed[1] < placed[2] < placed[3] == 300


@pytest.mark.parametrize("steps", [500, 5_000, 20_000])
def test_steps_measure_the_work(steps: int) -> None:
    problem, calls = hard(400, steps), count()

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            next(calls)

    reading = _calls_of(replace(problem, settings=Settings(steps=1)))
    sys.setprofile(profile)
    try:
        plan = pack(problem)
    finally:
        sys.setprofile(None)
    assert plan.steps <= steps + BEYOND
    assert next(calls) <= 2 * reading + CALLS_A_STEP * plan.steps


def _calls_of(problem: Problem) -> int:
    calls = count()

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            next(calls)

    sys.setprofile(profile)
    try:
        pack(problem)
    finally:
        sys.setprofile(None)
    return next(calls)


@pytest.mark.parametrize("steps", [None, 2_000])
def test_the_answer_does_not_depend_on_the_clock(steps: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = pack(hard(200, steps))
    for leap in (1e-9, 3600.0):
        for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
            monkeypatch.setattr(time, name, _clock(leap))
        again = pack(hard(200, steps))
        assert (plan.order, plan.price, plan.left_out, plan.steps) == (
            again.order,
            again.price,
            again.left_out,
            again.steps,
        )
        assert [claim.pods for claim in plan.claims] == [claim.pods for claim in again.claims]


def _clock(leap: float) -> Callable[[], float]:
    """A clock that goes on by so much at each look."""
    ticks = count()
    return lambda: next(ticks) * leap


def test_the_answer_does_not_depend_on_the_process() -> None:
    digests = set()
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", DIGEST]
        digests.add(subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, check=True).stdout)
    assert len(digests) == 1


def test_fewer_steps_than_one_are_refused() -> None:
    with pytest.raises(ValueError, match="steps: at least 1, not 0"):
        pack(hard(1, 0))
