"""Distance of packings on EC2 from a proven bound: ``python benchmarks/packing_cost.py``.

Types: those of the product's own catalogue that are of the current generation, x86, not bare metal, without a GPU, of
the families c, m and r from generation 5. Their room is what the product reckons where each pod has an address of the
VPC (EKS's CNI), less 200m and 300Mi for daemon sets: ``--types`` prints it. Pods: 50 to 5,000, three seeds, two
workloads, or ``--pods FILE`` with a JSON list of ``{"cpu_m", "memory_mi"}``.

Seconds are the process's CPU seconds from the list of pods to the answer; reading the catalogue is not in them. Each
answer is checked by ``local/testing/price_checker.py``, its proof against every type. Prints a line for each run, then
one JSON line. Exit 1 when a limit is missed: a gap is not, where the answer is proven to be the cheapest.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "layers" / "common" / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from local.testing import price_checker
from local.testing.memory_store import MemoryRegistry
from stockyard.adapters.catalog import OFFLINE_REGION, Ec2PriceList
from stockyard.domain.nodes.node_types import CPU, MEMORY, PODS, allocatable, read_resources
from stockyard.domain.nodes.offers import InstanceOffer
from stockyard.providers.clouds.aws.catalog.reserved import capacity, overhead, pods_with_addresses
from stockyard.scheduling.packing.price import EVERY, NANO, Answer, FreeProblem, Offer, Shape, solve

SIZES, SEEDS, WORKLOADS = (50, 200, 1_000, 5_000), (1, 2, 3), ("uniform", "skewed")
FAMILIES = re.compile(r"[cmr]([5-9]|\d\d)")
DAEMONS_CPU, DAEMONS_MEMORY = 200, 300 * 2**20
MIB = 2**20
MOST_GAP = {
    "uniform": {50: 0.065, 200: 0.025, 1_000: 0.01, 5_000: 0.01},
    "skewed": {200: 0.04, 1_000: 0.015, 5_000: 0.015},
}
"""Of the price over the linear bound."""
MOST_OVER_WHOLE = {"skewed": {50: 0.015}}
"""Of the price over the bound by whole nodes, where the linear one cannot be reached."""
MOST_SECONDS = {1_000: 0.3, 5_000: 1.5}
LEAST_SAVING = 0.2

Pod = tuple[int, int]
"""Thousandths of a cpu, and bytes."""


@dataclass(frozen=True, slots=True)
class Run:
    """One problem and what came of it; money is USD an hour."""

    pods: int
    seed: int
    workload: str
    price: float
    bound: float
    integer_bound: float
    gap: float
    greedy: float
    nodes: int
    seconds: float


def offers() -> tuple[Offer, ...]:
    """The types with their room and price, by name."""
    sheet = Ec2PriceList(MemoryRegistry().platform()).region(OFFLINE_REGION)
    types = [offer for offer in (sheet.instances.values() if sheet else ()) if _suits(offer)]
    return tuple(_offer(offer) for offer in sorted(types, key=lambda offer: offer.name))


def _suits(offer: InstanceOffer) -> bool:
    return (
        FAMILIES.match(offer.name) is not None
        and offer.architecture == "x86_64"
        and offer.usd_hour is not None
        and offer.current_generation
        and not offer.bare_metal
        and not offer.gpus
    )


def _offer(offer: InstanceOffer) -> Offer:
    most_pods = pods_with_addresses(offer)
    room = allocatable(
        read_resources(capacity(offer, most_pods)), read_resources(overhead(offer, most_pods), pods=None)
    )
    whole = (room[CPU] - DAEMONS_CPU, room[MEMORY] // 1000 - DAEMONS_MEMORY, room[PODS] // 1000)
    return Offer(offer.name, whole, round((offer.usd_hour or 0) * NANO))


def draw(count: int, seed: int, workload: str) -> list[Pod]:
    """Pods of a workload. Skewed: most are small, few are large, one in 200 (at least one) very large."""
    chance = random.Random(f"{workload}-{count}-{seed}")
    if workload == "uniform":
        memory = (100, 256, 512, 1024, 2048, 4096)
        return [(chance.choice((100, 250, 500, 1000, 1500)), chance.choice(memory) * MIB) for _ in range(count)]
    pods = [(8000, 32768 * MIB)] * max(1, count // 200)
    while len(pods) < count:
        part = chance.random()
        if part < 0.8:
            pods.append((chance.choice((100, 150, 200, 250)), chance.randint(100, 512) * MIB))
        elif part < 0.95:
            pods.append((chance.randint(250, 1000), chance.randint(512, 2048) * MIB))
        else:
            pods.append((1500, 4096 * MIB))
    return pods


def run(types: Sequence[Offer], pods: Sequence[Pod], seed: int, workload: str) -> Run:
    """Pack once, check, and say what it took."""
    began = process_time()
    shapes = tuple(Shape((cpu, memory, 1), count) for (cpu, memory), count in sorted(Counter(pods).items()))
    answer = solve(problem := FreeProblem(shapes, tuple(types)))
    seconds = process_time() - began
    check(problem, answer)
    return Run(
        pods=len(pods),
        seed=seed,
        workload=workload,
        price=answer.price / NANO,
        bound=answer.linear / NANO,
        integer_bound=answer.bound / NANO,
        gap=answer.price / answer.linear - 1,
        greedy=answer.greedy / NANO,
        nodes=len(answer.bins),
        seconds=round(seconds, 4),
    )


def check(problem: FreeProblem, answer: Answer) -> None:
    """Raises ``AssertionError`` for anything that is wrong."""
    every = list(range(len(problem.offers)))
    data: dict[str, Any] = {
        "shapes": [
            {"requests": list(shape.requests), "count": shape.count, "offers": every, "spaces": []}
            for shape in problem.shapes
        ],
        "offers": [{"room": list(offer.room), "price": offer.price, "limit": None} for offer in problem.offers],
        "spaces": [],
    }
    plain = {
        "bins": [{"offer": node.offer, "space": node.space, "counts": node.counts} for node in answer.bins],
        "unplaced": answer.unplaced,
        "price": answer.price,
        "bound": answer.bound,
        "certificate": asdict(answer.certificate),
    }
    wrong = price_checker.faults(data, plain) + price_checker.certificate_faults(data, plain)
    if any(shape.offers != EVERY for shape in problem.shapes) or answer.unplaced or wrong:
        raise AssertionError(wrong or "pods without a node")


def missed(runs: Sequence[Run]) -> Iterator[str]:
    """The limits that are not held."""
    for result in runs:
        label = f"{result.workload} {result.pods} seed {result.seed}"
        gap = MOST_GAP.get(result.workload, {}).get(result.pods)
        if gap is not None and result.gap > gap and result.price > result.integer_bound:
            yield f"{label}: gap {result.gap:.2%}, over {gap:.1%}"
        over = MOST_OVER_WHOLE.get(result.workload, {}).get(result.pods)
        if over is not None and result.price > (1 + over) * result.integer_bound:
            yield f"{label}: {result.price / result.integer_bound - 1:.2%} over the bound by whole nodes"
        if result.seconds > MOST_SECONDS.get(result.pods, float("inf")):
            yield f"{label}: {result.seconds:.2f} s"
        if result.price > result.greedy:
            yield f"{label}: dearer than Karpenter's rule"
    saving = median(1 - result.price / result.greedy for result in runs)
    if saving < LEAST_SAVING and len(runs) > 1:
        yield f"median saving {saving:.0%}"


def main() -> None:
    """Print each run, what was missed, and the JSON line."""
    parser = argparse.ArgumentParser(description="Pack pods on EC2 types for price.")
    parser.add_argument("--types", action="store_true", help="print the types as JSON and do nothing else")
    parser.add_argument("--pods", type=Path, help="a JSON list of pods to pack instead")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    options = parser.parse_args()
    types = offers()
    if options.types:
        names = ("cpu_m", "memory_bytes", "pods")
        listed = [
            {"name": offer.name, **dict(zip(names, offer.room, strict=True)), "usd_hour": offer.price / NANO}
            for offer in types
        ]
        print(json.dumps(listed))
        return
    if options.pods:
        pods = [(entry["cpu_m"], entry["memory_mi"] * MIB) for entry in json.loads(options.pods.read_text())]
        cases = [(pods, 0, "file")]
    else:
        cases = [(draw(n, seed, kind), seed, kind) for kind in WORKLOADS for n in SIZES for seed in options.seeds]
    runs = []
    for pods, seed, workload in cases:
        runs.append(result := run(types, pods, seed, workload))
        print(
            f"{workload:8} {result.pods:5} seed {seed}: {result.price:9.4f} USD/h on {result.nodes:3} nodes, "
            f"{result.gap:6.2%} over the linear bound, {result.price / result.integer_bound - 1:6.2%} over the larger "
            f"one, {1 - result.price / result.greedy:4.0%} below Karpenter's rule, {result.seconds:.3f} s"
        )
    limits = list(missed(runs))
    for text in limits:
        print(f"MISSED {text}")
    print(json.dumps({"runs": [asdict(result) for result in runs]}))
    sys.exit(bool(limits))


if __name__ == "__main__":
    main()
