"""Plans that follow proposals of the search for price obey the rules, are not dearer, and place as many pods."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from local.testing.packing_checker import faults
from stockyard.scheduling.host_ports import PortBits
from stockyard.scheduling.packing import guided, plan
from stockyard.scheduling.packing.classes import Level
from stockyard.scheduling.packing.plan import Plan, pack
from tests.harness.stories.packing_problems import plan_document, problem_of, random_problem

FEW, MANY = 30, 1_500
COPIES = 6
"""How many pods take the place of each pod of a random problem."""
MUTANT_PROBLEMS = 150


def large_problem(seed: int) -> dict[str, Any]:
    """A random problem with more pods and no limits, in which it pays to look for a cheaper packing."""
    document = random_problem(seed)
    pods = [{**pod, "name": f"{pod['name']}-{copy}"} for pod in document["pods"] for copy in range(COPIES)]
    pools = [{**pool, "limits": {}, "weight": 0} for pool in document["pools"]]
    return {**document, "pods": pods, "pools": pools}


def left_out(answer: Plan) -> int:
    return sum(len(item.pods) for item in answer.left_out)


def test_proposals_lead_to_plans_that_obey_the_rules_and_are_not_dearer(
    soaking: bool, seed: int, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    chance, count, cheaper = Random(seed), MANY if soaking else FEW, 0
    for _ in range(count):
        number = chance.getrandbits(48)
        document = large_problem(number)
        answer = pack(problem_of(document))
        assert faults(document, plan_document(document, answer)) == [], number
        with monkeypatch.context() as context:
            context.setattr(plan, "_guided", lambda problem, solver, meter: solver)
            alone = pack(problem_of(document))
        assert left_out(answer) <= left_out(alone), number
        if left_out(answer) == left_out(alone):
            assert answer.price <= alone.price + 1e-9, number
            cheaper += answer.price < alone.price - 1e-9
    assert cheaper > count // 20
    record_property("figure:packing_guided", {"problems": count, "cheaper": cheaper, "invalid": 0})


MUTANTS: dict[str, tuple[object, str, object]] = {
    "hosts": (Level, "allows_host", lambda self, host: True),
    "ports": (PortBits, "refused", 0),
}


@pytest.mark.parametrize("rule", MUTANTS)
def test_without_the_rule_a_followed_proposal_is_wrong(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, replacement = MUTANTS[rule]
    original = guided.GuidedSolver._join

    def lenient(self: Any, *arguments: Any) -> bool:
        with monkeypatch.context() as context:
            context.setattr(owner, name, replacement)
            return original(self, *arguments)

    monkeypatch.setattr(guided.GuidedSolver, "_join", lenient)
    monkeypatch.setattr(plan, "_quality", lambda solver: (not isinstance(solver, guided.GuidedSolver), 0.0))
    for seed in range(MUTANT_PROBLEMS):
        document = large_problem(seed)
        if faults(document, plan_document(document, pack(problem_of(document)))):
            return
    raise AssertionError("no problem needs the rule")
