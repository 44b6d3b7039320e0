"""The catalogue's function: which regions it refreshes, and what a failure of one does."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from functions.catalog.handler import lambda_handler
from local.testing.memory_store import MemoryRegistry
from stockyard import errors
from stockyard.adapters.catalog import Ec2PriceList, StoredPriceSheets
from stockyard.domain.nodes.offers import ClusterVersion, InstanceOffer, SpotPrice
from stockyard.domain.records import CloudAccount, Cluster, NodeProvider, PriceRequest
from stockyard.operations.cloud_accounts.offers import Report
from stockyard.operations.node_providers.refresh_catalog import CatalogRefresh
from stockyard.ports import Create
from stockyard.ports.nodes import NodeSource
from stockyard.wiring import passes
from tests.harness.worlds.inprocess import Context
from tests.harness.worlds.memory import FixedClock
from tests.harness.worlds.ports import partial_port

CONTEXT = Context("catalog", "request")
REGIONS = frozenset(["ap-northeast-3", "ap-south-1", "ca-west-1", "eu-west-1", "sa-east-1", "us-east-1"])
TIME = "2026-01-31T12:00:00.000Z"


class Sheets(NodeSource):
    """Stands for the source of nodes whose types come from a region's offers."""

    def sheet(self, provider: NodeProvider) -> str:
        return str(provider.spec[provider.kind].get("region") or "us-east-1")


class AccountOffers:
    """Stands for the refresh of accounts, of which one fails."""

    def run(self) -> Report:
        return Report({"acme/2": 900}, {"globex/2": "CredentialsRevoked: no key"})


class FakeMarket:
    """A market with one type; ``broken`` regions answer with an error, ``silent`` ones with nothing, ``odd`` ones with
    what nobody has thought of."""

    cloud, default_region = "aws", "us-east-1"

    def __init__(self) -> None:
        self.broken: set[str] = set()
        self.silent: set[str] = set()
        self.odd: set[str] = set()
        self.price = 0.1
        self.without_spot: set[str] = set()
        self.spot = 0.04
        self.spot_since = datetime(2026, 1, 1, tzinfo=UTC)
        self.asked: list[str] = []

    def regions(self) -> Collection[str]:
        return (
            "af-south-1",
            "ap-northeast-3",
            "ap-south-1",
            "ca-west-1",
            "eu-north-1",
            "eu-west-1",
            "sa-east-1",
            "us-east-1",
            "us-west-2",
        )

    def offers(self, region: str) -> Mapping[str, InstanceOffer]:
        self.asked.append(region)
        if region in self.odd:
            raise KeyError("VCpuInfo")
        if region in self.broken:
            raise errors.PermissionDenied("the region is not enabled")
        return {} if region in self.silent else {"t3.xlarge": InstanceOffer("t3.xlarge", 4, 16384, "x86_64", 4, 15)}

    def prices(self, region: str) -> Mapping[str, float]:
        return {"t3.xlarge": self.price, "m5.large": 9.9}

    def spot_prices(self, region: str, since: datetime) -> Mapping[str, Mapping[str, SpotPrice]]:
        self.spot_since = since
        if region in self.without_spot:
            raise errors.PermissionDenied("no spot here")
        return {"t3.xlarge": {"use1-az1": SpotPrice(self.spot, self.spot / 2, self.spot * 2)}}

    def rates(self, region: str) -> Mapping[str, float]:
        return {"gp3": 0.088}

    def versions(self, region: str) -> Sequence[ClusterVersion]:
        return [ClusterVersion("1.36", "2026-06-02", "2027-08-02", "2028-08-02")]


def account(id: str, provider: str, region: str | None) -> CloudAccount:
    attributes = {} if region is None else {"region": region}
    return CloudAccount(id, provider, "main", "", attributes, "x", "verified", "", TIME, TIME)


def cluster(region: str) -> Cluster:
    settings = {"region_name": region}
    return Cluster("clu_1", "one", "", "k8s", "aws", 1, "one-0", "ready", settings, TIME, TIME)


def provider(id: str, kind: str, **block: Any) -> NodeProvider:
    return NodeProvider(id, id, kind, {kind: block}, TIME, TIME)


@pytest.fixture
def market() -> FakeMarket:
    return FakeMarket()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(datetime(2026, 1, 31, 12, tzinfo=UTC))


@pytest.fixture
def registry(market: FakeMarket, clock: FixedClock, monkeypatch: pytest.MonkeyPatch) -> MemoryRegistry:
    registry = MemoryRegistry()
    registry.store("acme").commit(Create(account("1", "aws", "eu-west-1")), Create(cluster("ap-south-1")))
    registry.store("globex").commit(Create(account("1", "aws", None)), Create(account("2", "cudo", "somewhere")))
    refresh = CatalogRefresh(
        registry, clock, market, StoredPriceSheets(registry.platform()), {"ec2": partial_port(Sheets)}
    )
    monkeypatch.setattr(passes, "catalog", lambda: refresh)
    monkeypatch.setattr(passes, "account_offers", AccountOffers)
    return registry


def of_offers(answer: Mapping[str, Any]) -> tuple[Any, Any]:
    """Refreshed and failed parts of an answer, spot prices apart."""
    return answer["refreshed"], answer["failed"]


def test_spot_prices_are_refreshed_each_hour(registry: MemoryRegistry, market: FakeMarket, clock: FixedClock) -> None:
    def believed() -> list[SpotPrice | None]:
        prices = Ec2PriceList(registry.platform(), now=clock.now)
        sheets = [prices.spot(region) for region in ("ap-south-1", "us-east-1")]
        return [sheet and sheet.instances["t3.xlarge"]["use1-az1"] for sheet in sheets]

    lambda_handler({}, CONTEXT)
    assert market.spot_since == clock.now() - timedelta(hours=6)
    assert believed() == [SpotPrice(0.04, 0.02, 0.08)] * 2
    market.spot, market.without_spot = 0.1, {"ap-south-1"}
    clock.advance(900)
    assert lambda_handler({}, CONTEXT)["spot"] == {}
    clock.advance(2700)
    answer = lambda_handler({}, CONTEXT)
    assert answer["spot"] == {"eu-west-1": 1, "us-east-1": 1}
    assert answer["spot_failed"] == {"ap-south-1": "PermissionDenied: no spot here"}
    assert believed() == [SpotPrice(0.04, 0.02, 0.08), SpotPrice(0.1, 0.05, 0.2)]
    # What could not be refreshed for a day is not believed any more.
    clock.advance(86400 - 3600 + 1)
    assert believed() == [None, SpotPrice(0.1, 0.05, 0.2)]


def test_every_region_in_use_is_refreshed(registry: MemoryRegistry) -> None:
    everywhere = {"ap-south-1": 1, "eu-west-1": 1, "us-east-1": 1}
    answer = {"refreshed": everywhere, "failed": {}, "spot": everywhere, "spot_failed": {}}
    of_accounts = {"accounts": {"acme/2": 900}, "accounts_failed": {"globex/2": "CredentialsRevoked: no key"}}
    assert lambda_handler({}, CONTEXT) == {**answer, **of_accounts}
    sheet = Ec2PriceList(registry.platform()).region("eu-west-1")
    assert sheet is not None
    assert (sheet.as_of, sheet.rates) == (TIME, {"gp3": 0.088})
    assert [version.version for version in sheet.versions] == ["1.36"]
    assert sheet.instances["t3.xlarge"].usd_hour == 0.1
    assert set(sheet.instances) == {"t3.xlarge"}


def test_a_region_that_fails_keeps_its_sheet_and_hinders_no_other(registry: MemoryRegistry, market: FakeMarket) -> None:
    lambda_handler({}, CONTEXT)
    market.broken, market.silent, market.price = {"ap-south-1"}, {"eu-west-1"}, 0.2
    answer = lambda_handler({"all": True}, CONTEXT)
    assert answer["refreshed"] == {"us-east-1": 1}
    assert answer["failed"] == {
        "ap-south-1": "PermissionDenied: the region is not enabled",
        "eu-west-1": "VendorRefused: 0 offers and 2 prices",
    }
    prices = Ec2PriceList(registry.platform())
    instances = [prices.instance(region, "t3.xlarge") for region in ("ap-south-1", "eu-west-1", "us-east-1")]
    assert [instance and instance["usd_hour"] for instance in instances] == [0.1, 0.1, 0.2]


def test_it_fails_when_nothing_could_be_refreshed(registry: MemoryRegistry, market: FakeMarket) -> None:
    market.broken = {"ap-south-1", "eu-west-1", "us-east-1"}
    with pytest.raises(errors.UnexpectedBehavior, match="No region"):
        lambda_handler({}, CONTEXT)


def test_a_fresh_region_is_left_alone_and_an_old_one_is_refreshed(
    registry: MemoryRegistry, market: FakeMarket, clock: FixedClock
) -> None:
    lambda_handler({}, CONTEXT)
    market.asked.clear()
    clock.advance(900)
    assert of_offers(lambda_handler({}, CONTEXT)) == ({}, {})
    assert of_offers(lambda_handler({"all": "yes"}, CONTEXT)) == ({}, {})
    assert market.asked == []
    clock.advance(86400 - 900 - 60)  # the schedule is not exact to the second
    assert lambda_handler({}, CONTEXT)["refreshed"] == {"ap-south-1": 1, "eu-west-1": 1, "us-east-1": 1}


def test_a_region_that_comes_later_has_its_catalogue_by_the_next_run(
    registry: MemoryRegistry, market: FakeMarket
) -> None:
    lambda_handler({}, CONTEXT)
    tokyo = provider("npr_1", "ec2", cloudAccount=1, region="ap-northeast-3")
    nowhere = provider("npr_2", "ec2", cloudAccount=1)
    registry.store("acme").commit(Create(tokyo), Create(nowhere), Create(provider("npr_3", "simulated", region="x")))
    registry.platform().commit(Create(provider("snp_1", "ec2", region="ca-west-1")))
    assert of_offers(lambda_handler({}, CONTEXT)) == ({"ap-northeast-3": 1, "ca-west-1": 1}, {})
    assert Ec2PriceList(registry.platform()).offered("ap-northeast-3", "t3.xlarge") is True


def test_a_region_that_failed_is_tried_again_by_the_next_run(registry: MemoryRegistry, market: FakeMarket) -> None:
    market.broken, market.odd = {"ap-south-1"}, {"eu-west-1"}
    failed = {"ap-south-1": "PermissionDenied: the region is not enabled", "eu-west-1": "KeyError"}
    assert of_offers(lambda_handler({}, CONTEXT)) == ({"us-east-1": 1}, failed)
    # Nothing but what fails is left to do: still no failure of the run, which would be repeated and raise an alarm.
    assert of_offers(lambda_handler({}, CONTEXT)) == ({}, failed)
    market.broken = set()
    assert of_offers(lambda_handler({}, CONTEXT)) == ({"ap-south-1": 1}, {"eu-west-1": "KeyError"})


def test_regions_without_a_sheet_come_first_then_the_oldest(
    registry: MemoryRegistry, market: FakeMarket, clock: FixedClock
) -> None:
    market.broken = {"ap-south-1", "us-east-1"}
    lambda_handler({}, CONTEXT)
    clock.advance(60)
    market.broken = {"ap-south-1"}
    lambda_handler({}, CONTEXT)
    market.asked.clear()
    clock.advance(90000)
    lambda_handler({}, CONTEXT)
    assert market.asked == ["ap-south-1", "eu-west-1", "us-east-1"]


def test_a_region_that_somebody_names_is_fetched_at_once_and_its_request_ends(
    registry: MemoryRegistry, market: FakeMarket, clock: FixedClock
) -> None:
    platform = registry.platform()
    for region in ("us-west-2", "eu-north-1", "mars-1"):
        platform.commit(Create(PriceRequest(region, TIME)))
    clock.advance(5)
    market.broken = {"eu-north-1"}
    # An event of the bus has a field `region` of its own, which says where the bus is.
    reached = lambda_handler({"prices_of": "us-west-2", "region": "us-east-1"}, CONTEXT)
    assert (reached["refreshed"], reached["spot"], market.asked) == ({"us-west-2": 1}, {"us-west-2": 1}, ["us-west-2"])
    assert reached["accounts"] == {}
    failed = lambda_handler({"prices_of": "eu-north-1"}, CONTEXT)
    assert (failed["failed"], failed["spot_failed"]) == (
        {"eu-north-1": "PermissionDenied: the region is not enabled"},
        {},
    )
    assert lambda_handler({"prices_of": "mars-1"}, CONTEXT)["refreshed"] == {}
    requests = [platform.get(PriceRequest, region) for region in ("us-west-2", "eu-north-1")]
    assert [request and (request.ended_at, request.failure) for request in requests] == [
        ("2026-01-31T12:00:05.000Z", None),
        ("2026-01-31T12:00:05.000Z", "PermissionDenied: the region is not enabled"),
    ]
    prices = Ec2PriceList(platform, now=clock.now)
    assert prices.rate("us-west-2", "gp3") == 0.088
    assert prices.spot("us-west-2") is not None


def test_nobody_holds_up_the_refresh_by_regions_that_do_not_exist(registry: MemoryRegistry, market: FakeMarket) -> None:
    store = registry.store("globex")
    for number in range(10, 50):
        store.commit(Create(account(str(number), "aws", f"aa-aaa-{number}")))
    store.commit(Create(replace(account("50", "aws", "sa-east-1"), verification="unverified")))
    lambda_handler({}, CONTEXT)
    assert sorted(market.asked) == ["ap-south-1", "eu-west-1", "us-east-1"]
