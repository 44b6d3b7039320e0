"""Cost of rules between pods on EC2: ``python -m benchmarks.packing_rules [--sizes 50 200] [--seeds 1] [--check]``.

Types are those of ``packing_cost.py``, on demand in three zones at one price. Workloads: ``services`` are deployments
of 2 to 30 pods, half of which spread over zones; of a fifth of them a node has at most one pod, and some stay in one
zone. ``diverse`` is Karpenter's benchmark. Prints a line for each run: the price in USD an hour of the plan and of the
packings by rules alone (``greedy``, the cheaper of both ways), and the bound of the same pods without rules between
them, which no packing may reach; ``--check`` has each plan of up to 5,000 pods judged by Kubernetes' rules. Then one
JSON line. Exit 1 when a plan is dearer than the packing by rules alone, leaves out a pod, or breaks a rule.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from time import process_time
from typing import Any

from benchmarks.packing import CHECKED, CPU_M, MEMORY_MI, drawn, judged, pods_of
from benchmarks.packing_cost import offers
from stockyard.domain.nodes.node_types import NodeType, Offering
from stockyard.domain.values.requirements import ARCH, HOSTNAME, INSTANCE_TYPE, ZONE
from stockyard.scheduling.packing.free import FreePart
from stockyard.scheduling.packing.model import Pool, Problem
from stockyard.scheduling.packing.plan import grouped, pack
from stockyard.scheduling.packing.price import NANO
from stockyard.scheduling.packing.price.model import Meter
from stockyard.scheduling.packing.solve import Solver

Json = Any
SIZES, SEEDS = (50, 200, 1_000, 5_000), (1, 2, 3)
ZONES = ("test-zone-1", "test-zone-2", "test-zone-3")
COPIES = (2, 3, 3, 5, 8, 12, 20, 30)


def node_types() -> tuple[NodeType, ...]:
    """The types of ``packing_cost.py`` in three zones."""
    kinds = []
    for offer in offers():
        cpu, memory, pods = offer.room
        room = {"cpu": cpu, "memory": memory * 1000, "pods": pods * 1000}
        labels = {ARCH: ("amd64",), INSTANCE_TYPE: (offer.name,)}
        ways = (Offering("on-demand", ZONES, offer.price / NANO),)
        kinds.append(NodeType(f"ec2.{offer.name}", "ec2", labels, room, room, 0, ways))
    return tuple(kinds)


def services(count: int, seed: int) -> list[Json]:
    """Pods of deployments, in the form of ``packing.drawn``."""
    chance, pods = random.Random(f"services-{count}-{seed}"), list[Json]()
    while len(pods) < count:
        match = {"app": f"app-{len(pods)}"}
        entry: Json = {"labels": match, "cpu_m": chance.choice(CPU_M), "mem_mi": chance.choice(MEMORY_MI)}
        part = chance.random()
        if part < 0.55:
            key = ZONE if part < 0.5 else HOSTNAME
            entry["spread"] = {"key": key, "match": match, "max_skew": 1, "when": "DoNotSchedule"}
        elif part < 0.7:
            entry["anti_affinity"] = {"key": HOSTNAME, "match": match}
        elif part < 0.75:
            entry["affinity"] = {"key": ZONE, "match": match}
        copies = min(chance.choice(COPIES), count - len(pods))
        pods += [{"i": len(pods) + copy, **entry} for copy in range(copies)]
    return pods


def greedy(problem: Problem) -> float:
    """USD an hour of the cheaper one of the packings by rules alone."""
    prices = []
    for split in (False, True):
        solver = Solver(problem, Meter(10**9), split=split)
        solver.solve()
        prices.append(sum(planned.state.row.price for planned in solver.planned))
    return min(prices)


def run(workload: str, size: int, seed: int, types: tuple[NodeType, ...], *, check: bool) -> Json:
    """Figures of one plan."""
    documents = services(size, seed) if workload == "services" else drawn(size, seed)
    problem = Problem(grouped(pods_of(documents)), (Pool("default", types),))
    began = process_time()
    plan = pack(problem)
    seconds = process_time() - began
    bound = FreePart.of(problem).bound
    figures = {"workload": workload, "pods": size, "seed": seed, "price": plan.price, "greedy": greedy(problem)}
    figures |= {"bound": bound, "gap": plan.price / bound - 1, "nodes": len(plan.claims)}
    figures |= {"unplaced": size - len(plan.order), "seconds": round(seconds, 4), "steps": plan.steps}
    return {**figures, "faults": len(judged(documents, plan)) if check and size <= CHECKED else 0}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print each run and the JSON line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.packing_rules")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    runs, types = [], node_types()
    for workload in ("services", "diverse"):
        for size in options.sizes:
            for seed in options.seeds:
                runs.append(result := run(workload, size, seed, types, check=options.check))
                saving, over = 1 - result["price"] / result["greedy"], result["greedy"] / result["bound"] - 1
                sys.stdout.write(
                    f"{workload:8} {size:5} seed {seed}: {result['price']:9.4f} USD/h on {result['nodes']:4} nodes, "
                    f"{result['gap']:6.1%} over the bound ({over:6.1%} by rules alone, {saving:5.1%} saved), "
                    f"{result['seconds']:.2f} s\n"
                )
    sys.stdout.write(json.dumps({"benchmark": "packing_rules", "runs": runs}) + "\n")
    return int(any(entry["price"] > entry["greedy"] + 1e-9 or entry["unplaced"] or entry["faults"] for entry in runs))


if __name__ == "__main__":
    sys.exit(main())
