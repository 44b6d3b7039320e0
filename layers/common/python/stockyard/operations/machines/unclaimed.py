"""Nodes that a cluster's groups have made by themselves and that no claim has: what its agent has seen of them last.

It is written only when it changes, so that nothing is done while nothing changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from stockyard.domain import cloud_kinds
from stockyard.domain.pools.records import Pool, pool_id
from stockyard.domain.records import Cluster, Fact, MachineHold, Outbox
from stockyard.domain.values import ids
from stockyard.errors import Conflict
from stockyard.operations.listing import every
from stockyard.operations.services import Services
from stockyard.ports import Create, Put, Replace, Write

DETAIL_TYPE = "UnclaimedNodes"
"""The detail type of the event that wakes the passes over pools, so that such nodes have claims in seconds."""
UNCLAIMED = "observed-unclaimed"
"""The cluster's fact of those nodes: machines by pool, as JSON."""
MOST = 1000
"""Machines that are remembered; others are seen again when these have claims."""

Machines = Mapping[str, Sequence[str]]
"""Ids of machines, by pool."""


def unclaimed_machines(services: Services, cluster: Cluster) -> Machines:
    """The machines of nodes that no claim has, without those that a claim has taken since."""
    if not cloud_kinds.is_managed(cluster.driver):
        return {}
    fact = services.store.get(Fact, f"{cluster.id}/{UNCLAIMED}")
    return _without_held(services, cluster, json.loads(fact.value)) if has_any(fact) and fact is not None else {}


def has_any(fact: Fact | None) -> bool:
    """Whether the fact tells of a machine."""
    return fact is not None and fact.value != "{}"


def note_unclaimed(
    services: Services, cluster: Cluster, nodes: Iterable[Mapping[str, Any]], earlier: Fact | None
) -> Fact | None:
    """Remember which nodes no claim has, and have the pools looked at that have new ones. The fact as it then is."""
    if not cloud_kinds.is_managed(cluster.driver):
        return earlier
    machines = _without_held(services, cluster, _of_groups(services, cluster, nodes))
    value = json.dumps(machines, sort_keys=True)
    if value == (earlier.value if earlier is not None else "{}"):
        return earlier
    fact = Fact(f"{cluster.id}/{UNCLAIMED}", value, services.now())
    before = json.loads(earlier.value) if earlier is not None else {}
    pools = [pool for pool, own in machines.items() if set(own) - set(before.get(pool, ()))]
    services.store.commit(Put(fact), *([_wake(services, fact, cluster, machines)] if pools else []))
    for pool in pools:
        # The event may be lost, or come before the cluster is ready: then the schedule looks.
        _have_looked_at(services, pool_id(cluster.id, pool))
    return fact


def _wake(services: Services, fact: Fact, cluster: Cluster, machines: Machines) -> Write:
    """The event is for the passes alone: people are shown what comes of it."""
    detail = {
        "id": services.new_id(ids.EVENT),
        "tenant": services.tenant,
        "subject": cluster.id,
        "time": fact.time,
        "nodes": sum(map(len, machines.values())),
    }
    return Create(
        Outbox(services.new_id(ids.OUTBOX), "event", {"detail_type": DETAIL_TYPE, "detail": detail}, fact.time)
    )


def _of_groups(services: Services, cluster: Cluster, nodes: Iterable[Mapping[str, Any]]) -> Machines:
    """The machines of nodes without a claim's label, by the pools of their groups."""
    candidates = [node for node in nodes if not node.get("claim")]
    driver = services.cluster_drivers.get(cluster.driver) if candidates else None
    if driver is None:
        return {}
    machines: dict[str, list[str]] = {}
    group_machines = (driver.group_of_node(cluster, node) for node in candidates)
    for pool, machine_id in sorted(group_machine for group_machine in group_machines if group_machine is not None)[
        :MOST
    ]:
        machines.setdefault(pool, []).append(machine_id)
    return machines


def _without_held(services: Services, cluster: Cluster, machines: Machines) -> Machines:
    if not machines:
        return {}
    taken_ids = {hold.machine_id for hold in every(services.store, MachineHold, prefix=f"{cluster.id}/")}
    free = {pool: [machine_id for machine_id in ids if machine_id not in taken_ids] for pool, ids in machines.items()}
    return {pool: own for pool, own in free.items() if own}


def _have_looked_at(services: Services, id: str) -> None:
    """The schedule looks at the pool with its next turn. Who writes it at the same time has looked, or will soon."""
    pool, now = services.store.get(Pool, id), services.now()
    if pool is None or (pool.due_at is not None and pool.due_at <= now):
        return
    with suppress(Conflict):
        services.store.commit(Replace(replace(pool, due_at=now, version=pool.version + 1, updated_at=now)))
