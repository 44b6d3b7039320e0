"""Continue a failed creation with other settings: what somebody would otherwise delete and create again for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stockyard.domain.models.clusters.resume import ClusterResume, other_settings
from stockyard.domain.pools.records import GROUP, NewPool, Pool
from stockyard.domain.records import CloudAccount, Cluster, Operation
from stockyard.errors import IllegalTransition
from stockyard.lifecycle.change import Transition
from stockyard.lifecycle.phases import CREATE_CLUSTER
from stockyard.lifecycle.pools.pool import LEAVING
from stockyard.operations.clusters.changes.resume import plan_resume, resumed
from stockyard.operations.clusters.creation.check import check
from stockyard.operations.engine.advance import until_written
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.engine.tell import tell
from stockyard.operations.fleet.pools.groups import group_pools
from stockyard.operations.fleet.pools.pools import changed_pool, changes_of, creation, pools_of
from stockyard.operations.quotas.limits import check_groups, check_pools
from stockyard.operations.services import Services
from stockyard.ports import Create, Remove, Write


@until_written("cluster changes too often to be resumed")
def resume_with(services: Services, id_or_name: str, body: ClusterResume, actor: str) -> Cluster:
    """The cluster, ``preparing`` again with the settings that ``body`` makes of its own.

    Every phase is done again: those that are done already bring what stands to the settings. ``IllegalTransition``
    unless its creation has failed, ``InvalidInput`` for what cannot be, ``QuotaExceeded`` for too many nodes.
    """
    target, first_phase = _target(services, find_cluster(services, id_or_name), body)
    return resumed(services, target, actor, _pools(services, target, actor), first_phase)


def plan_resume_with(
    services: Services, cluster: Cluster, body: ClusterResume, actor: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plan of :func:`resume_with`: the fields of the cluster, and the other parts of the plan. Raises as it does."""
    target, first_phase = _target(services, cluster, body)
    writes = _pools(services, target, actor)
    created = [write.record.name for write in writes if isinstance(write, Create) and isinstance(write.record, Pool)]
    removed = [write.id.partition("/")[2] for write in writes if isinstance(write, Remove) and write.kind is Pool]
    fields = {"settings": target.settings, "kubernetes_version": target.kubernetes_version}
    parts = {
        "creates": [{"kind": "pool", "name": name} for name in created],
        "deletes": [{"kind": "pool", "name": name} for name in removed],
    }
    return fields, {**plan_resume(services, target, first_phase), **parts}


def _target(services: Services, cluster: Cluster, body: ClusterResume) -> tuple[Cluster, str]:
    """The cluster with its other settings, all of them checked, and the phase where it goes on: the first one."""
    operation = services.store.get(Operation, cluster.operation_id) if cluster.operation_id else None
    if cluster.status != "failed" or operation is None or operation.error is None:
        raise IllegalTransition(
            f"The cluster is {cluster.status}; only a creation that has failed takes other settings."
        )
    procedure = services.procedure(CREATE_CLUSTER, cluster.driver)
    # What the failed phase has made, or its failure keeps for somebody to look at, is made anew.
    undone = procedure.phase(operation.error.phase).undoes
    lines = [line for line in lines_of(services, cluster.id) if line.phase not in undone]
    target = replace(
        cluster,
        settings=other_settings(cluster, body, lines),
        kubernetes_version=body.kubernetes_version or cluster.kubernetes_version,
    )
    account = services.store.get(CloudAccount, str(cluster.cloud_account_id))
    if account is None:
        raise IllegalTransition(f"Cloud account {cluster.cloud_account_id} is not registered any more.")
    check_groups(services, target.driver, target.settings)
    check(services, replace(target, updated_at=services.now()), account)
    return target, procedure.names[0]


def _pools(services: Services, target: Cluster, actor: str) -> list[Write]:
    """The pools of the groups as the settings have them now. Nothing has made a node for any of them yet."""
    present = {pool.name: pool for pool in pools_of(services, target.id)}
    targets = {pool.name: pool for pool in group_pools(services, target, actor)}
    other_pools = [pool for name, pool in present.items() if name not in targets]
    check_pools(services, target.driver, [*other_pools, *targets.values()])
    writes: list[Write] = []
    for name, pool in targets.items():
        before = present.get(name)
        if before is None:
            writes += creation(services, pool, actor)
            continue
        new_pool = NewPool(name=name, form=pool.form, document=pool.document, **pool.spec())
        if changes_of(before, new_pool):
            writes += changed_pool(services, before, new_pool, actor)[1]
    for name, pool in present.items():
        if name not in targets and pool.form == GROUP:
            removed = replace(pool, sequence=pool.sequence + 1)
            text = f"Pool {name} is no group of the cluster any more."
            deleted = Transition("Pool", LEAVING, None, "Deleted", text)
            writes += [Remove(type(pool), pool.id, pool.version), *tell(services, actor, removed, deleted)]
    return writes
