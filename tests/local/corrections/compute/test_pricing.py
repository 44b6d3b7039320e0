"""The catalogue's market adapter reads the local cloud's price lists, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto.backends import list_of_moto_modules
from moto.moto_server.threaded_moto_server import ThreadedMotoServer

from local.aws.accounts import OWN_ACCOUNT, REGION
from local.aws.corrections.compute.pricing import listed_prices
from local.aws.corrections.quick.server import quick_server
from local.testing.memory_store import MemoryRegistry
from stockyard.adapters.aws_catalog import AwsMarket
from stockyard.adapters.catalog import Ec2PriceList
from stockyard.domain.nodes.offers import RegionOffers
from tests.harness.worlds.inprocess import credentials

LINUX = {"Type": "TERM_MATCH", "Field": "operatingSystem", "Value": "Linux"}


@pytest.fixture(scope="module")
def pricing() -> Iterator[Any]:
    with ExitStack() as stack:
        stack.enter_context(quick_server())
        stack.enter_context(listed_prices())
        stack.enter_context(credentials(OWN_ACCOUNT))
        server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        server.start()
        stack.callback(server.stop)
        host, port = server.get_host_and_port()
        yield boto3.client("pricing", region_name=REGION, endpoint_url=f"http://{host}:{port}")


@pytest.fixture
def market(pricing: Any) -> AwsMarket:
    return AwsMarket(lambda region: boto3.client("ec2", region_name=region), lambda: pricing, lambda _: None)


@pytest.fixture
def offline() -> RegionOffers:
    region_offers = Ec2PriceList(MemoryRegistry().platform()).region("us-east-1")
    assert region_offers is not None
    return region_offers


def test_moto_has_no_prices() -> None:
    assert "pricing" not in list_of_moto_modules()


def test_every_price_of_the_catalogue_is_listed(market: AwsMarket, offline: RegionOffers) -> None:
    priced = {name: offer.usd_hour for name, offer in offline.instances.items() if offer.usd_hour is not None}
    assert len(priced) > 1_000
    assert market.prices("us-east-1") == priced


def test_every_other_rate_of_a_cluster_is_listed(market: AwsMarket, offline: RegionOffers) -> None:
    assert market.rates("us-east-1") == offline.rates


def test_another_region_has_the_same_prices(market: AwsMarket, offline: RegionOffers) -> None:
    assert market.prices("eu-west-1") == market.prices("us-east-1")
    assert market.rates("eu-west-1") == offline.rates


def test_pages_have_the_requested_size(pricing: Any) -> None:
    first = pricing.get_products(ServiceCode="AmazonEC2", Filters=[LINUX], MaxResults=7)
    second = pricing.get_products(ServiceCode="AmazonEC2", Filters=[LINUX], MaxResults=7, NextToken=first["NextToken"])
    assert (len(first["PriceList"]), len(second["PriceList"])) == (7, 7)
    assert not set(first["PriceList"]) & set(second["PriceList"])


def test_an_unknown_filter_is_refused(pricing: Any) -> None:
    with pytest.raises(ClientError) as refused:
        pricing.get_products(ServiceCode="AmazonEC2", Filters=[{**LINUX, "Type": "CONTAINS"}])
    assert refused.value.response["Error"]["Code"] == "InvalidParameterException"
