"""Sums of everything of a tenant: what stands, by cluster, what is gone, and what of it is not counted yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from stockyard.domain.cost_records import Usage
from stockyard.domain.month_budgets import month_start
from stockyard.domain.pools.records import Pool
from stockyard.domain.records import Cluster, NodeClaim
from stockyard.domain.values import times
from stockyard.operations.costs.budgets import BudgetScope, Things
from stockyard.operations.costs.claim_groups import ClaimGroup, Kind, as_rows, group_of, kind_of, merged, of_rows
from stockyard.operations.costs.cluster_sums import ClusterSums, Items, sums_of
from stockyard.operations.costs.parts import PastCost, of_usage
from stockyard.operations.listing import every
from stockyard.operations.quotas.limits import GROUPS
from stockyard.operations.services import Services

COUNTED_FOR = timedelta(minutes=10)
"""How long the sums remember what is gone and has been counted."""


@dataclass(slots=True)
class TenantSums:
    """Everything of the tenant that was written before ``at``, by cluster. ``loose`` are the claims of no cluster by
    their ids, ``spent`` what is gone in ``month``, by line."""

    at: str
    month: str
    clusters: dict[str, ClusterSums] = field(default_factory=dict)
    loose: dict[str, ClaimGroup] = field(default_factory=dict)
    spent: dict[tuple[str, ...], PastCost] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """Names of clusters that are gone, by id."""
    counted: dict[str, str] = field(default_factory=dict)
    """Until when those of ``spent`` stood that have just been counted, by the ids of their records."""
    events: set[str] = field(default_factory=set)
    """Events behind ``at`` less the overlap that are in the sums."""
    pending: dict[str, tuple[str | None, str]] = field(default_factory=dict)
    """Claims that events have named and that were not counted since, by their ids: cluster, None where the event names
    none, and time of the first such event."""
    facts: dict[str, str] = field(default_factory=dict)
    """Clusters of which the same holds, with the time."""
    is_cut: bool = False
    """Whether there are events behind ``at`` that nobody has read yet."""
    reading: str | None = None
    """The last claim, or record of what is gone, that was read while the sums are being made; empty before the first
    one, None when all were."""
    read: int = 0
    """Records that were read for them just now; this is not kept."""

    @property
    def groups(self) -> Iterator[ClaimGroup]:
        """All claims."""
        for cluster in self.clusters.values():
            yield from cluster.groups
        yield from merged(self.loose.values())

    @property
    def is_complete(self) -> bool:
        """Whether all that had happened until ``at`` is counted, and nobody has left anything."""
        return self.reading is None and not (self.pending or self.facts or self.is_cut)

    @property
    def as_of(self) -> str:
        """The moment until which all that has happened is counted."""
        return min([self.at, *self.facts.values(), *(time for _, time in self.pending.values())])

    def clusters_as_of(self) -> dict[str, str]:
        """The same of the clusters of which something is not counted yet."""
        moments = dict(self.facts)
        for cluster_id, time in self.pending.values():
            if cluster_id:
                moments[cluster_id] = min(time, moments.get(cluster_id, time))
        return moments

    def things(self) -> Things:
        """All that counts for budgets."""
        claims = [(group.claim(), group.number) for group in self.groups if group.kind.type is not None]
        return Things(
            (part for cluster in self.clusters.values() for part in cluster.parts_ahead()),
            sorted(claims, key=lambda counted: counted[0].id),
            {key: cluster.members for key, cluster in self.clusters.items() if cluster.members is not None},
            list(self.spent.values()),
        )

    def scopes(self) -> list[BudgetScope]:
        """Budgets of clusters, then those of pools."""
        scopes = [scope for key in sorted(self.clusters) for scope in self.clusters[key].scopes()]
        return sorted(scopes, key=lambda scope: bool(scope[0].pool))

    def most_of_pools(self) -> dict[str, int]:
        """The most pools of a cluster, and the most nodes that a pool asks for, each by the quota for it."""
        most = {GROUPS: max((cluster.pools for cluster in self.clusters.values()), default=0)}
        for cluster in self.clusters.values():
            for quota, nodes in cluster.most_nodes:
                most[quota] = max(nodes, most.get(quota, 0))
        return most

    def cluster_names(self) -> dict[str, str]:
        """Names by id of the clusters that people see."""
        return {key: cluster.name for key, cluster in self.clusters.items() if cluster.name is not None}

    def document(self) -> dict[str, Any]:
        """The sums as JSON."""
        kinds, items = dict[Kind, int](), dict[Items, int]()
        return {
            "at": self.at,
            "month": self.month,
            "clusters": [cluster.document(kinds, items) for cluster in self.clusters.values()],
            "loose": {key: as_rows([group], kinds)[0] for key, group in self.loose.items()},
            "kinds": list(kinds),
            "items": list(items),
            "spent": [[list(past.line), past.spent, past.complete] for past in self.spent.values()],
            "names": self.names,
            "counted": self.counted,
            "events": sorted(self.events),
            "reading": self.reading,
            "pending": self.pending,
            "facts": self.facts,
            "is_cut": self.is_cut,
        }

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> TenantSums:
        """Sums whose JSON this is."""
        kinds, items = list(map(kind_of, document.get("kinds", ()))), document.get("items", ())
        clusters = [ClusterSums.of_document(each, kinds, items) for each in document["clusters"]]
        past_costs = [PastCost(tuple(line), spent, complete) for line, spent, complete in document["spent"]]
        return cls(
            document["at"],
            document["month"],
            {cluster.id: cluster for cluster in clusters},
            {key: of_rows("", [row], kinds)[0] for key, row in document["loose"].items()},
            {each.line: each for each in past_costs},
            document["names"],
            document["counted"],
            set(document["events"]),
            {key: (cluster_id, time) for key, (cluster_id, time) in document.get("pending", {}).items()},
            document.get("facts", {}),
            document.get("is_cut", False),
            document["reading"],
        )

    def count(self, claims: Iterable[NodeClaim], now: str) -> None:
        """Add claims that were not counted before."""
        groups: dict[str, list[ClaimGroup]] = {}
        for claim in claims:
            group = group_of(claim, month_start(now))
            if claim.cluster_id:
                groups.setdefault(claim.cluster_id, []).append(group)
            else:
                self.loose[claim.id] = group
        for cluster_id, more in groups.items():
            cluster = self.clusters.get(cluster_id) or ClusterSums(cluster_id, now)
            self.clusters[cluster_id] = replace(cluster, groups=merged([*cluster.groups, *more]))

    def spend(self, usages: Iterable[Usage], now: str) -> None:
        """Add what is gone, each once."""
        latest = times.to_text(times.from_text(self.at) - COUNTED_FOR)
        for usage in usages:
            if usage.id in self.counted:
                continue
            past = of_usage(usage, month_start(now))
            _, spent, complete = self.spent.get(past.line, PastCost(past.line, 0.0, complete=True))
            self.spent[past.line] = PastCost(past.line, spent + past.spent, complete and past.complete)
            if usage.cluster:
                self.names[usage.cluster_id] = usage.cluster
            if usage.until >= latest:
                self.counted[usage.id] = usage.until

    def describe(self, services: Services, clusters: Iterable[tuple[str, Cluster | None]]) -> None:
        """Take over what is told of clusters now; None for one that is gone."""
        for cluster_id, cluster in clusters:
            earlier = self.clusters.get(cluster_id)
            pools = every(services.store, Pool, f"{cluster_id}/") if cluster is not None else ()
            sums = sums_of(services, cluster_id, cluster, pools, earlier.groups if earlier is not None else ())
            self.clusters[cluster_id] = sums
            if cluster is None and not sums.groups:
                del self.clusters[cluster_id]
