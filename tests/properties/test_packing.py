"""Plans obey Kubernetes' rules, whatever the problem; and each rule is needed: without it a plan is found to be wrong.

The checker knows nothing of the packer. ``STOCKYARD_SOAK`` raises the count of problems to 20,000.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from local.testing.packing_checker import faults
from stockyard.scheduling import host_ports
from stockyard.scheduling.packing import known, limits, model, rows, solve, topology
from stockyard.scheduling.packing import plan as plan_module
from stockyard.scheduling.packing.plan import Plan, pack
from stockyard.scheduling.packing.price.model import Meter
from tests.harness.stories.packing_problems import plan_document, problem_of, random_problem

FEW, MANY = 400, 20_000
MUTANT_PROBLEMS = 300
"""Problems in a row, from that on which shows it, that a mutant is given to fail in."""
SHOWN_AT = {"nodes that count": 8000}
"""Where the first problem that needs a rule comes late."""


def plan_of(seed: int) -> tuple[dict[str, Any], Plan]:
    document = random_problem(seed)
    return document, pack(problem_of(document))


def test_plans_obey_the_rules(seed: int, soaking: bool, record_property: Callable[[str, object], None]) -> None:
    chance, placed, pods = Random(seed), 0, 0
    count = MANY if soaking else FEW
    for _ in range(count):
        number = chance.getrandbits(48)
        document, plan = plan_of(number)
        assert faults(document, plan_document(document, plan)) == [], number
        placed, pods = placed + len(plan.order), pods + len(document["pods"])
    assert placed > pods / 2
    record_property("figure", ("packing_problems", {"problems": count, "placed": placed, "pods": pods, "invalid": 0}))


def test_a_plan_does_not_depend_on_the_order_of_nodes_and_daemon_sets() -> None:
    for seed in range(60):
        document = random_problem(seed)
        turned = {**document, **{name: document[name][::-1] for name in ("nodes", "daemonsets", "types")}}
        plan, again = pack(problem_of(document)), pack(problem_of(turned))
        assert plan_document(document, plan) == plan_document(turned, again), seed


def test_pods_placed_together_are_placed_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [random_problem(seed) for seed in range(200)]
    prices = [pack(problem_of(document)).price for document in documents]
    monkeypatch.setattr(solve, "MANY", 10**9)
    for document, price in zip(documents, prices, strict=True):
        assert price == pytest.approx(pack(problem_of(document)).price), document["seed"]


def _with_gangs_in_parts(problem: model.Problem, meter: Meter) -> tuple[model.Problem, solve.Solver, tuple[()]]:
    solver = solve.Solver(problem, meter, split=False)
    solver.solve()
    return problem, solver, ()


MUTANTS: dict[str, tuple[object, str, object]] = {
    "room": (rows.Rows, "holding", lambda self, names, totals: self.every),
    "labels": (rows.Rows, "of_term", lambda self, term: self.every),
    "taints": (rows.Rows, "tolerated", lambda self, pod, *, preferred: self.every),
    "daemon sets": (rows.Rows, "_daemons", lambda self, pool, node_type, daemons: {}),
    "limits": (limits.Limits, "within", lambda self, pool, possible, before: possible),
    "limits are used up": (limits.Limits, "take", lambda self, pool, row, before: None),
    "minValues": (solve.Solver, "_enough_values", lambda self, pool, possible: True),
    "ports": (host_ports.HostPort, "conflicts", lambda self, port: False),
    "spread over zones": (topology.SpreadRule, "allowed", lambda self, domains, universe: domains),
    "spread over hosts": (topology.SpreadRule, "allows", lambda self, host: True),
    "guards of hosts": (topology.GuardRule, "allows", lambda self, host: True),
    "affinity in zones": (topology.AffinityRule, "allowed", lambda self, domains, universe: domains),
    "affinity on hosts": (topology.AffinityRule, "allows", lambda self, host: True),
    "anti-affinity in zones": (topology.AntiAffinityRule, "allowed", lambda self, domains, universe: domains),
    "anti-affinity on hosts": (topology.AntiAffinityRule, "allows", lambda self, host: True),
    "those who are refused": (topology.Tallies, "against", lambda self, namespace, labels: ()),
    "gangs": (plan_module, "_with_whole_gangs", _with_gangs_in_parts),
    "who is counted": (topology.Tally, "add", lambda self, *pods: None),
    "pods that are there": (topology.Tallies, "record", lambda self, *placed: None),
    "nodes that count": (solve.Solver, "_decided", lambda self, pod_class, possible: possible),
    "labels and taints of known nodes": (known, "satisfies", lambda level, node: True),
    "domains of known nodes": (known.KnownNodes, "within", lambda self, keys, combinations: -1),
    "room of known nodes": (known.KnownNodes, "_holding", lambda self, requests: (1 << len(self.nodes)) - 1),
}


@pytest.mark.parametrize("rule", MUTANTS)
def test_without_the_rule_a_plan_is_wrong(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, replacement = MUTANTS[rule]
    monkeypatch.setattr(owner, name, replacement)
    assert any(_is_wrong(seed) for seed in range(SHOWN_AT.get(rule, 0), SHOWN_AT.get(rule, 0) + MUTANT_PROBLEMS)), (
        "no problem needs the rule"
    )


def _is_wrong(seed: int) -> bool:
    document, plan = plan_of(seed)
    return bool(faults(document, plan_document(document, plan)))
