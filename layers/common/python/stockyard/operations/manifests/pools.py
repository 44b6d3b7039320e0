"""Pools of documents compared with the pools of their clusters: checked before anything is written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stockyard.domain import cloud_kinds
from stockyard.domain.clusters import overlay
from stockyard.domain.clusters.own_labels import hint_of
from stockyard.domain.manifest_sets import Names, said_names
from stockyard.domain.models.manifests.read_manifests import read_manifests
from stockyard.domain.nodes.manifests import CLUSTER, FieldPath, Warnings
from stockyard.domain.nodes.views import remarks
from stockyard.domain.pools.manifests import PoolsDocument, own_manifest
from stockyard.domain.pools.node_groups import worker_groups
from stockyard.domain.pools.records import GROUP, STATIC, NewPool, Pool, pool_id
from stockyard.domain.records import UNSEEN, Cluster
from stockyard.domain.values.field_changes import change_views, field_changes
from stockyard.domain.values.notes import remark
from stockyard.domain.values.pointers import pointer
from stockyard.domain.values.prices import PriceItem
from stockyard.errors import FieldProblem, IllegalTransition, InvalidInput, NotFound
from stockyard.operations.clusters.creation.create import draft_cluster
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.fleet.pools.plan import limit_warnings, plan_pool
from stockyard.operations.fleet.pools.pools import (
    change_pool,
    check_change,
    check_pool,
    claims_of,
    create_pool,
    give_back_pool,
    pools_of,
)
from stockyard.operations.listing import every
from stockyard.operations.manifests.clusters import DesiredCluster
from stockyard.operations.manifests.former import Former
from stockyard.operations.node_providers.catalog import load
from stockyard.operations.pricing import price
from stockyard.operations.quotas.limits import check_pools
from stockyard.operations.services import Services

_OWN = "stockyard"
_FORM_FIELDS = ("form", "document")
"""What a pool has beside its specification, and a document may change."""


@dataclass(frozen=True, slots=True)
class DesiredPool:
    """A pool to make, or with ``current`` to change by ``fields``."""

    at: FieldPath
    cluster: Cluster
    pool: NewPool
    current: Pool | None
    fields: Mapping[str, Any]
    warnings: Warnings
    is_inline: bool = False
    """Whether the document says its fields at its place, and not below ``spec``."""
    names: Names = field(default_factory=dict)
    """Fields that the document says."""


@dataclass(frozen=True, slots=True)
class DesiredPools:
    """The pools of one document, and its warnings that are of no pool alone."""

    path: FieldPath
    pools: tuple[DesiredPool, ...]
    warnings: Warnings
    unnamed: tuple[Pool, ...] = ()
    """Pools of the cluster that came by such a document and that this one does not name: see ``prune``."""


def sole_cluster(services: Services, path: FieldPath, labels: Iterable[str] = ()) -> str:
    """The name of the tenant's one cluster, empty when it has none. ``InvalidInput`` when it has several, with the one
    of the document's ``labels`` that was probably meant to name it."""
    names = [cluster.name for cluster in every(services.store, Cluster) if cluster.status not in UNSEEN]
    if len(names) > 1:
        at = pointer(*path, "metadata", "labels", CLUSTER)
        text = f"no cluster is named: set this label or --cluster; the tenant has {len(names)} clusters"
        raise InvalidInput.at(at, text + hint_of(labels))
    return names[0] if names else ""


def property_keys(services: Services) -> set[str]:
    """The names of all properties that node types have."""
    return {key for node_type in load(services).node_types.values() for key in node_type.properties}


def drafts_of(services: Services, clusters: Iterable[DesiredCluster]) -> dict[str, Cluster]:
    """Drafts of the clusters that documents make, by name: their pools and claims may come with them."""
    return {
        desired.document.name: draft_cluster(services, desired.new_cluster)
        for desired in clusters
        if desired.new_cluster is not None
    }


def desired_pools(
    services: Services, path: FieldPath, document: PoolsDocument, new_clusters: Mapping[str, Cluster], former: Former
) -> DesiredPools:
    """The pools of a document, compared with what their cluster has. ``InvalidInput`` for a cluster that is not
    there, and that no document makes."""
    if not document.pools:
        return DesiredPools(path, (), document.warnings)
    cluster = new_clusters.get(document.cluster_ref) or _cluster(services, path, document)
    _check_networks(path, document, cluster)
    pools = tuple(
        _desired(former, cluster, pool, at, [warning for warning in document.warnings if _is_of(warning[0], at)])
        for pool, at in zip(document.pools, document.paths, strict=True)
    )
    general = [warning for warning in document.warnings if not any(_is_of(warning[0], at) for at in document.paths)]
    unnamed: tuple[Pool, ...] = ()
    if document.pools[0].form == "autoNodes":
        names = {pool.name for pool in document.pools}
        unnamed = tuple(
            pool
            for pool in pools_of(services, cluster.id)
            if pool.form == "autoNodes" and pool.name not in names and not pool.deleting
        )
    return DesiredPools(path, pools, general, unnamed)


def _check_networks(path: FieldPath, document: PoolsDocument, cluster: Cluster) -> None:
    """``InvalidInput`` for a document that asks for an overlay which its cluster has not: that would do nothing."""
    if (document.vpn or document.node_to_node) and not cluster.settings.get(overlay.SETTING):
        part = "vpn" if document.vpn else "nodeToNode"
        text = f"{cluster.name} has no overlay: a cluster gets one at its creation, by settings.overlay"
        raise InvalidInput.at(pointer(*path, "privateNodes", part, "enabled"), text)


def pools_of_cluster(
    desired: DesiredCluster, new_clusters: Mapping[str, Cluster], former: Former
) -> DesiredPools | None:
    """The pools that a manifest of a cluster has, compared with those that are there; None where it has none. Of a
    cluster that is not made yet they are those of its draft."""
    pools, path = desired.document.pools, (*desired.path, "spec", "pools")
    if not pools:
        return None
    cluster = desired.current or new_clusters[desired.document.name]
    compared_pools = (_desired(former, cluster, pool, (*path, index), []) for index, pool in enumerate(pools))
    return DesiredPools(path, tuple(_kept_form(pool) for pool in compared_pools), [])


def _kept_form(desired: DesiredPool) -> DesiredPool:
    """The pool of a cluster's manifest. One that is as the manifest says keeps the form that it came in."""
    is_changed = any(name not in _FORM_FIELDS for name in desired.fields)
    return replace(desired, is_inline=True, fields=desired.fields if is_changed else {})


def _is_of(warning: FieldPath, at: FieldPath) -> bool:
    return warning[: len(at)] == at


def _cluster(services: Services, path: FieldPath, document: PoolsDocument) -> Cluster:
    own = document.pools[0].form == _OWN
    at = pointer(*path, "spec", "cluster") if own else pointer(*path, "metadata", "labels", CLUSTER)
    name = document.cluster_ref or sole_cluster(services, path)
    if not name:
        raise InvalidInput.at(at, "There is no cluster that could have the pools.")
    try:
        return find_cluster(services, name)
    except NotFound as missing:
        raise InvalidInput.at(at, missing.detail) from missing


def _desired(former: Former, cluster: Cluster, pool: NewPool, at: FieldPath, warnings: Warnings) -> DesiredPool:
    current = former.services.store.get(Pool, pool_id(cluster.id, pool.name))
    fields: dict[str, Any] = {}
    names = said_names(pool.spec())
    if current is not None and current.kind == pool.kind:
        # how many nodes a static pool has is always said
        own = {name: value for name, value in pool.spec().items() if name != "quantity" or pool.kind != STATIC}
        pool = replace(pool, **former.merge("pool", current.id, current.created_at, own, current))
    if current is not None and current.form == GROUP and pool.form == _OWN:
        pool = _of_group(current, pool)
    if current is not None:
        every = (*pool.spec(), *_FORM_FIELDS)
        fields = {name: getattr(pool, name) for name in every if getattr(pool, name) != getattr(current, name)}
    is_inline = pool.form == "autoNodes"
    return DesiredPool(at, cluster, pool, current, fields, warnings, is_inline=is_inline, names=names)


def _of_group(current: Pool, pool: NewPool) -> NewPool:
    """The pool of a node group after a document of ours. Fields that the document has as the pool's own manifest has
    them stay as they are: the group leaves out what such a document has by default."""
    (shown_document,) = read_manifests([own_manifest(current, current.cluster_id)])
    if not isinstance(shown_document, PoolsDocument):
        raise TypeError(type(shown_document))
    (shown_pool,) = shown_document.pools
    fields = {name: getattr(current, name) for name in pool.spec() if getattr(pool, name) == getattr(shown_pool, name)}
    return replace(pool, **fields, form=GROUP, document=current.document)


def pool_faults(
    services: Services, documents: Sequence[DesiredPools], new_providers: Collection[str]
) -> list[FieldProblem]:
    """Faults of pools beside what is there. ``QuotaExceeded`` when a cluster would have too many together,
    ``IllegalTransition`` for a pool or a cluster that is being deleted."""
    faults: list[FieldProblem] = []
    by_cluster: dict[str, dict[str, NewPool]] = {}
    present_pools = {}
    drivers: dict[str, str] = {}
    for desired in (pool for document in documents for pool in document.pools):
        pools = by_cluster.setdefault(desired.cluster.id, {})
        present_pools[desired.cluster.id] = _pools_there(services, desired.cluster)
        drivers[desired.cluster.id] = desired.cluster.driver
        if desired.pool.name in pools:
            name_at = pointer(*desired.at, *_name_below(desired))
            faults.append(FieldProblem(name_at, "another pool of this name and cluster is given before"))
        pools[desired.pool.name] = desired.pool
        faults += _faults(services, desired, new_providers)
    for cluster_id, pools in by_cluster.items():
        there = [pool for pool in present_pools[cluster_id] if pool.name not in pools]
        check_pools(services, drivers[cluster_id], [*there, *pools.values()])
    return faults


def _is_new(cluster: Cluster) -> bool:
    """Whether the cluster is the draft of one that its document makes."""
    return cluster.status == "accepting"


def _pools_there(services: Services, cluster: Cluster) -> Sequence[NewPool | Pool]:
    """The pools of the cluster; of one that is not made yet those of its node groups."""
    if not _is_new(cluster):
        return pools_of(services, cluster.id)
    mapping = cloud_kinds.group_mapping(cluster.provider, cluster.cluster_type, cluster.driver)
    return [] if mapping is None else [mapping.pool_of_group(group) for group in worker_groups(cluster.settings)]


def _faults(services: Services, desired: DesiredPool, new_providers: Collection[str]) -> list[FieldProblem]:
    pool, current = desired.pool, desired.current
    if _is_new(desired.cluster) and pool.name in {each.name for each in _pools_there(services, desired.cluster)}:
        text = "is the name of a node group of the settings, which makes the pool"
        return [FieldProblem(pointer(*desired.at, "name"), text)]
    if current is not None:
        if current.deleting:
            raise IllegalTransition(f"Pool {current.name} is being deleted.")
        if "kind" in desired.fields:
            text = f"pool {current.name} is {current.kind}, which cannot change"
            return [FieldProblem(pointer(*desired.at), text)]
        if "provider_ref" in desired.fields:
            text = f"the provider of pool {current.name} cannot change"
            return [FieldProblem(pointer(*desired.at), text)]
        if not desired.fields:
            return []
    if pool.provider_ref in new_providers:
        pool = replace(pool, provider_ref="")
    try:
        if current is None:
            check_pool(services, desired.cluster, pool)
        else:
            check_change(services, desired.cluster, current, pool)
    except InvalidInput as refused:
        return [FieldProblem(_path(desired, fault.pointer), fault.detail) for fault in refused.errors]
    return []


def _path(desired: DesiredPool, field: str) -> str:
    """Place of a field of the pool in the document; ``field`` is a pointer into the pool, empty for all of it."""
    below = "" if desired.is_inline or not field else "/spec"
    if desired.pool.form == "karpenter" and field.startswith("/requirements"):
        below = "/spec/template/spec"
    return pointer(*desired.at) + below + field


def _name_below(desired: DesiredPool) -> tuple[str, ...]:
    return ("name",) if desired.is_inline else ("metadata", "name")


def plan_pools(services: Services, document: DesiredPools, new_providers: Collection[str]) -> dict[str, list[Any]]:
    """The part of a dry run that is about these pools: ``items`` are lines of the bill."""
    parts = ("creates", "changes", "deletes", "rejected", "warnings", "groups", "items", "verdicts")
    plan: dict[str, list[Any]] = {name: [] for name in parts}
    plan["warnings"] += remarks(document.warnings)
    for pool in document.unnamed:
        plan["deletes"].append({"kind": "pool", "name": pool.name})
        count = sum(not claim.deleting for claim in claims_of(services, pool.cluster_id, pool.name))
        if count:
            nodes = "1 node is" if count == 1 else f"{count} nodes are"
            text = f"Pool {pool.name} is deleted: its {nodes} drained and given back."
            plan["warnings"].append(remark(pointer(*document.path, "privateNodes"), text))
    for desired in document.pools:
        plan["warnings"] += remarks(desired.warnings)
        if desired.current is not None:
            plan["changes"] += change_views(
                [
                    change
                    for name, value in desired.fields.items()
                    if name not in _FORM_FIELDS
                    for change in field_changes(getattr(desired.current, name), value, (name,), name)
                ],
                *desired.at,
                kind="pool",
                name=desired.pool.name,
            )
            plan["warnings"] += _moved(desired, _limit_warnings(services, desired))
        elif desired.pool.provider_ref in new_providers:
            plan["creates"].append({"kind": "pool", "name": desired.pool.name})
            if count := desired.pool.quantity if desired.pool.kind == STATIC else desired.pool.floor:
                # Which types the provider will have, and at which prices, nobody knows before it is there.
                text = f"{count} node{'s' * (count != 1)} of pool {desired.pool.name}"
                plan["items"] += price([PriceItem(text, count, None)])["items"]
        else:
            part = plan_pool(services, desired.cluster, desired.pool)
            plan["creates"] += part["creates"]
            plan["items"] += part["price"]["items"]
            plan["groups"] += part["groups"]
            plan["verdicts"].append((desired.pool.name, part["verdict"]))
            for name in ("rejected", "warnings"):
                plan[name] += _moved(desired, part[name])
    return plan


def _moved(desired: DesiredPool, remarks_below: Iterable[Mapping[str, str]]) -> list[dict[str, str]]:
    """Remarks about a pool, as remarks about the document."""
    return [{**each, "pointer": _path(desired, each["pointer"])} for each in remarks_below]


def _limit_warnings(services: Services, desired: DesiredPool) -> list[dict[str, str]]:
    """Warnings for a pool that is there and gets other limits."""
    return limit_warnings(services, desired.cluster, desired.pool) if "limits" in desired.fields else []


def warnings_of_pools(
    services: Services, document: DesiredPools, new_providers: Collection[str]
) -> list[list[dict[str, str]]]:
    """Warnings for each pool of a document, in their order: as in ``plan_pools``, before anything is made."""
    return [
        [*remarks(desired.warnings), *_moved(desired, _warnings(services, desired, new_providers))]
        for desired in document.pools
    ]


def _warnings(services: Services, desired: DesiredPool, new_providers: Collection[str]) -> list[dict[str, str]]:
    if desired.current is not None:
        return _limit_warnings(services, desired)
    if desired.pool.provider_ref in new_providers:
        return []
    warnings: list[dict[str, str]] = plan_pool(services, desired.cluster, desired.pool)["warnings"]
    return warnings


def apply_pools(
    services: Services,
    document: DesiredPools,
    warnings: Sequence[list[dict[str, str]]],
    actor: str,
    request_id: str,
) -> list[dict[str, Any]]:
    """Bring the pools to a document, and tell the result for each, in their order; ``warnings`` are those of
    ``warnings_of_pools``."""
    results = [
        {**_applied(services, desired, actor, request_id), "warnings": remarks_of_pool}
        for desired, remarks_of_pool in zip(document.pools, warnings, strict=True)
    ]
    leaving = [give_back_pool(services, pool, actor) for pool in document.unnamed]
    return [*results, *({**_result(pool, "deleted"), "warnings": []} for pool in leaving)]


def _applied(services: Services, desired: DesiredPool, actor: str, request_id: str) -> dict[str, Any]:
    pool, action = desired.current, "unchanged"
    if _is_new(desired.cluster):
        desired = replace(desired, cluster=find_cluster(services, desired.cluster.name))
    if pool is None:
        pool, action = create_pool(services, desired.cluster, desired.pool, actor), "created"
    elif desired.fields:
        changed = change_pool(services, desired.cluster, pool, pool.version, desired.pool, actor, request_id)
        pool, action = changed, "changed"
    return _result(pool, action)


def _result(pool: Pool, action: str) -> dict[str, Any]:
    return {
        "kind": "Pool",
        "name": pool.name,
        "id": pool.id,
        "action": action,
        "operation_id": None,
    }
