"""Refresh the catalogue of instance types, offers and prices for every region in use, each once a day."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from stockyard import errors
from stockyard.domain import times
from stockyard.domain.offers import InstanceOffer, RegionOffers
from stockyard.domain.records import CloudAccount, Cluster, NodeProvider
from stockyard.ports import Clock, Registry
from stockyard.ports.nodes import Discovers, NodeSource

FRESH = timedelta(days=1) - timedelta(minutes=10)
"""How long a sheet is left as it is. Less than a day, so that the run of the same time tomorrow finds it too old."""


class Market(Protocol):
    """The cloud's own lists. Failures are ``VendorError`` leaves."""

    @property
    def cloud(self) -> str:
        """The cloud, as its accounts have it."""

    @property
    def default_region(self) -> str:
        """The region that is refreshed whoever uses it."""

    def regions(self) -> Collection[str]:
        """Every region that the cloud has."""

    def offers(self, region: str) -> Mapping[str, InstanceOffer]:
        """Every instance type the region offers, without prices."""

    def prices(self, region: str) -> Mapping[str, float]:
        """USD an hour, on demand, Linux, shared tenancy, by instance type."""

    def rates(self, region: str) -> Mapping[str, float]:
        """USD by the names of ``ports.PriceList.rate``; what the cloud does not list is left out."""


class PriceSheets(Protocol):
    """Where the refreshed catalogue is kept."""

    def write(self, offers: RegionOffers) -> None:
        """Keep a region's offers in place of the older ones."""

    def moments(self) -> Mapping[str, str]:
        """When each region that has a sheet was refreshed."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a refresh did: instance types by region, and why other regions kept what they had. Fresh ones are in
    neither."""

    refreshed: Mapping[str, int]
    failed: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CatalogRefresh:
    """The use case, with the ports it needs."""

    registry: Registry
    clock: Clock
    market: Market
    sheets: PriceSheets
    node_sources: Mapping[str, NodeSource]

    def run(self, *, everything: bool = False) -> Report:
        """Refresh each region in use that has no fresh sheet, or all; first those without any, then the oldest.

        A region that fails keeps its older sheet, does not hinder the others and is tried again by the next run.
        Raises ``UnexpectedBehavior`` when it is all of them: one that alone fails for ever is no failure of the run.
        """
        regions = self.regions()
        moments = self.sheets.moments()
        since = times.to_text(self.clock.now() - FRESH)
        due = [region for region in regions if everything or moments.get(region, "") <= since]
        refreshed: dict[str, int] = {}
        failed: dict[str, str] = {}
        for region in sorted(due, key=lambda name: (moments.get(name, ""), name)):
            try:
                refreshed[region] = self._refresh(region)
            except errors.StockyardError as fault:
                failed[region] = f"{fault.error_type}: {fault.detail}"
            except Exception as fault:
                # An answer that nobody has thought of, too, is that region's alone.
                failed[region] = type(fault).__name__
        if len(failed) == len(regions):
            raise errors.UnexpectedBehavior(f"No region could be refreshed: {failed}")
        return Report(refreshed, failed)

    def regions(self) -> list[str]:
        """The default region, and those of the cloud's verified accounts, clusters and node providers. What the cloud
        does not have is left out: nobody can hold up the refresh by regions that he has invented."""
        regions = {self.market.default_region}
        for _, account in self.registry.all(CloudAccount):
            if self._here(account) and account.verification == "verified":
                regions.add(str(account.attributes.get("region") or ""))
        clusters = self.registry.all(Cluster)
        regions.update(str(cluster.settings.get("region_name") or "") for _, cluster in clusters if self._here(cluster))
        for _, provider in self.registry.all(NodeProvider):
            source: object = self.node_sources.get(provider.kind)
            if isinstance(source, Discovers):
                regions.add(source.sheet(provider))
        return sorted(regions.intersection(self.market.regions()))

    def _here(self, record: CloudAccount | Cluster) -> bool:
        return record.provider == self.market.cloud

    def _refresh(self, region: str) -> int:
        offers = self.market.offers(region)
        prices = self.market.prices(region)
        if not offers or not prices:
            # A region without a single offer or price is a failure of the list, not an empty region.
            raise errors.VendorRefused(f"{len(offers)} offers and {len(prices)} prices")
        priced = {name: replace(offer, usd_hour=prices.get(name)) for name, offer in offers.items()}
        as_of = times.to_text(self.clock.now())
        self.sheets.write(RegionOffers(region, as_of, priced, self.market.rates(region)))
        return len(priced)
