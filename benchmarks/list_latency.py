"""Latency of ``GET /v1/clusters`` of the local cloud: ``python -m benchmarks.list_latency``.

A local cloud of its own is started, with some clusters whose creation has begun, and the list is asked for again and
again, each time over a new connection, as a command line does. The first answers, for which a function starts, do not
count. What else the machine does makes the figures larger; ``load`` says how much that was.

Prints one JSON line: milliseconds. Exit 1 when the 95th percentile is above the limit.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from local.testing.example import body_without_nodes
from local.testing.serving import Served, serve

LIMIT_MS = 20.0
CLUSTERS = 3
WARM_UP = 20


def measured(cloud: Served, requests: int) -> list[float]:
    """Milliseconds of each request, in the order in which they were made."""
    times = []
    for _ in range(WARM_UP + requests):
        began = time.perf_counter()
        answer = cloud.call("GET", "/v1/clusters")
        times.append((time.perf_counter() - began) * 1000)
        if answer.status != 200 or len(answer.body["items"]) != CLUSTERS:
            raise RuntimeError(answer.text)
    return times[WARM_UP:]


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.list_latency", description=__doc__)
    parser.add_argument("--requests", type=int, default=1000)
    requests = parser.parse_args().requests
    with tempfile.TemporaryDirectory() as folder:
        cloud = serve(Path(folder) / "home", "--no-limits")
        try:
            for number in range(CLUSTERS):
                answer = cloud.call("POST", "/v1/clusters", {**body_without_nodes(), "name": f"c{number}"})
                cloud.operation(answer.body["operation_id"])
            times = measured(cloud, requests)
        finally:
            cloud.stop()
    cuts = statistics.quantiles(times, n=100)
    figures = {
        "benchmark": "list_latency",
        "requests": requests,
        "clusters": CLUSTERS,
        "p50_ms": round(cuts[49], 1),
        "p95_ms": round(cuts[94], 1),
        "p99_ms": round(cuts[98], 1),
        "limit_ms": LIMIT_MS,
        "load": round(os.getloadavg()[0], 1),
    }
    print(json.dumps(figures))
    return int(cuts[94] > LIMIT_MS)


if __name__ == "__main__":
    sys.exit(main())
