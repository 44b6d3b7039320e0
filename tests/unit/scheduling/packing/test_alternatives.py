"""A claim names fewer ways than its plan leaves open, and keeps the ``minValues`` of its pool."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.nodes.node_types import NodeType, Offering
from stockyard.domain.values.requirements import CAPACITY_TYPE, IN, INSTANCE_TYPE, NODE_TYPE, ZONE, Requirements
from stockyard.scheduling.index import Index
from stockyard.scheduling.match import Availability, SchedulingRequest, choose
from stockyard.scheduling.packing.alternatives import MOST_TYPES, Alternatives, possible_alternatives
from stockyard.scheduling.packing.model import Pod, PodGroup, Pool, Problem
from stockyard.scheduling.packing.plan import Claim, pack

GIB = 2**30 * 1000
FAMILY = "family"
ROOM = {"cpu": 4000, "memory": 16 * GIB, "pods": 110_000}


def node_type(number: int, *alternatives: Offering, family: str = "cheap") -> NodeType:
    name = f"t{number:03}"
    properties = {FAMILY: (family,), INSTANCE_TYPE: (name,), NODE_TYPE: (f"p.{name}",)}
    offerings = alternatives or (Offering("on-demand", ("a",), 1 + number / 1000),)
    return NodeType(f"p.{name}", "p", properties, ROOM, ROOM, 0, offerings)


def planned(types: tuple[NodeType, ...], *requirements: dict[str, Any]) -> Claim:
    pod = Pod("default", (), (("cpu", 1000), ("memory", GIB), ("pods", 1000)))
    pool = Pool("pool", types, Requirements.of(requirements))
    (claim,) = pack(Problem((PodGroup(pod, ("p",)),), (pool,))).claims
    return claim


def asks(key: str, least: int, **more: Any) -> dict[str, Any]:
    return {"key": key, "operator": "Exists", "minValues": least, **more}


def is_bound(types: tuple[NodeType, ...], alternatives: Alternatives, *requirements: dict[str, Any]) -> bool:
    """Whether the scheduler binds a claim with the pool's requirements and these ways."""
    keys = (NODE_TYPE, ZONE, CAPACITY_TYPE)
    named = [(key, values) for key, values in zip(keys, alternatives, strict=True) if values]
    own = [{"key": key, "operator": IN, "values": list(values)} for key, values in named]
    request = SchedulingRequest(Requirements.of([*requirements, *own]), {})
    return choose(Index.build(types), request, Availability()) is not None


def test_without_least_values_the_cheapest_types_are_named() -> None:
    types = tuple(node_type(number) for number in range(100))
    names, zones, capacity_types = possible_alternatives(planned(types))
    assert (len(names), names[0], names[-1]) == (MOST_TYPES, "p.t000", f"p.t{MOST_TYPES - 1:03}")
    assert (zones, capacity_types) == (["a"], ["on-demand"])


def test_types_behind_the_cheapest_bring_the_values_that_are_needed() -> None:
    families = {70: "b", 71: "b", 80: "c", 90: "d"}
    types = tuple(node_type(number, family=families.get(number, "cheap")) for number in range(100))
    least = asks(FAMILY, 3)
    alternatives = possible_alternatives(planned(types, least))
    assert alternatives[0][MOST_TYPES:] == ["p.t070", "p.t080"]
    assert is_bound(types, alternatives, least)


@pytest.mark.parametrize("key", [INSTANCE_TYPE, NODE_TYPE])
def test_names_of_types_count_themselves(key: str) -> None:
    types = tuple(node_type(number) for number in range(100))
    least = asks(key, 50)
    assert is_bound(types, possible_alternatives(planned(types, least)), least)


def test_several_capacity_types_and_zones_stay() -> None:
    both = (Offering("on-demand", ("a", "b"), 1.0), Offering("spot", ("a", "b"), 0.5))
    single = (Offering("spot", ("a",), 0.1),)
    narrow = (Offering("on-demand", ("a",), 0.3), Offering("spot", ("a",), 0.2))
    types = (node_type(0, *both), node_type(1, *narrow), node_type(2, *single))
    for least in (asks(CAPACITY_TYPE, 2), asks(ZONE, 2)):
        alternatives = possible_alternatives(planned((types[0],), least))
        assert is_bound(types, alternatives, least)
    for least in (asks(CAPACITY_TYPE, 2), asks(FAMILY, 1)):
        alternatives = possible_alternatives(planned(types[1:2], least))
        assert (alternatives[0], alternatives[1]) == (["p.t001"], ["a"])
        assert is_bound(types, alternatives, least)


def test_least_values_count_more_than_a_ceiling() -> None:
    types = tuple(node_type(number, family=f"f{number}") for number in range(5))
    assert possible_alternatives(planned(types), 1.0015)[0] == ["p.t000", "p.t001"]
    least = asks(FAMILY, 4)
    alternatives = possible_alternatives(planned(types, least), 1.0015)
    assert is_bound(types, alternatives, least)
    assert possible_alternatives(planned(types, asks(FAMILY, 2)), 1.0015)[0] == ["p.t000", "p.t001"]
