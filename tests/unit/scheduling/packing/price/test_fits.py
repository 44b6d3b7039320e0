"""Pods in classes by size: the bound is larger and holds, and small nodes do not mislead the search."""

from __future__ import annotations

import random
from dataclasses import asdict

import pytest

from local.testing import price_checker
from stockyard.domain.nodes.node_types import NodeType, Offering
from stockyard.scheduling.packing import model
from stockyard.scheduling.packing.plan import Plan, pack
from stockyard.scheduling.packing.price import EVERY, FreeProblem, Offer, Shape, lower_bound, solve
from stockyard.scheduling.packing.price.fits import by_fit

SMALL, MEDIUM, LARGE = Offer("small", (2, 2), 5), Offer("medium", (2, 4), 30), Offer("large", (16, 32), 200)


def plain(problem: FreeProblem) -> price_checker.Problem:
    numbers = range(len(problem.offers))
    return {
        "shapes": [
            {
                "requests": list(shape.requests),
                "count": shape.count,
                "offers": [number for number in numbers if shape.offers >> number & 1],
                "spaces": [],
            }
            for shape in problem.shapes
        ],
        "offers": [{"room": list(offer.room), "price": offer.price, "limit": None} for offer in problem.offers],
        "spaces": [],
    }


def test_shapes_are_parted_where_offers_no_longer_hold_them() -> None:
    shapes = (Shape((1, 1), 5), Shape((1, 2), 5), Shape((2, 4), 5), Shape((4, 4), 5))
    problem = by_fit(FreeProblem(shapes, (SMALL, MEDIUM, LARGE)), 3)
    assert problem is not None
    assert [bin(shape.offers) for shape in problem.shapes] == ["0b111", "0b111", "0b110", "0b100"]
    two = by_fit(FreeProblem(shapes, (SMALL, MEDIUM, LARGE)), 2)
    assert two is not None
    assert len({shape.offers for shape in two.shapes}) == 2


@pytest.mark.parametrize("shapes", [(Shape((1, 1), 5),), (Shape((1, 1), 5), Shape((2, 1), 1)), (Shape((99, 1), 1),)])
def test_pods_that_the_same_offers_hold_stay_one_class(shapes: tuple[Shape, ...]) -> None:
    assert by_fit(FreeProblem(shapes, (SMALL, MEDIUM, LARGE)), 10) is None


def test_classes_of_the_problem_are_parted_each_by_itself() -> None:
    shapes = (Shape((1, 1), 5, 0b101), Shape((4, 4), 5, 0b101), Shape((1, 1), 5, 0b010))
    problem = by_fit(FreeProblem(shapes, (SMALL, MEDIUM, LARGE)), 10)
    assert problem is not None
    assert [shape.offers for shape in problem.shapes] == [0b101, 0b100, 0b010]
    many = tuple(Shape((1, 1), 5, 1 << index | 0b100) for index in range(6))
    offers = tuple(Offer(str(number), (16, 32), 200) for number in range(6))
    assert by_fit(FreeProblem((*many, Shape((99, 1), 1)), offers), 10) is None, "too many classes"


def test_bound_is_larger_and_its_proof_holds() -> None:
    """A liquid would fill small nodes with what none of them holds."""
    problem = FreeProblem((Shape((1, 1), 2), Shape((2, 4), 10)), (SMALL, MEDIUM, LARGE))
    by_size = by_fit(problem, 2)
    assert by_size is not None
    proof = lower_bound(by_size)
    assert proof.bound > 1.5 * lower_bound(problem).bound
    answer = {"certificate": asdict(proof), "unplaced": []}
    assert price_checker.certificate_faults(plain(problem), answer) == []
    assert price_checker.certificate_faults(plain(problem), {**answer, "certificate": {**asdict(proof), "worst": 0}})


@pytest.mark.parametrize("seed", range(40))
def test_no_packing_is_lost_and_no_bound_is_above_the_optimum(seed: int) -> None:
    chance = random.Random(seed)
    shapes = tuple(
        Shape(requests, chance.randint(1, 2))
        for requests in dict.fromkeys((chance.randint(1, 5), chance.randint(1, 8)) for _ in range(3))
    )
    offers = tuple(
        Offer(str(number), (chance.randint(1, 12), chance.randint(1, 16)), chance.randint(1, 90)) for number in range(5)
    )
    problem = FreeProblem(shapes, offers)
    by_size = by_fit(problem, chance.choice((2, 3, 10)))
    optimum = price_checker.optimum(plain(problem))
    if by_size is None or optimum is None:
        return
    assert price_checker.optimum(plain(by_size)) == optimum
    assert lower_bound(by_size).bound <= optimum
    assert solve(by_size).price >= optimum


def packed(count: int, steps: int) -> Plan:
    """Pods of one cpu: half of them are too large for the smallest nodes, which are the cheapest for their cpu."""
    rooms = {"micro": (2, 1, 0.01), "small": (2, 2, 0.02), "large": (16, 64, 0.6), "huge": (64, 256, 2.4)}
    types = tuple(
        NodeType(f"lab.{name}", "lab", {}, room, room, 0, (Offering("on-demand", ("a",), price),))
        for name, (cpu, gib, price) in rooms.items()
        for room in ({"cpu": cpu * 1000, "memory": gib * 2**30 * 1000, "pods": 110_000},)
    )
    groups = []
    for number, gib in enumerate((0.5, 3.0)):
        memory = int(gib * 2**30 * 1000)
        pod = model.Pod("default", (), (("cpu", 1000), ("memory", memory), ("pods", 1000)))
        groups.append(model.PodGroup(pod, tuple(f"{number}/{index}" for index in range(count))))
    return pack(model.Problem(tuple(groups), (model.Pool("p", types),), settings=model.Settings(steps=steps)))


def test_small_nodes_do_not_mislead_a_plan() -> None:
    """Half of the pods go to the smallest nodes in pairs, the others to large ones, sixteen to each."""
    plan = packed(200, 400_000)
    assert not plan.left_out
    cheapest = 100 * 0.01 + 200 / 16 * 0.6
    assert plan.price <= 1.05 * cheapest
    assert plan.bound is not None
    assert plan.bound == pytest.approx(cheapest)


def test_every_offer_of_a_shape_is_kept_where_it_names_all() -> None:
    problem = by_fit(FreeProblem((Shape((1, 1), 5, EVERY), Shape((4, 4), 5, EVERY)), (SMALL, LARGE)), 2)
    assert problem is not None
    assert [shape.offers for shape in problem.shapes] == [0b11, 0b10]
