"""Sums of everything of a large tenant, and how they follow what happens.

An event only says where to look. What counts is read of the claims themselves, whole clusters at a time, so an event
that is read twice, late or in another order changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from stockyard.domain.cost_records import Usage, usage_id
from stockyard.domain.month_budgets import month_of, month_start
from stockyard.domain.pools.records import Pool
from stockyard.domain.records import Cluster, Event, NodeClaim
from stockyard.domain.values import ids, times
from stockyard.operations.costs.budgets import BudgetScope, Things
from stockyard.operations.costs.claim_groups import ClaimGroup, as_rows, group_of, merged, of_rows
from stockyard.operations.costs.cluster_sums import ClusterSums, sums_of
from stockyard.operations.costs.parts import CostPart, PastCost, of_usage
from stockyard.operations.listing import every
from stockyard.operations.node_claims.cluster_claims import claims_of
from stockyard.operations.quotas.limits import CLUSTERS, used
from stockyard.operations.services import Services

OVERLAP = timedelta(minutes=2)
"""By how much an event may be older than the write that has brought it, and clocks differ."""
MOST_EVENTS = 20_000
"""Of more that are new, all claims are read instead."""
FACTS_LAST = timedelta(minutes=30)
"""Prices of a cluster's items are looked up again when they are older."""
FACTS_AT_ONCE = 50
"""Of how many clusters in one answer."""
_COUNTED_FOR = timedelta(minutes=10)


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

    def parts(self) -> Iterator[CostPart]:
        """Everything that is billed now."""
        for cluster in self.clusters.values():
            yield from cluster.parts()
        yield from ClusterSums("", self.at, merged(self.loose.values())).parts()

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

    def cluster_names(self) -> dict[str, str]:
        """Names by id of the clusters that people see."""
        return {key: cluster.name for key, cluster in self.clusters.items() if cluster.name is not None}

    def document(self) -> dict[str, Any]:
        """The sums as JSON."""
        return {
            "at": self.at,
            "month": self.month,
            "clusters": [cluster.document() for cluster in self.clusters.values()],
            "loose": {key: as_rows([group])[0] for key, group in self.loose.items()},
            "spent": [[list(past.line), past.spent, past.complete] for past in self.spent.values()],
            "names": self.names,
            "counted": self.counted,
            "events": sorted(self.events),
            "reading": self.reading,
        }

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> TenantSums:
        """Sums whose JSON this is."""
        clusters = [ClusterSums.of_document(each) for each in document["clusters"]]
        past_costs = [PastCost(tuple(line), spent, complete) for line, spent, complete in document["spent"]]
        return cls(
            document["at"],
            document["month"],
            {cluster.id: cluster for cluster in clusters},
            {key: next(of_rows("", [row])) for key, row in document["loose"].items()},
            {each.line: each for each in past_costs},
            document["names"],
            document["counted"],
            set(document["events"]),
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
        latest = times.to_text(times.from_text(self.at) - _COUNTED_FOR)
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


def follow(services: Services, sums: TenantSums) -> bool:
    """Bring sums up to now. False: too much is new, and the sums are as they were."""
    now, since = services.now(), times.from_text(sums.at) - OVERLAP
    events = _events(services, ids.before(ids.EVENT, since))
    if events is None:
        return False
    if sums.month != month_of(now):
        sums.month, sums.spent, sums.names, sums.counted, sums.events = month_of(now), {}, {}, {}, set()
    new = [event for event in events if event.id not in sums.events]
    young = ids.before(ids.EVENT, times.from_text(now) - OVERLAP)
    sums.at, sums.events = now, {event.id for event in events if event.id >= young}
    claims, clusters = _places(sums, new)
    old = _old(sums)
    clusters |= old | _untold(services, sums)
    # One of them is counted anew though no event says so: a mistake does not last.
    missing = _count_anew(services, sums, claims, now, _one_of(services, old))
    records = {cluster.id: cluster for cluster in services.store.get_all(Cluster, sorted(clusters))}
    sums.describe(services, [(cluster_id, records.get(cluster_id)) for cluster_id in sorted(clusters)])
    missing |= clusters - records.keys()
    usages = sorted({usage_id(now, subject) for subject in missing} - sums.counted.keys())
    sums.spend(services.store.get_all(Usage, usages), now)
    latest = times.to_text(times.from_text(now) - _COUNTED_FOR)
    sums.counted = {key: until for key, until in sums.counted.items() if until >= latest}
    sums.read += len(new) + len(clusters)
    return True


def _events(services: Services, since: str) -> Sequence[Event] | None:
    """Events behind that id; None for very many."""
    events: list[Event] = []
    after: str | None = None
    while len(events) <= MOST_EVENTS:
        page = services.store.list(Event, since=since, after=after, limit=1000)
        events += page.items
        after = page.next_id
        if after is None:
            return events
    return None


def _places(sums: TenantSums, events: Iterable[Event]) -> tuple[dict[str, str], set[str]]:
    """Claims that something has happened to, with the cluster that the event names or an empty text, and clusters
    whose facts may have changed."""
    claims: dict[str, str] = {key: "" for key, group in sums.loose.items() if group.waits}
    clusters = {key for key, cluster in sums.clusters.items() if cluster.changes_untold}
    names = {name: key for key, name in sums.cluster_names().items()}
    for event in events:
        if event.detail_type == NodeClaim.__name__:
            claims[event.subject] = event.about.get("cluster_id") or claims.get(event.subject, "")
        elif event.detail_type in (Cluster.__name__, Pool.__name__):
            clusters.add(event.subject.partition("/")[0])
        elif event.about.get("name") in names:
            clusters.add(names[event.about["name"]])
    return claims, clusters


def _untold(services: Services, sums: TenantSums) -> set[str]:
    """Clusters that are only being accepted, of which no event tells yet: they are in the quota's counter."""
    count = sum(1 for cluster in sums.clusters.values() if cluster.status)
    if used(services.store, f"quota/{CLUSTERS}") == count:
        return set()
    clusters = every(services.store, Cluster)
    return {each.id for each in clusters if each.id not in sums.clusters or not sums.clusters[each.id].status}


def _one_of(services: Services, clusters: set[str]) -> set[str]:
    """One of the clusters, whichever chance names."""
    number = int.from_bytes(services.clock.randomness(10), "big")
    return {sorted(clusters)[number % len(clusters)]} if clusters else set()


def _old(sums: TenantSums) -> set[str]:
    """The clusters whose prices were looked up longest ago."""
    oldest = times.to_text(times.from_text(sums.at) - FACTS_LAST)
    old = sorted((each.made_at, key) for key, each in sums.clusters.items() if each.made_at < oldest)
    return {key for _, key in old[:FACTS_AT_ONCE]}


def _count_anew(
    services: Services, sums: TenantSums, claims: Mapping[str, str], now: str, besides: set[str]
) -> set[str]:
    """Count the claims with all of their clusters, and the clusters ``besides``, anew; the ids of claims that are
    gone."""
    clusters = {cluster_id for cluster_id in claims.values() if cluster_id} | besides
    waiting = services.store.get_all(NodeClaim, sorted(claim for claim, cluster_id in claims.items() if not cluster_id))
    for claim_id in claims:
        sums.loose.pop(claim_id, None)
    sums.count([claim for claim in waiting if not claim.cluster_id], now)
    clusters |= {claim.cluster_id for claim in waiting if claim.cluster_id}
    present = {claim.id for claim in waiting}
    for cluster_id in sorted(clusters):
        own = claims_of(services, cluster_id)
        sums.read += len(own)
        present |= {claim.id for claim in own}
        earlier = sums.clusters.get(cluster_id) or ClusterSums(cluster_id, now)
        sums.clusters[cluster_id] = replace(earlier, groups=())
        sums.count(own, now)
    return claims.keys() - present
