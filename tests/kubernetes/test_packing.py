"""The real kube-scheduler binds every pod that a plan of the packer places, and refuses what the packer must not do.

``STOCKYARD_SOAK`` raises the count of problems to 300.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from local.testing.packing_checker import faults
from stockyard.scheduling import host_ports
from stockyard.scheduling.packing import rows, topology
from stockyard.scheduling.packing.plan import pack
from tests.harness.stories.packing_problems import plan_document, problem_of, random_problem
from tests.kubernetes.placing import Judge, acceptable

FEW, MANY = 6, 300
TOGETHER = 50
"""Problems that are on the API server at a time."""
MUTANTS: dict[str, tuple[object, str, object]] = {
    "labels": (rows.Rows, "of_term", lambda self, term: self.every),
    "taints": (rows.Rows, "tolerated", lambda self, pod, *, preferred: self.every),
    "ports": (host_ports.HostPort, "conflicts", lambda self, port: False),
    "daemon sets": (rows.Rows, "_daemons", lambda self, pool, node_type, daemons: {}),
    "spread over zones": (topology.SpreadRule, "allowed", lambda self, domains, universe: domains),
    "affinity in zones": (topology.AffinityRule, "allowed", lambda self, domains, universe: domains),
    "anti-affinity on hosts": (topology.AntiAffinityRule, "allows", lambda self, host: True),
}
"""Rules that are taken out of the packer."""
VISIBLE = (" in order: ", " of cpu, and", " of memory, and", "one port twice", "its taints", "asks for other labels")
"""What faults say that the scheduler can see."""


def planned(seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A random problem and its plan."""
    problem = random_problem(seed)
    return problem, plan_document(problem, pack(problem_of(problem)))


def plans(chance: Random) -> Iterator[tuple[int, dict[str, Any], dict[str, Any]]]:
    """Plans that place something, of problems that the API server takes, each with its seed."""
    while True:
        number = chance.getrandbits(48)
        problem, plan = planned(number)
        if acceptable(problem) and plan["order"]:
            yield number, problem, plan


def test_every_pod_that_a_plan_places_is_bound(
    judge: Judge, seed: int, soaking: bool, record_property: Callable[[str, object], None]
) -> None:
    source, count = plans(Random(seed)), MANY if soaking else FEW
    pods = nodes = 0
    for first in range(0, count, TOGETHER):
        cases = [next(source) for _ in range(min(TOGETHER, count - first))]
        refused = judge.refused([(problem, plan) for _, problem, plan in cases])
        assert not any(refused), [(case[0], text) for case, text in zip(cases, refused, strict=True) if text]
        pods += sum(len(plan["order"]) for _, _, plan in cases)
        nodes += sum(len(plan["nodes"]) for _, _, plan in cases)
    record_property("figure:packing_on_kubernetes", {"problems": count, "pods": pods, "nodes": nodes, "refused": 0})


def test_what_breaks_a_rule_is_refused(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = []
    for owner, name, replacement in MUTANTS.values():
        with monkeypatch.context() as context:
            context.setattr(owner, name, replacement)
            cases.append(next((problem, plan) for _, problem, plan in plans(Random(1)) if _visible(problem, plan)))
    refused = judge.refused(cases)
    assert all(refused), dict(zip(MUTANTS, refused, strict=True))


def _visible(problem: dict[str, Any], plan: dict[str, Any]) -> bool:
    """Whether a fault is one that the scheduler judges: it knows neither pools nor pods that are still to come."""
    return any(mark in text for text in faults(problem, plan) for mark in VISIBLE)
