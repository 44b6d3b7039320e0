"""Random clusters to consolidate: a random problem is packed, some of its pods leave, and what remains is a fleet."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stockyard.domain.pools.budgets import UNBOUNDED
from stockyard.domain.values.requirements import HOSTNAME
from stockyard.scheduling.consolidation.model import (
    BALANCED,
    WHEN_EMPTY,
    WHEN_UNDERUTILIZED,
    Decision,
    Fleet,
    PoolRules,
    RunningNode,
)
from stockyard.scheduling.packing.model import Node, PlacedPod, Pod, Pool, Settings, Taint
from stockyard.scheduling.packing.plan import Claim, Plan, pack
from tests.harness.stories.packing_problems import CAPACITY_TYPE, plan_document, problem_of, random_problem

Json = Any
SEVERAL = 3
"""Random problems put together, so that there are some nodes."""


def random_fleet(seed: int) -> tuple[dict[str, Json], Fleet]:
    """A document in the checker's words whose ``nodes`` have the pods that run, and the same as a fleet."""
    chance = random.Random(seed)
    document = random_problem(seed)
    more = [random_problem(seed + number) for number in range(1, SEVERAL)]
    shapes = [
        *document["pods"],
        *({**pod, "name": f"{n}-{pod['name']}"} for n, other in enumerate(more) for pod in other["pods"]),
    ]
    document["pods"] = [{key: value for key, value in pod.items() if key != "gang"} for pod in shapes]
    document["nodes"] = []
    problem = replace(problem_of(document), settings=Settings(split=chance.random() < 0.5, steps=200_000))
    plan = pack(problem)
    by_name = {pod["name"]: pod for pod in document["pods"]}
    pod_of = {name: group.pod for group in problem.groups for name in group.names}
    described = {node["name"]: node for node in plan_document(document, plan)["nodes"]}
    nodes, running = [], []
    for number, claim in enumerate(plan.claims):
        names = [name for name in claim.pods if chance.random() < 0.6]
        name = f"node-{number}"
        labels = {**described[claim.name]["labels"], HOSTNAME: name}
        nodes.append(
            {**described[claim.name], "name": name, "labels": labels, "pods": [by_name[each] for each in names]}
        )
        blocker = "it is held" if chance.random() < 0.1 else ""
        running.append(_running(name, labels, claim, Counter(pod_of[each] for each in names), blocker))
    document["nodes"] = nodes
    pools = tuple(
        _used(pool, [claim for claim in plan.claims if claim.pool.name == pool.name]) for pool in problem.pools
    )
    rules = {pool.name: _rules(chance) for pool in pools}
    return document, Fleet(tuple(running), pools, rules, problem.daemons)


def _running(name: str, labels: Mapping[str, str], claim: Claim, pods: Mapping[Pod, int], blocker: str) -> RunningNode:
    free: defaultdict[str, int] = defaultdict(int, claim.row.room)
    for pod, count in pods.items():
        for resource, amount in pod.requests:
            free[resource] -= amount * count
    placed = tuple(PlacedPod(pod.namespace, pod.labels, pod.anti_affinity) for pod in pods for _ in range(pods[pod]))
    ports = tuple(port for pod in pods for port in pod.ports)
    taints: tuple[Taint, ...] = claim.pool.taints
    node = Node(name, labels, dict(free), taints, placed, ports)
    cost = 1.0 + sum(pods.values())
    spot = labels[CAPACITY_TYPE] == "spot"
    return RunningNode(node, tuple(pods.items()), claim.pool.name, claim.price, cost, spot, blocker)


def _used(pool: Pool, claims: list[Claim]) -> Pool:
    used: Counter[str] = Counter({"nodes": 1000 * len(claims)})
    for claim in claims:
        used.update(claim.row.node_type.capacity)
    return replace(pool, used=dict(used), spent=sum(claim.price for claim in claims))


def _rules(chance: random.Random) -> PoolRules:
    return PoolRules(
        chance.choice((WHEN_UNDERUTILIZED, WHEN_UNDERUTILIZED, BALANCED, WHEN_EMPTY)),
        chance.choice((UNBOUNDED, 1, 0)),
        chance.choice((UNBOUNDED, UNBOUNDED, 1, 2)),
        chance.choice((0.0, 0.0, 0.02)),
    )


def moved(document: Mapping[str, Json], decision: Decision, plan: Plan) -> tuple[dict[str, Json], dict[str, Json]]:
    """The problem that a decision answers, without the nodes that go, and its answer, for the checker."""
    going = {node.name: node for node in decision.nodes}
    documents: defaultdict[tuple[str, Pod], list[Json]] = defaultdict(list)
    for node in document["nodes"]:
        for pod in node["pods"]:
            if node["name"] in going:
                documents[node["name"], _pod_of(document, pod)].append(pod)
    names = {}
    for name, node in going.items():
        for kind, (pod, count) in enumerate(node.pods):
            for number in range(count):
                names[f"{name}/{kind}/{number}"] = documents[name, pod].pop()
    pods = [{**pod, "name": name} for name, pod in names.items()]
    nodes = [node for node in document["nodes"] if node["name"] not in going]
    return {**document, "nodes": nodes, "pods": pods}, plan_document(document, plan)


def _pod_of(document: Mapping[str, Json], pod: Mapping[str, Json]) -> Pod:
    (group,) = problem_of({**document, "nodes": [], "pods": [pod]}).groups
    return group.pod
