"""Conditions that passes over pools set on the record of the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stockyard.domain.records import Cluster
from stockyard.domain.values.conditions import Condition, with_condition
from stockyard.errors import Conflict
from stockyard.lifecycle.change import Transition
from stockyard.operations.engine.advance import WORKFLOW_ACTOR
from stockyard.operations.engine.tell import tell
from stockyard.operations.services import Services
from stockyard.ports import Replace, Write

TRIES = 4


def of(cluster: Cluster, kind: str) -> Condition | None:
    """The cluster's condition of that type."""
    return next((condition for condition in cluster.conditions if condition.type == kind), None)


def show(services: Services, cluster: Cluster, conditions: Sequence[Condition], void: Sequence[str] = ()) -> None:
    """Keep these conditions of a ready cluster; an event tells of each that turns. Writes only what is new.

    ``void``: types of conditions that say nothing any more. They are taken away.
    """
    for _ in range(TRIES):
        fresh = [condition for condition in conditions if _says_more(of(cluster, condition.type), condition)]
        if not fresh and not any(of(cluster, kind) for kind in void):
            return
        try:
            _write(services, cluster, fresh, void)
        except Conflict:
            current = services.store.get(Cluster, cluster.id)
            if current is None or current.status != "ready":
                return
            cluster = current
            continue
        return


def _says_more(earlier: Condition | None, condition: Condition) -> bool:
    return earlier is None or (earlier.status, earlier.message) != (condition.status, condition.message)


def _write(services: Services, cluster: Cluster, fresh: Sequence[Condition], void: Sequence[str]) -> None:
    remaining = tuple(condition for condition in cluster.conditions if condition.type not in void)
    changed = replace(cluster, conditions=remaining, version=cluster.version + 1, updated_at=services.now())
    events: list[Write] = []
    for condition in fresh:
        earlier = of(cluster, condition.type)
        changed = replace(changed, conditions=with_condition(changed.conditions, condition))
        if earlier is None or earlier.status != condition.status:
            changed = replace(changed, sequence=changed.sequence + 1)
            reason = condition.type if condition.status == "True" else condition.reason
            transition = Transition("Cluster", cluster.status, cluster.status, reason, condition.message)
            events += tell(services, WORKFLOW_ACTOR, changed, transition)
    services.store.commit(Replace(changed, fence={"status": "ready"}), *events)
