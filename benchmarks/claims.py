"""Speed of the core's decisions: ``python benchmarks/claims.py --seed 1``.

10,000 claims as JSON documents, most with a set of requirements of their own, against every EC2 type that has a
price. Timed are the index and the decision: reading the claims' requirements and quantities, and choosing. Loading
the catalogue and decoding JSON are not (``json_seconds`` says what the latter takes). Each run starts from nothing: a
new index, a new reader, new documents. The figures are medians of the runs.

Prints how time grows with claims and with types, then one JSON line. Exit 1 when a limit is missed.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import resource
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "layers" / "common" / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from local.testing.memory_store import MemoryRegistry
from stockyard.adapters.catalog import OFFLINE_REGION, Ec2PriceList
from stockyard.domain.nodes.defaults import written_out
from stockyard.domain.nodes.node_types import ON_DEMAND, SPOT, Declaration, NodeType, Offering, node_type_of
from stockyard.domain.nodes.offers import InstanceOffer
from stockyard.domain.values.requirements import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from stockyard.scheduling.index import Index
from stockyard.scheduling.match import Availability, SelectedOffering, choose_all
from stockyard.scheduling.reading import Reader

CLAIMS, BATCH = 10_000, 10_000
LEAST_DISTINCT = 5_000
LIMIT_SECONDS, LIMIT_MB = 0.5, 256
GROWTH_CLAIMS = (100, 1_000, 10_000, 100_000)
GROWTH_TYPES = (100, 1_000, 10_000)
PROVIDER = "ec2"
LABEL = "karpenter.k8s.aws/instance-"
ZONES = tuple(f"{OFFLINE_REGION}{letter}" for letter in "abcdef")
ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}
OVERHEAD = {"cpu": "100m", "memory": "200Mi"}


@dataclass(frozen=True, slots=True)
class Timing:
    """One run over all claims, in seconds; ``decide`` is what ``read`` and the choice took, ``cpu`` its CPU time."""

    index: float
    json: float
    read: float
    decide: float
    cpu: float
    placed: int


def offers() -> list[InstanceOffer]:
    """The EC2 types with a price, by name, from the catalogue that comes with the product."""
    sheet = Ec2PriceList(MemoryRegistry().platform()).region(OFFLINE_REGION)
    offers_of_region = sheet.instances.values() if sheet else ()
    return sorted((offer for offer in offers_of_region if offer.usd_hour is not None), key=lambda offer: offer.name)


def properties(offer: InstanceOffer) -> dict[str, str]:
    """The labels that a node of the type would carry, from its name and size."""
    family, _, size = offer.name.partition(".")
    letters = family.rstrip("abcdefghijklmnopqrstuvwxyz-") if family[-1].isalpha() else family
    digits = "".join(letter for letter in letters.partition("-")[0] if letter.isdigit())
    labels = {
        f"{LABEL}family": family,
        f"{LABEL}category": family[: next((n for n, letter in enumerate(family) if letter in "0123456789-"), 1)],
        f"{LABEL}size": size,
        f"{LABEL}cpu": str(offer.vcpu),
        f"{LABEL}memory": str(offer.memory_mib),
    }
    if digits:
        labels[f"{LABEL}generation"] = digits[0]
    for gpu in offer.gpus[:1]:
        labels[f"{LABEL}gpu-name"] = gpu.name.lower().replace(" ", "-")
        labels[f"{LABEL}gpu-manufacturer"] = gpu.manufacturer.lower()
        labels[f"{LABEL}gpu-count"] = str(gpu.count)
    return labels


def node_type(offer: InstanceOffer, chance: random.Random) -> NodeType:
    """One EC2 type, on demand at its price and as spot at an invented one, in some zones; a fifth is limited."""
    zones = tuple(sorted(chance.sample(ZONES, chance.randint(2, len(ZONES)))))
    price = offer.usd_hour or 0.0
    resources: dict[str, str | float] = {
        "cpu": str(offer.vcpu),
        "memory": f"{offer.memory_mib}Mi",
        "pods": str(offer.max_pods or 110),
    }
    count = sum(gpu.count for gpu in offer.gpus)
    if count:
        resources["nvidia.com/gpu"] = str(count)
    return node_type_of(
        Declaration(
            provider=PROVIDER,
            name=offer.name,
            resources=resources,
            overhead=OVERHEAD,
            properties=properties(offer),
            instance_type=offer.name,
            arch=ARCHITECTURES.get(offer.architecture, "amd64"),
            limited=chance.random() < 0.2,
            offerings=(
                Offering(ON_DEMAND, zones, price),
                Offering(SPOT, zones, round(price * chance.uniform(0.3, 0.6), 5)),
            ),
        )
    )


def catalogue(real_types: Sequence[InstanceOffer], types: int, chance: random.Random) -> list[NodeType]:
    """``types`` node types: a sample of the real ones, and beyond them copies with other names, sizes and prices."""
    models = chance.sample(real_types, min(types, len(real_types)))
    while len(models) < types:
        model, number = chance.choice(real_types), len(models)
        family, _, size = model.name.partition(".")
        models.append(
            replace(
                model,
                name=f"{family}x{number % 50}.{size}-{number}",
                vcpu=model.vcpu + number % 7,
                usd_hour=round((model.usd_hour or 1.0) * chance.uniform(0.5, 2.0), 5),
            )
        )
    return [node_type(offer, chance) for offer in models]


def claims(
    values: Mapping[str, Sequence[str]], names: Sequence[str], chance: random.Random
) -> Iterator[dict[str, Any]]:
    """An endless sequence of claims."""

    def sample(name: str, most: int) -> list[str]:
        return chance.sample(values[name], chance.randint(1, min(most, len(values[name]))))

    def entry(key: str, operator: str, *entry_values: str) -> dict[str, Any]:
        return {"key": key, "operator": operator, "values": list(entry_values)}

    while True:
        cpu, gib = chance.choice((1, 2, 4, 8, 16, 32)), chance.choice((2, 4, 8, 16, 32, 64, 128))
        possible = [
            entry(f"{LABEL}category", "In", *chance.sample(("c", "m", "r", "t"), chance.randint(2, 4))),
            entry(f"{LABEL}family", "In", *sample("family", 8)),
            entry(f"{LABEL}family", "NotIn", *sample("family", 4)),
            entry(f"{LABEL}generation", "Gt", str(chance.randint(1, 6))),
            entry(ARCH, "In", *chance.choice((("amd64",), ("arm64",), ("amd64", "arm64")))),
            entry(ZONE, "In", *chance.sample(ZONES, chance.randint(1, 4))),
            entry(CAPACITY_TYPE, "In", *chance.choice(((ON_DEMAND,), (SPOT,), (SPOT, ON_DEMAND)))),
            entry(f"{LABEL}cpu", "Gt", str(max(0, cpu - 1))),
            entry(f"{LABEL}cpu", "Lt", str(cpu * chance.choice((2, 4, 8)) + 1)),
            entry(f"{LABEL}memory", "Gt", str(gib * 1024 - 1)),
            entry(f"{LABEL}memory", "Lt", str(gib * chance.choice((4, 8, 16)) * 1024 + 1)),
            entry(f"{LABEL}size", "NotIn", *sample("size", 3)),
            entry(INSTANCE_TYPE, "NotIn", *chance.sample(names, min(len(names), chance.randint(1, 4)))),
        ]
        request = {
            "cpu": f"{cpu * 1000 - chance.randint(2, 19) * 50}m",
            "memory": f"{gib * 1024 - chance.randint(1, 900)}Mi",
        }
        if chance.random() < 0.03:
            request["nvidia.com/gpu"] = "1"
        # Who asks by neither label says that any capacity type, and any architecture, will do.
        requirements = list(written_out(chance.sample(possible, chance.randint(3, 6))))
        document = {"requirements": requirements, "desiredCapacity": request}
        yield document | {"providerRef": PROVIDER} if chance.random() < 0.5 else document


def texts(node_types: Sequence[NodeType], count: int, chance: random.Random) -> Iterator[list[str]]:
    """``count`` claims as JSON, in batches, so that memory holds one batch at a time."""
    values = {
        name: sorted({value for node_type in node_types for value in node_type.properties.get(f"{LABEL}{name}", ())})
        for name in ("family", "size")
    }
    source = claims(values, [node_type.bare for node_type in node_types], chance)
    for first in range(0, count, BATCH):
        yield [json.dumps(next(source)) for _ in range(min(BATCH, count - first))]


def unavailable_offerings(node_types: Sequence[NodeType], chance: random.Random) -> Availability:
    """Free capacity of limited node types, and some unavailable offerings."""
    free = {node_type.name: chance.randint(0, 40) for node_type in node_types if node_type.limited}
    refused = {
        (node_type.name, SPOT, chance.choice((*ZONES, "*")))
        for node_type in chance.sample(node_types, len(node_types) // 50)
    }
    return Availability(free, frozenset(refused))


def run(node_types: Sequence[NodeType], batches: Iterable[list[str]], availability: Availability) -> Timing:
    """Runs index and decision for all batches. Capacity that one batch takes is not free for the next."""
    start = perf_counter()
    index = Index.build(node_types, (None, PROVIDER))
    total = Timing(perf_counter() - start, 0.0, 0.0, 0.0, 0.0, 0)
    for batch in batches:
        start = perf_counter()
        documents = [json.loads(text) for text in batch]
        decoded = perf_counter() - start
        gc.collect()  # Earlier garbage is collected now, so that this does not count as time of the decision.
        cpu, start = process_time(), perf_counter()
        reader = Reader()
        request = [
            reader.request(document["requirements"], document["desiredCapacity"], document.get("providerRef"))
            for document in documents
        ]
        read = perf_counter() - start
        choices = choose_all(index, request, availability)
        decide, cpu = perf_counter() - start, process_time() - cpu
        placed = sum(choice is not None for choice in choices)
        total = Timing(
            total.index,
            total.json + decoded,
            total.read + read,
            total.decide + decide,
            total.cpu + cpu,
            total.placed + placed,
        )
        availability = Availability(_free_nodes_after(availability.free, choices), availability.refused)
    return total


def _free_nodes_after(free: Mapping[str, int], choices: Sequence[SelectedOffering | None]) -> dict[str, int]:
    remaining = dict(free)
    for choice in choices:
        if choice is not None and choice.node_type.limited:
            remaining[choice.node_type.name] -= 1
    return remaining


def distinct(batch: Sequence[str]) -> int:
    """Number of different sets of requirements, whatever the order of entries and values."""
    return len(
        {
            frozenset(
                (entry["key"], entry["operator"], frozenset(entry.get("values", ())))
                for entry in json.loads(text)["requirements"]
            )
            for text in batch
        }
    )


def peak_mb() -> float:
    """The peak memory of this process, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def growth(real_types: Sequence[InstanceOffer], seed: int) -> list[dict[str, Any]]:
    """One row for each size: claims against all real types, then types for 10,000 claims. Prints each row at once."""
    rows = []
    print(f"{'claims':>8}{'types':>8}{'index s':>10}{'decide s':>10}{'us a claim':>12}{'placed':>8}")
    sizes = [(count, len(real_types)) for count in GROWTH_CLAIMS] + [(CLAIMS, types) for types in GROWTH_TYPES]
    for count, types in sizes:
        chance = random.Random(seed)
        node_types = catalogue(real_types, types, chance)
        timing = run(node_types, texts(node_types, count, chance), unavailable_offerings(node_types, chance))
        each = timing.decide / count * 1e6
        row = f"{count:>8}{types:>8}{timing.index:>10.3f}{timing.decide:>10.3f}{each:>12.1f}{timing.placed:>8}"
        print(row, flush=True)
        rows.append(
            {
                "claims": count,
                "types": types,
                "index_seconds": round(timing.index, 4),
                "decide_seconds": round(timing.decide, 4),
            }
        )
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints the figures, and checks the limits."""
    parser = argparse.ArgumentParser(prog="benchmarks.claims", description="Speed and memory of the scheduling core")
    parser.add_argument("--runs", type=int, default=5, help="how often the 10,000 claims are decided")
    parser.add_argument("--seed", type=int, default=1, help="what catalogue and claims are drawn from")
    options = parser.parse_args(arguments)
    chance = random.Random(options.seed)
    real_types = offers()
    node_types = catalogue(real_types, len(real_types), chance)
    availability = unavailable_offerings(node_types, chance)
    (batch,) = texts(node_types, CLAIMS, chance)
    timings = [run(node_types, [batch], availability) for _ in range(options.runs)]
    peak, different = peak_mb(), distinct(batch)
    rows = growth(real_types, options.seed)
    seconds = median(timing.decide for timing in timings)
    figures = {
        "benchmark": "claims",
        "claims": len(batch),
        "distinct_requirement_sets": different,
        "types": len(node_types),
        "limited_types": sum(node_type.limited for node_type in node_types),
        "placed": timings[0].placed,
        "index_seconds": round(median(timing.index for timing in timings), 4),
        "decide_seconds": round(seconds, 4),
        "decide_seconds_each": [round(timing.decide, 4) for timing in timings],
        "decide_cpu_seconds": round(median(timing.cpu for timing in timings), 4),
        "read_seconds": round(median(timing.read for timing in timings), 4),
        "json_seconds": round(median(timing.json for timing in timings), 4),
        "peak_mb": round(peak, 1),
        "limits": {"decide_seconds": LIMIT_SECONDS, "peak_mb": LIMIT_MB, "distinct": LEAST_DISTINCT},
        "growth": rows,
        "runs": options.runs,
        "seed": options.seed,
        "python": sys.version.split()[0],
    }
    print(json.dumps(figures))
    return 0 if seconds <= LIMIT_SECONDS and peak <= LIMIT_MB and different >= LEAST_DISTINCT else 1


if __name__ == "__main__":
    sys.exit(main())
