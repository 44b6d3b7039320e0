"""Results of a packing: claims with their ways, pods that are left out and why, gangs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.nodes.node_types import NodeType, Offering
from stockyard.domain.values.requirements import CAPACITY_TYPE, HOSTNAME, ZONE, Requirements
from stockyard.scheduling.packing.model import (
    Node,
    PlacedPod,
    Pod,
    PodGroup,
    PodTerm,
    Pool,
    Preference,
    Problem,
    Selector,
    Settings,
    Spread,
    Taint,
    term,
)
from stockyard.scheduling.packing.plan import Plan, pack

GIB = 2**30 * 1000
APP = Selector(term([{"key": "app", "operator": "In", "values": ["x"]}]))


def node_type(name: str, cpu: int, price: float, zones: tuple[str, ...] = ("a", "b"), **labels: str) -> NodeType:
    room = {"cpu": cpu * 1000, "memory": cpu * 4 * GIB, "pods": 110_000}
    alternatives = (Offering("on-demand", zones, price), Offering("spot", zones[:1], price / 2))
    return NodeType(f"p.{name}", "p", {key: (value,) for key, value in labels.items()}, room, room, 0, alternatives)


SMALL, LARGE = node_type("small", 2, 0.1), node_type("large", 8, 0.4, disk="ssd")


def pod(cpu: int = 1000, memory: int = GIB, **fields: Any) -> Pod:
    return Pod("default", (("app", "x"),), (("cpu", cpu), ("memory", memory), ("pods", 1000)), **fields)


def packed(wanted_pod: Pod, count: int = 1, *, nodes: tuple[Node, ...] = (), **pool: Any) -> Plan:
    names = tuple(f"p{number}" for number in range(count))
    types = pool.pop("node_types", (SMALL, LARGE))
    return pack(Problem((PodGroup(wanted_pod, names),), (Pool("pool", types, **pool),), nodes))


def requiring(key: str, *values: str) -> dict[str, Any]:
    return {"terms": (term([{"key": key, "operator": "In", "values": list(values)}]),)}


def test_a_claim_has_its_ways_in_order_of_price() -> None:
    (claim,) = packed(pod()).claims
    assert [(row.node_type.bare, row.capacity_type, row.zone, row.price) for row in claim.rows] == [
        ("small", "spot", "a", 0.05),
        ("small", "on-demand", "a", 0.1),
        ("small", "on-demand", "b", 0.1),
        ("large", "spot", "a", 0.2),
        ("large", "on-demand", "a", 0.4),
        ("large", "on-demand", "b", 0.4),
    ]
    assert [kind.bare for kind in claim.node_types] == ["small", "large"]
    assert (claim.price, claim.labels[ZONE], claim.labels[CAPACITY_TYPE]) == (0.05, "a", "spot")
    assert claim.requests == {"cpu": 1000, "memory": GIB, "pods": 1000}


def test_pods_fill_a_node_that_is_there_first() -> None:
    there = Node("there", {ZONE: "b"}, {"cpu": 2500, "memory": 64 * GIB, "pods": 5000})
    plan = packed(pod(), 3, nodes=(there,))
    assert [(placement.node, placement.pods) for placement in plan.placements] == [("there", ("p0", "p1"))]
    assert [claim.pods for claim in plan.claims] == [("p2",)]


def test_spread_counts_zones_that_a_pod_would_rather_avoid() -> None:
    elsewhere = term([{"key": ZONE, "operator": "NotIn", "values": ["a"]}])
    room = {"cpu": 4000, "memory": 8 * GIB, "pods": 9000}
    near = Node("near", {ZONE: "b"}, room, pods=(PlacedPod("default", (("app", "x"),)),))
    far = Node("far", {ZONE: "a"}, {})
    spreads = (Spread(ZONE, 1, APP),)
    plan = packed(pod(spreads=spreads, preferences=(Preference(1, elsewhere),)), nodes=(near, far), limits={"cpu": 0})
    assert plan.placements == ()


def test_a_node_that_is_ready_goes_before_one_that_starts() -> None:
    room = {"cpu": 1000, "memory": GIB, "pods": 1000}
    starting, ready = Node("a", {}, room, initialized=False), Node("b", {}, room)
    assert packed(pod(), nodes=(starting, ready)).placements[0].node == "b"


def test_two_cheap_nodes_are_planned_instead_of_a_dear_one() -> None:
    dear = (node_type("small", 2, 0.1), node_type("large", 8, 0.9))
    plan = packed(pod(2000), 2, node_types=dear)
    assert ([claim.row.node_type.bare for claim in plan.claims], plan.price) == (["small", "small"], 0.1)
    joined = Problem((PodGroup(pod(2000), ("p0", "p1")),), (Pool("pool", dear),), settings=Settings(split=False))
    assert pack(joined).price == 0.45


def test_a_heavier_pool_goes_before_a_cheaper_one() -> None:
    pools = (Pool("cheap", (SMALL,)), Pool("heavy", (LARGE,), weight=1))
    assert pack(Problem((PodGroup(pod(), ("p",)),), pools)).claims[0].pool.name == "heavy"


def test_limits_count_nodes_resources_and_money_within_one_plan() -> None:
    assert len(packed(pod(2000), 5, node_types=(SMALL,), limits={"nodes": 2000}).claims) == 2
    assert len(packed(pod(2000), 5, node_types=(SMALL,), limits={"cpu": 6000}, used={"cpu": 1000}).claims) == 2
    assert len(packed(pod(2000), 5, node_types=(SMALL,), money=0.4, spent=0.2).claims) == 4
    many = packed(pod(2000), 5000, node_types=(SMALL,), limits={"nodes": 1_000_000})
    assert (len(many.claims), len(many.order)) == (1000, 1000)


def gang(second: Pod, *, limit: int) -> Plan:
    groups = (PodGroup(replace(pod(2000), gang="g"), ("p0", "p1")), PodGroup(replace(second, gang="g"), ("q0",)))
    groups += (PodGroup(pod(500), ("free",)),)
    return pack(Problem(groups, (Pool("pool", (SMALL,), limits={"nodes": limit}),)))


def test_a_gang_is_placed_whole_or_not_at_all() -> None:
    assert sorted(gang(pod(1000), limit=3000).order) == ["free", "p0", "p1", "q0"]
    plan = gang(pod(1000), limit=2000)
    assert plan.order == ("free",)
    assert {left_out.pods for left_out in plan.left_out} == {("p0", "p1"), ("q0",)}
    assert [(reason.rule, reason.subject) for reason in plan.left_out[0].reasons] == [("Gang", "g"), ("Limit", "nodes")]


ANTI = (PodTerm(ZONE, APP, frozenset({"default"})),)
GPU_POD = replace(pod(), requests=(("cpu", 1000), ("pods", 1000), ("x/gpu", 1000)))
UNSERVED = {"x/gpu": "no image"}
BESIDE = (PodTerm(HOSTNAME, Selector(term([{"key": "app", "operator": "In", "values": ["y"]}])), None),)


@pytest.mark.parametrize(
    ("refused", "pool", "rule", "subject", "words"),
    [
        (pod(), {"node_types": ()}, "NoNodeTypes", "", "no node type"),
        (pod(), {"node_types": (), "unserved": UNSERVED}, "NoNodeTypes", "", "no node can be made yet: no image."),
        (GPU_POD, {"unserved": UNSERVED}, "Resource", "x/gpu", "Of others no node can be made yet: no image."),
        (pod(), {"taints": (Taint("only", "us"),)}, "Taint", "only", "only=us:NoSchedule"),
        (pod(**requiring("disk", "hdd")), {}, "Requirement", "disk", "disk In hdd"),
        (pod(terms=()), {}, "Requirement", "", "no term"),
        (pod(volumes=(term([{"key": ZONE, "operator": "In", "values": ["c"]}]),)), {}, "Volume", "", "volumes"),
        (pod(cpu=9000), {}, "Resource", "cpu", "cpu 9 beside"),
        (pod(cpu=8000, **requiring("disk", "ssd"), memory=33 * GIB), {}, "Resource", "memory", "memory 33Gi"),
        (pod(affinity=BESIDE), {}, "Topology", HOSTNAME, "beside pods"),
        (pod(), {"limits": {"cpu": 1000}}, "Limit", "cpu", "limit of cpu"),
        (pod(), {"money": 0.01}, "Limit", "money", "limit of money"),
        (
            pod(),
            {"requirements": Requirements.of([{"key": ZONE, "operator": "Exists", "minValues": 3}])},
            "MinValues",
            ZONE,
            "Fewer than 3",
        ),
    ],
)
def test_what_is_left_out_says_why(refused: Pod, pool: dict[str, Any], rule: str, subject: str, words: str) -> None:
    (left_out,) = packed(refused, **pool).left_out
    (reason,) = left_out.reasons
    assert (left_out.pods, reason.pool, reason.rule, reason.subject) == (("p0",), "pool", rule, subject)
    assert words in reason.message


def test_pods_that_claim_devices_get_no_node() -> None:
    there = Node("there", {ZONE: "b"}, {"cpu": 2500, "memory": 64 * GIB, "pods": 5000})
    plan = packed(pod(devices=("gpu", "nic")), nodes=(there,))
    (left_out,) = plan.left_out
    assert [(reason.pool, reason.rule, reason.subject) for reason in left_out.reasons] == [
        ("", "ResourceClaims", "gpu, nic")
    ]
    assert left_out.reasons[0].text.startswith("The pod's spec.resourceClaims ask for devices (gpu, nic)")
    assert (plan.claims, plan.placements) == ((), ())


def test_the_last_pods_of_a_spread_say_which_values_they_may_have() -> None:
    plan = packed(pod(anti_affinity=ANTI), 3)
    (left_out,) = plan.left_out
    assert [(reason.rule, reason.subject) for reason in left_out.reasons] == [("Topology", ZONE)]
    assert left_out.reasons[0].message == f"Spread or affinity allows it in these values of {ZONE}: none."


def test_a_soft_spread_is_given_up_when_it_cannot_be_kept() -> None:
    spread = Spread(ZONE, 1, APP, hard=False)
    limited = packed(pod(2000, spreads=(spread,)), 3, node_types=(node_type("one", 2, 0.1, zones=("a",)),))
    assert len(limited.order) == 3


def test_pods_without_rules_are_packed_for_price_and_the_price_is_proven() -> None:
    kinds = tuple(node_type(f"t{cpu}", cpu, cpu * 0.05 - 0.001 * cpu**0.5) for cpu in (2, 4, 8, 16, 32))
    groups = tuple(
        PodGroup(pod(cpu, memory * GIB // 4), tuple(f"p{cpu}-{memory}-{number}" for number in range(20)))
        for cpu in (250, 700, 1500)
        for memory in (1, 5, 11)
    )
    problem = Problem(groups, (Pool("pool", kinds),))
    plan, joined = pack(problem), pack(replace(problem, settings=Settings(split=False)))
    assert len(plan.order) == len(joined.order) == 180
    assert plan.bound is not None
    assert plan.gap is not None
    assert plan.bound <= plan.price <= joined.price
    assert plan.gap < 0.05
    assert joined.bound is None


def test_offerings_without_a_price_do_not_end_the_search_for_price() -> None:
    """As types of EC2 for spot: nobody knows what they cost, so they are the last choice."""
    types = [node_type(f"t{cpu}", cpu, cpu * 0.05 - 0.001 * cpu**0.5) for cpu in (2, 4, 8, 16, 32)]
    kinds = tuple(replace(kind, offerings=kind.offerings[:1]) for kind in types)
    also_spot = tuple(replace(kind, offerings=(*kind.offerings, Offering("spot", ("a", "b")))) for kind in kinds)
    groups = tuple(PodGroup(pod(cpu), tuple(f"p{cpu}-{number}" for number in range(30))) for cpu in (250, 700, 1500))
    expected, plan = (pack(Problem(groups, (Pool("pool", pool),))) for pool in (kinds, also_spot))
    assert (plan.price, plan.bound) == (expected.price, expected.bound)
    assert {claim.row.capacity_type for claim in plan.claims} == {"on-demand"}
    wants_spot = PodGroup(pod(**requiring(CAPACITY_TYPE, "spot")), ("cheap",))
    both = pack(Problem((*groups, wants_spot), (Pool("pool", also_spot),)))
    assert (both.left_out, both.bound, both.price) == ((), None, float("inf"))
    ruled = tuple(replace(group, pod=replace(group.pod, anti_affinity=ANTI)) for group in groups[:1])
    expected, plan = (pack(Problem((*ruled, *groups[1:]), (Pool("pool", pool),))) for pool in (kinds, also_spot))
    assert (plan.price, len(plan.left_out)) == (expected.price, len(expected.left_out))


def test_a_bound_is_told_only_when_every_pod_has_room() -> None:
    assert packed(pod(2000), 2, node_types=(SMALL,)).bound == pytest.approx(0.1)
    assert packed(pod(2000), 2, node_types=(SMALL,), limits={"nodes": 1000}).bound is None
    assert packed(pod(anti_affinity=ANTI)).bound is None
