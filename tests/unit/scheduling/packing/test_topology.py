"""Rules over labels: those that no node has, and the nodes that a spread counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.nodes.node_types import NodeType, Offering
from stockyard.domain.values.requirements import HOSTNAME, ZONE
from stockyard.scheduling.packing.model import (
    Node,
    Pod,
    PodGroup,
    PodTerm,
    Pool,
    Problem,
    Selector,
    Spread,
    Taint,
    Toleration,
    term,
)
from stockyard.scheduling.packing.plan import Plan, pack

GIB = 2**30 * 1000
APP = Selector(term([{"key": "app", "operator": "In", "values": ["x"]}]))
OWN = frozenset({"default"})
ROOM = {"cpu": 8000, "memory": 8 * GIB, "pods": 9000}
TYPE = NodeType("p.t", "p", {}, ROOM, ROOM, 0, (Offering("on-demand", ("za", "zb", "zc"), 0.1),))
RACK = "example.com/rack"


def node(name: str, *taints: Taint, **labels: str) -> Node:
    return Node(
        name, {HOSTNAME: name, **{ZONE if key == "zone" else RACK: labels[key] for key in labels}}, ROOM, taints
    )


def packed(count: int, *nodes: Node, pools: bool = True, beside: tuple[PodGroup, ...] = (), **fields: Any) -> Plan:
    pod = Pod("default", (("app", "x"),), (("cpu", 500), ("memory", GIB), ("pods", 1000)), **fields)
    names = tuple(f"p{number}" for number in range(count))
    return pack(Problem((PodGroup(pod, names), *beside), (Pool("pool", (TYPE,)),) if pools else (), nodes))


def left_out(plan: Plan) -> int:
    return sum(len(item.pods) for item in plan.left_out)


PREFERRED: list[dict[str, Any]] = [
    {"spreads": (Spread(RACK, 1, APP, hard=False),)},
    {"affinity": (PodTerm(RACK, APP, OWN, 5),)},
    {"anti_affinity": (PodTerm(RACK, APP, OWN, 5),)},
]
REQUIRED: list[dict[str, Any]] = [
    {"spreads": (Spread(RACK, 1, APP),)},
    {"affinity": (PodTerm(RACK, APP, OWN),)},
    {"anti_affinity": (PodTerm(RACK, APP, OWN),)},
]


@pytest.mark.parametrize("fields", PREFERRED)
def test_a_preferred_rule_over_a_label_that_no_node_has_keeps_no_pod_out(fields: dict[str, Any]) -> None:
    assert (left_out(packed(2, **fields)), len(packed(2, **fields).claims)) == (0, 1)
    assert [placement.pods for placement in packed(2, node("n"), **fields).placements] == [("p0", "p1")]


def test_a_required_rule_needs_the_label_unless_it_keeps_pods_apart() -> None:
    for fields, outside in zip(REQUIRED, (2, 2, 0), strict=True):
        assert left_out(packed(2, **fields)) == left_out(packed(2, node("n"), pools=False, **fields)) == outside
        # The pods of somebody else whom the rule counts need no label.
        asks = Pod("default", (("app", "y"),), (("cpu", 500), ("pods", 1000)), **fields)
        assert left_out(packed(2, beside=(PodGroup(asks, ("q",)),))) == min(outside, 1)
    apart = packed(3, node("a", rack="r1"), node("b", rack="r1"), pools=False, **REQUIRED[2])
    assert left_out(apart) == 2


def test_a_spread_honors_taints_only_where_it_says_so() -> None:
    tainted = node("t", Taint("edge"), zone="zd")
    spread = Spread(ZONE, 1, APP)
    assert left_out(packed(4, tainted, spreads=(spread,))) == 1
    honoring = replace(spread, honors_taints=True)
    assert left_out(packed(4, tainted, spreads=(honoring,))) == 0
    tolerant = (Toleration("edge", "Exists"),)
    assert left_out(packed(4, tainted, spreads=(honoring,), tolerations=tolerant)) == 0
    full = replace(tainted, free={})
    assert left_out(packed(4, full, spreads=(honoring,), tolerations=tolerant)) == 1


def test_a_spread_counts_all_zones_where_it_ignores_affinity() -> None:
    nodes = [node(f"n{zone}", zone=zone) for zone in ("za", "zb", "zc")]
    bound: dict[str, Any] = {"terms": (term([{"key": ZONE, "operator": "In", "values": ["za"]}]),)}
    spread = Spread(ZONE, 1, APP)
    assert left_out(packed(3, *nodes, spreads=(spread,), **bound)) == 0
    for pools in (True, False):
        assert left_out(packed(3, *nodes, pools=pools, spreads=(replace(spread, honors_affinity=False),), **bound)) == 2


def test_nodes_that_lack_a_label_of_another_spread_do_not_count() -> None:
    """kube-scheduler counts nodes that have every label over which the pod has to be spread."""
    both = (Spread("kubernetes.io/arch", 1, APP), Spread(RACK, 9, APP))
    arms = [node(name, rack="r") for name in ("a", "b")]
    arms = [replace(each, labels={**each.labels, "kubernetes.io/arch": "arm64"}) for each in arms]
    bare = Node("c", {HOSTNAME: "c", "kubernetes.io/arch": "amd64"}, ROOM)
    assert left_out(packed(2, *arms, bare, pools=False, spreads=both)) == 0
    assert left_out(packed(2, *arms, bare, pools=False, spreads=both[:1])) == 0
    full = replace(bare, free={})
    assert left_out(packed(2, *arms, full, pools=False, spreads=both)) == 0
    assert left_out(packed(2, *arms, full, pools=False, spreads=both[:1])) == 1


def test_a_node_that_is_not_preferred_is_better_than_none() -> None:
    disliked = node("n", Taint("example.com/old", "", "PreferNoSchedule"), zone="za")
    plan = packed(2, disliked, pools=False)
    assert [(placement.node, len(placement.pods)) for placement in plan.placements] == [("n", 2)]
