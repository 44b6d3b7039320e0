"""A Pricing API, which moto does not have. It answers with the offline catalogue: what things cost in its region, they
cost here in every one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, cast
from unittest.mock import patch

from moto.moto_server.werkzeug_app import DomainDispatcherApplication

from stockyard.adapters.catalog import OFFLINE_REGION, Ec2PriceList
from stockyard.domain.nodes.offers import RegionOffers
from stockyard.ports import Store


class _NothingStored:
    """The platform's store before any refresh, so that only the offline catalogue answers."""

    def get(self, *_: Any) -> None:
        """No price sheet."""


TARGET = "AWSPriceListService.GetProducts"
JSON = "application/x-amz-json-1.1"
PAGE = 100
"""The largest page, in products, as in AWS."""
RATES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "nat_gateway": ("AmazonEC2", {"productFamily": "NAT Gateway", "usagetype": "NatGateway-Hours"}),
    "nat_gateway_gb": ("AmazonEC2", {"productFamily": "NAT Gateway", "usagetype": "NatGateway-Bytes"}),
    "network_load_balancer": (
        "AWSELB",
        {
            "productFamily": "Load Balancer-Network",
            "operation": "LoadBalancing:Network",
            "usagetype": "LoadBalancerUsage",
        },
    ),
    "public_ipv4": ("AmazonVPC", {"group": "VPCPublicIPv4Address", "usagetype": "PublicIPv4:InUseAddress"}),
    "gp3": ("AmazonEC2", {"productFamily": "Storage", "volumeApiName": "gp3", "usagetype": "EBS:VolumeUsage.gp3"}),
    "ebs_snapshot": ("AmazonEC2", {"productFamily": "Storage Snapshot", "usagetype": "EBS:SnapshotUsage"}),
    "eks": ("AmazonEKS", {"operation": "CreateOperation", "usagetype": "USE1-AmazonEKS-Hours:perCluster"}),
    "eks_extended": (
        "AmazonEKS",
        {"operation": "ExtendedSupport", "usagetype": "USE1-AmazonEKS-Hours:extendedSupport"},
    ),
    "efs": (
        "AmazonEFS",
        {"productFamily": "Storage", "storageClass": "General Purpose", "usagetype": "USE1-TimedStorage-ByteHrs"},
    ),
    "object_storage": (
        "AmazonS3",
        {
            "productFamily": "Storage",
            "storageClass": "General Purpose",
            "volumeType": "Standard",
            "usagetype": "TimedStorage-ByteHrs",
        },
    ),
}
"""The catalogue's name of a rate besides instances -> its service and attributes."""
INSTANCE = {
    "productFamily": "Compute Instance",
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
    "operation": "RunInstances",
}


@contextmanager
def listed_prices() -> Iterator[None]:
    """Inside this context moto's server answers ``pricing:GetProducts``."""
    original = DomainDispatcherApplication.__call__

    def call(self: Any, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ.get("HTTP_X_AMZ_TARGET") != TARGET:
            answer: Iterable[bytes] = original(self, environ, start_response)
            return answer
        size = int(environ.get("CONTENT_LENGTH") or 0)
        status, body = _answer(json.loads(environ["wsgi.input"].read(size)))
        start_response(status, [("Content-Type", JSON)])
        return [json.dumps(body).encode()]

    with patch.object(DomainDispatcherApplication, "__call__", call):
        yield


@cache
def on_demand_prices() -> Mapping[str, float]:
    """USD an hour by instance type, in the region of the offline catalogue."""
    offers = _offline().instances.values()
    return {offer.name: offer.usd_hour for offer in offers if offer.usd_hour is not None}


def _answer(parameters: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    filters = [
        (price_filter["Field"], price_filter["Value"])
        for price_filter in parameters.get("Filters", ())
        if price_filter["Type"] == "TERM_MATCH"
    ]
    if len(filters) < len(parameters.get("Filters", ())):
        message = "Only filters of the type TERM_MATCH are known here."
        return "400 Bad Request", {"__type": "InvalidParameterException", "message": message}
    fitting = [
        text
        for service, attributes, text in _products(dict(filters).get("regionCode", OFFLINE_REGION))
        if service == parameters["ServiceCode"] and all(attributes.get(name) == value for name, value in filters)
    ]
    first = int(parameters.get("NextToken") or 0)
    after = first + min(int(parameters.get("MaxResults") or PAGE), PAGE)
    body: dict[str, Any] = {"FormatVersion": "aws_v1", "PriceList": fitting[first:after]}
    if after < len(fitting):
        body["NextToken"] = str(after)
    return "200 OK", body


@cache
def _offline() -> RegionOffers:
    sheet = Ec2PriceList(cast(Store, _NothingStored())).region(OFFLINE_REGION)
    if sheet is None:
        raise LookupError(OFFLINE_REGION)
    return sheet


@cache
def _products(region: str) -> tuple[tuple[str, Mapping[str, str], str], ...]:
    """(service, attributes for filters, document) of every product in a region."""
    sheet = _offline()
    products = [
        _product(
            region, "AmazonEC2", {**INSTANCE, "instanceType": name, "usagetype": f"BoxUsage:{name}"}, offer.usd_hour
        )
        for name, offer in sheet.instances.items()
        if offer.usd_hour is not None
    ]
    products.extend(_product(region, *RATES[name], usd) for name, usd in sheet.rates.items())
    return tuple(products)


def _product(region: str, service: str, fields: Mapping[str, str], usd: float) -> tuple[str, Mapping[str, str], str]:
    named = {**fields, "regionCode": region}
    attributes = {name: value for name, value in named.items() if name != "productFamily"}
    price = {"beginRange": "0", "endRange": "Inf", "pricePerUnit": {"USD": f"{usd:.10f}"}}
    document = {
        "product": {"productFamily": named.get("productFamily", ""), "attributes": attributes},
        "serviceCode": service,
        "terms": {"OnDemand": {"offer": {"priceDimensions": {"rate": price}}}},
    }
    return service, named, json.dumps(document)
