"""Packing of many pods: Karpenter's own benchmark, its preferences, and Cluster Autoscaler's estimate.

    python -m benchmarks.packing [--pods FILE] [--sizes 1000 5000] [--seed N] [--check]

Without ``--pods`` the pods are drawn here by the rules of Karpenter's benchmark; the file has one pod a line, as
``i, labels, cpu_m, mem_mi`` with ``spread``, ``affinity`` or ``anti_affinity``. The types are that benchmark's 400.
Prints one JSON line: by run the pods, CPU seconds from grouped pods to the plan (``group`` runs: of the grouping),
nodes, pods without a place, price and bound in USD an hour, and the peak memory of the process so far. ``--check`` has
each plan of up to 5,000 pods judged by Kubernetes' rules.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import random
import resource
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from local.testing.packing_checker import faults
from stockyard.domain.nodes.node_types import NodeType, Offering
from stockyard.domain.values.requirements import ARCH, HOSTNAME, INSTANCE_TYPE, ZONE
from stockyard.scheduling.packing.model import (
    Pod,
    PodGroup,
    PodTerm,
    Pool,
    Preference,
    Problem,
    Selector,
    Spread,
    term,
)
from stockyard.scheduling.packing.plan import Plan, grouped, pack

Json = Any
TYPES, PRICE = 400, 0.3147483648
MIB = 2**20 * 1000
LABELS, CPU_M, MEMORY_MI = "abcdefg", (100, 250, 500, 1000, 1500), (100, 256, 512, 1024, 2048, 4096)
CHECKED = 5000
"""Plans of more pods are not judged: the checker looks at each pod beside each."""


def node_types() -> tuple[NodeType, ...]:
    """The 400 types: i + 1 cores, twice as many GiB, ten times as many pods."""
    kinds = []
    for number in range(1, TYPES + 1):
        capacity = {"cpu": number * 1000, "memory": number * 2048 * MIB, "pods": number * 10_000}
        room = {**capacity, "cpu": number * 1000 - 100, "memory": (number * 2048 - 10) * MIB}
        name = f"fake-it-{number - 1}"
        labels = {ARCH: ("amd64",), INSTANCE_TYPE: (name,)}
        zones = ("test-zone-1", "test-zone-2", "test-zone-3")
        ways = (Offering("spot", zones[:2], PRICE * number), Offering("on-demand", zones, PRICE * number))
        kinds.append(NodeType(f"fake.{name}", "fake", labels, room, capacity, 0, ways))
    return tuple(kinds)


def drawn(count: int, seed: int) -> list[Json]:
    """Pods in fifths, as Karpenter's benchmark makes them; the rest is generic."""
    chance, fifth, pods = random.Random(seed), count // 5, list[Json]()

    def entry(labels: Mapping[str, str], **constraint: Json) -> None:
        sizes = {"cpu_m": chance.choice(CPU_M), "mem_mi": chance.choice(MEMORY_MI)}
        pods.append({"i": len(pods), "labels": labels, **sizes, **constraint})

    for _ in range(count - 4 * fifth):
        entry({"my-label": chance.choice(LABELS)})
    for key in (ZONE, HOSTNAME):
        for _ in range(fifth):
            match = {"my-label": chance.choice(LABELS)}
            spread = {"key": key, "match": match, "max_skew": 1, "when": "DoNotSchedule"}
            entry({"my-label": chance.choice(LABELS)}, spread=spread)
    for _ in range(fifth):
        labels = {"my-affininity": chance.choice(LABELS)}
        entry(labels, affinity={"key": ZONE, "match": labels})
    for _ in range(fifth):
        entry({"app": "nginx"}, anti_affinity={"key": HOSTNAME, "match": {"app": "nginx"}})
    return pods


def read(path: Path) -> list[Json]:
    """The pods of a file, one JSON object a line."""
    lines = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in lines.splitlines()]


def pods_of(documents: Iterable[Json]) -> list[tuple[str, Pod]]:
    """Names and pods of documents; equal documents share one pod."""
    pods_by_document: dict[str, Pod] = {}
    pods = []
    for document in documents:
        mark = repr(
            [document.get(name) for name in ("labels", "cpu_m", "mem_mi", "spread", "affinity", "anti_affinity")]
        )
        pod = pods_by_document.get(mark)
        if pod is None:
            pod = pods_by_document[mark] = _pod(document)
        pods.append((f"pod-{document['i']}", pod))
    return pods


def _pod(document: Json) -> Pod:
    requests = {"cpu": document["cpu_m"], "memory": document["mem_mi"] * MIB, "pods": 1000}
    spread, affinity, anti = (document.get(name) for name in ("spread", "affinity", "anti_affinity"))
    return Pod(
        "default",
        tuple(sorted(document["labels"].items())),
        tuple(sorted(requests.items())),
        spreads=(Spread(spread["key"], spread["max_skew"], _selector(spread["match"])),) if spread else (),
        affinity=(_term(affinity["key"], affinity["match"]),) if affinity else (),
        anti_affinity=(_term(anti["key"], anti["match"]),) if anti else (),
    )


def _selector(labels: Mapping[str, str]) -> Selector:
    return Selector(term({"key": key, "operator": "In", "values": [value]} for key, value in labels.items()))


def _term(key: str, labels: Mapping[str, str], weight: int = 0) -> PodTerm:
    return PodTerm(key, _selector(labels), frozenset({"default"}), weight)


def bound(groups: Sequence[PodGroup], nodes: int) -> float:
    """Least cost of so many nodes: by cores, by memory, and by the steps in which large pods take memory."""
    cpu = memory = steps = 0.0
    for group in groups:
        amounts = dict(group.pod.requests)
        cpu += amounts["cpu"] / 1000 * len(group.names)
        memory += amounts["memory"] / MIB / 2048 * len(group.names)
        steps += amounts["memory"] // (2048 * MIB) * len(group.names)
    return PRICE * max(cpu + 0.1 * nodes, memory + nodes * 10 / 2048, nodes + steps)


def run(name: str, problem: Problem, lowest: float | None, documents: Sequence[Json]) -> dict[str, Json]:
    """Figures of one packing. ``documents`` are judged when they are given."""
    gc.collect()
    began = time.process_time()
    plan = pack(problem)
    seconds = time.process_time() - began
    pods = sum(len(group.names) for group in problem.groups)
    figures = {
        "name": name,
        "pods": pods,
        "seconds": round(seconds, 4),
        "nodes": len(plan.claims),
        "unplaced": pods - len(plan.order),
        "price": round(plan.price, 4),
        "bound": round(bound(problem.groups, len(plan.claims)) if lowest is None else lowest, 4),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    return {**figures, "faults": len(judged(documents, plan))} if documents else figures


def judged(documents: Sequence[Json], plan: Plan) -> list[str]:
    """Faults of the plan by Kubernetes' rules."""
    pods = [
        {
            "name": f"pod-{document['i']}",
            "namespace": "default",
            "labels": document["labels"],
            "requests": {"cpu": document["cpu_m"], "memory": document["mem_mi"] * MIB},
            "spreads": [
                {"key": entry["key"], "selector": entry["match"], "max_skew": entry["max_skew"], "hard": True}
                for entry in (document.get("spread"),)
                if entry
            ],
            **{
                name: [{"key": document[name]["key"], "selector": document[name]["match"]}]
                for name in ("affinity", "anti_affinity")
                if name in document
            },
        }
        for document in documents
    ]
    kinds: dict[str, Json] = {}
    nodes: list[Json] = []
    where: dict[str, str] = {}
    for claim in plan.claims:
        row = claim.row
        room = {**row.node_type.allocatable, "pods": row.node_type.allocatable["pods"] // 1000}
        ways = [
            {"zone": entry.zone, "capacity_type": entry.capacity_type, "price": entry.price} for entry in claim.rows
        ]
        labels = {key: list(values) for key, values in row.node_type.properties.items()}
        kinds[claim.name] = {
            "name": claim.name,
            "labels": labels,
            "allocatable": room,
            "offerings": ways,
            "capacity": {},
        }
        node = {"name": claim.name, "type": claim.name, "labels": {**claim.labels, HOSTNAME: claim.name}, "taints": []}
        nodes.append({**node, "pool": "default", "allocatable": room, "price": claim.price, "values": {}})
        where |= dict.fromkeys(claim.pods, claim.name)
    pool = {"name": "default", "requirements": [], "labels": {}, "taints": []}
    problem = {"types": kinds.values(), "pools": [pool], "daemonsets": [], "nodes": [], "pods": pods}
    return faults(problem, {"nodes": nodes, "where": where, "order": list(plan.order)})


def preferences() -> Problem:
    """4,000 equal pods: one preference that can be kept, one that cannot, one that costs a node each."""
    labels = {"app": "nginx"}
    requests = tuple(sorted({"cpu": 100, "memory": 4096 * MIB, "pods": 1000}.items()))
    zone = term([{"key": ZONE, "operator": "In", "values": ["test-zone-1"]}])
    anti = (_term(ZONE, labels, 10), _term(HOSTNAME, labels, 1))
    pod = Pod("default", tuple(labels.items()), requests, preferences=(Preference(1, zone),), anti_affinity=anti)
    names = tuple(f"pod-{number}" for number in range(4000))
    return Problem((PodGroup(pod, names),), (Pool("default", node_types()),))


def estimate_pods() -> list[tuple[str, Pod]]:
    """Cluster Autoscaler's 51,000 pods in two kinds."""
    sizes = [(50, 100)] * 50_000 + [(95, 190)] * 1000
    return [
        (f"pod-{number}", Pod("default", (), (("cpu", cpu), ("memory", memory * 1000), ("pods", 1000))))
        for number, (cpu, memory) in enumerate(sizes)
    ]


def estimate(pods: Sequence[tuple[str, Pod]]) -> Problem:
    """Problem of those pods on nodes of one template: a core, 5,000 bytes, 100 pods."""
    room = {"cpu": 1000, "memory": 5000 * 1000, "pods": 100_000}
    kind = NodeType("t.template", "t", {ARCH: ("amd64",)}, room, room, 0, (Offering("on-demand", ("zone",), 1.0),))
    return Problem(grouped(pods), (Pool("template", (kind,), limits={"nodes": 3_000_000}),))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.packing")
    parser.add_argument("--pods", type=Path)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1000, 5000, 10_000, 20_000, 50_000, 100_000])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    runs, types = [], node_types()
    inputs = [read(options.pods)] if options.pods else [drawn(size, options.seed) for size in options.sizes]
    for documents in inputs:
        groups = grouped(pods_of(documents))
        problem = Problem(groups, (Pool("default", types),))
        checked = documents if options.check and len(documents) <= CHECKED else ()
        runs.append(run(f"diverse-{len(documents)}", problem, None, checked))
    if not options.pods:
        runs.append(run("preferences-4000", preferences(), 4000 * 3 * PRICE, ()))
        pods = estimate_pods()
        began = time.process_time()
        groups = grouped(pods)
        seconds = round(time.process_time() - began, 4)
        runs.append(run("estimate-51000", estimate(pods), 2595.0, ()))
        runs.append({"name": "group-51000", "pods": len(pods), "seconds": seconds, "groups": len(groups)})
    sys.stdout.write(json.dumps({"benchmark": "packing", "seed": options.seed, "runs": runs}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
