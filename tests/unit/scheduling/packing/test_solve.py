"""Nodes that preferred rules may buy: as many as required ones, or none while there is room."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from stockyard.domain.nodes.node_types import NodeType, Offering
from stockyard.domain.values.requirements import CAPACITY_TYPE, HOSTNAME, ZONE
from stockyard.scheduling.packing.model import (
    Node,
    Pod,
    PodGroup,
    PodTerm,
    Pool,
    Preference,
    Problem,
    Selector,
    Settings,
    Spread,
    term,
)
from stockyard.scheduling.packing.plan import Plan, pack

GIB = 2**30 * 1000
APP = Selector(term([{"key": "app", "operator": "In", "values": ["x"]}]))
TYPES = tuple(
    NodeType(f"p.s{cpu}", "p", {}, room, room, 0, (Offering("on-demand", ("za", "zb", "zc"), cpu * 0.05),))
    for cpu in (2, 4, 8)
    for room in ({"cpu": cpu * 1000, "memory": 4 * cpu * GIB, "pods": 110_000},)
)
APART: dict[str, Any] = {"anti_affinity": (PodTerm(HOSTNAME, APP, frozenset({"default"}), 100),)}
SPREAD: dict[str, Any] = {"spreads": (Spread(ZONE, 1, APP, hard=False), Spread(HOSTNAME, 1, APP, hard=False))}
ZONES: dict[str, Any] = {"spreads": (Spread(ZONE, 1, APP, hard=False),)}


def packed(count: int, cpu: int, nodes: tuple[Node, ...] = (), *, preferred_nodes: bool = False, **rules: Any) -> Plan:
    pod = Pod("default", (("app", "x"),), (("cpu", cpu), ("memory", GIB // 2), ("pods", 1000)), **rules)
    group = PodGroup(pod, tuple(f"p{number}" for number in range(count)))
    plan = pack(Problem((group,), (Pool("pool", TYPES),), nodes, settings=Settings(preferred_nodes=preferred_nodes)))
    assert not plan.left_out
    return plan


@pytest.mark.parametrize("rules", [APART, SPREAD])
def test_no_node_is_made_for_a_preference_while_there_is_room(rules: dict[str, Any]) -> None:
    assert len(packed(4, 300, preferred_nodes=True, **rules).claims) == 4
    assert len(packed(4, 300, **rules).claims) == 1
    there = Node("n", {HOSTNAME: "n", ZONE: "za"}, {"cpu": 900, "memory": GIB * 8, "pods": 9000})
    plan = packed(4, 300, (there,), **rules)
    assert ([len(placement.pods) for placement in plan.placements], len(plan.claims)) == ([3], 1)


def test_nodes_that_are_there_are_chosen_by_preferences() -> None:
    room = {"cpu": 900, "memory": GIB * 8, "pods": 9000}
    nodes = tuple(Node(name, {HOSTNAME: name, ZONE: zone}, room) for name, zone in (("a", "za"), ("b", "zb")))
    for rules in (APART, SPREAD):
        assert [len(placement.pods) for placement in packed(2, 300, nodes, **rules).placements] == [1, 1]


def test_nodes_that_are_needed_anyway_are_made_as_preferred() -> None:
    plan = packed(30, 500, **ZONES)
    zones = Counter[str]()
    for claim in plan.claims:
        zones[claim.row.zone] += len(claim.pods)
    assert zones == {"za": 10, "zb": 10, "zc": 10}
    zb = (Preference(1, term([{"key": ZONE, "operator": "In", "values": ["zb"]}])),)
    assert [claim.row.zone for claim in packed(1, 500, preferences=zb).claims] == ["zb"]
    spot = (Preference(1, term([{"key": CAPACITY_TYPE, "operator": "In", "values": ["spot"]}])),)
    assert len(packed(2, 500, preferences=spot).claims) == 1  # nobody has any


def test_a_node_apart_is_made_where_it_costs_no_more_than_a_larger_one() -> None:
    plan = packed(4, 1500, **APART)
    assert len(plan.claims) == 4
    assert plan.price == pytest.approx(0.4)
    assert packed(4, 1500, preferred_nodes=True, **APART).price == pytest.approx(0.4)
