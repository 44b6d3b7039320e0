"""The vendor's lists, of which the catalogue is made: prices, types and versions."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from botocore.utils import parse_timestamp

from stockyard import errors
from stockyard.adapters.aws_catalog import AwsMarket, connected, moment
from stockyard.domain.nodes.offers import Accelerator, ClusterVersion, Gpus, InstanceOffer, InstanceTraits


def product(price: str, usage: str = "", name: str = "", currency: str = "USD", begin: str = "0") -> str:
    attributes = {"usagetype": usage} | ({"instanceType": name} if name else {})
    dimension = {"beginRange": begin, "pricePerUnit": {currency: price}}
    terms = {"OnDemand": {"x": {"priceDimensions": {"y": dimension}}}}
    return json.dumps({"product": {"attributes": attributes}, "terms": terms})


def _unasked(*_: Any) -> Any:
    raise AssertionError("only EKS is asked")


def market(ec2: Any, pricing: Any) -> AwsMarket:
    """A market that never asks EKS."""
    return AwsMarket(lambda _: ec2, lambda: pricing, lambda _: None)


@pytest.fixture
def pricing() -> Any:
    return boto3.client("pricing", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")


@pytest.fixture
def ec2() -> Any:
    return boto3.client("ec2", region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="x")


def test_prices_are_read_page_by_page(pricing: Any, ec2: Any) -> None:
    def expected_parameters(**more: str) -> dict[str, Any]:
        fields = {
            "regionCode": "eu-west-1",
            "operatingSystem": "Linux",
            "tenancy": "Shared",
            "preInstalledSw": "NA",
            "capacitystatus": "Used",
            "marketoption": "OnDemand",
        }
        filters = [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in fields.items()]
        return {"ServiceCode": "AmazonEC2", "Filters": filters, "FormatVersion": "aws_v1", **more}

    first = [product("0.1824000000", name="t3.xlarge"), product("0.0000000000", name="m5.large")]
    second = [product("0.1070000000", name="m5.large"), product("1.0", name="c5.large", currency="CNY")]
    with Stubber(pricing) as stub:
        stub.add_response("get_products", {"PriceList": first, "NextToken": "n"}, expected_parameters())
        stub.add_response("get_products", {"PriceList": second}, expected_parameters(NextToken="n"))
        prices_read = market(ec2, pricing).prices("eu-west-1")
        stub.assert_no_pending_responses()
    assert prices_read == {"t3.xlarge": 0.1824, "m5.large": 0.107}


def test_rates_are_told_apart_by_their_usage_type(pricing: Any, ec2: Any) -> None:
    nat = [
        product("0.048", "EU-NatGateway-Hours"),
        product("0.047", "EU-NatGateway-Bytes"),
        product("0.5", "EU-NatGateway-Prvd-Bytes"),
    ]
    balancer = [product("0.02646", "EU-LoadBalancerUsage"), product("0.006", "EU-LCUUsage")]
    snapshots = [product("0.05", "EU-EBS:SnapshotUsage"), product("0.0125", "EU-EBS:SnapshotArchiveStorage")]
    answers = [nat, nat, balancer, [product("0.005", "EU-PublicIPv4:InUseAddress")], [], snapshots]
    plane = [product("0.1", "EU-AmazonEKS-Hours:perCluster"), product("0.2", "EU-AmazonEKS-Hours:other")]
    files = [product("0.33", "EU-TimedStorage-ByteHrs"), product("0.01", "EU-IATimedStorage-ByteHrs")]
    objects = [product("0.024", "EU-TimedStorage-ByteHrs"), product("0.01", "EU-TimedStorage-SIA-ByteHrs")]
    answers += [plane, [product("0.5", "EU-AmazonEKS-Hours:extendedSupport")], files, objects]
    with Stubber(pricing) as stub:
        for answer in answers:
            stub.add_response("get_products", {"PriceList": answer})
        rates = market(ec2, pricing).rates("eu-west-1")
        stub.assert_no_pending_responses()
    assert rates == {
        "nat_gateway": 0.048,
        "nat_gateway_gb": 0.047,
        "network_load_balancer": 0.02646,
        "public_ipv4": 0.005,
        "ebs_snapshot": 0.05,
        "eks": 0.1,
        "eks_extended": 0.5,
        "efs": 0.33,
        "object_storage": 0.024,
    }


def test_offers_are_the_types_of_the_region_with_their_sizes(pricing: Any, ec2: Any) -> None:
    def described(name: str, **more: Any) -> dict[str, Any]:
        return {
            "InstanceType": name,
            "VCpuInfo": {"DefaultVCpus": 4},
            "MemoryInfo": {"SizeInMiB": 16384},
            "ProcessorInfo": {"SupportedArchitectures": ["arm64"]},
            **more,
        }

    cards = [
        {"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 15},
        {"NetworkCardIndex": 1, "MaximumNetworkInterfaces": 15},
    ]
    network = {"MaximumNetworkInterfaces": 30, "Ipv4AddressesPerInterface": 50, "NetworkCards": cards}
    gpu = {"Name": "T4g", "Manufacturer": "NVIDIA", "Count": 1, "MemoryInfo": {"SizeInMiB": 16384}}
    types = [
        described("g5g.xlarge", NetworkInfo={**network, "DefaultNetworkCardIndex": 0}, GpuInfo={"Gpus": [gpu]}),
        described(
            "m6g.xlarge",
            CurrentGeneration=False,
            BareMetal=True,
            ProcessorInfo={
                "SupportedArchitectures": ["arm64"],
                "Manufacturer": "AWS",
                "SustainedClockSpeedInGhz": 2.5,
            },
            EbsInfo={"EbsOptimizedSupport": "default", "EbsOptimizedInfo": {"MaximumBandwidthInMbps": 4750}},
            InstanceStorageInfo={"NvmeSupport": "required", "TotalSizeInGB": 118},
            NetworkInfo={
                "EncryptionInTransitSupported": False,
                "NetworkPerformance": "Up to 10 Gigabit",
                "NetworkCards": [{"BaselineBandwidthInGbps": 1.25}],
            },
        ),
        described(
            "trn1.2xlarge",
            Hypervisor="nitro",
            EbsInfo={"EbsOptimizedSupport": "supported", "EbsOptimizedInfo": {"MaximumBandwidthInMbps": 4750}},
            InstanceStorageInfo={"NvmeSupport": "unsupported", "TotalSizeInGB": 118},
            NeuronInfo={"NeuronDevices": [{"Name": "Trainium", "Count": 16, "CoreInfo": {"Count": 2}}]},
        ),
        described(
            "dl2q.24xlarge",
            InferenceAcceleratorInfo={"Accelerators": [{"Name": "AI100", "Manufacturer": "Qualcomm", "Count": 8}]},
        ),
        described("c7gn.16xlarge", NetworkInfo={"EfaSupported": True, "EfaInfo": {"MaximumEfaInterfaces": 2}}),
        described("c6gn.16xlarge", NetworkInfo={"EfaSupported": True}),
        described("r6g.large", NetworkInfo={"EfaSupported": False, "EfaInfo": {"MaximumEfaInterfaces": 2}}),
        described("m7g.xlarge"),
    ]
    with Stubber(ec2) as stub:
        names = (
            *("g5g.xlarge", "m6g.xlarge", "c7gn.16xlarge", "c6gn.16xlarge", "r6g.large"),
            *("trn1.2xlarge", "dl2q.24xlarge"),
        )
        offerings: list[Any] = [{"InstanceType": name} for name in names]
        stub.add_response(
            "describe_instance_type_offerings", {"InstanceTypeOfferings": offerings}, {"LocationType": "region"}
        )
        stub.add_response("describe_instance_types", {"InstanceTypes": types}, {})
        offers = market(ec2, pricing).offers("eu-west-1")
    untold = InstanceTraits()
    metal = InstanceTraits(None, "AWS", 2500, 4750, 1250, 118, False)
    trainium = InstanceTraits("nitro", accelerator=Accelerator("Trainium", "AWS", 16, 2))
    qualcomm = InstanceTraits(accelerator=Accelerator("AI100", "Qualcomm", 8))
    assert offers == {
        "g5g.xlarge": InstanceOffer(
            "g5g.xlarge", 4, 16384, "arm64", 15, 50, None, (Gpus("T4g", "NVIDIA", 1, 16384),), traits=untold
        ),
        "m6g.xlarge": InstanceOffer("m6g.xlarge", 4, 16384, "arm64", 0, 0, None, (), False, True, traits=metal),
        "c7gn.16xlarge": InstanceOffer("c7gn.16xlarge", 4, 16384, "arm64", 0, 0, fabric_interfaces=2, traits=untold),
        "c6gn.16xlarge": InstanceOffer("c6gn.16xlarge", 4, 16384, "arm64", 0, 0, fabric_interfaces=1, traits=untold),
        "r6g.large": InstanceOffer("r6g.large", 4, 16384, "arm64", 0, 0, traits=untold),
        "trn1.2xlarge": InstanceOffer("trn1.2xlarge", 4, 16384, "arm64", 0, 0, traits=trainium),
        "dl2q.24xlarge": InstanceOffer("dl2q.24xlarge", 4, 16384, "arm64", 0, 0, traits=qualcomm),
    }


def test_versions_are_read_page_by_page_with_their_days_in_utc() -> None:
    pacific = timezone(timedelta(hours=-8))

    def row(version: str, *days: tuple[int, int, int]) -> dict[str, Any]:
        moments = [datetime(*day, 16, tzinfo=pacific) for day in days]
        names = ("releaseDate", "endOfStandardSupportDate", "endOfExtendedSupportDate")
        return {"clusterVersion": version, **dict(zip(names, moments, strict=True))}

    older = row("1.31", (2024, 9, 25), (2025, 11, 25), (2026, 11, 25))
    newer = row("1.35", (2026, 1, 26), (2027, 3, 26), (2028, 3, 26))
    eks = boto3.client("eks", region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="x")
    with Stubber(eks) as stub:
        stub.add_response("describe_cluster_versions", {"clusterVersions": [older], "nextToken": "more"}, {})
        stub.add_response("describe_cluster_versions", {"clusterVersions": [newer]}, {"nextToken": "more"})
        versions = AwsMarket(_unasked, _unasked, lambda _: eks).versions("eu-west-1")
    assert versions == [
        ClusterVersion("1.35", "2026-01-27", "2027-03-27", "2028-03-27"),
        ClusterVersion("1.31", "2024-09-26", "2025-11-26", "2026-11-26"),
    ]


def test_a_refusal_is_a_vendor_error(pricing: Any, ec2: Any) -> None:
    with Stubber(pricing) as stub:
        stub.add_client_error("get_products", "AccessDeniedException", "no", 403)
        with pytest.raises(errors.PermissionDenied):
            market(ec2, pricing).prices("eu-west-1")


@pytest.mark.parametrize(
    "text", ["2026-01-31T12:00:00.000Z", "2026-01-31T12:00:00+02:00", "Sat, 31 Jan 2026 12:00:00 GMT", 1769860800, 0.5]
)
def test_moments_are_read_as_botocore_reads_them(text: Any) -> None:
    assert moment(text) == parse_timestamp(text)


def test_the_clients_of_the_market_read_moments_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    client: Any = connected()._ec2("us-east-1")
    parser = client._endpoint._response_parser_factory.create_parser("ec2")
    assert parser._timestamp_parser is moment
