"""Refresh the catalogue for every region in use: types, offers and prices once a day, spot prices each hour."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from stockyard import errors
from stockyard.domain.nodes.offers import ClusterVersion, InstanceOffer, RegionOffers, SpotPrice, SpotPrices
from stockyard.domain.records import CloudAccount, Cluster, NodeProvider
from stockyard.domain.values import times
from stockyard.ports import Clock, Registry
from stockyard.ports.nodes import NodeSource

FRESH = timedelta(days=1) - timedelta(minutes=10)
"""How long a sheet is left as it is. Less than a day, so that the run of the same time tomorrow finds it too old."""
SPOT_FRESH = timedelta(hours=1) - timedelta(minutes=5)
"""As ``FRESH``, of spot prices."""
SPOT_WINDOW = timedelta(hours=6)
"""Over how long the least and the most of a spot price are looked for. What is consolidated for its price saves that at
every price of this time, so a price that goes up and down moves nothing."""


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

    def spot_prices(self, region: str, since: datetime) -> Mapping[str, Mapping[str, SpotPrice]]:
        """Spot prices for Linux since that moment, by instance type and id of the zone."""

    def rates(self, region: str) -> Mapping[str, float]:
        """USD by the names of ``ports.PriceList.rate``; what the cloud does not list is left out."""

    def versions(self, region: str) -> Sequence[ClusterVersion]:
        """The versions of the control planes that the cloud runs itself there."""


class PriceSheets(Protocol):
    """Store of the refreshed catalogue."""

    def write(self, offers: RegionOffers) -> None:
        """Keep a region's offers in place of the older ones."""

    def write_spot(self, prices: SpotPrices) -> None:
        """Keep a region's spot prices in place of the older ones."""

    def end_request(self, region: str, ended_at: str, failure: str | None) -> None:
        """Write on the request for a region's prices that it has ended, and why without prices."""

    def moments(self, *, spot: bool = False) -> Mapping[str, str]:
        """Moments when each region that has a sheet, or spot prices, was refreshed."""


@dataclass(frozen=True, slots=True)
class Report:
    """Report of a refresh: instance types by region, and why other regions kept what they had. Fresh ones are in
    neither. ``spot`` are the types that have a spot price, ``spot_failed`` why a region kept its older ones."""

    refreshed: Mapping[str, int]
    failed: Mapping[str, str]
    spot: Mapping[str, int]
    spot_failed: Mapping[str, str]


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
        moments, spot_moments = self.sheets.moments(), self.sheets.moments(spot=True)
        since, spot_since = (times.to_text(self.clock.now() - fresh) for fresh in (FRESH, SPOT_FRESH))
        refreshed, failed = _of_each(_due(regions, moments, "~" if everything else since), self._refresh)
        if len(failed) == len(regions):
            raise errors.UnexpectedBehavior(f"No region could be refreshed: {failed}")
        spot = _of_each(_due(regions, spot_moments, "~" if everything else spot_since), self._refresh_spot)
        return Report(refreshed, failed, *spot)

    def fetch(self, region: str) -> Report:
        """Refresh one region that somebody has named, whoever uses it, and end the request for it. What the cloud does
        not have is left out. A failure is in the report and on the request."""
        known_regions = [region] if region in self.market.regions() else []
        refreshed, failed = _of_each(known_regions, self._refresh)
        spot, spot_failed = _of_each(refreshed, self._refresh_spot)
        self.sheets.end_request(region, times.to_text(self.clock.now()), failed.get(region))
        return Report(refreshed, failed, spot, spot_failed)

    def regions(self) -> list[str]:
        """The default region, and those of the cloud's verified accounts, clusters and node providers. What the cloud
        does not have is left out: nobody can hold up the refresh by regions that he has invented."""
        default, regions = self.market.default_region, set[str]()
        for _, account in self.registry.all(CloudAccount):
            if self._here(account) and account.verification == "verified":
                regions.add(str(account.attributes.get("region") or ""))
        clusters = self.registry.all(Cluster)
        regions.update(str(cluster.settings.get("region_name") or "") for _, cluster in clusters if self._here(cluster))
        for _, provider in self.registry.all(NodeProvider):
            source = self.node_sources.get(provider.kind)
            region = source.sheet(provider) if source is not None else None
            if region is not None:
                regions.add(region)
        regions -= {default, ""}
        # The list of regions takes a while to make, and most stages use none but the default one.
        known_regions = regions.intersection(self.market.regions()) if regions else regions
        return sorted({default, *known_regions})

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
        rates, versions = self.market.rates(region), tuple(self.market.versions(region))
        self.sheets.write(RegionOffers(region, as_of, priced, rates, versions))
        return len(priced)

    def _refresh_spot(self, region: str) -> int:
        now = self.clock.now()
        prices = self.market.spot_prices(region, now - SPOT_WINDOW)
        self.sheets.write_spot(SpotPrices(region, times.to_text(now), prices))
        return len(prices)


def _due(regions: Iterable[str], moments: Mapping[str, str], since: str) -> list[str]:
    """The regions that were not refreshed after that moment; first those without any sheet, then the oldest."""
    due = [region for region in regions if moments.get(region, "") <= since]
    return sorted(due, key=lambda region: (moments.get(region, ""), region))


def _of_each(regions: Iterable[str], refresh: Callable[[str], int]) -> tuple[dict[str, int], dict[str, str]]:
    """Refresh each region, and tell why some failed: one does not hinder the others."""
    done: dict[str, int] = {}
    failed: dict[str, str] = {}
    for region in regions:
        try:
            done[region] = refresh(region)
        except errors.StockyardError as fault:
            failed[region] = f"{fault.error_type}: {fault.detail}"
        except Exception as fault:
            # An answer that nobody has thought of, too, is that region's alone.
            failed[region] = type(fault).__name__
    return done, failed
