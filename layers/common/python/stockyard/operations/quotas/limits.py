"""Quotas of a tenant: the limit, its own or the default, and how much is used.

Some have a default and are always there. Others (``SETTABLE``) limit nothing until they are set: claims of one
provider, claims of each user. What they count is counted all the same, so that a limit is right from its first moment.
``usd_month`` is the budget of the tenant's months in USD: what counts for it say its costs.
"""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from stockyard.domain import cloud_kinds
from stockyard.domain.month_budgets import USD_MONTH
from stockyard.domain.pools.records import GROUP, NODES, NewPool, Pool, PoolSpec
from stockyard.domain.records import Cluster, Counter, Quota
from stockyard.domain.values.patterns import pattern
from stockyard.domain.values.pointers import pointer
from stockyard.domain.values.quantities import milli
from stockyard.errors import Conflict, FieldProblem, NotFound, PreconditionFailed, QuotaExceeded
from stockyard.operations.listing import every
from stockyard.operations.quotas.budget_notes import budget_note
from stockyard.operations.services import Services
from stockyard.ports import Create, Remove, Replace, Store

CLUSTERS = "clusters"
"""The quota of clusters."""
GROUPS, GROUP_NODES = "node_groups", cloud_kinds.GROUP_QUOTA
"""Quotas of each cluster, and of each of its pools: nothing counts them, ``used`` is the most that one has. Node groups
of some kinds of clusters have a quota of their own, see ``cloud_kinds.group_quota``."""
PER_USER = "per-user."
"""Before the name of a quota: the limit of each user. Its counters are the name, a slash, and the user."""
SETTABLE = pattern(r"usd_month|(per-user\.)?nodeclaims(\.provider=[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?")


def limit_of(services: Services, name: str) -> int | None:
    """The tenant's limit: its own, else the default, else None for none."""
    quota = services.store.get(Quota, name)
    return quota.limit if quota else default_of(services, name)


def limits_of(services: Services, names: Sequence[str]) -> dict[str, int | None]:
    """As ``limit_of``, of several quotas in one read."""
    own = {quota.id: quota.limit for quota in services.store.get_all(Quota, names)}
    return {name: own[name] if name in own else default_of(services, name) for name in names}


def default_of(services: Services, name: str) -> int | None:
    """The limit of a tenant that has none of its own; None for no limit."""
    return services.settings.quotas.get(name)


def refusal(name: str, limit: int | None) -> QuotaExceeded:
    """The error for a transaction that would count one more than ``limit`` for a quota with a default."""
    return QuotaExceeded(f"The quota '{name}' allows {_counted(limit, name.replace('_', ' '))}.")


def check_room(services: Services, name: str, count: int = 1) -> None:
    """``QuotaExceeded`` where ``count`` more would go over a quota with a default, as the transaction would say that
    counts them."""
    limit = limit_of(services, name)
    if count and limit is not None and used(services.store, f"quota/{name}") + count > limit:
        raise refusal(name, limit)


def used(store: Store, counter: str) -> int:
    """Value of a counter."""
    record = store.get(Counter, counter)
    return record.value if record else 0


def _counted(limit: int | None, things: str) -> str:
    """``1 cluster``, ``2 clusters``."""
    return f"{limit} {things.removesuffix('s') if limit == 1 else things}"


def quota_of_pool(driver: str, pool: NewPool | Pool) -> str:
    """The quota of the nodes of a pool in a cluster of the driver."""
    return cloud_kinds.group_quota(driver) if pool.form == GROUP else GROUP_NODES


def check_groups(services: Services, driver: str, settings: Mapping[str, Any]) -> None:
    """``QuotaExceeded`` for more node groups in the settings of a cluster of the driver than it may have, or more nodes
    than one of them may; with the pointer in the settings."""
    from stockyard.domain.pools.node_groups import AUTOSCALER_GROUPS, name_of
    from stockyard.domain.pools.node_groups import GROUPS as SETTINGS_GROUPS

    quota = cloud_kinds.group_quota(driver)
    most, most_nodes = limit_of(services, GROUPS), limit_of(services, quota)
    member = AUTOSCALER_GROUPS if settings.get(AUTOSCALER_GROUPS) else SETTINGS_GROUPS
    groups = settings.get(member) or ()
    if most is not None and len(groups) > most:
        text = f"The quota '{GROUPS}' allows {_counted(most, 'node groups')} in a cluster."
        raise QuotaExceeded(text, errors=[FieldProblem(pointer("settings", member), text)])
    for index, group in enumerate(groups):
        if most_nodes is not None and int(group.get("max_size", 0)) > most_nodes:
            counted = _counted(most_nodes, "nodes")
            text = f"The quota '{quota}' allows {counted} in a group; {name_of(group)} asks for more."
            group_pointer = pointer("settings", member, index, "max_size")
            raise QuotaExceeded(text, errors=[FieldProblem(group_pointer, text)])


def check_pools(services: Services, driver: str, pools: Sequence[NewPool | Pool]) -> None:
    """``QuotaExceeded`` for more pools than a cluster of the driver may have node groups, or more nodes than one of
    them may."""
    most = limit_of(services, GROUPS)
    if most is not None and len(pools) > most:
        raise QuotaExceeded(f"The quota '{GROUPS}' allows {_counted(most, 'pools')} in a cluster.")
    most_asked: dict[str, int] = {}
    for pool in pools:
        quota = quota_of_pool(driver, pool)
        most_asked[quota] = max(nodes_asked(pool), most_asked.get(quota, 0))
    for quota, nodes in most_asked.items():
        most_nodes = limit_of(services, quota)
        if most_nodes is not None and nodes > most_nodes:
            counted = _counted(most_nodes, "nodes")
            raise QuotaExceeded(f"The quota '{quota}' allows {counted} in a pool; {nodes} are asked for.")


def within_quota(services: Services, cluster: Cluster, pools: Iterable[Pool]) -> list[Pool]:
    """The pools of the cluster, each with the tenant's quota of nodes as its limit, if that is lower."""
    quotas: dict[str, int | None] = {}
    limited: list[Pool] = []
    for pool in pools:
        name = quota_of_pool(cluster.driver, pool)
        if name not in quotas:
            quotas[name] = limit_of(services, name)
        quota = quotas[name]
        if quota is not None and milli(pool.limits.get(NODES, quota)) >= quota * 1000:
            pool = replace(pool, limits={**pool.limits, NODES: str(quota)})  # noqa: PLW2901
        limited.append(pool)
    return limited


def nodes_asked(pool: PoolSpec) -> int:
    """The most nodes that the pool itself asks for; the limit of one without a limit is the quota's."""
    limit = milli(pool.limits.get(NODES, 0)) // 1000
    return max(pool.quantity, pool.floor, limit)


def view(services: Services, name: str) -> dict[str, Any]:
    """One quota; ``version`` is 0 while the default holds. ``NotFound`` for a name that cannot be one.

    Of a limit for each user, ``used`` is that of the user who has the most.
    """
    if name not in services.settings.quotas and not SETTABLE.fullmatch(name):
        raise NotFound(f"There is no quota {name}.")
    return _view(services, name, services.store.get(Quota, name), _Groups(services.store))


def views(services: Services, most: Mapping[str, int] | None = None) -> list[dict[str, Any]]:
    """Every quota that has a limit, in order of name. ``most`` is the most that any cluster or pool has by its quota;
    None: all of them are read."""
    stored = {quota.id: quota for quota in every(services.store, Quota)}
    groups = _Groups(services.store, most)
    return [_view(services, name, stored.get(name), groups) for name in sorted({*services.settings.quotas, *stored})]


class _Groups:
    """The most that any cluster or pool has, read once for all quotas of them, a second old; or ``most``, where
    somebody knows it."""

    def __init__(self, store: Store, most: Mapping[str, int] | None = None) -> None:
        self._store, self._most = store, most

    @cached_property
    def most(self) -> Mapping[str, int]:
        """The most pools of a cluster under ``GROUPS``, and the most nodes that a pool asks for by its quota."""
        if self._most is not None:
            return self._most
        most: dict[str, int] = {}
        store = self._store
        drivers = {cluster.id: cluster.driver for cluster in every(store, Cluster, consistent=False)}
        pools = list(every(store, Pool, consistent=False))
        for pool in pools:
            name = quota_of_pool(drivers.get(pool.cluster_id, ""), pool)
            most[name] = max(nodes_asked(pool), most.get(name, 0))
        return {**most, GROUPS: max(Counts(pool.cluster_id for pool in pools).values(), default=0)}


def _view(services: Services, name: str, quota: Quota | None, groups: _Groups) -> dict[str, Any]:
    return {
        "name": name,
        "limit": quota.limit if quota else default_of(services, name),
        "used": _usage(services.store, name, groups),
        "version": quota.version if quota else 0,
    }


def _usage(store: Store, name: str, groups: _Groups) -> int:
    if name.startswith(PER_USER):
        return max((counter.value for counter in every(store, Counter, f"quota/{name}/")), default=0)
    if name == GROUPS:
        return groups.most[GROUPS]
    if name in cloud_kinds.group_quotas():
        return groups.most.get(name, 0)
    return used(store, f"quota/{name}")


def set_quota(services: Services, name: str, limit: int | None, version: int) -> dict[str, Any]:
    """The quota with its new limit; None is the default again. ``PreconditionFailed`` unless at ``version``."""
    current = view(services, name)
    if current["version"] != version:
        raise PreconditionFailed(f"The quota is at version {current['version']}, not {version}.")
    if limit is None and not version:
        return current
    notes = budget_note(services.now()) if name == USD_MONTH else []
    try:
        if limit is None:
            services.store.commit(Remove(Quota, name, version), *notes)
            return {**current, "limit": default_of(services, name), "version": 0}
        record = Quota(name, limit, services.now(), version=version + 1)
        services.store.commit(Replace(record) if version else Create(record), *notes)
    except Conflict as conflict:
        raise PreconditionFailed("The quota was changed by someone else just now.") from conflict
    return {**current, "limit": limit, "version": version + 1}
