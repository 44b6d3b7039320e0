"""Nodes whose pods have room under any spreading by the scheduler, and nodes whose pods fit only as a puzzle."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stockyard.domain.values.requirements import HOSTNAME
from stockyard.scheduling.consolidation.model import Fleet, Settings
from stockyard.scheduling.consolidation.places import homeless_pods
from stockyard.scheduling.consolidation.search import consolidate
from stockyard.scheduling.packing.model import PodTerm, Selector, Taint, term
from tests.unit.scheduling.consolidation.test_search import LARGE, TYPES, fleet, names, pod, running

CAREFUL = Settings(careful=True)
SMALL_PODS, BIG_POD = [pod(500, "small")] * 4, pod(2000, "big")


def puzzle(free: int, count: int = 1) -> Fleet:
    """``count`` times a node with four small pods and a big one, and two others with so much room for them."""
    used = pod(8000 - free, "rest")
    nodes = []
    for number in range(count):
        nodes.append(running(f"go-{number}", LARGE, *SMALL_PODS, BIG_POD))
        nodes += [running(f"{name}-{number}", LARGE, used) for name in "ab"]
    return fleet(*nodes, types=TYPES[1:])


@pytest.mark.parametrize("count", [1, 4])
def test_what_fits_in_one_order_alone_goes_only_without_care(count: int) -> None:
    """Two nodes with 2 cores each hold 4 times a half and once 2, but not after each has got two small pods."""
    tight = puzzle(2000, count)
    going = [f"go-{number}" for number in range(count)]
    assert names(consolidate(tight)) == going
    careful = consolidate(tight, CAREFUL)
    assert set(names(careful)) < set(going)


@pytest.mark.parametrize("count", [1, 4])
def test_what_fits_in_any_order_goes_with_care_too(count: int) -> None:
    roomy = puzzle(3500, count)
    assert names(consolidate(roomy, CAREFUL)) == names(consolidate(roomy)) == [f"go-{n}" for n in range(count)]


def test_with_care_as_much_goes_as_fits() -> None:
    """Eight nodes have a pod each with room on a ninth node, and any number of the eight can go."""
    nodes = [running(f"go-{number}", LARGE, pod(1000)) for number in range(7)]
    decision = consolidate(fleet(*nodes, running("stays", LARGE, pod(1000, "rest")), types=TYPES[1:]), CAREFUL)
    assert decision is not None
    assert len(decision.nodes) == 7


def test_labels_and_taints_keep_pods_from_room() -> None:
    """Room that a pod may not have does not count, and new nodes count with what is planned on them."""
    nodes = [running("go", LARGE, pod(1000)), running("b", LARGE, pod(7000, "rest"))]
    shut = running("shut", LARGE, pod(1000, "rest"))
    taint = Taint("k", "v", "NoSchedule")
    shut = type(shut)(
        type(shut.node)(shut.node.name, shut.node.labels, shut.node.free, (taint,), shut.node.pods),
        shut.pods, shut.pool, shut.price, shut.cost, blocker="it is held",
    )  # fmt: skip
    assert names(consolidate(fleet(*nodes, shut, types=TYPES[1:]), CAREFUL)) == ["go"]
    full = [nodes[0], running("b", LARGE, pod(7500, "rest")), shut]
    assert consolidate(fleet(*full, types=TYPES[1:]), CAREFUL) is None


def test_a_cheaper_node_in_its_place_is_room_too() -> None:
    decision = consolidate(fleet(running("go", LARGE, pod(1000))), CAREFUL)
    assert decision is not None
    assert [replacement.claim.price for replacement in decision.replacements] == [0.1]


@pytest.mark.parametrize(("used", "scheduler"), [(5500, "fills"), (6900, "spreads")])
def test_a_pod_that_is_alone_on_its_host_may_come_last(used: int, scheduler: str) -> None:
    """A budget may hold it until small pods have taken the one place that is left for it: ``c`` is fuller than ``b``,
    and a scheduler that fills nodes uses it first, or it is emptier, and one that spreads pods does."""
    terms = term([{"key": "app", "operator": "In", "values": ["db"]}])
    alone = PodTerm(HOSTNAME, Selector(terms), frozenset({"default"}))
    database = pod(1000, "db", anti_affinity=(alone,))
    going = running("go", LARGE, database, pod(50), pod(50))
    beside = running("b", LARGE, database, pod(used, "rest"), blocker="it is held")
    for room, goes in ((1000, []), (1100, ["go"])):
        other = running("c", LARGE, pod(8000 - room, "rest"), blocker="it is held")
        nodes = fleet(going, beside, other, types=TYPES[1:])
        assert names(consolidate(nodes)) == ["go"], scheduler
        assert names(consolidate(nodes, CAREFUL)) == goes, scheduler


def test_pods_that_are_still_to_come_may_find_another_place() -> None:
    """Pods that are still to come are packed again together with those that move: the large pod takes the large
    room."""
    waiting = pod(2000, "waits")
    first, second = running("a", LARGE, pod(5000, "rest"), waiting), running("b", LARGE, pod(6000, "rest"))
    going = running("go", LARGE, pod(3000))
    there = fleet(first, second, going, awaited={"a": ((waiting, 1),)})
    assert homeless_pods(there, [going]) == 0
    assert homeless_pods(replace(there, awaited={}), [going]) == 1
