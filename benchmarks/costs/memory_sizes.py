"""Memory of each function by cost times time: ``python -m benchmarks.costs.memory_sizes``.

Each function runs in a fresh interpreter, as in ``benchmarks.cold_start``: its first request, and the same again, warm.
CPU seconds, calls of the table and the most memory are measured. For functions that a fleet has at work, a warm
request is the mean of a played quarter of an hour of busy clusters (``benchmarks.fleet``), with what its calls of AWS
wait. A duration at a memory is this wait, and the CPU seconds at Lambda's share of a core (1,769 MB have a whole one);
an import has a whole core at any memory.

What is waited for is paid for by memory, so a request costs least with the least memory. That counts which is ``ROOM``
times what is used, and with which nobody waits longer than ``MOST``. ``REASONS`` names functions whose size something
else decides.

    python -m benchmarks.costs.memory_sizes [--runs N] [--functions NAME ...]

Prints a table, then one JSON line. Exit 1 when a function of the stage has another size.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from benchmarks import cold_start, rates
from benchmarks.fleet import Fleet, staged
from benchmarks.virtual_fleet.load import Rates
from benchmarks.virtual_time.delays import DELAYS, FULL_CORE_MB
from benchmarks.virtual_time.lanes import Running
from stacks.functions import FUNCTIONS, HTTP_SECONDS, FunctionSpec

SIZES = (512, 1024, 1769)
"""With 256 MB a list of a large tenant, and the descriptions of EC2, EKS and IAM together, leave no room."""
ROOM = 2
"""Memory of a function, by what its usual event uses: there are tenants with more than that."""
MOST: Mapping[bool, tuple[float, float]] = {True: (1.5, 0.25), False: (6.0, 5.0)}
"""Seconds of a first request and of a warm one, where people wait (True) and where nobody does."""
ASKS_CLOUDS = frozenset({"apply", "cloud_accounts", "cluster_phases", "cluster_profiles", "clusters", "requests"})
EC2_CPU, EC2_MB = 0.13, 24
"""To describe EC2, which a first request of these needs, as botocore does it: seconds of a whole core, and memory."""
COLD_SECONDS = 0.3
"""Of a cold start, beside import and request: the middle of ``cold`` in ``docs/scale.md``."""
REASONS: Mapping[str, str] = {
    "pools": "packs nodes, for which it wants a whole core",
    "scheduler": "packs nodes, for which it wants a whole core",
    "autoscaler": "packs nodes, for which it wants a whole core",
    "disruptor": "packs nodes, for which it wants a whole core",
    "node_phases": "pods wait for what it computes before it calls EC2",
    "node_claims": "pods wait for it",
    "machines": "pods wait for it, and a post of a large cluster takes its memory",
    "reaper": "holds the claims of a large tenant",
    "catalog": "holds the price lists of a region",
}
AGAIN = 20
"""Warm requests of one interpreter."""
BUSY = Rates(pods=30.0, claims=10.0, spot_losses=5.0, looks=30.0)
_PROBE = """
import json, re, sys, time
cpu = time.process_time()
from functions.{function}.handler import lambda_handler
imported, cpu = time.process_time() - cpu, time.process_time()
{first}
first = time.process_time() - cpu
calls = [0]
from botocore.client import BaseClient
def count(client, operation, parameters, _call=BaseClient._make_api_call):
    calls[0] += 1
    return _call(client, operation, parameters)
BaseClient._make_api_call = count
cpu = time.process_time()
for _ in range({again}):
    try:
        lambda_handler({event!r}, Context())
    except Exception:
        pass
warm = (time.process_time() - cpu) / {again}
memory = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
print(json.dumps([imported, first, warm, calls[0] / {again}, memory]))
"""


@dataclass(frozen=True, slots=True)
class Use:
    """CPU seconds of an import, the rest of a first request and a warm one; seconds that the warm one waits; MB."""

    imported: float
    first: float
    warm: float
    waited: float
    memory: float

    def seconds(self, memory: int) -> tuple[float, float]:
        """Seconds of a first request and of a warm one with so many MB."""
        share = min(1.0, memory / FULL_CORE_MB)
        first = COLD_SECONDS + self.imported + self.first / share + self.waited
        return first, self.waited + self.warm / share

    def usd(self, memory: int) -> float:
        """USD of a warm request with so many MB."""
        return rates.LAMBDA_REQUEST + self.seconds(memory)[1] * memory / 1024 * rates.LAMBDA_ARM_GB_SECOND


def use_of(function: str, runs: int, url: str) -> Use:
    """The least CPU seconds of some interpreters, and the most memory."""
    event = cold_start.EVENTS[function]
    code = _PROBE.format(function=function, event=event, first=cold_start.first_request(event), again=AGAIN)
    samples = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", code],
                env=cold_start.environment(url),
                capture_output=True,
                text=True,
                check=True,
                timeout=cold_start.SECONDS,
            ).stdout.splitlines()[-1]
        )
        for _ in range(runs)
    ]
    imported, firsts, warm, calls, memory = zip(*samples, strict=True)
    query = next(row for row in DELAYS if row.name == "query")
    waited = max(calls) * (query.low + query.high) / 2000
    asks = function in ASKS_CLOUDS
    first = min(firsts) + EC2_CPU * asks
    return Use(min(imported), first, min(warm), waited, max(memory) + EC2_MB * asks)


def played(clusters: int, nodes: int, seconds: float, seed: int = 1) -> dict[str, tuple[float, float]]:
    """CPU seconds and waits of a warm request of each function that a fleet has at work, on average."""
    computed: Counter[str] = Counter()
    original = Running.computed

    def counted(running: Running, now: float, cpu: float) -> float:
        computed[running.function] += cpu  # type: ignore[assignment]
        return original(running, now, cpu)

    with staged(Fleet(clusters, nodes, clusters), BUSY, seed) as (stage, _), patch.object(Running, "computed", counted):
        stage._idle.clear()
        stage.time.run(lambda: False, 120.0)
        stage.figures()
        computed.clear()
        stage.time.run(lambda: False, seconds)
        figures = stage.figures()
    memory = {spec.name: spec.memory for spec in FUNCTIONS}
    means: dict[str, tuple[float, float]] = {}
    for name, count in figures["invocations"].items():
        cpu = computed[name] / count
        whole = figures["function_seconds"][name] / count
        means[name] = cpu, max(0.0, whole - cpu / min(1.0, memory[name] / FULL_CORE_MB))
    return means


def is_waited_for(spec: FunctionSpec) -> bool:
    """Whether people wait for the function."""
    return spec.timeout == HTTP_SECONDS


def size_of(spec: FunctionSpec, use: Use) -> int:
    """The least memory with room and without a longer wait than is allowed; the largest where there is none."""
    most = MOST[is_waited_for(spec)]
    for memory in SIZES:
        first, warm = use.seconds(memory)
        # What is waited for AWS no memory shortens.
        if memory >= ROOM * use.memory and first - use.waited <= most[0] and warm - use.waited <= most[1]:
            return memory
    return SIZES[-1]


def rows(uses: Mapping[str, Use]) -> list[dict[str, Any]]:
    """A row for each function: what it uses, and its seconds and cost at the size of the stage and at the least."""
    specs = {spec.name: spec for spec in FUNCTIONS}
    table = []
    for name, use in uses.items():
        least, own = size_of(specs[name], use), specs[name].memory
        first, warm = use.seconds(own)
        table.append(
            {
                "function": name,
                "import_ms": round(use.imported * 1000),
                "first_ms": round(use.first * 1000),
                "warm_ms": round(use.warm * 1000, 1),
                "waited_ms": round(use.waited * 1000),
                "used_mb": round(use.memory),
                "memory": own,
                "first_seconds": round(first, 2),
                "warm_seconds": round(warm, 3),
                "usd_million": round(use.usd(own) * 1e6, 2),
                "least": least,
                "usd_million_least": round(use.usd(least) * 1e6, 2),
                "kept": REASONS.get(name),
            }
        )
    return table


def failures(table: Sequence[Mapping[str, Any]]) -> list[str]:
    """Functions whose size is not the least and is not kept for a reason."""
    return [
        f"{row['function']}: {row['memory']} MB, {row['least']} would do"
        for row in table
        if not row["kept"] and row["memory"] != row["least"]
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.costs.memory_sizes")
    parser.add_argument("--runs", type=int, default=3, help="interpreters of a function (%(default)s)")
    parser.add_argument("--functions", nargs="*", default=list(cold_start.handlers()))
    parser.add_argument("--clusters", type=int, default=4, help="of the played fleet; 0: none is played (%(default)s)")
    options = parser.parse_args(arguments)
    with cold_start.services() as url:
        uses = {name: use_of(name, options.runs, url) for name in options.functions}
    if options.clusters:
        for name, (cpu, waited) in played(options.clusters, 10, 900.0).items():
            if name in uses:
                uses[name] = replace(uses[name], warm=cpu, waited=waited)
    table = rows(uses)
    for row in table:
        sys.stdout.write("  ".join(str(value) for key, value in row.items() if key != "kept") + "\n")
    wrong = failures(table)
    sys.stdout.write(json.dumps({"benchmark": "memory_sizes", **vars(options), "rows": table, "wrong": wrong}) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
