"""Turns what happened into event records and outbox items, to be written in the same transaction as the change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stockyard.domain import ids
from stockyard.domain.records import CloudAccount, Cluster, Event, Operation, Outbox
from stockyard.lifecycle.change import Change, Happening
from stockyard.operations.services import Services
from stockyard.ports import Create, Replace, Write


def tell(services: Services, actor: str, subject: str, version: int, sequence: int, what: Happening) -> list[Write]:
    """The event record of what happened and the outbox item that publishes it. ``version`` is the subject's."""
    now = services.now()
    # Events of one moment are listed by their ids: those of one subject in the order of their sequence.
    order = sequence.to_bytes(4, "big") + services.clock.randomness(10)[4:]
    event = Event(
        ids.make(ids.EVENT, services.clock.now(), order),
        what.about,
        subject,
        sequence,
        now,
        actor,
        what.before,
        what.after,
        what.reason,
        what.message,
    )
    payload = {
        "detail_type": what.about,
        "detail": {
            "id": event.id,
            "version": version,
            "tenant": services.tenant,
            "sequence": sequence,
            "time": now,
            "actor": actor,
            "subject": subject,
            "phase": {"before": what.before, "after": what.after},
            "reason": what.reason,
            "message": what.message,
        },
    }
    return [Create(event), Create(Outbox(services.new_id(ids.OUTBOX), "event", payload, now))]


def account_writes(services: Services, actor: str, account: CloudAccount, what: Happening) -> list[Write]:
    """The event of a change to a cloud account whose ``sequence`` was already raised."""
    return tell(services, actor, f"cloud-account/{account.id}", account.version, account.sequence, what)


def cluster_writes(services: Services, actor: str, cluster: Cluster, what: Happening) -> list[Write]:
    """The event of a change to a cluster whose ``sequence`` was already raised."""
    return tell(services, actor, cluster.id, cluster.version, cluster.sequence, what)


def change_writes(services: Services, actor: str, change: Change) -> tuple[Cluster, Operation, list[Write]]:
    """The records with their sequences raised, and the writes of all events and the execution start of a change."""
    cluster, operation = change.cluster, change.operation
    writes: list[Write] = []
    for what in change.happenings:
        if what.about == "Cluster":
            cluster = replace(cluster, sequence=cluster.sequence + 1)
            writes += tell(services, actor, cluster.id, cluster.version, cluster.sequence, what)
        else:
            operation = replace(operation, sequence=operation.sequence + 1)
            writes += tell(services, actor, operation.id, operation.version, operation.sequence, what)
    if change.closed is not None:
        closed = replace(change.closed, sequence=change.closed.sequence + 1)
        over = Happening("Operation", "running", "failed", "Superseded", "The cluster is being deleted.")
        writes += [Replace(closed), *tell(services, actor, closed.id, closed.version, closed.sequence, over)]
    if change.workflow is not None:
        writes.append(Create(start_message(services, change.workflow, cluster, operation, change.from_phase)))
    return cluster, operation, writes


def start_message(
    services: Services, workflow: str, cluster: Cluster, operation: Operation, from_phase: str | None
) -> Outbox:
    """The outbox item that starts the execution of this attempt. Its name makes a second start the same start."""
    payload: Mapping[str, Any] = {
        "workflow": workflow,
        "name": f"{operation.id}-{operation.attempt}",
        "input": {
            "tenant": services.tenant,
            "cluster_id": cluster.id,
            "operation_id": operation.id,
            "attempt": operation.attempt,
            "from_phase": from_phase or "",
        },
    }
    return Outbox(services.new_id(ids.OUTBOX), "workflow", dict(payload), services.now())
