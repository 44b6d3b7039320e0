"""Make, change and delete a pool of a cluster. Its nodes are the work of ``operations.fleet.pools.reconcile``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stockyard.domain.nodes import provider_kinds
from stockyard.domain.pools.limits import unknown_limits
from stockyard.domain.pools.node_groups import followed_setting, follows
from stockyard.domain.pools.records import CONTROL_PLANE, GROUP, NODES, NewPool, Pool, pool_id
from stockyard.domain.records import Cluster
from stockyard.domain.values.pointers import pointer
from stockyard.errors import (
    Conflict,
    FieldProblem,
    IllegalTransition,
    InUse,
    InvalidInput,
    NotFound,
    PreconditionFailed,
)
from stockyard.lifecycle.change import Transition
from stockyard.lifecycle.pools.pool import LEAVING, PREPARING, shown_status
from stockyard.operations.engine.tell import tell
from stockyard.operations.engine.watch import watch
from stockyard.operations.listing import every
from stockyard.operations.node_claims import cluster_claims
from stockyard.operations.node_providers.catalog import load
from stockyard.operations.node_providers.type_names import check_type_names
from stockyard.operations.quotas.budget_notes import budget_writes
from stockyard.operations.quotas.limits import check_pools
from stockyard.operations.quotas.network_room import check_least
from stockyard.operations.services import Services
from stockyard.ports import Check, Create, Replace, Write
from stockyard.scheduling.reading import Reader

GROUP_FIELDS = frozenset(
    {"kind", "provider_ref", "requirements", "properties", "taints", "labels", "floor", "quantity", "limits"}
) | {"startup_taints", "annotations", "kubelet_args", "zones", "max_price", "update_strategy"}
"""What a node group decides of its pool. When nodes leave, and which pool is tried first, only the pool says."""
IN_SETTINGS = (
    "{name} is a node group of the cluster's settings: change settings.{setting} by PATCH /v1/clusters/{{id}}."
)
claims_of = cluster_claims.claims_of
TRIES = 8
"""How often a write is tried that others overtake."""


def find_pool(services: Services, cluster: Cluster, name: str) -> Pool:
    """The cluster's pool of that name, else ``NotFound``."""
    pool = services.store.get(Pool, pool_id(cluster.id, name))
    if pool is None:
        raise NotFound(f"Cluster {cluster.name} has no pool {name}.")
    return pool


def pools_of(services: Services, cluster_id: str) -> list[Pool]:
    """The pools of a cluster, in order of name, without that of its control plane's members: these are added and
    replaced by operations alone."""
    return [pool for pool in every(services.store, Pool, prefix=f"{cluster_id}/") if pool.form != CONTROL_PLANE]


def member_pool_of(services: Services, cluster_id: str) -> Pool | None:
    """The pool of the control plane's members; None for a control plane of one machine that nobody has replaced."""
    return services.store.get(Pool, pool_id(cluster_id, CONTROL_PLANE))


def create_pool(services: Services, cluster: Cluster, new_pool: NewPool, actor: str, request: str = "") -> Pool:
    """The pool, without claims yet. Raises ``InvalidInput``, ``InUse`` for a name that is taken, ``QuotaExceeded``.

    ``request`` is the same in every try of an ``Idempotency-Key``, so that a second try finds the first one's pool.
    """
    existing = services.store.get(Pool, pool_id(cluster.id, new_pool.name)) if request else None
    if existing is not None and existing.request == request:
        return existing
    for _ in range(TRIES):
        check_pool(services, cluster, new_pool)
        pool = replace(draft(services, cluster.id, new_pool, actor), request=request)
        try:
            services.store.commit(
                *creation(services, pool, actor), Check(Cluster, cluster.id, {"status": cluster.status})
            )
        except Conflict as conflict:
            if conflict.index == 0:
                raise InUse(f"Cluster {cluster.name} has a pool {pool.name}.") from conflict
            cluster = _current(services, cluster)
            continue
        return pool
    raise Conflict("The cluster changes too often for a new pool. Send the request again.")


def _current(services: Services, cluster: Cluster) -> Cluster:
    current = services.store.get(Cluster, cluster.id)
    if current is None:
        raise NotFound(f"There is no cluster {cluster.name}.")
    return current


def draft(services: Services, cluster_id: str, new_pool: NewPool, actor: str) -> Pool:
    """The record of a new pool, due at once."""
    now = services.now()
    return Pool(
        id=pool_id(cluster_id, new_pool.name),
        cluster_id=cluster_id,
        name=new_pool.name,
        created_at=now,
        updated_at=now,
        form=new_pool.form,
        document=new_pool.document,
        due_at=now,
        created_by=actor,
        sequence=1,
        **new_pool.spec(),
    )


def creation(services: Services, pool: Pool, actor: str) -> list[Write]:
    """The writes that make a pool, its record first."""
    created = Transition("Pool", None, PREPARING, "Created", f"Pool {pool.name} is made.")
    return [Create(pool), *tell(services, actor, pool, created), *budget_writes(pool.created_at, {}, pool.limits)]


def check_pool(services: Services, cluster: Cluster, new_pool: NewPool) -> None:
    """Raises ``InvalidInput`` or ``QuotaExceeded`` for a pool that the cluster cannot have.

    A foreign document may come before its provider: claims of the pool then wait with ``ProviderNotFound``.
    """
    if cluster.status == "deleting":
        raise IllegalTransition(f"Cluster {cluster.name} is being deleted.")
    if (
        follows(cluster)
        and new_pool.form == GROUP
        and services.store.get(Pool, pool_id(cluster.id, new_pool.name)) is None
    ):
        raise InvalidInput(_in_settings(cluster, new_pool.name))
    if new_pool.name == CONTROL_PLANE:
        raise InvalidInput.at("/name", "is the name of the pool of the control plane's members")
    strict = new_pool.form == "stockyard"
    if strict and new_pool.provider_ref:
        _check_provider(services, cluster, new_pool)
    try:
        # The scheduler must be able to read the claims that the pool will make.
        Reader().request(new_pool.requirements, {})
    except ValueError as error:
        raise InvalidInput.at("/requirements", str(error)) from None
    current = services.store.get(Pool, pool_id(cluster.id, new_pool.name))
    if new_pool.requirements:
        earlier = current.requirements if current is not None else ()
        check_type_names(load(services), new_pool.provider_ref, new_pool.requirements, earlier)
    _check_limits(services, new_pool, current)
    other_pools = [pool for pool in pools_of(services, cluster.id) if pool.name != new_pool.name]
    check_pools(services, cluster.driver, [*other_pools, new_pool])
    check_least(services, cluster, (max(pool.quantity, pool.floor) for pool in (*other_pools, new_pool)))


def _check_provider(services: Services, cluster: Cluster, new_pool: NewPool) -> None:
    """``InvalidInput`` for a provider that is not there, and where the pool is new for one of a kind that is not built:
    no node of the pool could ever be made."""
    provider = load(services).providers.get(new_pool.provider_ref)
    if provider is None:
        raise InvalidInput.at("/provider", f"There is no node provider {new_pool.provider_ref}.")
    if provider_kinds.kind(provider.kind).built:
        return
    if services.store.get(Pool, pool_id(cluster.id, new_pool.name)) is None:
        text = f"Providers of kind {provider.kind} are not built yet: no node of the pool could be made."
        raise InvalidInput.at("/provider", text)


def _check_limits(services: Services, new_pool: NewPool, current: Pool | None) -> None:
    """``InvalidInput`` for limits that limit nothing. One that the pool has already is left alone."""
    if not unknown_limits(new_pool.limits, ()):
        return
    names = [name for name in new_pool.limits if current is None or name not in current.limits]
    faults = unknown_limits(names, resources_of(services))
    if faults:
        raise InvalidInput.of([FieldProblem(pointer("limits", name), words) for name, words in faults])


def resources_of(services: Services) -> set[str]:
    """The names of the resources that any node type has."""
    return {name for node_type in load(services).node_types.values() for name in node_type.capacity}


def _in_settings(cluster: Cluster, name: str) -> str:
    return IN_SETTINGS.format(name=f"Pool {name}", setting=followed_setting(cluster))


def check_change(services: Services, cluster: Cluster, pool: Pool, changed: NewPool) -> None:
    """Raises what ``check_pool`` raises for what the pool would be, and ``InvalidInput`` for what is changed in the
    cluster's settings instead."""
    if follows(cluster) and pool.form == GROUP:
        text = _in_settings(cluster, pool.name)
        if changed.form != GROUP:
            raise InvalidInput.at("", text)
        problems = [FieldProblem(pointer(name), text) for name in group_changes(pool, changed)]
        if problems:
            raise InvalidInput(text, errors=problems)
    check_pool(services, cluster, changed)


def change_pool(
    services: Services, cluster: Cluster, pool: Pool, version: int, changed: NewPool, actor: str, request_id: str
) -> Pool:
    """The changed pool. ``PreconditionFailed`` unless it stands at ``version``."""
    if pool.version != version:
        raise PreconditionFailed(f"The pool is at version {pool.version}, not {version}.")
    if pool.deleting:
        raise IllegalTransition("The pool is being deleted.")
    check_change(services, cluster, pool, changed)
    changes = changes_of(pool, changed)
    message = f"Changed: {', '.join(sorted(changes)) or 'nothing'}."
    audit = services.audit_record(actor, "ChangePool", pool.id, request_id, message)
    moved, writes = changed_pool(services, pool, changed, actor)
    try:
        services.store.commit(*writes, Create(audit))
    except Conflict as conflict:
        raise PreconditionFailed("The pool was changed by someone else just now.") from conflict
    if {"disruption", "expire_after"} & set(changes):
        watch(services, cluster.id)
    return moved


def changed_pool(services: Services, pool: Pool, changed: NewPool, actor: str) -> tuple[Pool, list[Write]]:
    """The pool after a change, due at once, and the writes of that, its record first."""
    changes, now = changes_of(pool, changed), services.now()
    fields: dict[str, Any] = {
        **changes,
        "form": changed.form,
        "document": changed.document,
        "generation": pool.generation + bool(changes),
    }
    stamped: dict[str, Any] = {
        "updated_at": now,
        "due_at": now,
        "version": pool.version + 1,
        "sequence": pool.sequence + 1,
        "failures": 0,
        "refusals": 0,
        "retry_at": None,
    }
    moved: Pool = replace(pool, **{**fields, **stamped})
    status, message = shown_status(pool), f"Changed: {', '.join(sorted(changes)) or 'nothing'}."
    return moved, [
        Replace(moved),
        *tell(services, actor, moved, Transition("Pool", status, status, "Changed", message)),
        *budget_writes(now, pool.limits, moved.limits),
    ]


def delete_pool(services: Services, cluster: Cluster, name: str, actor: str) -> Pool:
    """The pool on its way out: its nodes are given back, then the record goes. A second request changes nothing.

    ``IllegalTransition`` for the pool of a group that the cluster's settings name.
    """
    pool = find_pool(services, cluster, name)
    check_deletion(cluster, pool)
    return give_back_pool(services, pool, actor)


def check_deletion(cluster: Cluster, pool: Pool) -> None:
    """``IllegalTransition`` for the pool of a group that the cluster's settings name."""
    if follows(cluster) and pool.form == GROUP and not pool.deleting:
        raise IllegalTransition(_in_settings(cluster, pool.name))


def give_back_pool(services: Services, pool: Pool, actor: str) -> Pool:
    """The pool on its way out. A second request changes nothing."""
    for _ in range(TRIES):
        if pool.deleting:
            return pool
        now = services.now()
        leaving: Pool = replace(
            pool, deleting=True, updated_at=now, due_at=now, version=pool.version + 1, sequence=pool.sequence + 1
        )
        requested = Transition("Pool", shown_status(pool), LEAVING, "DeletionRequested", "The pool is given back.")
        try:
            services.store.commit(Replace(leaving), *tell(services, actor, leaving, requested))
        except Conflict:
            current = services.store.get(Pool, pool.id)
            if current is None:
                raise NotFound(f"The cluster has no pool {pool.name}.") from None
            pool = current
            continue
        return leaving
    raise Conflict("The pool changes too often to be deleted. Send the request again.")


def group_changes(pool: Pool, changed: NewPool) -> list[str]:
    """The fields that differ and that a node group decides: of the limits only how many nodes there are."""
    names = GROUP_FIELDS & changes_of(pool, changed).keys()
    if pool.limits.get(NODES) == changed.limits.get(NODES):
        names -= {"limits"}
    return sorted(names)


def changes_of(pool: Pool, changed: NewPool) -> dict[str, Any]:
    """Fields that differ, each with its new value."""
    before = pool.spec()
    return {name: value for name, value in changed.spec().items() if value != before[name]}
