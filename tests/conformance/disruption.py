"""Cases of disruption: budgets and their windows, costs, protection and drift. Each answers (expected, found)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import isclose
from typing import Any

from stockyard.domain.models.pools.node_pools import read_node_pool
from stockyard.domain.pools.budgets import (
    DRIFTED,
    EMPTY,
    UNBOUNDED,
    UNDERUTILIZED,
    Budget,
    NodeState,
    allowed,
    remaining,
)
from stockyard.domain.pools.records import NewPool
from stockyard.domain.values import times
from stockyard.domain.values.quantities import milli
from stockyard.domain.values.requirements import Requirements
from stockyard.lifecycle.disruption.costs import ORDINARY, disruption_cost, eviction_cost, savings_ratio
from stockyard.lifecycle.disruption.protection import do_not_disrupt
from stockyard.lifecycle.nodes.pool_drift import requirements_drifted, template_hash
from stockyard.scheduling.consolidation.balance import balanced_score
from stockyard.scheduling.consolidation.model import Fleet, PoolRules, RunningNode, Settings
from stockyard.scheduling.consolidation.search import consolidate, empty_nodes
from stockyard.scheduling.packing.model import Node, Pod
from tests.conformance.scenario_documents import check_fields

Json = Any
Answer = tuple[Json, Json]
NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
"""The moment of cases that name none."""
_BUDGET = frozenset({"nodes", "reasons", "schedule", "duration", "timeZone"})
_STATES: Mapping[str, NodeState] = {
    "initialized_ready": NodeState(),
    "initialized_not_ready": NodeState(ready=False),
    "initialized_deleting": NodeState(disrupting=True),
    "unmanaged": NodeState(managed=False),
    "uninitialized": NodeState(initialized=False),
    "instance_terminating": NodeState(terminated=True),
}
_GROUP = frozenset(
    {
        "empty_consolidatable_nodes",
        "underutilized_nodes",
        "drifted_nodes",
        "pods_per_node",
        "pod_requests",
        "node_allocatable",
        "budgets",
    }
)
FEW = 10
"""Nodes of a pool where a case says nothing of it."""
PRICE = 1.0
"""What each node costs where a case says nothing of it."""


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def budget(entry: Mapping[str, Json]) -> Budget:
    check_fields(entry, _BUDGET)
    return Budget.of(entry)


def compared(expected: Mapping[str, Json], values: Mapping[str, Json]) -> Answer:
    """The expected values, reduced to the named ones. Numbers that are nearly equal are equal."""
    check_fields(expected, frozenset(values))
    if not expected:
        raise ValueError("nothing is expected")
    actual = {name: values[name] for name in expected}
    for name, number in expected.items():
        numbers = type(number) in (int, float) and isinstance(actual[name], float)
        if numbers and isclose(number, actual[name], abs_tol=1e-9):
            actual[name] = number
    return dict(expected), actual


def allowed_by_reason(data: Mapping[str, Json], expected: Mapping[str, Json]) -> Answer:
    count = allowed(map(budget, data["budgets"]), data["reason"], data["num_nodes"], moment(data["now"]))
    return compared(expected, {"allowed": count, "unbounded": count == UNBOUNDED})


def single_budget(data: Mapping[str, Json], expected: Mapping[str, Json]) -> Answer:
    only = budget(data["budget"])
    count = allowed([only], EMPTY, data["num_nodes"], moment(data["now"]))
    return compared(expected, {"allowed": count, "unbounded": count == UNBOUNDED, "error": bool(only.fault)})


def is_active(data: Mapping[str, Json], expected: Mapping[str, Json]) -> Answer:
    only = budget(data["budget"])
    active = not only.fault and only.is_open(moment(data["now"]))
    # A budget that cannot be read fails closed: it says why, and lets no node go.
    closed = bool(only.fault) and allowed([only], EMPTY, FEW, moment(data["now"])) == 0
    return compared(expected, {"active": active, "error": closed})


def pool_remaining(data: Mapping[str, Json], expected: Mapping[str, Json]) -> Answer:
    check_fields(data["nodes"], frozenset(_STATES))
    nodes = [_STATES[name] for name, count in data["nodes"].items() for _ in range(count)]
    budgets = [budget(entry) for entry in data["budgets"]]
    return compared(expected, {"remaining": remaining(budgets, data["reason"], nodes, NOW)})


def disrupted_count(data: Mapping[str, Json], expected: Mapping[str, Json]) -> Answer:
    nodes: list[RunningNode] = []
    rules: dict[str, PoolRules] = {}
    drifted = 0
    for index, group in enumerate(data["pools"]):
        check_fields(group, _GROUP)
        name = f"pool-{index}"
        members = pool_nodes(name, group)
        states = [NodeState() for _ in members]
        budgets = [budget(entry) for entry in group["budgets"]]
        limits = {reason: remaining(budgets, reason, states, NOW) for reason in (EMPTY, UNDERUTILIZED, DRIFTED)}
        rules[name] = PoolRules(empty=limits[EMPTY], underutilized=limits[UNDERUTILIZED])
        nodes += members
        drifted += min(group.get("drifted_nodes", len(members)), limits[DRIFTED])
    fleet = Fleet(tuple(nodes), (), rules)
    if data["reason"] == DRIFTED:
        return compared(expected, {"disrupted": drifted})
    if data["reason"] not in (EMPTY, UNDERUTILIZED):
        raise ValueError(f"unknown reason {data['reason']}")
    # The files count every node that budgets and pods let go; the product spares some that save next to nothing more.
    decision = empty_nodes(fleet) if data["reason"] == EMPTY else consolidate(fleet, Settings(share=1.0))
    return compared(expected, {"disrupted": len(decision.nodes) if decision is not None else 0})


def pool_nodes(pool: str, group: Mapping[str, Json]) -> list[RunningNode]:
    """The nodes of one pool: those without pods, then those with as many pods as the case says. Where more have drifted
    than that, the others are nodes that nothing else would move."""
    room = {name: milli(amount) for name, amount in group.get("node_allocatable", {"cpu": "32", "pods": 100}).items()}
    empty, occupied = group.get("empty_consolidatable_nodes", 0), group.get("underutilized_nodes", 0)
    nodes = []
    for number in range(empty + occupied):
        count = 0 if number < empty else group["pods_per_node"]
        requests = {name: milli(amount) for name, amount in group.get("pod_requests", {}).items()} | {"pods": 1000}
        free = {name: amount - count * requests.get(name, 0) for name, amount in room.items()}
        pods = ((Pod(pool, (), tuple(sorted(requests.items()))), count),) if count else ()
        cost = disruption_cost([eviction_cost()] * count)
        nodes.append(RunningNode(Node(f"{pool}-{number}", {}, free), pods, pool, PRICE, cost))
    for number in range(empty + occupied, group.get("drifted_nodes", 0)):
        staying = Node(f"{pool}-{number}", {}, room)
        nodes.append(RunningNode(staying, (), pool, PRICE, disruption_cost([]), blocker="it has only drifted"))
    return nodes


def score(data: Mapping[str, Json], expected: Mapping[str, Json]) -> Answer:
    totals = data["pool_total_cost"], data["pool_total_disruption_cost"]
    balanced = balanced_score(data["savings"], data["disruption_cost"], *totals, data.get("k", 2))
    values = {"score": balanced.score, "infinite": balanced.infinite, "approved": balanced.approved}
    return compared(expected, values)


def ratio(data: Mapping[str, Json], expected: Mapping[str, Json]) -> Answer:
    cost = disruption_cost([ORDINARY] * data["default_cost_pods"])
    return compared(expected, {"ratio": float(savings_ratio(data["price"], cost))})


def pod_cost(data: Mapping[str, Json], expected: Mapping[str, Json]) -> Answer:
    cost = eviction_cost(data.get("pod_deletion_cost") or 0, data.get("priority") or 0)
    relation = ">" if cost > ORDINARY else "<" if cost < ORDINARY else "="
    expected = {name: "=" if value == "==" else value for name, value in expected.items()}
    return compared(expected, {"cost": cost, "relation_to_1.0": relation})


def protection(data: Mapping[str, Json], expected: Mapping[str, Json]) -> Answer:
    age = data["pod_age_seconds"]
    started_at = None if age is None else times.to_text(NOW - timedelta(seconds=age))
    until = do_not_disrupt(data["annotation"], started_at, times.to_text(NOW))
    return compared(expected, {"protected": until is not None})


def requirements_drift(data: Mapping[str, Json], expected: Mapping[str, Json]) -> Answer:
    requirements = Requirements.of(data["nodepool_requirements"])
    return compared(expected, {"drifted": requirements_drifted(requirements, data["nodeclaim_labels"])})


_NODE_POOL: Json = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "pool"},
    "spec": {
        "template": {
            "metadata": {"labels": {"team": "a"}, "annotations": {"note": "a"}},
            "spec": {
                "requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}],
                "taints": [{"key": "a", "effect": "NoSchedule"}],
                "startupTaints": [{"key": "b", "effect": "NoSchedule"}],
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "expireAfter": "5m",
                "terminationGracePeriod": "5m",
            },
        },
        "limits": {"cpu": "10"},
        "weight": 1,
        "disruption": {
            "consolidateAfter": "30s",
            "consolidationPolicy": "WhenEmpty",
            "budgets": [{"nodes": "10%"}],
        },
    },
}
_TEMPLATE, _TEMPLATE_SPEC = ("template", "metadata"), ("template", "spec")
_CHANGES: Mapping[str, tuple[tuple[str, ...], Json]] = {
    "annotations": ((*_TEMPLATE, "annotations"), {"note": "b"}),
    "labels": ((*_TEMPLATE, "labels"), {"team": "b"}),
    "taints": ((*_TEMPLATE_SPEC, "taints"), [{"key": "a", "effect": "NoExecute"}]),
    "startupTaints": ((*_TEMPLATE_SPEC, "startupTaints"), [{"key": "b", "effect": "NoExecute"}]),
    "nodeClassRef.group": ((*_TEMPLATE_SPEC, "nodeClassRef", "group"), "karpenter.example"),
    "nodeClassRef.kind": ((*_TEMPLATE_SPEC, "nodeClassRef", "kind"), "OtherNodeClass"),
    "nodeClassRef.name": ((*_TEMPLATE_SPEC, "nodeClassRef", "name"), "other"),
    "expireAfter": ((*_TEMPLATE_SPEC, "expireAfter"), "100m"),
    "terminationGracePeriod": ((*_TEMPLATE_SPEC, "terminationGracePeriod"), "100m"),
    "requirements": ((*_TEMPLATE_SPEC, "requirements"), []),
    "limits": (("limits",), {"cpu": "20"}),
    "weight": (("weight",), 2),
    "disruption": (("disruption",), {"consolidateAfter": "Never"}),
    "disruption.budgets": (("disruption", "budgets"), [{"nodes": "5"}]),
    "disruption.consolidateAfter": (("disruption", "consolidateAfter"), "Never"),
    "disruption.consolidationPolicy": (("disruption", "consolidationPolicy"), "WhenEmptyOrUnderutilized"),
}
"""Where a field of a NodePool stands, and another value of it."""


def changed_pool(field: str) -> NewPool:
    """The pool of the case after one field has changed. Raises ``ValueError`` for a field that is not known."""
    if field.partition(".")[0] in ("kubelet", "kubeletArgs"):
        # In v1 of Karpenter these stand in the node class; a pool has them in our own form.
        return replace(read_node_pool(_NODE_POOL).pools[0], kubelet_args={"max-pods": "50"})
    if field not in _CHANGES:
        raise ValueError(f"unknown field of a pool {field}")
    path, value = _CHANGES[field]
    document = deepcopy(_NODE_POOL)
    parent = document["spec"]
    for name in path[:-1]:
        parent = parent[name]
    if parent[path[-1]] == value:
        raise ValueError(f"the case changes nothing of {field}")
    parent[path[-1]] = value
    return read_node_pool(document).pools[0]


def static_drift(data: Mapping[str, Json], expected: Mapping[str, Json]) -> Answer:
    (field,) = data.values()
    before, after = read_node_pool(_NODE_POOL).pools[0], changed_pool(field)
    if before == after:
        raise ValueError(f"the case changes nothing of {field}")
    drifted = template_hash(before) != template_hash(after)
    return compared(expected, {"drifted": drifted, "static_drifted": drifted})


_INPUTS: Mapping[str, tuple[frozenset[str], Callable[[Mapping[str, Json], Mapping[str, Json]], Answer]]] = {
    "allowed_by_reason": (frozenset({"now", "num_nodes", "reason", "budgets"}), allowed_by_reason),
    "single_budget": (frozenset({"now", "num_nodes", "budget"}), single_budget),
    "is_active": (frozenset({"now", "budget"}), is_active),
    "pool_remaining": (frozenset({"reason", "budgets", "nodes"}), pool_remaining),
    "disrupted_count": (frozenset({"reason", "pools"}), disrupted_count),
    "balanced_score": (
        frozenset({"savings", "disruption_cost", "pool_total_cost", "pool_total_disruption_cost", "k"}),
        score,
    ),
    "savings_ratio": (frozenset({"price", "default_cost_pods"}), ratio),
    "eviction_cost": (frozenset({"pod_deletion_cost", "priority"}), pod_cost),
    "eviction_cost_vs_default": (frozenset({"pod_deletion_cost", "priority"}), pod_cost),
    "do_not_disrupt_active": (frozenset({"annotation", "pod_age_seconds"}), protection),
    "requirements_drift": (frozenset({"nodepool_requirements", "nodeclaim_labels"}), requirements_drift),
    "static_drift": (frozenset({"changed_template_field", "changed_field"}), static_drift),
}
KINDS = frozenset(_INPUTS)


def answer(case: Mapping[str, Json]) -> Answer:
    """(expected, found) of a case, whose kind is one of ``KINDS``."""
    fields, kind = _INPUTS[case["kind"]]
    check_fields(case["input"], fields)
    return kind(case["input"], case["expected"])
