"""Sums of one cluster: what its items cost, its budgets, and its claims by groups of those that are alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from stockyard.domain.month_budgets import Scope
from stockyard.domain.pools.records import Pool
from stockyard.domain.records import UNSEEN, Cluster
from stockyard.domain.values.frozen import dataclass
from stockyard.operations.costs.budgets import (
    NEVER_BILLED,
    BudgetScope,
    scope_of_cluster,
    scope_of_pool,
    wanted_members,
)
from stockyard.operations.costs.claim_groups import ClaimGroup, Kind, as_rows, merged, of_rows
from stockyard.operations.costs.parts import CostPart, of_clusters, of_groups
from stockyard.operations.quotas.limits import nodes_asked, quota_of_pool
from stockyard.operations.services import Services

READY = "ready"
Items = tuple[tuple[str, int, float | None], ...]


@dataclass(frozen=True, slots=True)
class ClusterSums:
    """Sums of the cluster of that id; of claims of no cluster where that is empty."""

    id: str
    made_at: str
    groups: Sequence[ClaimGroup] = ()
    name: str | None = None
    """None where there is no such cluster, or none yet that people see."""
    status: str = ""
    created_at: str = ""
    items: Sequence[tuple[str, int, float | None]] = ()
    """Name, quantity and USD an hour of what is billed beside its nodes."""
    ahead: Sequence[tuple[str, str, int, float | None]] | None = None
    """The same, each with its kind before, as budgets count a cluster that is being made; None: as ``items``."""
    members: int | None = None
    """Members that its control plane is to have; None where budgets do not count it."""
    budgets: Sequence[tuple[str, str, float]] = ()
    """Pool, words and USD of its budgets; the pool is empty for the cluster's own."""
    pools: int = 0
    most_nodes: Sequence[tuple[str, int]] = ()
    """The most nodes that one of its pools asks for, by their quota."""

    @property
    def claims(self) -> int:
        """Number of its claims."""
        return sum(group.number for group in self.groups)

    @property
    def changes_untold(self) -> bool:
        """Whether what it has may change without an event: it is being made or removed."""
        return self.status not in ("", READY)

    def parts_ahead(self) -> Iterator[CostPart]:
        """Parts beside its claims as budgets count them."""
        if self.members is None:
            return
        ahead = self.ahead if self.ahead is not None else [("cluster", *item) for item in self.items]
        for kind, name, quantity, hour in ahead:
            yield CostPart(kind, self.id, "", name, "", hour, self.created_at, quantity)

    def scopes(self) -> Iterator[BudgetScope]:
        """Budgets of the cluster and of its pools."""
        for pool, words, usd in self.budgets:
            yield Scope(self.id, pool), words, usd

    def document(self, kinds: dict[Kind, int], items: dict[Items, int]) -> list[Any]:
        """The sums as JSON. ``kinds`` and ``items`` stand there once for all clusters, which have the number of each,
        and are entered where they are new: most clusters have the same."""
        own_items = tuple((name, quantity, hour) for name, quantity, hour in self.items)
        return [
            self.id, self.made_at, as_rows(self.groups, kinds), self.name, self.status, self.created_at,
            items.setdefault(own_items, len(items)),
            self.ahead, self.members, self.budgets, self.pools, self.most_nodes,
        ]  # fmt: skip

    @classmethod
    def of_document(cls, document: Sequence[Any], kinds: Sequence[Kind], items: Sequence[Any]) -> ClusterSums:
        """Sums whose JSON this is. What was kept before has items of its own."""
        cluster_id, made_at, rows, name, status, created_at, own_items, *fields = document
        own_items = items[own_items] if isinstance(own_items, int) else own_items
        return cls(cluster_id, made_at, of_rows(cluster_id, rows, kinds), name, status, created_at, own_items, *fields)


def sums_of(
    services: Services, cluster_id: str, cluster: Cluster | None, pools: Iterable[Pool], groups: Iterable[ClaimGroup]
) -> ClusterSums:
    """Sums of a cluster whose claims are in these groups; None as the cluster: it is gone."""
    now, claims = services.now(), merged(groups)
    if cluster is None or cluster.status == NEVER_BILLED:
        return ClusterSums(cluster_id, now, claims)
    members = [group.claim() for group in claims if group.kind.member]
    ahead = [
        (part.kind, part.type, part.quantity, part.usd_hour)
        for part in (*of_clusters(services, [cluster], members, ahead=True), *of_groups(services, [cluster]))
    ]
    is_shown = cluster.status not in UNSEEN
    now_items = of_clusters(services, [cluster], members) if is_shown and cluster.status != READY else ()
    items = ahead if cluster.status == READY else [(p.kind, p.type, p.quantity, p.usd_hour) for p in now_items]
    own_pools, most_nodes = list(pools), dict[str, int]()
    for pool in own_pools:
        quota = quota_of_pool(cluster.driver, pool)
        most_nodes[quota] = max(nodes_asked(pool), most_nodes.get(quota, 0))
    own = [scope_of_cluster(cluster), *(scope_of_pool(cluster, pool) for pool in own_pools)]
    return ClusterSums(
        cluster_id,
        now,
        claims,
        cluster.name if is_shown else None,
        cluster.status,
        cluster.created_at,
        [item[1:] for item in items],
        None if items == ahead else ahead,
        wanted_members(cluster),
        [(scope.pool, words, usd) for scope, words, usd in filter(None, own)],
        len(own_pools),
        sorted(most_nodes.items()),
    )
