"""Carries a lifecycle decision out: load, check the fence, decide, write with conditions; again after a lost race."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stockyard.domain.records import UNSEEN, Cluster, Name, Operation
from stockyard.errors import Conflict, Fenced, NotFound
from stockyard.lifecycle import cluster as lifecycle
from stockyard.lifecycle.change import Change
from stockyard.operations.services import Services
from stockyard.operations.tell import change_writes
from stockyard.ports import Replace, Write

TRIES = 8
WORKFLOW_ACTOR = "stockyard"

Decide = Callable[[Cluster, Operation], Change | None]


@dataclass(frozen=True, slots=True)
class Fence:
    """The attempt of an operation on whose behalf something is done."""

    cluster_id: str
    operation_id: str
    attempt: int


def load(services: Services, fence: Fence) -> tuple[Cluster, Operation]:
    """The cluster and operation of a fence. ``Fenced`` when the attempt is no longer the current one."""
    cluster = services.store.get(Cluster, fence.cluster_id)
    operation = services.store.get(Operation, fence.operation_id)
    if cluster is None or operation is None:
        raise Fenced("The cluster or its operation is gone.")
    lifecycle.check_fence(cluster, fence.operation_id, fence.attempt)
    return cluster, operation


def advance(services: Services, fence: Fence, decide: Decide, extra: Sequence[Write] = ()) -> Cluster:
    """Apply ``decide`` to the current records. Returns the cluster as it then stands.

    Raises ``Fenced`` when another attempt or operation owns the cluster, ``Conflict`` after many lost races.
    """
    for _ in range(TRIES):
        cluster, operation = load(services, fence)
        change = decide(cluster, operation)
        if change is None:
            return cluster
        try:
            return commit(services, WORKFLOW_ACTOR, change, extra)
        except Conflict:
            continue
    raise Conflict("The cluster changes too often to be written.")


def commit(services: Services, actor: str, change: Change, extra: Sequence[Write] = ()) -> Cluster:
    """Write a change of existing records, with its events, in one transaction."""
    cluster, operation, writes = change_writes(services, actor, change)
    services.store.commit(Replace(cluster), Replace(operation), *writes, *extra)
    return cluster


def find(services: Services, id_or_name: str) -> Cluster:
    """The cluster by id or name. ``NotFound`` also for one that was not handed over or is another tenant's."""
    cluster_id = id_or_name
    if not id_or_name.startswith("clu_"):
        name = services.store.get(Name, f"cluster/{id_or_name}")
        cluster_id = name.owner if name else ""
    cluster = services.store.get(Cluster, cluster_id) if cluster_id else None
    if cluster is None or cluster.status in UNSEEN:
        raise NotFound(f"There is no cluster {id_or_name}.")
    return cluster
