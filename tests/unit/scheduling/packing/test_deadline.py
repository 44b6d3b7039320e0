"""Who waits no longer gets what was found by then, by all rules."""

from __future__ import annotations

from itertools import count

from stockyard.scheduling.packing.model import Pod, PodGroup, Problem, Settings
from stockyard.scheduling.packing.plan import pack
from stockyard.scheduling.packing.reasons import BUDGET
from tests.unit.scheduling.simulation.test_replay import POOL


def problem(settings):
    groups = []
    for number in range(1, 9):
        pod = Pod("default", (("app", str(number)),), (("cpu", 300 * number), ("memory", 1), ("pods", 1000)))
        groups.append(PodGroup(pod, tuple(f"{number}/{each}" for each in range(5))))
    return Problem(tuple(groups), (POOL,), settings=settings)


def test_a_packing_ends_when_its_caller_waits_no_longer():
    whole = pack(problem(Settings()))
    assert not whole.left_out
    patient = pack(problem(Settings(expired=lambda: False)))
    assert (patient.price, patient.order, patient.steps) == (whole.price, whole.order, whole.steps)
    calls = count()
    part = pack(problem(Settings(expired=lambda: next(calls) > 3)))
    placed = sum(len(claim.pods) for claim in part.claims)
    assert 0 < placed < 40
    assert placed + sum(len(item.pods) for item in part.left_out) == 40
    assert {reason.rule for item in part.left_out for reason in item.reasons} == {BUDGET}
