"""Offers of EC2 and EKS in a region and their prices, from the EC2, EKS and Pricing APIs of Stockyard's own account."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from stockyard.adapters import own_account
from stockyard.adapters.aws_errors import translated
from stockyard.domain.nodes.offers import Accelerator, ClusterVersion, Gpus, InstanceOffer, InstanceTraits, SpotPrice

if TYPE_CHECKING:
    import boto3
    from botocore.config import Config
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_pricing import PricingClient

PRICING_REGION = "us-east-1"
"""The Pricing API answers for all regions, but only from a few."""

_RATES: tuple[tuple[str, str, dict[str, str], str], ...] = (
    ("nat_gateway", "AmazonEC2", {"productFamily": "NAT Gateway"}, "NatGateway-Hours"),
    ("nat_gateway_gb", "AmazonEC2", {"productFamily": "NAT Gateway"}, "NatGateway-Bytes"),
    (
        "network_load_balancer",
        "AWSELB",
        {"productFamily": "Load Balancer-Network", "operation": "LoadBalancing:Network"},
        "LoadBalancerUsage",
    ),
    ("public_ipv4", "AmazonVPC", {"group": "VPCPublicIPv4Address"}, "PublicIPv4:InUseAddress"),
    ("gp3", "AmazonEC2", {"productFamily": "Storage", "volumeApiName": "gp3"}, "EBS:VolumeUsage.gp3"),
    ("ebs_snapshot", "AmazonEC2", {"productFamily": "Storage Snapshot"}, "EBS:SnapshotUsage"),
    ("eks", "AmazonEKS", {"operation": "CreateOperation"}, "AmazonEKS-Hours:perCluster"),
    ("eks_extended", "AmazonEKS", {"operation": "ExtendedSupport"}, "AmazonEKS-Hours:extendedSupport"),
    ("efs", "AmazonEFS", {"productFamily": "Storage", "storageClass": "General Purpose"}, "TimedStorage-ByteHrs"),
    (
        "object_storage",
        "AmazonS3",
        {"productFamily": "Storage", "storageClass": "General Purpose", "volumeType": "Standard"},
        "TimedStorage-ByteHrs",
    ),
)
"""Name of the rate, service, attributes, and the usage type behind its region prefix (``EUC1-``; none in us-east-1)."""

_ON_DEMAND = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
}


_SPOT_PRODUCTS: list[Any] = ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"]
"""EC2's names of Linux; the second is what old accounts have."""


def connected() -> AwsMarket:
    """The market by real clients: short time-outs, botocore's standard retries."""
    return AwsMarket(
        lambda region: _session().client("ec2", region_name=region, config=_config()),
        cache(lambda: _plain_client("pricing", PRICING_REGION)),
        lambda region: _plain_client("eks", region),
    )


def _config() -> Config:
    from botocore.config import Config

    return Config(retries={"mode": "standard", "total_max_attempts": 5}, connect_timeout=3, read_timeout=30)


def _plain_client(service: str, region: str) -> Any:
    import boto3

    make: Callable[..., Any] = boto3.client
    return make(service, region_name=region, config=_config())


def _session() -> boto3.Session:
    """A session whose clients read moments of time without the guesses of botocore's own parser: a region has ten
    thousand spot prices, and to read their moments took most of the time."""
    import boto3
    from botocore.parsers import ResponseParserFactory
    from botocore.session import get_session

    parsers, session = ResponseParserFactory(), get_session()
    parsers.set_parser_defaults(timestamp_parser=moment)
    session.register_component("response_parser_factory", parsers)
    return boto3.Session(botocore_session=session)


def moment(value: Any) -> datetime:
    """A moment of an answer: in ISO 8601 as a rule, else in one of the other forms that botocore knows."""
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        from botocore.utils import parse_timestamp

        return parse_timestamp(value)


class AwsMarket:
    """Implements ``Market`` of ``operations.node_providers.refresh_catalog``.

    ``ec2`` and ``eks`` make the client of a region.
    """

    cloud, default_region = "aws", PRICING_REGION

    def __init__(
        self, ec2: Callable[[str], EC2Client], pricing: Callable[[], PricingClient], eks: Callable[[str], Any]
    ) -> None:
        self._ec2 = ec2
        self._pricing = pricing
        self._eks = eks

    def regions(self) -> Collection[str]:
        """The regions of all partitions."""
        return own_account.regions()

    def offers(self, region: str) -> Mapping[str, InstanceOffer]:
        """The types the region offers, with their sizes."""
        with translated():
            client = self._ec2(region)
            pages = client.get_paginator("describe_instance_type_offerings").paginate(LocationType="region")
            offered = {str(offer["InstanceType"]) for page in pages for offer in page["InstanceTypeOfferings"]}
            described: Iterator[Any] = (
                kind
                for page in client.get_paginator("describe_instance_types").paginate()
                for kind in page["InstanceTypes"]
            )
            return {kind["InstanceType"]: _offer(kind) for kind in described if kind["InstanceType"] in offered}

    def prices(self, region: str) -> Mapping[str, float]:
        """On-demand prices for Linux by instance type."""
        prices: dict[str, float] = {}
        for product in self._products("AmazonEC2", {"regionCode": region, **_ON_DEMAND}):
            name, price = product["product"]["attributes"].get("instanceType"), _usd(product)
            # A price of 0 belongs to reservations that are already paid for.
            if name and price:
                prices[name] = price
        return prices

    def rates(self, region: str) -> Mapping[str, float]:
        """The rates of everything else that a cluster pays for."""
        rates: dict[str, float] = {}
        for rate, service, attributes, usage in _RATES:
            pattern = re.compile(rf"([A-Z0-9]+-)?{re.escape(usage)}")
            for product in self._products(service, {"regionCode": region, **attributes}):
                price = _usd(product)
                if price and pattern.fullmatch(product["product"]["attributes"].get("usagetype", "")):
                    rates[rate] = price
        return rates

    def versions(self, region: str) -> Sequence[ClusterVersion]:
        """The versions that EKS supports now, the newest first."""
        versions: list[ClusterVersion] = []
        parameters: dict[str, Any] = {}
        with translated():
            client = self._eks(region)
            while True:
                page = client.describe_cluster_versions(**parameters)
                versions += map(_version, page["clusterVersions"])
                if not page.get("nextToken"):
                    break
                parameters["nextToken"] = page["nextToken"]
        return sorted(versions, key=lambda version: version.released, reverse=True)

    def spot_prices(self, region: str, since: datetime) -> Mapping[str, Mapping[str, SpotPrice]]:
        """Spot prices for Linux by instance type and id of the zone. EC2 tells what held at ``since``, and each change
        from then on."""
        points: defaultdict[tuple[str, str], list[tuple[datetime, float]]] = defaultdict(list)
        with translated():
            client = self._ec2(region)
            zones = client.describe_availability_zones()["AvailabilityZones"]
            ids = {zone["ZoneName"]: zone["ZoneId"] for zone in zones}
            pages = client.get_paginator("describe_spot_price_history").paginate(
                StartTime=since, ProductDescriptions=_SPOT_PRODUCTS
            )
            for page in pages:
                for point in page["SpotPriceHistory"]:
                    zone = ids.get(point["AvailabilityZone"])
                    price = float(point["SpotPrice"])
                    if zone is not None and price > 0:
                        points[point["InstanceType"], zone].append((point["Timestamp"], price))
        prices: defaultdict[str, dict[str, SpotPrice]] = defaultdict(dict)
        for (name, zone), history in points.items():
            every = [price for _, price in history]
            prices[name][zone] = SpotPrice(max(history)[1], min(every), max(every))
        return prices

    def _products(self, service: str, attributes: Mapping[str, str]) -> Iterator[Any]:
        filters: Any = [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in attributes.items()]
        with translated():
            pages = (
                self._pricing()
                .get_paginator("get_products")
                .paginate(ServiceCode=service, Filters=filters, FormatVersion="aws_v1")
            )
            for page in pages:
                for text in page["PriceList"]:
                    yield json.loads(text)


def _offer(kind: Mapping[str, Any]) -> InstanceOffer:
    architectures = kind.get("ProcessorInfo", {}).get("SupportedArchitectures", [])
    network = kind.get("NetworkInfo", {})
    gpus = kind.get("GpuInfo", {}).get("Gpus", [])
    return InstanceOffer(
        name=kind["InstanceType"],
        vcpu=kind["VCpuInfo"]["DefaultVCpus"],
        memory_mib=kind["MemoryInfo"]["SizeInMiB"],
        architecture="x86_64" if "x86_64" in architectures or not architectures else architectures[0],
        interfaces=_first_card(network),
        addresses=network.get("Ipv4AddressesPerInterface", 0),
        gpus=tuple(_gpus(gpu) for gpu in gpus),
        current_generation=kind.get("CurrentGeneration", True),
        bare_metal=kind.get("BareMetal", False),
        fabric_interfaces=_efa_interfaces(network),
        traits=traits_of(kind),
    )


def traits_of(kind: Mapping[str, Any]) -> InstanceTraits:
    """Traits of a type in ``DescribeInstanceTypes`` beside its size, as Karpenter's labels want them."""
    processor, network = kind.get("ProcessorInfo", {}), kind.get("NetworkInfo", {})
    volumes, disks = kind.get("EbsInfo", {}), kind.get("InstanceStorageInfo", {})
    clock = processor.get("SustainedClockSpeedInGhz")
    optimized = volumes.get("EbsOptimizedInfo", {}) if volumes.get("EbsOptimizedSupport") == "default" else {}
    return InstanceTraits(
        hypervisor=kind.get("Hypervisor"),
        processor_manufacturer=processor.get("Manufacturer"),
        clock_mhz=None if clock is None else round(clock * 1000),
        volume_mbps=optimized.get("MaximumBandwidthInMbps"),
        network_mbps=_network_mbps(network),
        local_gb=disks.get("TotalSizeInGB") if disks.get("NvmeSupport", "unsupported") != "unsupported" else None,
        encrypts_in_transit=network.get("EncryptionInTransitSupported"),
        accelerator=_accelerator(kind),
    )


def _network_mbps(network: Mapping[str, Any]) -> int | None:
    """The baselines of all cards; several cards of some types share what the type has as a whole."""
    cards = sum(card.get("BaselineBandwidthInGbps", 0) for card in network.get("NetworkCards", ()))
    whole = _WHOLE_GIGABITS.fullmatch(network.get("NetworkPerformance") or "")
    gigabits = min(cards, float(whole[1])) if whole else cards
    return round(gigabits * 1000) or None


_WHOLE_GIGABITS = re.compile(r"([0-9.]+) Gigabit")
_NEURON_MANUFACTURER = "AWS"
"""Whose Neuron devices are; EC2 does not say it of each type."""


def _accelerator(kind: Mapping[str, Any]) -> Accelerator | None:
    devices = kind.get("NeuronInfo", {}).get("NeuronDevices", ())
    if devices:
        device = devices[0]
        cores = device.get("CoreInfo", {}).get("Count", 0)
        return Accelerator(device.get("Name", ""), _NEURON_MANUFACTURER, device.get("Count", 0), cores)
    inference_devices = kind.get("InferenceAcceleratorInfo", {}).get("Accelerators", ())
    if not inference_devices:
        return None
    return Accelerator(
        inference_devices[0].get("Name", ""),
        inference_devices[0].get("Manufacturer", ""),
        inference_devices[0].get("Count", 0),
    )


def _efa_interfaces(network: Mapping[str, Any]) -> int:
    return int(network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 1)) if network.get("EfaSupported") else 0


def _version(row: Mapping[str, Any]) -> ClusterVersion:
    """AWS tells days as moments: the first ones of these days in UTC."""
    names = ("releaseDate", "endOfStandardSupportDate", "endOfExtendedSupportDate")
    days = (row[name].astimezone(UTC).date().isoformat() for name in names)
    return ClusterVersion(row["clusterVersion"], *days)


def _first_card(network: Mapping[str, Any]) -> int:
    """Interfaces of the card that pods use; ``MaximumNetworkInterfaces`` of the type counts all cards."""
    cards, default = network.get("NetworkCards", []), network.get("DefaultNetworkCardIndex", 0)
    card = next((card for card in cards if card.get("NetworkCardIndex") == default), network)
    return int(card.get("MaximumNetworkInterfaces", 0))


def _gpus(gpu: Mapping[str, Any]) -> Gpus:
    memory = gpu.get("MemoryInfo", {}).get("SizeInMiB", 0)
    return Gpus(gpu.get("Name", ""), gpu.get("Manufacturer", ""), gpu.get("Count", 0), memory)


def _usd(product: Mapping[str, Any]) -> float | None:
    """The on-demand price of a product that starts at quantity 0; None when it is not sold in USD."""
    for term in product.get("terms", {}).get("OnDemand", {}).values():
        for dimension in term.get("priceDimensions", {}).values():
            text = dimension.get("pricePerUnit", {}).get("USD")
            if text is not None and dimension.get("beginRange", "0") in ("0", ""):
                return float(text)
    return None
