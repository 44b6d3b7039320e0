"""Plans obey every rule that decides where a pod may go, by two readings that know nothing of the packer.

One is the checker, the other the board of the local scheduler. What a plan leaves out has no place on the board, but
for the rules that docs/scheduling.md marks. ``STOCKYARD_SOAK`` raises the count of problems to 20,000.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from local.kubernetes.placing.model import pod_of
from local.testing.packing_checker import faults
from stockyard.scheduling import host_ports
from stockyard.scheduling.packing import model, rows, topology
from stockyard.scheduling.packing.plan import pack
from tests.harness.packing.board import board_of
from tests.harness.packing.manifests import pod_manifest
from tests.harness.packing.marks import MARKS, NEXT, mark_of_left_out, mark_of_placed, next_pass
from tests.harness.packing.reading import problem_of
from tests.harness.packing.rules import ruled_problem
from tests.harness.stories.packing_problems import plan_document

FEW, MANY = 300, 20_000
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "scheduling.md"


def planned(seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A random problem and its plan."""
    problem = ruled_problem(seed)
    return problem, plan_document(problem, pack(problem_of(problem)))


def judged(problem: Mapping[str, Any], plan: Mapping[str, Any]) -> tuple[list[str], Counter[str]]:
    """Disagreements of the board with the plan, and the marks that allow them."""
    board, pods, marks = board_of(problem, plan), {pod["name"]: pod for pod in problem["pods"]}, Counter[str]()
    documents = {node["name"]: node for node in (*problem["nodes"], *plan["nodes"])}
    nodes, wrong = {node.name: node for node in board.nodes}, []
    for name in plan["order"]:
        pod, where = pod_of(pod_manifest(pods[name])), plan["where"][name]
        fault = board.faults(pod)[where]
        mark = mark_of_placed(problem, documents[where], pods[name], fault) if fault else ""
        marks[mark] += bool(fault)
        if fault and not mark:
            wrong.append(f"{name} on {where}: {fault}")
        nodes[where].add(pod)
    for name, where in next_pass(problem, plan).items():
        pod = pod_of(pod_manifest(pods[name]))
        if not board.faults(pod)[where]:
            nodes[where].add(pod)
            marks[mark_of_left_out(problem, plan, pods.pop(name), [where]) or NEXT] += 1
    for name in pods.keys() - plan["where"].keys():
        if pods[name].get("gated") or pods[name].get("devices"):
            continue
        fitting = [node for node, fault in board.faults(pod_of(pod_manifest(pods[name]))).items() if not fault]
        if fitting:
            mark = mark_of_left_out(problem, plan, pods[name], fitting)
            marks[mark] += 1
            if not mark:
                wrong.append(f"{name} is left out and has a place on {', '.join(fitting)}")
    return wrong, marks


def test_plans_obey_all_rules(seed: int, soaking: bool, record_property: Callable[[str, object], None]) -> None:
    chance, count, marks = Random(f"rules {seed}"), MANY if soaking else FEW, Counter[str]()
    placed = pods = 0
    for _ in range(count):
        number = chance.getrandbits(48)
        problem, plan = planned(number)
        assert faults(problem, plan) == [], number
        wrong, own = judged(problem, plan)
        assert wrong == [], number
        placed, pods, marks = placed + len(plan["order"]), pods + len(problem["pods"]), marks + own
    assert placed > 0.4 * pods
    figure = {"problems": count, "pods": pods, "placed": placed, "invalid": 0, "marks": dict(sorted(marks.items()))}
    record_property("figure:packing_rules", figure)


def test_the_table_has_each_mark_and_no_other() -> None:
    rows_marked = re.findall(r"\*as Karpenter, not as kube-scheduler\*: ([a-z -]+?) \|", DOCUMENT.read_text())
    assert sorted(rows_marked) == sorted(MARKS)


MUTANTS: dict[str, tuple[object, str, object]] = {
    "taints and cordons": (model.Pod, "tolerates", lambda self, taints, *, preferred=True: True),
    "ports": (host_ports.HostPort, "conflicts", lambda self, port: False),
    "spread": (topology.SpreadRule, "allowed", lambda self, domains, universe: domains),
    "anti-affinity": (topology.AntiAffinityRule, "allows", lambda self, host: True),
    "labels": (rows.Rows, "of_term", lambda self, term: self.every),
}
"""Rules that are taken out of the packer."""


@pytest.mark.parametrize("rule", MUTANTS)
def test_without_the_rule_a_plan_is_wrong(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, replacement = MUTANTS[rule]
    monkeypatch.setattr(owner, name, replacement)
    plans = [planned(seed) for seed in range(200)]
    assert any(faults(problem, plan) and judged(problem, plan)[0] for problem, plan in plans), "no problem needs it"
