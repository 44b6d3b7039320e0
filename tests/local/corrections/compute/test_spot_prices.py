"""The catalogue's market adapter reads spot prices that move, as the local cloud plays them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from moto.moto_server.threaded_moto_server import ThreadedMotoServer

from local.aws.accounts import OWN_ACCOUNT, REGION
from local.aws.corrections.compute.pricing import on_demand_prices
from local.aws.corrections.compute.spot_prices import PERIOD, Played, market_price, moving_spot_prices, spot_price
from local.aws.corrections.quick.server import quick_server
from local.testing.memory_store import MemoryRegistry
from stockyard.adapters.aws_catalog import AwsMarket
from stockyard.adapters.catalog import Ec2PriceList, StoredPriceSheets
from stockyard.domain.nodes.offers import SpotPrices
from tests.harness.worlds.inprocess import credentials


@pytest.fixture(scope="module")
def market() -> Iterator[AwsMarket]:
    with ExitStack() as stack:
        for correction in (quick_server(), moving_spot_prices(), credentials(OWN_ACCOUNT)):
            stack.enter_context(correction)
        server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        server.start()
        stack.callback(server.stop)
        host, port = server.get_host_and_port()
        ec2 = boto3.client("ec2", region_name=REGION, endpoint_url=f"http://{host}:{port}")

        def no_prices() -> None:
            raise AssertionError

        yield AwsMarket(lambda _: ec2, no_prices, no_prices)


def test_prices_of_all_types_and_zones_are_read_with_what_they_were(market: AwsMarket) -> None:
    now = datetime.now(UTC)
    prices = market.spot_prices(REGION, now - PERIOD)
    assert len(prices) > 500
    (zone, price), *more = sorted(prices["m5.large"].items())
    assert zone == "use1-az1"
    assert more
    on_demand = on_demand_prices()["m5.large"]
    expected = [spot_price(on_demand, "m5.large", zone, moment) for moment in (now - PERIOD, now)]
    assert price.now in expected  # a period may have ended since
    assert (price.low, price.high) == (min(expected), max(expected))
    assert 0.2 * on_demand < price.low < price.high < 0.6 * on_demand
    assert len({entry.now for entry in prices["m5.large"].values()}) == len(prices["m5.large"])


def test_pages_of_one_answer_agree_and_types_and_products_choose(market: AwsMarket) -> None:
    ec2: Any = market._ec2(REGION)
    begin = datetime.now(UTC) - PERIOD
    pages = ec2.get_paginator("describe_spot_price_history").paginate(
        StartTime=begin, InstanceTypes=["m5.large"], PaginationConfig={"PageSize": 5}
    )
    points = [point for page in pages for point in page["SpotPriceHistory"]]
    assert len(points) > 5
    assert len({(point["AvailabilityZone"], point["Timestamp"]) for point in points}) == len(points)
    assert {point["InstanceType"] for point in points} == {"m5.large"}
    windows = ec2.describe_spot_price_history(
        StartTime=begin, InstanceTypes=["m5.large"], ProductDescriptions=["Windows"]
    )
    assert windows["SpotPriceHistory"] == []


def test_they_are_stored_and_read_again(market: AwsMarket) -> None:
    prices = market.spot_prices(REGION, datetime.now(UTC) - timedelta(hours=1))
    registry = MemoryRegistry()
    sheet = SpotPrices(REGION, "2026-01-31T12:00:00.000Z", prices)
    StoredPriceSheets(registry.platform()).write_spot(sheet)
    now = datetime(2026, 2, 1, 11, tzinfo=UTC)
    assert Ec2PriceList(registry.platform(), now=lambda: now).spot(REGION) == sheet
    assert Ec2PriceList(registry.platform(), now=lambda: now).spot("eu-west-1") is None
    assert StoredPriceSheets(registry.platform()).moments() == {}
    assert StoredPriceSheets(registry.platform()).moments(spot=True) == {REGION: sheet.as_of}


def test_a_series_is_played_from_the_start_on() -> None:
    with moving_spot_prices({"m5.large/us-east-1a": [(0, 0.03), (60, 0.2)], "c5.large": [(0, 0.01)]}):
        began = Played.began
        prices = [
            market_price("m5.large", "us-east-1a", "use1-az1", began + timedelta(seconds=at)) for at in (-9, 0, 59, 61)
        ]
        assert prices == [0.03, 0.03, 0.03, 0.2]
        assert market_price("c5.large", "us-east-1b", "use1-az2", began) == 0.01
        other = market_price("m5.large", "us-east-1b", "use1-az2", began)
        assert other == spot_price(on_demand_prices()["m5.large"], "m5.large", "use1-az2", began)
    assert market_price("no.such", "us-east-1b", "use1-az2", began) is None
