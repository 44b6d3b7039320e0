"""The real kube-scheduler agrees with plans of problems with all rules: what a plan places it binds, what a plan leaves
out it does not bind, but for the marks of docs/scheduling.md, which are counted.

``STOCKYARD_SOAK`` raises the count of problems to 500.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from stockyard.scheduling.packing.plan import pack
from tests.harness.packing.marks import NEXT, mark_of_left_out, mark_of_placed, next_pass
from tests.harness.packing.reading import problem_of
from tests.harness.packing.rules import ruled_problem
from tests.harness.stories.packing_problems import plan_document
from tests.kubernetes.placing import Judge, Verdict

FEW, MANY = 10, 500
TOGETHER = 50
"""Problems that are on the API server at a time."""
Case = tuple[int, dict[str, Any], dict[str, Any]]


def case_of(chance: Random) -> Case:
    """A random problem with its seed and plan."""
    number = chance.getrandbits(48)
    problem = ruled_problem(number)
    return number, problem, plan_document(problem, pack(problem_of(problem)))


def left_out(problem: dict[str, Any], plan: dict[str, Any]) -> list[str]:
    """The pods to offer to the scheduler, first those that the next pass would place. What waits for a device or a gate
    is not looked at by a scheduler."""
    names = dict.fromkeys(next_pass(problem, plan))
    waits = [pod["name"] for pod in problem["pods"] if not pod.get("gated") and not pod.get("devices")]
    return [*names, *(name for name in waits if name not in plan["where"] and name not in names)]


def disagreements(case: Case, verdict: Verdict) -> tuple[list[str], Counter[str]]:
    """Disagreements of the scheduler with the plan, and the marks that allow them."""
    number, problem, plan = case
    wrong, marks = [], Counter[str]()
    pods = {pod["name"]: pod for pod in problem["pods"]}
    nodes = {node["name"]: node for node in (*problem["nodes"], *plan["nodes"])}
    for name, words in verdict.refused.items():
        mark = mark_of_placed(problem, nodes[plan["where"][name]], pods[name], words)
        marks[mark] += 1
        wrong += [] if mark else [f"{number}: {name} on {plan['where'][name]} is refused: {words}"]
    later = next_pass(problem, plan)
    for name, node in verdict.bound.items():
        mark = mark_of_left_out(problem, plan, pods[name], [node]) or (NEXT if name in later else "")
        marks[mark] += 1
        wrong += [] if mark else [f"{number}: {name} is left out, and bound to {node}"]
    return wrong, marks


def test_kube_scheduler_agrees(
    judge: Judge, seed: int, soaking: bool, record_property: Callable[[str, object], None]
) -> None:
    chance, count = Random(f"scheduler {seed}"), MANY if soaking else FEW
    marks, figures, wrong = Counter[str](), Counter[str](), list[str]()
    for first in range(0, count, TOGETHER):
        cases = [case_of(chance) for _ in range(min(TOGETHER, count - first))]
        offered = [left_out(problem, plan) for _, problem, plan in cases]
        verdicts = judge.judged([(problem, plan) for _, problem, plan in cases], offered)
        for case, verdict, names in zip(cases, verdicts, offered, strict=True):
            different, own = disagreements(case, verdict)
            wrong, marks = wrong + different, marks + own
            figures.update(placed=len(case[2]["order"]), left_out=len(names), nodes=len(case[2]["nodes"]))
    record_property(
        "figure:packing_rules_on_kubernetes",
        {"problems": count, **figures, "different": len(wrong), "marks": dict(sorted(marks.items()))},
    )
    assert wrong == []
