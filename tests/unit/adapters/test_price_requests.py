"""Prices of a region are fetched once somebody names it, however many do, and waited for a while."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from local.testing.memory_store import MemoryRegistry
from stockyard.adapters.catalog import Ec2PriceList, StoredPriceSheets
from stockyard.adapters.price_requests import BATCH_SECONDS, MOST_SECONDS, PAUSE, StoredPriceRequests
from stockyard.domain.nodes.offers import InstanceOffer, RegionOffers, SpotPrices
from stockyard.domain.values import times
from stockyard.errors import PermissionDenied
from stockyard.ports import Store
from tests.harness.worlds.memory import FixedClock

REGIONS = ("eu-west-1", "us-east-1", "us-west-2")
DAY = 86400


@dataclass
class Yard:
    """A function that fetches within ``takes`` seconds of waiting. ``invoked`` are the regions that it was told."""

    store: Store = field(default_factory=lambda: MemoryRegistry().platform())
    clock: FixedClock = field(default_factory=lambda: FixedClock(datetime(2026, 1, 31, 12, tzinfo=UTC)))
    takes: float = 3.0
    failure: str | None = None
    refuses: bool = False
    seconds: float = 0.0
    invoked: list[str] = field(default_factory=list)
    pending: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.prices = Ec2PriceList(self.store, lambda: self.seconds, self.clock.now)
        self.requests = self.process()

    def process(self) -> StoredPriceRequests:
        """Another process of our functions."""
        return StoredPriceRequests(
            self.store, self.prices, self.invoke, lambda: REGIONS, self.clock.now, lambda: self.seconds, self.pause
        )

    def invoke(self, event: Mapping[str, Any]) -> None:
        if self.refuses:
            raise PermissionDenied("not allowed")
        self.invoked.append(event["prices_of"])
        self.pending[event["prices_of"]] = self.seconds + self.takes

    def pause(self, seconds: float) -> None:
        self.pass_time(seconds)

    def pass_time(self, seconds: float) -> None:
        self.seconds += seconds
        self.clock.advance(seconds)
        for region in [region for region, end in self.pending.items() if end <= self.seconds]:
            del self.pending[region]
            self.fetched(region)

    def fetched(self, region: str) -> None:
        sheets, now = StoredPriceSheets(self.store), times.to_text(self.clock.now())
        if self.failure is None:
            offer = InstanceOffer("t3.large", 2, 8192, "x86_64", 3, 12, 0.0832)
            sheets.write(RegionOffers(region, now, {"t3.large": offer}, {"gp3": 0.08}))
            sheets.write_spot(SpotPrices(region, now, {}))
        sheets.end_request(region, now, self.failure)


@pytest.fixture
def yard() -> Yard:
    return Yard()


def test_whoever_names_a_region_first_waits_until_its_prices_are_there(yard: Yard) -> None:
    assert yard.prices.rate("us-west-2", "gp3") is None
    yard.requests.wait("us-west-2")
    assert (yard.prices.rate("us-west-2", "gp3"), yard.seconds) == (0.08, yard.takes)
    yard.requests.wait("us-west-2")
    assert (yard.invoked, yard.seconds) == (["us-west-2"], yard.takes)


def test_what_is_known_offline_or_is_no_region_is_not_fetched(yard: Yard) -> None:
    for region in ("us-east-1", "mars-1", ""):
        yard.requests.wait(region)
    assert (yard.invoked, yard.seconds) == ([], 0)


def test_a_wait_ends_and_the_plan_says_that_prices_are_being_fetched(yard: Yard) -> None:
    yard.takes = 60
    assert yard.prices.why_unknown("us-west-2") == "Prices of us-west-2 are not known yet."
    yard.requests.wait("us-west-2")
    assert MOST_SECONDS <= yard.seconds < MOST_SECONDS + PAUSE
    assert "are being fetched, which takes about a minute" in yard.prices.why_unknown("us-west-2")
    # Another process neither fetches them again nor waits longer.
    yard.process().request("us-west-2")
    assert yard.invoked == ["us-west-2"]
    yard.pass_time(60)
    assert yard.prices.rate("us-west-2", "gp3") == 0.08


def test_one_request_waits_for_all_its_regions_together(yard: Yard) -> None:
    yard.takes = 60
    for region in ("us-west-2", "eu-west-1"):
        yard.requests.wait(region)
    assert yard.invoked == ["us-west-2", "eu-west-1"]
    assert yard.seconds < MOST_SECONDS + PAUSE
    yard.pass_time(BATCH_SECONDS)
    before = yard.seconds
    yard.requests.wait("eu-west-1")
    assert MOST_SECONDS <= yard.seconds - before < MOST_SECONDS + PAUSE


def test_why_prices_could_not_be_fetched_is_said_and_they_are_tried_again_later(yard: Yard) -> None:
    yard.failure = "PermissionDenied: the region is not enabled"
    yard.requests.wait("us-west-2")
    assert yard.seconds == yard.takes
    assert yard.failure in yard.prices.why_unknown("us-west-2")
    yard.requests.wait("us-west-2")
    assert (yard.invoked, yard.seconds) == (["us-west-2"], yard.takes)
    yard.failure = None
    yard.pass_time(300)
    yard.requests.wait("us-west-2")
    assert yard.prices.rate("us-west-2", "gp3") == 0.08


def test_a_function_that_cannot_be_invoked_is_not_waited_for(yard: Yard) -> None:
    yard.refuses = True
    yard.requests.wait("us-west-2")
    assert yard.seconds == 0
    assert "PermissionDenied" in yard.prices.why_unknown("us-west-2")


def test_prices_that_nobody_has_refreshed_for_a_day_are_fetched_anew(yard: Yard) -> None:
    yard.requests.wait("us-west-2")
    yard.pass_time(DAY - 60)
    yard.requests.wait("us-west-2")
    assert yard.invoked == ["us-west-2"]
    yard.pass_time(120)
    yard.requests.wait("us-west-2")  # spot prices count for a day
    assert yard.invoked == ["us-west-2"] * 2
