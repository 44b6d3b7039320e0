"""Plans that make no node for a preference obey the rules, leave out no more pods, and mostly cost less."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from local.testing.packing_checker import faults
from stockyard.scheduling.packing.model import Settings
from stockyard.scheduling.packing.plan import pack
from tests.harness.stories.packing_problems import plan_document, problem_of, random_problem

FEW, MANY = 150, 5_000


def test_plans_without_nodes_for_preferences_obey_the_rules(seed: int, soaking: bool) -> None:
    chance, prices, usual = Random(seed), 0.0, 0.0
    for _ in range(MANY if soaking else FEW):
        number = chance.getrandbits(48)
        document = random_problem(number)
        problem = problem_of(document)
        plan = pack(replace(problem, settings=Settings(preferred_nodes=False)))
        assert faults(document, plan_document(document, plan)) == [], number
        other = pack(problem)
        if len(plan.order) == len(other.order):
            prices, usual = prices + plan.price, usual + other.price
    assert 0 < prices <= usual
