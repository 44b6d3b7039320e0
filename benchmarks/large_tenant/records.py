"""A tenant with many clusters in a table in memory that counts what is read, for the product's handlers."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from time import thread_time
from typing import Any
from unittest.mock import patch

from botocore.client import BaseClient

from benchmarks.virtual_fleet.clusters import FleetRecords, Tenant
from benchmarks.virtual_fleet.table import INDEXES, Entry, LeanTable, Partition
from benchmarks.virtual_time.stage import ENVIRONMENT
from local.testing.fresh_wiring import fresh_wiring
from stockyard import wiring
from stockyard.adapters.dynamodb import codec, keys
from stockyard.domain.cost_records import CostReport, GaugeReport
from stockyard.domain.operation_records import subject_operation
from stockyard.domain.records import AuditRecord, Counter, Event, Fact, NodeClaim, Operation, Record
from stockyard.domain.subject_entries import PREFIXES, bound_fact
from stockyard.domain.values import ids, times

HISTORY = 100
"""Events of each cluster; half as many operations, and records of audit."""
BEGAN = datetime(2026, 11, 29, 12, tzinfo=UTC)


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
        operation = Operation(
            fleet._id(ids.OPERATION), "create_node", cluster.id, "succeeded", (), now, now, "user:ann", cluster.name
        )
        yield operation
        yield subject_operation(operation)
    for _ in range(-(-count // 2)):
        yield AuditRecord(fleet._id(ids.AUDIT), now, "user:ann", "CreateNodeClaim", cluster.id, "done", "r")


def fill(table: LeanTable, clusters: int, nodes: int, history: int = HISTORY) -> Mapping[str, str]:
    """Fill the table with a tenant of so many clusters; its name, and ids of one cluster, a claim and an operation of
    it, and one behind its last ``event``, by ``tenant``, ``cluster``, ``claim`` and ``operation``.

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
    for kind, prefix in {**PREFIXES, Operation: ids.OPERATION}.items():
        bound = Fact(bound_fact(kind), ids.before(prefix, BEGAN + timedelta(minutes=1)), "")
        _put(table, codec.to_item(tenant.name, bound))
    for number in range(clusters):
        other = ids.make(ids.CLUSTER, BEGAN - timedelta(seconds=clusters - number), bytes(10)).rpartition("_")[2][:10]
        own = text.replace(f"_{moment}", f"_{other}").replace("demo-0", f"demo-{number}")
        for item in json.loads(own):
            _put(table, item)
    middle = ids.make(ids.CLUSTER, BEGAN - timedelta(seconds=clusters - clusters // 2), bytes(10))
    other = middle.rpartition("_")[2][:10]
    operations = (item["sk"]["S"] for item in items if item["kind"]["S"] == Operation.__name__)
    event = ids.make(ids.EVENT, BEGAN + timedelta(seconds=1), bytes(10))
    first_ids = {"cluster": first.cluster.id, "claim": first.claims[0].id, "operation": next(operations, "none")}
    named = {name: own.replace(f"_{moment}", f"_{other}") for name, own in first_ids.items()}
    for partition in table.partitions.values():
        partition.order.sort()
    return {"tenant": tenant.name, "event": event, **named}


def forget(table: LeanTable, tenant: str) -> None:
    """Take away what somebody was told before, so that it is made anew."""
    for kind in (CostReport, GaugeReport):
        table.partitions.pop(keys.partition(tenant, kind, ""), None)


def change(table: LeanTable, tenant: str, clusters: int) -> None:
    """Have something happen to a node of each of so many clusters."""
    firsts: dict[str, str] = {}
    for entry in table.partitions[keys.partition(tenant, NodeClaim, "")].entries.values():
        firsts.setdefault(entry.item["cluster_id"]["S"], entry.item["sk"]["S"])
        if len(firsts) == clusters:
            break
    now = datetime.now(UTC)
    for cluster_id, claim_id in firsts.items():
        event = Event(
            ids.make(ids.EVENT, now, os.urandom(10)), "NodeClaim", claim_id, 1, times.to_text(now), "scheduler",
            "Pending", "Available", "Joined", "Node is there.", {"cluster_id": cluster_id},
        )  # fmt: skip
        item = codec.to_item(tenant, event)
        table.partitions[item["pk"]["S"]].put(item["sk"]["S"], Entry.of(item))


def _put(table: LeanTable, item: dict[str, Any]) -> None:
    partition, entry = table.partitions.setdefault(item["pk"]["S"], Partition()), Entry.of(item)
    partition.entries[item["sk"]["S"]] = entry
    partition.order.append(item["sk"]["S"])
    for index, attributes in INDEXES.items():
        table._indexed_anew(index, attributes, None, entry)


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
