"""Listing of a cloud account by a sweep, which asks for nothing that the ledgers of living records say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from stockyard.domain.records import CloudAccount, Cluster, Fact, NodeEnvironment, Resource
from stockyard.operations.listing import every
from stockyard.operations.services import Services
from stockyard.ports import LedgerThings, Put, Skipped, Tagged

FEW = 5
"""Clusters of an account with inner kinds that each sweep looks into, however many there are."""
ROUND = 2
"""Sweeps in which every cluster is looked into, where there are many."""
LOOKED_INTO = "sweep-looked-into/"
"""The tenant's fact of each cloud account: the last cluster that was looked into."""


@dataclass(frozen=True, slots=True)
class AccountListing:
    """Lists what carries our tags in a cloud account. ``resting`` are clusters whose inner kinds are left out."""

    services: Services
    account: CloudAccount
    ledger: LedgerThings

    @property
    def resting(self) -> Set[str]:
        """Ids of the clusters of whose parts this listing does not say whether they are there."""
        return self.ledger.resting

    def things(self, regions: Sequence[str], skipped: Skipped) -> Sequence[Tagged]:
        """See ``ports.Cloud.tagged``."""
        services, account = self.services, self.account
        cloud = services.clouds[account.provider]
        where = (account, services.installation, services.tenant, regions)
        return cloud.tagged_beside(*where, self.ledger, skipped)


def account_listing(services: Services, account: CloudAccount, lines: Iterable[Resource]) -> AccountListing:
    """The listing of an account by its ledger ``lines``. The clusters that are looked into take turns."""
    cloud = services.clouds[account.provider]
    if not cloud.lists_by_ledger:
        return AccountListing(services, account, LedgerThings({}))
    staying = _staying(services)
    owned = [(line, owner) for line in lines if (owner := line.id.partition("/")[0]) in staying]
    owners = {(line.kind, line.vendor_id): owner for line, owner in owned if line.state == "made" and line.vendor_id}
    with_inner = sorted({owner for line, owner in owned if line.kind in cloud.inner_kinds})
    return AccountListing(services, account, LedgerThings(owners, _resting(services, account, with_inner)))


def _staying(services: Services) -> set[str]:
    """Ids of records whose things are not asked for. Those that are on their way out are: their things are about to
    go. Things of claims are listed with their tags anyway."""
    clusters = {c.id for c in every(services.store, Cluster) if c.status not in ("deleting", "undoing")}
    return clusters | {e.id for e in every(services.store, NodeEnvironment) if not e.removing}


def _resting(services: Services, account: CloudAccount, cluster_ids: Sequence[str]) -> frozenset[str]:
    """Clusters that are not looked into this time; the next sweep begins with the first of them."""
    most = max(FEW, -(-len(cluster_ids) // ROUND))
    if len(cluster_ids) <= most:
        return frozenset()
    fact = services.store.get(Fact, f"{LOOKED_INTO}{account.id}")
    last = fact.value if fact is not None else ""
    following = [*(each for each in cluster_ids if each > last), *(each for each in cluster_ids if each <= last)]
    services.store.commit(Put(Fact(f"{LOOKED_INTO}{account.id}", following[most - 1], services.now())))
    return frozenset(following[most:])
