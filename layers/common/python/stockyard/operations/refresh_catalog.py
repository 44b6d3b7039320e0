"""Refresh the catalogue of instance types, offers and prices for every region in use, each once a day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from stockyard import errors
from stockyard.domain import times
from stockyard.domain.offers import InstanceOffer, RegionOffers
from stockyard.domain.reach import place_of
from stockyard.domain.records import CloudAccount, Cluster, NodeProvider
from stockyard.ports import Clock, Registry

DEFAULT_REGION = "us-east-1"
FRESH = timedelta(days=1) - timedelta(minutes=10)
"""How long a sheet is left as it is. Less than a day, so that the run of the same time tomorrow finds it too old."""


class Market(Protocol):
    """The cloud's own lists. Failures are ``VendorError`` leaves."""

    def offers(self, region: str) -> Mapping[str, InstanceOffer]:
        """Every instance type the region offers, without prices."""
        ...

    def prices(self, region: str) -> Mapping[str, float]:
        """USD an hour, on demand, Linux, shared tenancy, by instance type."""
        ...

    def rates(self, region: str) -> Mapping[str, float]:
        """USD by the names of ``ports.PriceList.rate``; what the cloud does not list is left out."""
        ...


class PriceSheets(Protocol):
    """Where the refreshed catalogue is kept."""

    def write(self, offers: RegionOffers) -> None:
        """Keep a region's offers in place of the older ones."""
        ...

    def moments(self) -> Mapping[str, str]:
        """When each region that has a sheet was refreshed."""
        ...


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
        for region in sorted(due, key=lambda one: (moments.get(one, ""), one)):
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
        """The default region, and those of all AWS accounts, clusters and node providers."""
        found = {DEFAULT_REGION}
        accounts = self.registry.all(CloudAccount)
        found.update(str(account.attributes.get("region") or "") for _, account in accounts if _aws(account))
        clusters = self.registry.all(Cluster)
        found.update(str(cluster.settings.get("region_name") or "") for _, cluster in clusters if _aws(cluster))
        providers = self.registry.all(NodeProvider)
        found.update(place_of(provider)[0] for _, provider in providers if provider.kind == "ec2")
        return sorted(found - {""})

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


def _aws(record: CloudAccount | Cluster) -> bool:
    return record.provider == "aws"
