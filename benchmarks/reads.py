"""Reads of a tenant with many clusters: our own time, and read units of each list and of what people look at.

The product's handlers answer over a table in memory that counts units as DynamoDB does. Own time is CPU time of the
handler without the table's, with the reading of each answer as text, on this machine's whole core; AWS's share of a
call is not in it.

    python -m benchmarks.reads [--clusters N] [--nodes N] [--samples N]

Prints a table for people, then one JSON line. Exit 1 when a list is slower or dearer than its limit.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import thread_time
from typing import Any
from unittest.mock import patch

from botocore.client import BaseClient

from benchmarks.cold_start import request
from benchmarks.virtual_fleet.clusters import FleetRecords, Tenant
from benchmarks.virtual_fleet.table import Entry, LeanTable, Partition
from benchmarks.virtual_time.stage import ENVIRONMENT
from local.testing.fresh_wiring import fresh_wiring
from stockyard import wiring
from stockyard.adapters.dynamodb import codec
from stockyard.domain.records import AuditRecord, Counter, Event, Operation, Record
from stockyard.domain.values import ids, times

LIMIT_MS = 150.0
"""Of our own time at the 95th percentile, of each list."""
LIMIT_UNITS = {"GET /v1/node-claims": 32.0}
"""Of a page of 50."""
HISTORY = 100
"""Events of each cluster; half as many operations, and records of audit."""
BEGAN = datetime(2026, 11, 29, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Look:
    """A request that is measured. ``whole`` says why it may read more than a page."""

    function: str
    route: str
    query: str = ""
    whole: str = ""

    @property
    def name(self) -> str:
        """``GET /v1/node-claims?phase=Failed``."""
        return self.route + (f"?{self.query}" if self.query else "")


SUMS = "sums over everything that there is; kept"
MAKING = "sums of the tenant, made for the first time"
MOST_TRIES = 30
LOOKS = (
    Look("node_claims", "GET /v1/node-claims"),
    Look("node_claims", "GET /v1/node-claims", "count=true"),
    Look("node_claims", "GET /v1/node-claims", "order=desc&page_size=50"),
    Look("node_claims", "GET /v1/node-claims", "cluster={cluster}"),
    Look("node_claims", "GET /v1/node-claims", "phase=Available"),
    Look("node_claims", "GET /v1/node-claims", "phase=Failed", "looks for what is rare"),
    Look("node_claims", "GET /v1/node-claims", "phase=Failed&count=true", "looks for what is rare"),
    Look("node_claims", "GET /v1/node-claims", "label=none=x", "looks for what is rare"),
    Look("node_claims", "GET /v1/node-claims/{claim}/explanation"),
    Look("clusters", "GET /v1/clusters"),
    Look("clusters", "GET /v1/clusters", "count=true", "counts by reading"),
    Look("clusters", "GET /v1/clusters/{cluster}"),
    Look("clusters", "GET /v1/clusters/{cluster}/tree", "", "the whole cluster"),
    Look("pools", "GET /v1/clusters/{cluster}/pools", "", "the whole cluster"),
    Look("node_providers", "GET /v1/node-providers"),
    Look("node_providers", "GET /v1/node-types"),
    Look("node_providers", "GET /v1/node-environments"),
    Look("records", "GET /v1/operations"),
    Look("records", "GET /v1/operations", "status=failed", "looks for what is rare"),
    Look("records", "GET /v1/operations", "count=true", "counts by reading"),
    Look("records", "GET /v1/events"),
    Look("records", "GET /v1/events", "order=desc&subject={cluster}", "looks for what is rare"),
    Look("records", "GET /v1/audit"),
    Look("records", "GET /v1/quotas", "", "the most that any pool has"),
    Look("cloud_accounts", "GET /v1/cloud-accounts"),
    Look("cluster_profiles", "GET /v1/cluster-profiles"),
    Look("sites", "GET /v1/sites"),
    Look("records", "GET /v1/costs", "cluster={cluster}", SUMS),
    Look("records", "GET /v1/costs", "", SUMS),
    Look("records", "GET /v1/costs", "max_age=300", SUMS),
    Look("clusters", "GET /v1/clusters", "costs=true", SUMS),
    Look("records", "GET /v1/metrics", "", SUMS),
)


class Counted:
    """A table in memory with what the calls to it took."""

    def __init__(self) -> None:
        self.table = LeanTable(self._count, "reads")
        self.units = self.seconds = 0.0
        self.calls = 0

    def _count(self, kind: str, _: str, units: float) -> None:
        self.units += units if kind == "read" else 0.0

    def call(self, client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
        """Answer a call of botocore."""
        if client.meta.service_model.service_name == "secretsmanager":
            return {"SecretString": "0123456789abcdef" * 4}
        began = thread_time()
        text = json.dumps(self.table.answer(client, operation, parameters), default=_encoded)
        self.seconds += thread_time() - began
        self.calls += 1
        return json.loads(text, object_hook=_decoded if '"latin"' in text else None)


def _encoded(value: bytes) -> Any:
    return {"latin": value.decode("latin-1")}


def _decoded(value: dict[str, Any]) -> Any:
    return value["latin"].encode("latin-1") if "latin" in value else value


def _history(tenant: Tenant, fleet: FleetRecords, count: int) -> Iterator[Record]:
    """History of a cluster: so many events, half as many operations and records of audit."""
    cluster = tenant.clusters[0].cluster
    now = times.to_text(BEGAN)
    about = {"name": cluster.name}
    for number in range(count):
        text = f"Node {number} is there, as its cluster has told."
        yield Event(
            fleet._id(ids.EVENT), "NodeClaim", cluster.id, number, now, "scheduler", "Pending", "Available", "Joined",
            text, about,
        )  # fmt: skip
    for _ in range(-(-count // 2)):
        yield Operation(
            fleet._id(ids.OPERATION), "create_node", cluster.id, "succeeded", (), now, now, "user:ann", cluster.name
        )
    for _ in range(-(-count // 2)):
        yield AuditRecord(fleet._id(ids.AUDIT), now, "user:ann", "CreateNodeClaim", cluster.id, "done", "r")


def fill(table: LeanTable, clusters: int, nodes: int, history: int = HISTORY) -> Mapping[str, str]:
    """Fill the table with a tenant of so many clusters; ids of one cluster and one claim, by ``cluster`` and ``claim``.

    One cluster is made; the others are the same with other ids and names.
    """
    fleet = FleetRecords(BEGAN, 1, 0.3)
    tenant = fleet.tenant(1)
    first, records = fleet.cluster(tenant, 0, nodes)
    items = [codec.to_item(tenant.name, record) for record in (*records, *_history(tenant, fleet, history))]
    text, moment = json.dumps(items), first.cluster.id.rpartition("_")[2][:10]
    counters = Counter("quota/nodeclaims", value=clusters * nodes), Counter("quota/clusters", value=clusters)
    for record in (tenant.account, tenant.provider, *counters):
        _put(table, codec.to_item(tenant.name, record))
    for number in range(clusters):
        other = ids.make(ids.CLUSTER, BEGAN - timedelta(seconds=clusters - number), bytes(10)).rpartition("_")[2][:10]
        own = text.replace(f"_{moment}", f"_{other}").replace("demo-0", f"demo-{number}")
        for item in json.loads(own):
            _put(table, item)
    middle = ids.make(ids.CLUSTER, BEGAN - timedelta(seconds=clusters - clusters // 2), bytes(10))
    for partition in table.partitions.values():
        partition.order.sort()
    other = middle.rpartition("_")[2][:10]
    return {
        "tenant": tenant.name,
        "cluster": first.cluster.id.replace(f"_{moment}", f"_{other}"),
        "claim": first.claims[0].id.replace(f"_{moment}", f"_{other}"),
    }


def _put(table: LeanTable, item: dict[str, Any]) -> None:
    partition = table.partitions.setdefault(item["pk"]["S"], Partition())
    partition.entries[item["sk"]["S"]] = Entry.of(item)
    partition.order.append(item["sk"]["S"])


class _Context:
    function_name = function_version = invoked_function_arn = aws_request_id = "bench"
    memory_limit_in_mb = 512

    def get_remaining_time_in_millis(self) -> int:
        """As if the invocation had just begun."""
        return 29_000


@contextmanager
def tenant_of(clusters: int, nodes: int, history: int = HISTORY) -> Iterator[tuple[Counted, Mapping[str, str]]]:
    """Inside this context the product's wiring reads a table with such a tenant."""
    counted = Counted()
    names = fill(counted.table, clusters, nodes, history)
    gc.collect()
    gc.freeze()  # what the table has is nothing that a function would look through

    def call(client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
        return counted.call(client, operation, parameters)

    with ExitStack() as stack:
        stack.callback(gc.unfreeze)
        variables = {**ENVIRONMENT, "STOCKYARD_TENANT_RATE_LIMIT": "100000", "STOCKYARD_TENANT_BURST_LIMIT": "100000"}
        stack.enter_context(patch.dict(os.environ, variables))
        stack.enter_context(fresh_wiring())
        stack.enter_context(patch.object(BaseClient, "_make_api_call", call))
        stack.enter_context(patch.object(wiring, "_limits", _Open))
        yield counted, names


class _Open:
    def admit(self, _: str) -> None:
        """Lets everybody in."""


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
    route = template.replace("{cluster}", "{id}").replace("{claim}", "{id}")
    event = request(method, path, claims=claims, template=route)
    event["rawQueryString"] = look.query.format(**names)
    identifiers = [names[name] for name in ("cluster", "claim") if f"{{{name}}}" in template]
    event["pathParameters"] = {"id": identifiers[0]} if identifiers else None
    answer: dict[str, Any] = handler(event, _Context())
    return answer


def measure(look: Look, counted: Counted, names: Mapping[str, str], samples: int) -> dict[str, Any]:
    """Figures of a look: milliseconds of our own, units and calls, each the most but for the time's 95th percentile.
    The first answer, for which modules are loaded, counts for units alone."""
    own, units, calls = list[float](), list[float](), list[int]()
    for _ in range(samples + 1):
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
    paged = {look.name: look for look in LOOKS if not look.whole}
    missed = []
    for row in rows:
        look = paged.get(row["look"])
        if look is not None and row["p95_ms"] > LIMIT_MS:
            missed.append(f"{look.name}: {row['p95_ms']} ms")
        if look is not None and row["units"] > LIMIT_UNITS.get(look.route, LIMIT_UNITS["GET /v1/node-claims"]):
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
