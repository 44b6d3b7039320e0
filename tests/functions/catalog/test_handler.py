"""The catalogue's function: which regions it refreshes, and what a failure of one does."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from functions.catalog.handler import lambda_handler
from local.memory import FixedClock
from local.memory_store import MemoryRegistry
from stockyard import errors, wiring
from stockyard.adapters.catalog import Ec2PriceList, StoredPriceSheets
from stockyard.domain.offers import InstanceOffer
from stockyard.domain.records import CloudAccount, Cluster
from stockyard.operations.refresh_catalog import CatalogRefresh
from stockyard.ports import Create

TIME = "2026-01-31T12:00:00.000Z"


class FakeMarket:
    """A market with one type; ``broken`` regions answer with an error, ``silent`` ones with nothing."""

    def __init__(self) -> None:
        self.broken: set[str] = set()
        self.silent: set[str] = set()
        self.price = 0.1

    def offers(self, region: str) -> Mapping[str, InstanceOffer]:
        if region in self.broken:
            raise errors.PermissionDenied("the region is not enabled")
        return {} if region in self.silent else {"t3.xlarge": InstanceOffer("t3.xlarge", 4, 16384, "x86_64", 4, 15)}

    def prices(self, region: str) -> Mapping[str, float]:
        return {"t3.xlarge": self.price, "m5.large": 9.9}

    def rates(self, region: str) -> Mapping[str, float]:
        return {"gp3": 0.088}


def account(id: str, provider: str, region: str | None) -> CloudAccount:
    attributes = {} if region is None else {"region": region}
    return CloudAccount(id, provider, "main", "", attributes, "x", "verified", "", TIME, TIME)


def cluster(region: str) -> Cluster:
    settings = {"region_name": region}
    return Cluster("clu_1", "one", "", "k8s", "aws", 1, "one-0", "ready", settings, TIME, TIME)


@pytest.fixture
def market() -> FakeMarket:
    return FakeMarket()


@pytest.fixture
def registry(market: FakeMarket, monkeypatch: pytest.MonkeyPatch) -> MemoryRegistry:
    registry = MemoryRegistry()
    registry.store("acme").commit(Create(account("1", "aws", "eu-west-1")), Create(cluster("ap-south-1")))
    registry.store("globex").commit(Create(account("1", "aws", None)), Create(account("2", "cudo", "somewhere")))
    clock = FixedClock(datetime(2026, 1, 31, 12, tzinfo=UTC))
    refresh = CatalogRefresh(registry, clock, market, StoredPriceSheets(registry.platform()))
    monkeypatch.setattr(wiring, "catalog", lambda: refresh)
    return registry


def test_every_region_in_use_is_refreshed(registry: MemoryRegistry) -> None:
    assert lambda_handler({}, None) == {"refreshed": {"ap-south-1": 1, "eu-west-1": 1, "us-east-1": 1}, "failed": {}}
    known = Ec2PriceList(registry.platform()).region("eu-west-1")
    assert known is not None
    assert (known.as_of, known.rates) == (TIME, {"gp3": 0.088})
    assert known.instances["t3.xlarge"].usd_hour == 0.1
    assert set(known.instances) == {"t3.xlarge"}


def test_a_region_that_fails_keeps_its_sheet_and_hinders_no_other(registry: MemoryRegistry, market: FakeMarket) -> None:
    lambda_handler({}, None)
    market.broken, market.silent, market.price = {"ap-south-1"}, {"eu-west-1"}, 0.2
    answer = lambda_handler({}, None)
    assert answer["refreshed"] == {"us-east-1": 1}
    assert answer["failed"] == {
        "ap-south-1": "PermissionDenied: the region is not enabled",
        "eu-west-1": "VendorRefused: 0 offers and 2 prices",
    }
    prices = Ec2PriceList(registry.platform())
    found = [prices.instance(region, "t3.xlarge") for region in ("ap-south-1", "eu-west-1", "us-east-1")]
    assert [known and known["usd_hour"] for known in found] == [0.1, 0.1, 0.2]


def test_it_fails_when_nothing_could_be_refreshed(registry: MemoryRegistry, market: FakeMarket) -> None:
    market.broken = {"ap-south-1", "eu-west-1", "us-east-1"}
    with pytest.raises(errors.UnexpectedBehavior, match="No region"):
        lambda_handler({}, None)
