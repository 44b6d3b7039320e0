"""Packing for price against a checker, a plain rendering of Karpenter's rule, and the optimum by brute force."""

from __future__ import annotations

from copy import deepcopy
from fractions import Fraction
from random import Random

from local.testing import price_checker
from stockyard.scheduling.packing.price import solve
from tests.properties import price_problems

SMALL, FEW_SMALL = 10_000, 250
LARGER, FEW_LARGER = 2_000, 25


def test_small_problems_are_solved_to_the_optimum(soaking, seed, record_property):
    """Never dearer than Karpenter's rule, and never above 1.05 of the exhaustive optimum, which 95 % reach."""
    chance, count, optimal, solved = Random(seed), SMALL if soaking else FEW_SMALL, 0, 0
    for number in range(count):
        data = price_problems.small(chance)
        plain = price_problems.written(answer := solve(price_problems.read(data)))
        label = f"problem {number} of seed {seed}: {data}"
        assert not price_checker.faults(data, plain), label
        assert not price_checker.certificate_faults(data, plain), label
        price, placed = price_checker.greedy(data)
        assert plain["unplaced"] == [
            (n, shape["count"] - placed[n]) for n, shape in enumerate(data["shapes"]) if shape["count"] > placed[n]
        ], label
        assert answer.price <= answer.greedy == price, label
        least = price_checker.optimum(data)
        if least is not None:
            solved += 1
            optimal += answer.price == least
            assert answer.bound <= least <= answer.price <= 1.05 * least, label
    assert solved > count // 2
    assert optimal >= 0.95 * solved
    record_property("figure:price_small", {"problems": count, "solved": solved, "optimal": optimal})


def test_larger_problems_are_packed_right_and_never_dearer_than_the_rule(soaking, seed, record_property):
    chance, count, cheaper = Random(seed), LARGER if soaking else FEW_LARGER, 0
    for number in range(count):
        data = price_problems.larger(chance)
        answer = solve(price_problems.read(data), steps=20_000)
        plain = price_problems.written(answer)
        label = f"problem {number} of seed {seed}: {data}"
        assert not price_checker.faults(data, plain), label
        assert not price_checker.certificate_faults(data, plain), label
        if all(offer["limit"] is None for offer in data["offers"]):
            price, placed = price_checker.greedy(data)
            left_out = dict(answer.unplaced)
            for shape, most in enumerate(placed):
                assert data["shapes"][shape]["count"] - left_out.get(shape, 0) >= most, label
            if sum(placed) == sum(shape["count"] for shape in data["shapes"]) - sum(left_out.values()):
                assert answer.price <= price, label
                cheaper += answer.price < price
    assert cheaper > count // 5
    record_property("figure:price_larger", {"problems": count, "cheaper": cheaper})


def test_same_problem_has_the_same_answer(seed):
    chance = Random(seed)
    for _ in range(3):
        data = price_problems.larger(chance)
        assert solve(price_problems.read(data), steps=5_000) == solve(price_problems.read(deepcopy(data)), steps=5_000)


def test_checker_finds_what_is_wrong(seed):
    chance = Random(seed)
    data = price_problems.larger(chance)
    while len(data["offers"]) < 3 or data["spaces"] or len(data["shapes"]) < 3:
        data = price_problems.larger(chance)
    right = price_problems.written(solve(price_problems.read(data), steps=5_000))
    assert not price_checker.faults(data, right)
    assert not price_checker.certificate_faults(data, right)
    for change in (
        lambda wrong: wrong["bins"].pop(),
        lambda wrong: wrong["bins"].append(wrong["bins"][0]),
        lambda wrong: wrong.update(price=wrong["price"] - 1),
        lambda wrong: wrong.update(bound=wrong["price"] + 1),
        lambda wrong: wrong["bins"][0]["counts"].append((0, 1_000)),
    ):
        wrong = deepcopy(right)
        change(wrong)
        assert price_checker.faults(data, wrong)
    assert right["certificate"]["bound"] > 0
    for change in (
        lambda proof: proof.update(bound=proof["bound"] + 1),
        lambda proof: proof.update(worst=proof["worst"] * Fraction(9, 10)),
        lambda proof: proof.update(values=[[2 * value for value in row] for row in proof["values"]]),
    ):
        wrong = deepcopy(right)
        change(wrong["certificate"])
        assert price_checker.certificate_faults(data, wrong)
