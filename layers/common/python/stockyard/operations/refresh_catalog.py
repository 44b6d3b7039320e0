"""Refresh the catalogue of instance types, offers and prices for every region in use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from stockyard import errors
from stockyard.domain import times
from stockyard.domain.offers import InstanceOffer, RegionOffers
from stockyard.domain.records import CloudAccount, Cluster
from stockyard.ports import Clock, Registry

DEFAULT_REGION = "us-east-1"


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


@dataclass(frozen=True, slots=True)
class Report:
    """What a refresh did: instance types by region, and why other regions kept what they had."""

    refreshed: Mapping[str, int]
    failed: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CatalogRefresh:
    """The use case, with the ports it needs."""

    registry: Registry
    clock: Clock
    market: Market
    sheets: PriceSheets

    def run(self) -> Report:
        """Refresh each region in use. A region that fails keeps its older sheet and does not hinder the others.

        Raises ``UnexpectedBehavior`` when not one could be refreshed.
        """
        refreshed: dict[str, int] = {}
        failed: dict[str, str] = {}
        for region in self.regions():
            try:
                refreshed[region] = self._refresh(region)
            except errors.VendorError as fault:
                failed[region] = f"{fault.error_type}: {fault.detail}"
        if not refreshed:
            raise errors.UnexpectedBehavior(f"No region could be refreshed: {failed}")
        return Report(refreshed, failed)

    def regions(self) -> list[str]:
        """The default region, and those of all AWS accounts and clusters."""
        found = {DEFAULT_REGION}
        accounts = self.registry.all(CloudAccount)
        found.update(str(account.attributes.get("region") or "") for _, account in accounts if _aws(account))
        clusters = self.registry.all(Cluster)
        found.update(str(cluster.settings.get("region_name") or "") for _, cluster in clusters if _aws(cluster))
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
