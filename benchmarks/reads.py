"""Reads of a tenant with many clusters: our own time, and read units of each list and of what people look at.

The product's handlers answer over a table in memory that counts units as DynamoDB does. Own time is CPU time of the
handler without the table's, with the reading of each answer as text, on this machine's whole core; AWS's share of a
call is not in it.

    python -m benchmarks.reads [--clusters N] [--nodes N] [--samples N] [--only TEXT]

Prints a table for people, then one JSON line. Exit 1 when a list is slower or dearer than its limit.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from time import thread_time
from typing import Any

from benchmarks.cold_start import request
from benchmarks.large_tenant.looks import LOOKS, Look
from benchmarks.large_tenant.records import Counted, change, forget, tenant_of

LIMIT_MS = 150.0
"""Of our own time at the 95th percentile, of each look."""
LIMIT_UNITS = 32.0
"""Of a page of 50."""
MAKING = "sums of the tenant, made for the first time"
MOST_TRIES = 30


class _Context:
    function_name = function_version = invoked_function_arn = aws_request_id = "bench"
    memory_limit_in_mb = 512

    def get_remaining_time_in_millis(self) -> int:
        """As if the invocation had just begun."""
        return 29_000


def ask(look: Look, names: Mapping[str, str]) -> dict[str, Any]:
    """The answer to a look. Raises ``RuntimeError`` for one that is refused."""
    answer = reply(look, names)
    if answer["statusCode"] != 200:
        raise RuntimeError(f"{look.name}: {answer['body']}")
    return answer


def reply(look: Look, names: Mapping[str, str]) -> dict[str, Any]:
    """The answer to a look, also one that refuses."""
    handler = importlib.import_module(f"functions.{look.function}.handler").lambda_handler
    method, _, template = look.route.partition(" ")
    claims = {"sub": "ann", "organization": [names["tenant"]], "realm_access": {"roles": ["stockyard-admin"]}}
    path = template.format(**names)
    route = re.sub("{(cluster|claim|operation)}", "{id}", template).replace("/pools/web", "/pools/{name}")
    event = request(method, path, claims=claims, template=route)
    event["rawQueryString"] = look.query.format(**names)
    identifiers = [names[name] for name in ("cluster", "claim", "operation") if f"{{{name}}}" in template]
    event["pathParameters"] = {"id": identifiers[0], "name": "web"} if identifiers else None
    answer: dict[str, Any] = handler(event, _Context())
    return answer


def measure(look: Look, counted: Counted, names: Mapping[str, str], samples: int) -> dict[str, Any]:
    """Figures of a look: milliseconds of our own, units and calls, each the most but for the time's 95th percentile.
    The first answer, for which modules are loaded, counts for units alone."""
    own, units, calls = list[float](), list[float](), list[int]()
    for _ in range(samples + 1):
        if look.anew:
            forget(counted.table, names["tenant"])
        if look.changed:
            change(counted.table, names["tenant"], look.changed)
        counted.units, counted.calls, counted.seconds = 0.0, 0, 0.0
        began = thread_time()
        ask(look, names)
        own.append((thread_time() - began - counted.seconds) * 1000)
        units.append(counted.units)
        calls.append(counted.calls)
    warm = sorted(own[1:] or own)
    p95 = warm[min(len(warm) - 1, int(len(warm) * 0.95))]
    return {"look": look.name, "p95_ms": round(p95, 1), "units": max(units), "calls": max(calls), "last": units[-1]}


def make_sums(counted: Counted, names: Mapping[str, str]) -> dict[str, Any]:
    """Have the tenant's sums made, which a large one needs several calls for; the most milliseconds of one of them, all
    units, and the calls of our API."""
    look = Look("records", "GET /v1/costs")
    counted.units, longest = 0.0, 0.0
    for number in range(1, MOST_TRIES + 1):
        counted.seconds, began = 0.0, thread_time()
        answer = reply(look, names)
        longest = max(longest, thread_time() - began - counted.seconds)
        if answer["statusCode"] == 200:
            return {"look": MAKING, "p95_ms": round(longest * 1000, 1), "units": counted.units, "calls": number}
    raise RuntimeError(f"{look.name} is refused {MOST_TRIES} times")


def failures(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The limits that were missed, a line each."""
    looks = {look.name: look for look in LOOKS}
    missed = []
    for row in rows:
        look = looks.get(row["look"])
        if look is not None and row["p95_ms"] > LIMIT_MS:
            missed.append(f"{look.name}: {row['p95_ms']} ms")
        if look is not None and not look.whole and row["units"] > LIMIT_UNITS:
            missed.append(f"{look.name}: {row['units']} units")
    return missed


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reads", description=__doc__)
    parser.add_argument("--clusters", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--only", default="", help="looks whose name has this text")
    options = parser.parse_args()
    rows = []
    with tenant_of(options.clusters, options.nodes) as (counted, names):
        for look in (None, *LOOKS):
            if look is not None and options.only not in look.name:
                continue
            row = make_sums(counted, names) if look is None else measure(look, counted, names, options.samples)
            rows.append(row)
            figures = f"{row['p95_ms']:>10} ms{row['units']:>10} units{row['calls']:>6} calls"
            print(f"{figures}  {row['look']}", flush=True)
    missed = failures(rows)
    workload = {name: getattr(options, name) for name in ("clusters", "nodes", "samples")}
    print(json.dumps({"benchmark": "reads", "workload": workload, "rows": rows, "failures": missed}))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
