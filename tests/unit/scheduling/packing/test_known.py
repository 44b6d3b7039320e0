"""Volumes of pods and the places that nodes have for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.nodes.node_types import NodeType, Offering
from stockyard.domain.values.requirements import HOSTNAME, ZONE
from stockyard.scheduling.packing.model import Node, Pod, PodGroup, Pool, Problem, Selector, Spread, term
from stockyard.scheduling.packing.plan import Plan, pack

GIB = 2**30 * 1000
ROOM = {"cpu": 8000, "memory": 32 * GIB, "pods": 110_000}
DISK, SHARE = "disk.example.com", "share.example.com"
TYPE = NodeType("p.t", "p", {}, ROOM, ROOM, 0, (Offering("on-demand", ("a", "b"), 0.1),))
APP = Selector(term([{"key": "app", "operator": "In", "values": ["x"]}]))


def group(name: str, count: int, volumes: int, cpu: int = 500, **fields: Any) -> PodGroup:
    attachments = ((DISK, volumes),) if volumes else ()
    requests = (("cpu", cpu), ("memory", GIB), ("pods", 1000))
    pod = Pod("default", (("app", "x"),), requests, attachments=attachments, **fields)
    return PodGroup(pod, tuple(f"{name}{number}" for number in range(count)))


def node(name: str, **attachable: int) -> Node:
    return Node(name, {HOSTNAME: name, ZONE: "a"}, ROOM, attachable={DISK: attachable["disk"]} if attachable else {})


def packed(*groups: PodGroup, nodes: tuple[Node, ...], pools: bool = True) -> Plan:
    return pack(Problem(groups, (Pool("pool", (TYPE,)),) if pools else (), nodes))


def on(plan: Plan) -> dict[str, int]:
    return {placement.node: len(placement.pods) for placement in plan.placements}


@pytest.mark.parametrize("fields", [{}, {"spreads": (Spread(ZONE, 3, APP),)}], ids=["plain", "spread"])
def test_a_node_takes_as_many_volumes_as_it_has_slots_for(fields: dict[str, Any]) -> None:
    plan = packed(group("p", 4, 2, **fields), nodes=(node("n", disk=5),))
    assert on(plan) == {"n": 2}
    assert sum(len(claim.pods) for claim in plan.claims) == 2  # the limits of a new node are not known
    assert set(plan.claims[0].requests) == {"cpu", "memory", "pods"}


def test_pods_without_volumes_of_the_driver_need_no_slot() -> None:
    full = node("n", disk=0)
    assert on(packed(group("p", 3, 0), nodes=(full,))) == {"n": 3}
    shared = group("p", 3, 0)
    other = replace(shared, pod=replace(shared.pod, attachments=((SHARE, 1),)))
    assert on(packed(other, nodes=(full,))) == {"n": 3}
    assert on(packed(group("p", 3, 1), nodes=(full, node("m")))) == {"m": 3}


def test_pods_with_and_without_volumes_share_what_is_there() -> None:
    groups = (group("v", 6, 1), group("w", 30, 0, cpu=250), group("x", 3, 2, cpu=1000))
    plan = packed(*groups, nodes=(node("a", disk=4), node("b", disk=3)), pools=False)
    pods = {name: each.pod for each in groups for name in each.names}
    for placement, slots in zip(sorted(plan.placements, key=lambda each: each.node), (4, 3), strict=True):
        assert sum(dict(pods[name].attachments).get(DISK, 0) for name in placement.pods) <= slots
    placed = [name for placement in plan.placements for name in placement.pods]
    assert sum(name.startswith("w") for name in placed) == 30
    assert sum(dict(pods[name].attachments).get(DISK, 0) for name in placed) >= 6


def test_what_pods_leave_of_a_node_can_be_given_back() -> None:
    pods = [(group("p", 1, 2).pod, 2)]
    taken_node = node("n", disk=5).less(pods)
    assert (taken_node.free["cpu"], taken_node.attachable) == (7000, {DISK: 1})
    assert taken_node.less((pod, -count) for pod, count in pods) == node("n", disk=5)
