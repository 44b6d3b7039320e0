"""Scheduling scenarios: pools, daemon sets and pods in steps, packed by the core, and what is expected of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stockyard.domain.nodes.node_types import NodeType
from stockyard.domain.values.quantities import milli
from stockyard.domain.values.requirements import (
    CAPACITY_TYPE,
    HOSTNAME,
    ZONE,
)
from stockyard.scheduling.packing.model import (
    Node,
    PlacedPod,
    Pod,
    PodGroup,
    Problem,
    Settings,
)
from stockyard.scheduling.packing.plan import Claim, pack
from tests.conformance.scenario_documents import catalogue, check_fields, read_pod, read_pool

Json = Any
TOLERANCE = 1e-6
_STEP = frozenset({"nodepools", "daemonsets", "pods", "delete_pods_not_in_zone"})
FIELDS = frozenset({"catalog", "max_instance_types", "steps", "expected", "derived_node_price"})

EXPECTATIONS = frozenset(
    {
        "all_scheduled",
        "none_scheduled",
        "scheduled",
        "unscheduled",
        "scheduled_by_step",
        "scheduled_pods",
        "unscheduled_pods",
        "node_count",
        "node_types",
        "distinct_node_types",
        "pod_node_type",
        "node_price",
        "derived_node_price",
        "node_capacity",
        "node_labels",
        "node_lacks_label",
        "candidate_types",
        "min_candidates",
        "candidates_all_match",
        "candidates_fit_all",
        "zone_skew_sorted",
    }
)
"""What a scenario may expect; each is a method of ``Judge``."""


@dataclass(slots=True)
class Machine:
    """A node of the scenario: what it was planned as, and the pods on it now."""

    claim: Claim
    max_types: int
    pods: dict[str, PlacedPod]
    used: dict[str, int]

    @property
    def labels(self) -> dict[str, str]:
        return {**self.claim.labels, HOSTNAME: self.claim.name}

    def node(self, name: str) -> Node:
        """Node of the machine, as the next step sees it."""
        room = self.claim.row.room
        free = {resource: amount - self.used.get(resource, 0) for resource, amount in room.items()}
        return Node(name, {**self.labels, HOSTNAME: name}, free, self.claim.pool.taints, tuple(self.pods.values()))


@dataclass(slots=True)
class World:
    """State after the steps so far."""

    nodes: list[Machine] = field(default_factory=list)
    scheduled: list[str] = field(default_factory=list)
    unscheduled: list[str] = field(default_factory=list)
    by_step: list[int] = field(default_factory=list)

    def with_pods(self) -> list[Machine]:
        return [node for node in self.nodes if node.pods]


def run_scenario(case: Mapping[str, Json], folder: Path) -> tuple[Json, Json]:
    """(expected, found): of what was found only where it differs in substance, and how."""
    expected, problem = run_with(case, folder, Settings())
    if problem is not None and "node_count" in case["expected"]:
        # More nodes pass when they cost no more than what joins whenever it can, and that is as expected.
        joined, nodes = price_of(case, folder, Settings(split=False)), price_of(case, folder, Settings())
        if nodes <= joined + TOLERANCE:
            expected, problem = run_with(case, folder, Settings(split=False))
    return expected, expected if problem is None else problem


def price_of(case: Mapping[str, Json], folder: Path, settings: Settings) -> float:
    """Price of all nodes of the scenario."""
    return sum(node.claim.price for node in run_steps(case, folder, settings).nodes)


def run_with(case: Mapping[str, Json], folder: Path, settings: Settings) -> tuple[Json, str | None]:
    """Expectations of the case, and the faults of the result."""
    world = run_steps(case, folder, settings)
    spread = [
        entry for step in case["steps"] for pod in step.get("pods", ()) for entry in pod.get("topology_spread", ())
    ]
    judge = Judge(world, case["max_instance_types"], spread, catalogue(folder, case["catalog"]))
    derived = {name: case[name] for name in ("derived_node_price",) if name in case}
    problems = [judge.problem(name, value) for name, value in {**case["expected"], **derived}.items()]
    return case["expected"], next((problem for problem in problems if problem), None)


def run_steps(case: Mapping[str, Json], folder: Path, settings: Settings) -> World:
    """State after all steps."""
    types, world = catalogue(folder, case["catalog"]), World()
    for step in case["steps"]:
        check_fields(step, _STEP)
        if "delete_pods_not_in_zone" in step:
            for node in world.nodes:
                if node.labels.get(ZONE) != step["delete_pods_not_in_zone"]:
                    node.pods.clear()
            continue
        run_step(world, step, types, case["max_instance_types"], settings)
    return world


def run_step(
    world: World, step: Mapping[str, Json], types: Sequence[NodeType], max_types: int, settings: Settings
) -> None:
    """Pack the pods of one step beside the nodes of the earlier ones."""
    groups = tuple(
        PodGroup(read_pod(pod), tuple(f"{pod['name']}-{number}" for number in range(pod["count"])))
        for pod in step["pods"]
    )
    nodes = {f"node-{number}": node for number, node in enumerate(world.nodes)}
    usage: Counter[tuple[str, str]] = Counter()
    for node in world.nodes:
        for resource, amount in {**node.claim.row.node_type.capacity, "nodes": 1000}.items():
            usage[node.claim.pool.name, resource] += amount
    pools = tuple(read_pool(pool, types, usage) for pool in step["nodepools"])
    daemons = tuple(read_pod(daemon) for daemon in step["daemonsets"])
    known_nodes = tuple(node.node(name) for name, node in nodes.items())
    plan = pack(Problem(groups, pools, known_nodes, daemons, settings))
    pods = {name: group.pod for group in groups for name in group.names}
    for placement in plan.placements:
        for name in placement.pods:
            place_pod(nodes[placement.node], name, pods[name])
    for claim in plan.claims:
        machine = Machine(claim, max_types, {}, {})
        for name in claim.pods:
            place_pod(machine, name, pods[name])
        world.nodes.append(machine)
    done = sorted({name for node in world.nodes for name in node.pods} & set(pods))
    world.by_step.append(len(done))
    world.scheduled += done
    world.unscheduled += sorted(set(pods) - set(done))


def place_pod(node: Machine, name: str, pod: Pod) -> None:
    node.pods[name] = PlacedPod(pod.namespace, pod.labels, pod.anti_affinity)
    for resource, amount in pod.requests:
        node.used[resource] = node.used.get(resource, 0) + amount


class Judge:
    """Judge of expectations, by name. The rules are those of the files' README."""

    def __init__(
        self, world: World, max_types: int, spread: Sequence[Mapping[str, Json]], types: Sequence[NodeType]
    ) -> None:
        self.world, self.nodes, self.max_types, self.spread = world, world.with_pods(), max_types, spread
        self.types = types

    def problem(self, name: str, expected: Json) -> str | None:
        """Fault of the result; None when it holds. An unknown name is wrong."""
        if name not in EXPECTATIONS:
            return f"unknown expectation {name}"
        actual = getattr(self, f"_{name}")(expected)
        return None if actual is None else f"{name}: expected {json.dumps(expected)}, came {actual}"

    def _all_scheduled(self, expected: bool) -> str | None:
        return None if expected is not bool(self.world.unscheduled) else f"unscheduled {self.world.unscheduled}"

    def _none_scheduled(self, expected: bool) -> str | None:
        return None if expected is not bool(self.world.scheduled) else f"scheduled {self.world.scheduled}"

    def _scheduled(self, expected: int) -> str | None:
        return _unless(len(self.world.scheduled) == expected, len(self.world.scheduled))

    def _unscheduled(self, expected: int) -> str | None:
        return _unless(len(self.world.unscheduled) == expected, len(self.world.unscheduled))

    def _scheduled_by_step(self, expected: list[int]) -> str | None:
        return _unless(self.world.by_step == expected, self.world.by_step)

    def _scheduled_pods(self, expected: list[str]) -> str | None:
        return _unless(_names(self.world.scheduled) == sorted(expected), self.world.scheduled)

    def _unscheduled_pods(self, expected: list[str]) -> str | None:
        return _unless(_names(self.world.unscheduled) == sorted(expected), self.world.unscheduled)

    def _node_count(self, expected: int) -> str | None:
        return _unless(len(self.nodes) == expected, f"{len(self.nodes)} nodes")

    def _node_types(self, expected: list[str]) -> str | None:
        actual = sorted({node.claim.row.node_type.bare for node in self.nodes})
        return _unless(set(actual) <= set(expected), actual)

    def _pod_node_type(self, expected: Mapping[str, str | list[str]]) -> str | None:
        """Node types by name of a group of pods; a cheaper type passes, and no pod may be without a node."""
        actual: dict[str, list[str]] = {}
        for group, name in expected.items():
            names = [name] if isinstance(name, str) else name
            machines = [node for node in self.nodes if group in _names(tuple(node.pods))]
            placed = sum(_group(pod) == group for node in machines for pod in node.pods)
            waiting = sum(_group(pod) == group for pod in self.world.unscheduled)
            wrong = [
                node
                for node in machines
                if node.claim.row.node_type.bare not in names and not self._is_cheaper(node.claim, names)
            ]
            if wrong or waiting or not placed:
                actual[group] = sorted({node.claim.row.node_type.bare for node in machines}) or ["no node"]
        return _unless(not actual, actual)

    def _is_cheaper(self, claim: Claim, names: Sequence[str]) -> bool:
        """Whether a planned node costs less than one of these types that is bought in the same way."""
        prices = [
            way.usd_hour
            for each in self.types
            for way in each.offerings
            if each.bare in names and way.capacity_type == claim.row.capacity_type and way.usd_hour is not None
        ]
        return bool(prices) and claim.price < min(prices) - TOLERANCE

    def _distinct_node_types(self, expected: int) -> str | None:
        actual = {node.claim.row.node_type.bare for node in self.nodes}
        return _unless(len(actual) == expected, sorted(actual))

    def _node_price(self, expected: float) -> str | None:
        actual = [node.claim.row.price for node in self.nodes]
        return _unless(all(price <= expected + TOLERANCE for price in actual), actual)

    _derived_node_price = _node_price

    def _node_capacity(self, expected: Mapping[str, str]) -> str | None:
        actual = [{name: node.claim.row.node_type.capacity[name] for name in expected} for node in self.nodes]
        target = {name: milli(amount) for name, amount in expected.items()}
        return _unless(all(amounts == target for amounts in actual), actual)

    def _node_labels(self, expected: Mapping[str, str]) -> str | None:
        actual = [{key: node.labels.get(key) for key in expected} for node in self.nodes]
        return _unless(bool(actual) and all(labels == expected for labels in actual), actual)

    def _node_lacks_label(self, expected: str) -> str | None:
        return _unless(all(expected not in node.labels for node in self.nodes), "a node with it")

    def _candidates(self) -> list[list[NodeType]]:
        return [list(node.claim.node_types[: self.max_types]) for node in self.nodes]

    def _min_candidates(self, expected: int) -> str | None:
        counts = [len(candidates) for candidates in self._candidates()]
        return _unless(all(count >= expected for count in counts), counts)

    def _candidate_types(self, expected: list[str]) -> str | None:
        actual = [[entry.bare for entry in candidates] for candidates in self._candidates()]
        return _unless(all(sorted(names) == sorted(expected) for names in actual), actual)

    def _candidates_all_match(self, expected: Mapping[str, str]) -> str | None:
        for node in self.nodes:
            for node_type in node.claim.node_types[: self.max_types]:
                offered = {
                    ZONE: {zone for offering in node_type.offerings for zone in offering.zones},
                    CAPACITY_TYPE: {offering.capacity_type for offering in node_type.offerings},
                }
                for key, value in expected.items():
                    if value not in offered.get(key, set(node_type.properties.get(key, ()))):
                        return f"{node_type.bare} without {key}={value}"
        return None

    def _candidates_fit_all(self, expected: bool) -> str | None:
        for node in self.nodes:
            for node_type in node.claim.node_types[: self.max_types]:
                for name, amount in node.used.items():
                    if node_type.allocatable.get(name, 0) < amount:
                        return f"{node_type.bare} has too little {name}"
        return None

    def _zone_skew_sorted(self, expected: list[int]) -> str | None:
        target = self.spread[0]["selector"]
        zones: Counter[str] = Counter()
        for node in self.nodes:
            for pod in node.pods.values():
                if target.items() <= dict(pod.labels).items():
                    zones[node.labels[ZONE]] += 1
        return _unless(sorted(zones.values()) == expected, sorted(zones.values()))


def _unless(holds: bool, actual: object) -> str | None:
    return None if holds else str(actual)


def _names(pods: Sequence[str]) -> list[str]:
    return sorted(set(map(_group, pods)))


def _group(pod: str) -> str:
    """The name of the group that the pod is one of."""
    return pod.rpartition("-")[0]
