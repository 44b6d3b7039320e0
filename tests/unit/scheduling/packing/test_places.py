"""Types of which there are few: no plan has more nodes of one than it has places, whatever pools make them."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from stockyard.domain.nodes.node_types import NodeType, Offering
from stockyard.domain.values.requirements import ZONE
from stockyard.scheduling.packing.model import Pod, PodGroup, Pool, Problem, Selector, Spread, term
from stockyard.scheduling.packing.plan import Plan, pack

GIB = 2**30 * 1000
APP = Selector(term([{"key": "app", "operator": "In", "values": ["x"]}]))
SPREAD = {"spreads": (Spread(ZONE, 1, APP),)}


def node_type(name: str, cpu: int, price: float) -> NodeType:
    room = {"cpu": cpu * 1000, "memory": cpu * 4 * GIB, "pods": 110_000}
    return NodeType(f"p.{name}", "p", {}, room, room, 0, (Offering("on-demand", ("a", "b"), price),), limited=True)


RARE, USUAL = node_type("rare", 4, 0.1), node_type("usual", 4, 0.3)


def group(count: int, cpu: int = 2000, name: str = "p", **fields: Any) -> PodGroup:
    pod = Pod("default", (("app", "x"),), (("cpu", cpu), ("memory", GIB), ("pods", 1000)), **fields)
    return PodGroup(pod, tuple(f"{name}{number}" for number in range(count)))


def packed(
    *groups: PodGroup, places: dict[str, int], types: tuple[NodeType, ...] = (RARE, USUAL), pools: int = 1
) -> Plan:
    listed = tuple(Pool(f"pool-{number}", types) for number in range(pools))
    return pack(Problem(groups, listed, places=places))


def used(plan: Plan) -> Counter[str]:
    return Counter(claim.row.node_type.bare for claim in plan.claims)


@pytest.mark.parametrize("rules", [{}, SPREAD], ids=["plain", "spread"])
@pytest.mark.parametrize("pools", [1, 2])
def test_the_cheap_type_is_used_while_it_has_places(rules: dict[str, Any], pools: int) -> None:
    plan = packed(group(8, **rules), places={"p.rare": 2}, pools=pools)
    assert not plan.left_out
    assert used(plan) == {"rare": 2, "usual": 2}


def test_a_type_without_places_is_not_used() -> None:
    assert used(packed(group(4), places={"p.rare": 0})) == {"usual": 2}


def test_pods_beyond_all_places_are_told_why() -> None:
    plan = packed(group(10), places={"p.rare": 2, "p.usual": 1})
    assert used(plan) == {"rare": 2, "usual": 1}
    (left_out,) = plan.left_out
    assert len(left_out.pods) == 4
    assert [(reason.rule, reason.message) for reason in left_out.reasons] == [
        ("Limit", "No node type of the pool that would take it has a place left.")
    ]


def test_types_that_are_not_named_have_no_end() -> None:
    assert used(packed(group(10), places={})) == {"rare": 5}


def test_a_node_that_outgrows_a_type_gives_its_slot_back() -> None:
    """The first pod opens a small node; with the second it is a larger one, and the small type is free again."""
    small, large = node_type("small", 2, 0.1), node_type("large", 4, 0.15)
    plan = packed(group(1, 2000), group(2, 1000, "q"), places={"p.small": 1}, types=(small, large))
    assert not plan.left_out
    assert used(plan)["small"] <= 1


@pytest.mark.parametrize("seed", range(60))
def test_no_plan_has_more_nodes_of_a_type_than_places(seed: int) -> None:
    chance = random.Random(seed)
    types = tuple(
        node_type(f"t{number}", chance.choice((2, 4, 8)), round(chance.uniform(0.05, 0.6), 3)) for number in range(5)
    )
    places = {kind.name: chance.randint(0, 3) for kind in types if chance.random() < 0.7}
    groups = [
        group(chance.randint(1, 9), chance.choice((500, 1000, 2000)), f"g{number}-", **chance.choice(({}, {}, SPREAD)))
        for number in range(3)
    ]
    plan = packed(*groups, places=places, types=types, pools=chance.randint(1, 2))
    counts = Counter(claim.row.node_type.name for claim in plan.claims)
    assert all(counts[name] <= most for name, most in places.items()), (counts, places)
    assert sum(len(claim.pods) for claim in plan.claims) + sum(len(entry.pods) for entry in plan.left_out) == sum(
        len(each.names) for each in groups
    )
