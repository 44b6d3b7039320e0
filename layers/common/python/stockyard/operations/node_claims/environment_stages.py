"""Conditions of environments that are set up in stages: said while they are set up, and by the sweep."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from stockyard.domain.records import Cluster, NodeEnvironment
from stockyard.domain.values.conditions import Condition, with_condition
from stockyard.errors import Conflict
from stockyard.operations.node_claims.work import environment_work
from stockyard.operations.services import Services
from stockyard.ports import Replace
from stockyard.ports.node_work import EnvironmentWork
from stockyard.ports.nodes import NodeSource

SYNCED = "Synced"
"""End of the names of conditions that say whether a stage is as the document says."""


def note_stages(services: Services, source: NodeSource, work: EnvironmentWork) -> None:
    """Say on the environment how its stages stand. One that stands, but not as the document says, is set up again with
    the next claim that uses it. Who has changed the environment meanwhile was first: the next look says it."""
    environment = services.store.get(NodeEnvironment, work.environment.id)
    if environment is None or not source.tells_stages:
        return
    conditions = environment.conditions
    for condition in source.environment_conditions(work):
        conditions = with_condition(conditions, condition)
    if conditions == environment.conditions:
        return
    changed = replace(environment, conditions=conditions, version=environment.version + 1)
    has_left = set(_behind(conditions)) - set(_behind(environment.conditions))
    if has_left and environment.phase == "Available" and not environment.is_stale:
        changed = replace(changed, is_stale=True, updated_at=services.now())
    with suppress(Conflict):
        services.store.commit(Replace(changed))


def look_at_stages(services: Services, environment: NodeEnvironment) -> None:
    """The same for an environment that nobody sets up at the moment. Nothing of a cluster that is not ready."""
    cluster = services.store.get(Cluster, environment.cluster_id)
    if cluster is not None and cluster.status == "ready" and environment.phase == "Available":
        source, work = environment_work(services, environment, cluster, environment.id)
        note_stages(services, source, work)


def _behind(conditions: Iterable[Condition]) -> list[tuple[str, str]]:
    """Stages that are not as the document says, by the names of their conditions and the reasons."""
    return [(each.type, each.message) for each in conditions if each.type.endswith(SYNCED) and each.status == "False"]
