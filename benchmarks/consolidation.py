"""Findings of consolidation, and the time that it takes: ``python -m benchmarks.consolidation [--nodes 100 1000]``.

Types are those of ``packing_cost.py``, on demand in three zones. Each node has 5 to 20 pods of as many deployments as a
third of the nodes, and was the cheapest for them once, beside up to as many others that have left since. Pods have no
rules between them (``plain``); or a fifth of the deployments spread over hosts, and some keep apart (``services``).

Seconds are the process's CPU seconds from the nodes as read to the decision; every candidate is evaluated by itself
as well. ``possible`` is the price of all nodes less what packing their pods from scratch costs at least; with rules
between pods nobody can reach it. ``prefix`` is what Karpenter's rule saves: the longest prefix of its order, at most
100 nodes, whose pods have room elsewhere and on one cheaper node. Prints a line for each run, then one JSON line.
Exit 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from time import process_time

from benchmarks.packing_rules import ZONES, node_types
from local.testing.prefix_rule import prefix_decision
from stockyard.domain.nodes.node_types import CPU, MEMORY, PODS, NodeType
from stockyard.domain.values.requirements import ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, NODE_POOL, ZONE
from stockyard.scheduling.consolidation.model import Fleet, RunningNode
from stockyard.scheduling.consolidation.search import consolidate
from stockyard.scheduling.packing.model import Node, PlacedPod, Pod, PodTerm, Pool, Selector, Spread, term

SIZES, SEEDS = (100, 500, 1_000, 2_000), (1,)
POOL = "default"
CPU_M, MEMORY_MI = (100, 250, 500, 1000, 1500), (100, 256, 512, 1024, 2048, 4096)
MIB = 2**20 * 1000
FEWEST_PODS, MOST_PODS = 5, 20
MOST_SECONDS = {1_000: 4.0, 2_000: 10.0}
LEAST_SHARE = 0.9
MOST_MB = 512


@dataclass(frozen=True, slots=True)
class Run:
    """One fleet and what came of it; money is USD an hour."""

    workload: str
    nodes: int
    pods: int
    seed: int
    seconds: float
    price: float
    saving: float
    possible: float
    going: int
    coming: int
    prefix: float
    peak_mb: int


def fleet(count: int, seed: int, workload: str, types: Sequence[NodeType]) -> Fleet:
    """Nodes that fitted once. The same seed makes the same fleet."""
    chance = random.Random(f"{workload}-{count}-{seed}")
    deployments = [_pod(chance, number, workload) for number in range(max(FEWEST_PODS, count // 3))]
    by_price = sorted(types, key=lambda kind: (_price(kind), kind.name))
    nodes = []
    for number in range(count):
        running = _distinct(chance, deployments, chance.randint(FEWEST_PODS, MOST_PODS))
        departed = [chance.choice(deployments) for _ in range(chance.randint(0, len(running)))]
        requests: Counter[str] = Counter()
        for pod in (*running, *departed):
            requests.update(dict(pod.requests))
        kind = next(kind for kind in by_price if all(kind.allocatable[name] >= n for name, n in requests.items()))
        nodes.append(_node(f"node-{number:05}", ZONES[number % len(ZONES)], kind, running))
    return Fleet(tuple(nodes), (Pool(POOL, tuple(types)),))


def _distinct(chance: random.Random, deployments: Sequence[Pod], count: int) -> list[Pod]:
    """Pods of a node: of a deployment with rules there is no second one on it."""
    pods: list[Pod] = []
    while len(pods) < count:
        pod = chance.choice(deployments)
        if not (pod.anti_affinity or pod.spreads) or pod not in pods:
            pods.append(pod)
    return pods


def _pod(chance: random.Random, number: int, workload: str) -> Pod:
    labels = (("app", f"app-{number}"),)
    requests = {CPU: chance.choice(CPU_M), MEMORY: chance.choice(MEMORY_MI) * MIB, PODS: 1000}
    pod = Pod("default", labels, tuple(sorted(requests.items())))
    if workload == "plain":
        return pod
    selector = Selector(term([{"key": "app", "operator": "In", "values": [f"app-{number}"]}]))
    part = chance.random()
    spreads: tuple[Spread, ...] = ()
    apart: tuple[PodTerm, ...] = ()
    if part < 0.2:
        spreads = (Spread(HOSTNAME, 1, selector),)
    elif part < 0.35:
        apart = (PodTerm(HOSTNAME, selector, frozenset({"default"})),)
    return Pod("default", labels, pod.requests, spreads=spreads, anti_affinity=apart)


def _node(name: str, zone: str, kind: NodeType, pods: Sequence[Pod]) -> RunningNode:
    free = dict(kind.allocatable)
    for pod in pods:
        for resource_name, amount in pod.requests:
            free[resource_name] -= amount
    labels = {HOSTNAME: name, ZONE: zone, NODE_POOL: POOL, INSTANCE_TYPE: kind.bare, CAPACITY_TYPE: "on-demand"}
    placed = tuple(PlacedPod(pod.namespace, pod.labels, pod.anti_affinity) for pod in pods)
    node = Node(name, {**labels, ARCH: "amd64"}, free, (), placed)
    return RunningNode(node, tuple(Counter(pods).items()), POOL, _price(kind), 1.0 + len(pods))


def _price(kind: NodeType) -> float:
    return kind.usd_hour or 0.0


def run(count: int, seed: int, workload: str, types: Sequence[NodeType], *, compare: bool) -> Run:
    """One decision and its figures."""
    subject = fleet(count, seed, workload, types)
    began = process_time()
    decision = consolidate(subject)
    seconds = process_time() - began
    by_prefix = prefix_decision(subject) if compare else None
    return Run(
        workload,
        count,
        sum(number for node in subject.nodes for _, number in node.pods),
        seed,
        round(seconds, 3),
        round(sum(node.price for node in subject.nodes), 4),
        round(decision.saving, 4) if decision is not None else 0.0,
        round(decision.possible or 0.0, 4) if decision is not None else 0.0,
        len(decision.nodes) if decision is not None else 0,
        len(decision.replacements) if decision is not None else 0,
        round(by_prefix.saving, 4) if by_prefix is not None else 0.0,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    )


def is_good(figures: Run) -> bool:
    """Whether a run reaches its goals: time, memory, and without rules nine tenths of what is possible."""
    in_time = figures.seconds <= MOST_SECONDS.get(figures.nodes, float("inf"))
    found_most = figures.workload != "plain" or figures.saving >= LEAST_SHARE * figures.possible
    return in_time and found_most and figures.peak_mb <= MOST_MB


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs every size with every seed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.consolidation")
    parser.add_argument("--nodes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--workload", choices=("plain", "services"), default="plain")
    parser.add_argument("--compare", action="store_true", help="with Karpenter's prefix rule, which takes longer")
    options = parser.parse_args(arguments)
    types = node_types()
    runs = []
    for count in options.nodes:
        for seed in options.seeds:
            runs.append(run(count, seed, options.workload, types, compare=options.compare))
            sys.stdout.write(f"{runs[-1]}\n")
    sys.stdout.write(json.dumps({"benchmark": "consolidation", "runs": [asdict(figures) for figures in runs]}) + "\n")
    return 0 if all(map(is_good, runs)) else 1


if __name__ == "__main__":
    sys.exit(main())
