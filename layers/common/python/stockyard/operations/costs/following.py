"""Brings the sums of a tenant up to what has happened since they were made, all of it or as much as one look may read.

An event only says where to look. What counts is read of the claims themselves, whole clusters at a time, so an event
that is read twice, late or in another order changes nothing. What is not counted yet stands in the sums with the time
since when, so that whoever goes on knows it, and whoever looks is told how old they are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from stockyard.domain.cost_records import Usage, usage_id
from stockyard.domain.month_budgets import month_of
from stockyard.domain.pools.records import Pool
from stockyard.domain.records import Cluster, Event, NodeClaim
from stockyard.domain.values import ids, times
from stockyard.operations.costs.cluster_sums import ClusterSums
from stockyard.operations.costs.tenant_sums import COUNTED_FOR, TenantSums
from stockyard.operations.listing import every
from stockyard.operations.node_claims.cluster_claims import claims_of
from stockyard.operations.quotas.limits import CLUSTERS, used
from stockyard.operations.services import Services

OVERLAP = timedelta(minutes=2)
"""By how much an event may be older than the write that has brought it, and clocks differ."""
FACTS_LAST = timedelta(minutes=30)
"""Prices of a cluster's items are looked up again when they are older."""
FACTS_AT_ONCE = 50
"""Of how many clusters in one look."""
LEAST_CLUSTERS = 10
"""So many are counted though it is late, so that each look comes further than what happens meanwhile."""
_PAGE = 1000
_ALL = sys.maxsize


@dataclass(frozen=True, slots=True)
class Room:
    """The most that one look reads: new events, claims, and clusters whose facts are told. ``is_late`` ends it before.
    Without a limit clusters that no event tells of are looked for too."""

    events: int = _ALL
    claims: int = _ALL
    facts: int = _ALL
    is_late: Callable[[], bool] = lambda: False


A_LOOK = Room(events=200, claims=100, facts=5)
"""What a request may read that people wait for: one cluster of usual size."""


def follow(services: Services, sums: TenantSums, room: Room) -> None:
    """Bring sums up to now, as far as there is room; what is left says ``is_complete``."""
    now = services.now()
    if sums.month != month_of(now):
        sums.month, sums.spent, sums.names, sums.counted, sums.events = month_of(now), {}, {}, {}, set()
    count = _note_events(services, sums, room)
    if room.facts == _ALL:
        sums.facts |= dict.fromkeys(_untold(services, sums) - sums.facts.keys(), now)
    old = _old(sums)
    # One of them is counted anew though no event says so: a mistake does not last.
    missing = _count_anew(services, sums, room, _one_of(services, old))
    clusters = _due_clusters(sums, room, old)
    records = {cluster.id: cluster for cluster in services.store.get_all(Cluster, sorted(clusters))}
    sums.describe(services, [(cluster_id, records.get(cluster_id)) for cluster_id in sorted(clusters)])
    for cluster_id in clusters:
        sums.facts.pop(cluster_id, None)
    missing |= clusters - records.keys()
    usages = sorted({usage_id(now, subject) for subject in missing} - sums.counted.keys())
    sums.spend(services.store.get_all(Usage, usages), now)
    latest = times.to_text(times.from_text(sums.at) - COUNTED_FOR)
    uncounted = {usage_id(now, subject) for subject in (*sums.pending, *sums.facts)}
    sums.counted = {key: until for key, until in sums.counted.items() if until >= latest or key in uncounted}
    sums.read += count + len(clusters)


def _note_events(services: Services, sums: TenantSums, room: Room) -> int:
    """Note of which claims and clusters events tell that are not in the sums; how many are new."""
    now = services.now()
    events: list[Event] = []
    count, since = 0, ids.before(ids.EVENT, times.from_text(sums.at) - OVERLAP)
    sums.is_cut = False
    for page, is_more in _events(services, since, room.events):
        events += page
        count += sum(event.id not in sums.events for event in page)
        sums.is_cut = is_more and (count >= room.events or room.is_late())
        if sums.is_cut:
            break
    new = [event for event in events if event.id not in sums.events]
    sums.at = max((event.time for event in events), default=sums.at) if sums.is_cut else now
    young = ids.before(ids.EVENT, times.from_text(sums.at) - OVERLAP)
    sums.events = {event.id for event in events if event.id >= young}
    _note(sums, new)
    return len(new)


def _events(services: Services, since: str, most: int) -> Iterator[tuple[Sequence[Event], bool]]:
    """Events behind that id, page by page, each with whether there are more."""
    after: str | None = None
    while True:
        page = services.store.list(Event, since=since, after=after, limit=min(_PAGE, most))
        yield page.items, page.next_id is not None
        after = page.next_id
        if after is None:
            return


def _note(sums: TenantSums, events: Iterable[Event]) -> None:
    """Note claims that something has happened to, with the cluster that the event names, if any, and clusters whose
    facts may have changed."""
    names = {name: key for key, name in sums.cluster_names().items()}
    for event in events:
        if event.detail_type == NodeClaim.__name__:
            earlier, time = sums.pending.get(event.subject, (None, event.time))
            sums.pending[event.subject] = (event.about.get("cluster_id") or earlier, min(time, event.time))
        elif event.detail_type in (Cluster.__name__, Pool.__name__):
            sums.facts.setdefault(event.subject.partition("/")[0], event.time)
        elif event.about.get("name") in names:
            sums.facts.setdefault(names[event.about["name"]], event.time)


def _untold(services: Services, sums: TenantSums) -> set[str]:
    """Clusters that are only being accepted, of which no event tells yet: they are in the quota's counter."""
    count = sum(1 for cluster in sums.clusters.values() if cluster.status)
    if used(services.store, f"quota/{CLUSTERS}") == count:
        return set()
    clusters = every(services.store, Cluster)
    return {each.id for each in clusters if each.id not in sums.clusters or not sums.clusters[each.id].status}


def _one_of(services: Services, clusters: Sequence[str]) -> set[str]:
    """One of the clusters, whichever chance names."""
    number = int.from_bytes(services.clock.randomness(10), "big")
    return {sorted(clusters)[number % len(clusters)]} if clusters else set()


def _old(sums: TenantSums) -> list[str]:
    """The clusters whose prices were looked up longest ago, of those that are due."""
    oldest = times.to_text(times.from_text(sums.at) - FACTS_LAST)
    old = sorted((each.made_at, key) for key, each in sums.clusters.items() if each.made_at < oldest)
    return [key for _, key in old[:FACTS_AT_ONCE]]


def _due_clusters(sums: TenantSums, room: Room, old: Sequence[str]) -> set[str]:
    """The clusters whose facts are told now: of those that events name, then those that are being made or removed, then
    those whose prices are ``old``."""
    named = sorted(sums.facts, key=lambda key: (sums.facts[key], key))
    changing = sorted((each.made_at, key) for key, each in sums.clusters.items() if each.changes_untold)
    return set(list(dict.fromkeys((*named, *(key for _, key in changing), *old)))[: room.facts])


def _count_anew(services: Services, sums: TenantSums, room: Room, besides: set[str]) -> set[str]:
    """Count claims with all of their clusters, and the clusters ``besides``, anew, as far as there is room; the ids of
    claims that are gone."""
    now, pending = services.now(), sums.pending
    names = [key for key, (cluster_id, _) in pending.items() if not cluster_id]
    # Those that wait are looked at each time, as finding their cluster is no event; the last ones come last again.
    names += [key for key, group in sums.loose.items() if group.waits and key not in pending]
    alone = services.store.get_all(NodeClaim, sorted(names := names[: room.claims]))
    joined = {claim.id: claim.cluster_id for claim in alone if claim.cluster_id}
    done, present = set(names) - joined.keys(), {claim.id for claim in alone}
    for claim_id in done:
        sums.loose.pop(claim_id, None)
    sums.count([claim for claim in alone if not claim.cluster_id], now)
    for claim_id, cluster_id in joined.items():
        pending[claim_id] = (cluster_id, pending[claim_id][1] if claim_id in pending else now)
    by_cluster: dict[str, list[str]] = {}
    for claim_id, (own_cluster, _) in sorted(pending.items(), key=lambda entry: (entry[1][1], entry[0])):
        if own_cluster:
            by_cluster.setdefault(own_cluster, []).append(claim_id)
    claims_room, count = room.claims - len(names), 0
    for cluster_id in dict.fromkeys((*by_cluster, *sorted(besides))):
        earlier = sums.clusters.get(cluster_id)
        if (earlier.claims if earlier is not None else 1) > claims_room:
            continue
        if count >= LEAST_CLUSTERS and room.is_late():
            break
        own = claims_of(services, cluster_id)
        _replace_claims(sums, cluster_id, own, by_cluster.get(cluster_id, ()), now)
        sums.read += len(own)
        claims_room, count = claims_room - len(own), count + 1
        done.update(by_cluster.get(cluster_id, ()))
        present |= {claim.id for claim in own}
    for claim_id in done:
        pending.pop(claim_id, None)
    return done - present


def _replace_claims(
    sums: TenantSums, cluster_id: str, claims: Sequence[NodeClaim], named: Iterable[str], now: str
) -> None:
    """Let these claims take the place of what was counted of the cluster, and of what was counted alone."""
    for claim_id in (*named, *(claim.id for claim in claims)):
        sums.loose.pop(claim_id, None)
    earlier = sums.clusters.get(cluster_id) or ClusterSums(cluster_id, now)
    sums.clusters[cluster_id] = replace(earlier, groups=())
    sums.count(claims, now)
