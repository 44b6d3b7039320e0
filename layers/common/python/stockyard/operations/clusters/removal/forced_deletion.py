"""Forget a cluster whose deletion does not end, and name the resources that may be left."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

from stockyard.domain.pools.records import Pool
from stockyard.domain.records import Cluster, Operation, Resource
from stockyard.domain.values import times
from stockyard.errors import Conflict, IllegalTransition
from stockyard.lifecycle.change import Transition
from stockyard.lifecycle.clusters.cluster import MOVES
from stockyard.operations.clusters.nodes import claims_of
from stockyard.operations.clusters.removal.record import removal
from stockyard.operations.engine.advance import change_writes, until_written
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.engine.ledger import describe, lines_of
from stockyard.operations.listing import every
from stockyard.operations.services import Services
from stockyard.ports import Create, Remove, Replace

MOST_NAMED = 50
"""Things that an event and the audit record name; the answer names all."""


@until_written("cluster changes too often to be forgotten")
def force_deletion(services: Services, id_or_name: str, actor: str, request_id: str) -> dict[str, Any]:
    """Forget a cluster, and return what was forgotten as a ``ForcedDeletionView`` document. Nothing is removed from any
    cloud: what is left there carries our tags, and the sweep reports and removes what it may.

    ``IllegalTransition`` unless the cluster has been on its way out for long enough.
    """
    cluster = find_cluster(services, id_or_name)
    operation = services.store.get(Operation, str(cluster.operation_id))
    if cluster.status != "deleting" or operation is None:
        raise IllegalTransition(f"The cluster is {cluster.status}. Delete it; that can be forced when it does not end.")
    _check_age(services, operation)
    lines = lines_of(services, cluster.id)
    claims = claims_of(services, cluster)
    remaining = [
        *(describe(line) for line in lines),
        *(f"node-claim {claim.name}, which is still being given back" for claim in claims),
        f"keycloak client {cluster.client_id}",
    ]
    more = f" and {len(remaining) - MOST_NAMED} more" if len(remaining) > MOST_NAMED else ""
    text = f"Forgotten though it may have left: {'; '.join(remaining[:MOST_NAMED])}{more}."
    finished = MOVES.finish_deletion(cluster, operation, services.now())
    forced = Transition("Cluster", "deleting", None, "DeletionForced", text)
    change = replace(finished, transitions=(forced, *finished.transitions[1:]))
    _, closed_operation, events = change_writes(services, actor, change)
    audit = services.audit_record(actor, "ForceDeleteCluster", cluster.id, request_id, text)
    services.store.commit(*removal(services, cluster), Replace(closed_operation), Create(audit), *events)
    _forget_parts(services, cluster, lines)
    return {"id": cluster.id, "name": cluster.name, "operation_id": closed_operation.id, "remaining": remaining}


def _check_age(services: Services, operation: Operation) -> None:
    limit = services.settings.force_deletion_seconds
    if services.seconds_since(operation.created_at) >= limit:
        return
    moment = times.to_text(times.from_text(operation.created_at) + timedelta(seconds=limit))
    raise IllegalTransition(f"The deletion has just begun. It can be forced from {moment} on.")


def _forget_parts(services: Services, cluster: Cluster, lines: list[Resource]) -> None:
    """Records that only the cluster's own would have led to. Were they left, nobody would ever read them."""
    for line in lines:
        with suppress(Conflict):
            services.store.commit(Remove(Resource, line.id))
    # The members' pool is among them.
    for pool in list(every(services.store, Pool, prefix=f"{cluster.id}/")):
        with suppress(Conflict):
            services.store.commit(Remove(Pool, pool.id))
