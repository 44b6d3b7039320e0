"""What rules about nodes cost: ``python -m benchmarks.node_rules [--pods 200 1000 5000] [--nodes 100 500 1000]``.

Types are those of ``packing_cost.py``, on demand in three zones. ``pack``: pods of the deployments of
``packing_rules.py`` wait beside half-full nodes, one for each ten pods. ``consolidate``: the nodes of
``consolidation.py`` with rules between pods. Each runs twice on the same pods: ``plain`` as they are, and ``rules``,
where deployments also have preferences, some over a label that no node has, host ports, volumes of a CSI driver, a
toleration, and terms with a selector of namespaces, and where a tenth of the nodes is cordoned, a tenth is tainted, and
each takes a limited number of volumes.

Seconds are the CPU seconds of the process, the median of ``--runs``. Prints a line for each run, then one JSON line.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from statistics import median
from time import process_time
from typing import Any, TypeVar

from benchmarks.consolidation import CPU_M, POOL, fleet
from benchmarks.packing import pods_of
from benchmarks.packing_rules import ZONES, node_types, services
from stockyard.domain.node_types import CPU, MEMORY, PODS, NodeType
from stockyard.domain.requirements import ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, NODE_POOL, ZONE
from stockyard.scheduling.consolidation.model import Fleet
from stockyard.scheduling.consolidation.search import consolidate
from stockyard.scheduling.packing.model import (
    NAMESPACE_NAME,
    HostPort,
    Node,
    Pod,
    PodTerm,
    Pool,
    Preference,
    Problem,
    SelectedNamespaces,
    Selector,
    Spread,
    Taint,
    Toleration,
    term,
)
from stockyard.scheduling.packing.plan import grouped, pack

T = TypeVar("T")
PODS_TO_PACK, NODES, RUNS = (200, 1_000, 5_000), (100, 500, 1_000), 5
DRIVER, RACK = "ebs.csi.aws.com", "example.com/rack"
CORDON, SPECIAL = Taint("node.kubernetes.io/unschedulable"), Taint("example.com/special", "yes")
TOLERATION = Toleration("example.com/special", "Exists")
FEWEST_SLOTS, MOST_SLOTS = 4, 25
PODS_A_NODE = 10


def with_rules(pod: Pod) -> Pod:
    """The pod with one more rule, which all pods of its labels have."""
    chance = random.Random(repr(pod.labels))
    selector = Selector(term({"key": key, "operator": "In", "values": [value]} for key, value in pod.labels))
    zone = term([{"key": ZONE, "operator": "In", "values": [chance.choice(ZONES)]}])
    by_name = Selector(term([{"key": NAMESPACE_NAME, "operator": "In", "values": ["default", "other"]}]))
    namespaces = SelectedNamespaces(frozenset({"default"}), frozenset({"default"}), by_name)
    rules: tuple[dict[str, Any], ...] = (
        {"spreads": (*pod.spreads, Spread(RACK, 1, selector, hard=False))},
        {"preferences": (Preference(10, zone),)},
        {"ports": (HostPort(chance.randrange(8_000, 8_010)),)},
        {"attachments": ((DRIVER, chance.randint(1, 3)),)},
        {"tolerations": (TOLERATION,)},
        {"anti_affinity": (*pod.anti_affinity, PodTerm(HOSTNAME, selector, namespaces))},
        {},
    )
    return replace(pod, **chance.choice(rules))


def changed_by_people(node: Node, number: int) -> Node:
    """The node with a limit of volumes; one in ten is cordoned, one in ten has a taint."""
    taints = (CORDON,) if number % 10 == 3 else (SPECIAL,) if number % 10 == 7 else ()
    slots = random.Random(number).randint(FEWEST_SLOTS, MOST_SLOTS)
    return replace(node, taints=(*node.taints, *taints), attachable={DRIVER: slots})


def half_full_nodes(count: int, types: Sequence[NodeType]) -> list[Node]:
    """Nodes of drawn types with half of their room left."""
    chance, nodes = random.Random(f"nodes-{count}"), []
    for number in range(count):
        kind, name = chance.choice(types), f"node-{number:05}"
        labels = {HOSTNAME: name, ZONE: chance.choice(ZONES), NODE_POOL: POOL, INSTANCE_TYPE: kind.bare}
        free = {name: amount // 2 for name, amount in kind.allocatable.items() if name in (CPU, MEMORY, PODS)}
        nodes.append(Node(name, {**labels, CAPACITY_TYPE: "on-demand", ARCH: "amd64"}, free))
    return nodes


def packings(count: int, seed: int, types: tuple[NodeType, ...]) -> tuple[Problem, Problem]:
    """The same problem as it is, and with rules."""
    pods, pool = pods_of(services(count, seed)), Pool(POOL, types)
    nodes = half_full_nodes(count // PODS_A_NODE, [kind for kind in types if kind.allocatable[CPU] <= CPU_M[-1] * 6])
    ruled = [(name, with_rules(pod)) for name, pod in pods]
    changed = [changed_by_people(node, number) for number, node in enumerate(nodes)]
    return Problem(grouped(pods), (pool,), tuple(nodes)), Problem(grouped(ruled), (pool,), tuple(changed))


def fleets(count: int, seed: int, types: tuple[NodeType, ...]) -> tuple[Fleet, Fleet]:
    """The same nodes as they are, and with rules."""
    plain = fleet(count, seed, "services", types)
    nodes = tuple(
        replace(
            node,
            node=changed_by_people(node.node, number),
            pods=tuple((with_rules(pod), pods) for pod, pods in node.pods),
        )
        for number, node in enumerate(plain.nodes)
    )
    return plain, replace(plain, nodes=nodes)


def seconds_of(work: Callable[[], T], runs: int) -> tuple[T, float]:
    """What the work gives, and the median of its CPU seconds."""
    seconds = []
    for _ in range(runs):
        began = process_time()
        result = work()
        seconds.append(process_time() - began)
    return result, round(median(seconds), 4)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print each run and the JSON line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.node_rules")
    parser.add_argument("--pods", type=int, nargs="*", default=PODS_TO_PACK)
    parser.add_argument("--nodes", type=int, nargs="*", default=NODES)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args(arguments)
    types, runs = node_types(), list[dict[str, Any]]()
    for count in options.pods:
        for rules, problem in zip(("plain", "rules"), packings(count, options.seed, types), strict=True):
            plan, seconds = seconds_of(partial(pack, problem), options.runs)
            figures = {"nodes": len(plan.claims), "unplaced": count - len(plan.order), "price": round(plan.price, 4)}
            runs.append({"work": "pack", "pods": count, "with": rules, "seconds": seconds, **figures})
            sys.stdout.write(f"{runs[-1]}\n")
    for count in options.nodes:
        for rules, subject in zip(("plain", "rules"), fleets(count, options.seed, types), strict=True):
            decision, seconds = seconds_of(partial(consolidate, subject), options.runs)
            saving = round(decision.saving, 4) if decision is not None else 0.0
            runs.append({"work": "consolidate", "nodes": count, "with": rules, "seconds": seconds, "saving": saving})
            sys.stdout.write(f"{runs[-1]}\n")
    line = {"benchmark": "node_rules", "seed": options.seed, "repeats": options.runs, "runs": runs}
    sys.stdout.write(json.dumps(line) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
