"""Callers that wait no longer get what was found by then, by all rules; a small question is answered whole all the
same."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from stockyard.domain.values.requirements import ZONE, Requirement
from stockyard.scheduling.packing import plan, solve
from stockyard.scheduling.packing.model import Node, Pod, PodGroup, Problem, Selector, Settings, Spread
from stockyard.scheduling.packing.plan import pack
from stockyard.scheduling.packing.reasons import BUDGET
from tests.unit.scheduling.simulation.test_replay import POOL


def problem(settings):
    groups = []
    for number in range(1, 9):
        pod = Pod("default", (("app", str(number)),), (("cpu", 300 * number), ("memory", 1), ("pods", 1000)))
        groups.append(PodGroup(pod, tuple(f"{number}/{each}" for each in range(6))))
    return Problem(tuple(groups), (POOL,), settings=settings)


def test_few_pods_have_their_whole_plan_though_nobody_waits_any_longer():
    """32 and 48 pods on clusters with several pools were left out in part on a machine with a load of 20."""
    for gang in ("", "team"):
        of_one = problem(Settings())
        groups = tuple(PodGroup(replace(group.pod, gang=gang), group.names) for group in of_one.groups)
        pools = tuple(replace(POOL, name=f"pool-{number}") for number in range(6))
        whole = pack(replace(of_one, groups=groups, pools=pools))
        busy = pack(replace(of_one, groups=groups, pools=pools, settings=Settings(expired=lambda: True)))
        assert not whole.left_out
        assert (busy.order, busy.price, busy.steps, busy.left_out) == (whole.order, whole.price, whole.steps, ())


def test_a_packing_ends_when_its_caller_waits_no_longer(monkeypatch):
    monkeypatch.setattr(plan, "PATIENT_STEPS", 0)
    whole = pack(problem(Settings()))
    assert not whole.left_out
    patient = pack(problem(Settings(expired=lambda: False)))
    assert (patient.price, patient.order, patient.steps) == (whole.price, whole.order, whole.steps)
    calls = count()
    part = pack(problem(Settings(expired=lambda: next(calls) > 3)))
    placed = sum(len(claim.pods) for claim in part.claims)
    assert 0 < placed < 48
    assert placed + sum(len(item.pods) for item in part.left_out) == 48
    assert {reason.rule for item in part.left_out for reason in item.reasons} == {BUDGET}


def test_the_clock_is_looked_at_among_pods_of_one_kind(monkeypatch):
    """Thousands of equal pods with rules are one piece of work, and may be all that there is."""
    monkeypatch.setattr(plan, "PATIENT_STEPS", 0)
    monkeypatch.setattr(solve, "LOOK_STEPS", 100)
    spread = Spread(ZONE, 1, Selector((("app", Requirement.of("In", ["a"])),)))
    pod = Pod("default", (("app", "a"),), (("cpu", 300), ("memory", 1), ("pods", 1000)), spreads=(spread,))
    calls = count()
    of_one = Problem((PodGroup(pod, tuple(map(str, range(1000)))),), (POOL,))
    part = pack(replace(of_one, settings=Settings(expired=lambda: next(calls) > 5)))
    assert 0 < sum(len(claim.pods) for claim in part.claims) < 500


def test_combinations_of_domains_are_work_too():
    """Each label over which pods spread multiplies the domains of a pod that may be in none of them."""
    keys = [f"example.com/{key}" for key in "abcd"]
    values = [f"v{number}" for number in range(40)]
    selector = Selector((("app", Requirement.of("In", ["a"])),))
    one_of_many = tuple((key, Requirement.of("In", values)) for key in keys)
    pod = Pod(
        "default",
        (("app", "a"),),
        (("cpu", 300), ("memory", 1), ("pods", 1000)),
        terms=(one_of_many,),
        spreads=tuple(Spread(key, 1, selector) for key in keys),
    )
    nodes = tuple(
        Node(f"n{number}", dict.fromkeys(keys, values[number]), {"cpu": 0, "memory": 10, "pods": 1000})
        for number in range(40)
    )
    none = pack(Problem((PodGroup(pod, ("a",)),), (POOL,), nodes, settings=Settings(steps=5000)))
    assert [item.pods for item in none.left_out] == [("a",)]
    assert none.steps < 6000
