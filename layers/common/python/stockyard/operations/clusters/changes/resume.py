"""Continue a failed operation with its next attempt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stockyard.domain.records import Cluster, Fact, Operation
from stockyard.errors import IllegalTransition
from stockyard.lifecycle.change import Change
from stockyard.lifecycle.clusters.cluster import MOVES
from stockyard.lifecycle.procedure import Procedure
from stockyard.operations.clusters.changes.prices import items_after
from stockyard.operations.engine.advance import commit, until_written
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.engine.keep import MARGIN, is_over
from stockyard.operations.pricing import price
from stockyard.operations.services import Services
from stockyard.ports import Remove, Write


@until_written("cluster changes too often to be resumed")
def resume_cluster(services: Services, id_or_name: str, actor: str) -> Cluster:
    """The cluster, ``preparing`` again; a blocked deletion is tried again at once.

    ``IllegalTransition`` when nothing failed.
    """
    return resumed(services, find_cluster(services, id_or_name), actor)


def resumed(
    services: Services, cluster: Cluster, actor: str, extra: Sequence[Write] = (), from_phase: str = ""
) -> Cluster:
    """The cluster as it is given, whose failed operation goes on; ``extra`` is written with it. ``from_phase``: where
    it goes on; empty: at the phase that failed."""
    change, procedure, failed_phase = _resumption(services, cluster, from_phase)
    # A machine that is replaced must report anew, and the old execution's token wakes nobody.
    failed = procedure.phase(failed_phase)
    forgotten: list[Write] = []
    if (failed.resumed_at or failed.name) == "control_plane" and change.subject.status == "preparing":
        forgotten = [Remove(Fact, f"{cluster.id}/{name}") for name in ("reported_ready", "task_token", "bootstrapped")]
    return commit(services, actor, change, [*forgotten, *extra])


def plan_resume(services: Services, cluster: Cluster, from_phase: str = "") -> dict[str, Any]:
    """The parts of a plan that say where :func:`resumed` would go on, which phases would run, and what the cluster
    costs then; of a deletion nothing. Raises as it does."""
    change, *_ = _resumption(services, cluster, from_phase)
    steps = [f"Phase {phase.name}" for phase in change.operation.phases if phase.state not in ("succeeded", "skipped")]
    begin = change.from_phase
    verdict = f"Operation {change.operation.id} would go on at phase {begin}, with attempt {change.operation.attempt}."
    items = () if cluster.status == "deleting" else items_after(services, cluster, cluster)
    return {"verdict": verdict, "steps": steps, "price": price(items)}


def _resumption(services: Services, cluster: Cluster, from_phase: str) -> tuple[Change[Cluster], Procedure, str]:
    """The change by which the failed operation goes on, its procedure, and the phase that failed."""
    operation = services.store.get(Operation, cluster.operation_id) if cluster.operation_id else None
    if operation is None or operation.error is None:
        raise IllegalTransition(f"The cluster is {cluster.status}; only a failed operation can be resumed.")
    deleting = cluster.status == "deleting"
    if not deleting and is_over(services, cluster, MARGIN):
        raise IllegalTransition("The machine that did not come up is being removed. Resume in some minutes.")
    procedure = services.procedure(operation.kind, cluster.driver)
    if deleting:
        change = MOVES.retry(cluster, operation, procedure, services.now())
    else:
        change = MOVES.resume(cluster, operation, procedure, services.now(), from_phase=from_phase)
    return change, procedure, operation.error.phase
