"""The catalogue: offline data, refreshed sheets, and the vendor's lists."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from botocore.utils import parse_timestamp

from stockyard import errors
from stockyard.adapters.aws_catalog import AwsMarket, connected, moment
from stockyard.adapters.catalog import Ec2PriceList, StoredPriceSheets, pack
from stockyard.adapters.data.build_catalog import trimmed
from stockyard.domain.offers import Accelerator, ClusterVersion, Gpus, InstanceOffer, InstanceTraits, RegionOffers
from stockyard.ports import Store
from tests.harness.memory_store import MemoryRegistry

AS_OF = "2026-01-31T12:00:00.000Z"


class Seconds:
    def __init__(self) -> None:
        self.value = 0.0

    def __call__(self) -> float:
        return self.value


@pytest.fixture
def store() -> Store:
    return MemoryRegistry().platform()


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def prices(store: Store, seconds: Seconds) -> Ec2PriceList:
    return Ec2PriceList(store, seconds)


NITRO = InstanceTraits("nitro", "Intel", 3100, 2780, 1024, None, False)
NEURON = InstanceTraits("nitro", "AMD", 3600, 10000, 2083, None, True, Accelerator("Inferentia2", "AWS", 1, 2))


def offers(region: str, usd_hour: float | None = 0.2, **rates: float) -> RegionOffers:
    gpus = (Gpus("L4", "NVIDIA", 1, 22888),)
    instances = {
        "t3.xlarge": InstanceOffer("t3.xlarge", 4, 16384, "x86_64", 4, 15, usd_hour, traits=NITRO),
        "inf2.xlarge": InstanceOffer("inf2.xlarge", 4, 16384, "x86_64", 4, 15, usd_hour, traits=NEURON),
        "g6.xlarge": InstanceOffer("g6.xlarge", 4, 16384, "x86_64", 4, 15, None, gpus),
        "m5.metal": InstanceOffer("m5.metal", 96, 393216, "x86_64", 15, 50, usd_hour, (), False, True),
        "m7i.metal-24xl": InstanceOffer("m7i.metal-24xl", 96, 393216, "x86_64", 15, 50, usd_hour, bare_metal=True),
        "c7gn.16xlarge": InstanceOffer("c7gn.16xlarge", 64, 131072, "arm64", 15, 50, usd_hour, fabric_interfaces=1),
        "p5.48xlarge": InstanceOffer("p5.48xlarge", 192, 2097152, "x86_64", 2, 50, None, gpus, fabric_interfaces=32),
    }
    return RegionOffers(region, AS_OF, instances, rates)


# --- offline ----------------------------------------------------------------------------------------------------------


def test_the_default_region_has_sizes_and_prices_offline(prices: Ec2PriceList) -> None:
    instance = prices.instance("us-east-1", "t3.xlarge")
    assert instance == {
        "vcpu": 4,
        "memory_mib": 16384,
        "architecture": "x86_64",
        "usd_hour": 0.1664,
        "max_pods": 58,
        "interfaces": 4,
        "gpus": [],
        "fabric_interfaces": 0,
    }
    assert prices.offered("us-east-1", "t3.xlarge") is True
    rates = [prices.rate("us-east-1", item) for item in ("nat_gateway", "network_load_balancer", "public_ipv4", "gp3")]
    assert rates == [0.045, 0.0225, 0.005, 0.08]


def test_a_gpu_type_names_its_gpus_and_counts_pods_of_the_first_card(prices: Ec2PriceList) -> None:
    instance = prices.instance("us-east-1", "p4d.24xlarge")
    assert instance is not None
    assert instance["gpus"] == [{"name": "A100", "manufacturer": "NVIDIA", "count": 8, "memory_mib": 40960}]
    assert instance["max_pods"] == 737


def test_types_tell_their_generation_and_whether_they_are_bare_metal(prices: Ec2PriceList) -> None:
    offers = prices.region("us-east-1")
    assert offers is not None
    flags = {
        name: (offers.instances[name].current_generation, offers.instances[name].bare_metal)
        for name in ("m7i.large", "m7i.metal-24xl", "m5.large", "m5.metal")
    }
    assert flags == {
        "m7i.large": (True, False),
        "m7i.metal-24xl": (True, True),
        "m5.large": (False, False),
        "m5.metal": (False, True),
    }


def test_an_unknown_type_is_not_offered_and_a_doubtful_one_is_open(prices: Ec2PriceList) -> None:
    assert prices.offered("us-east-1", "t3.gigantic") is False
    assert prices.instance("us-east-1", "t3.gigantic") is None
    assert prices.offered("us-east-1", "p3.2xlarge") is None


def test_no_price_of_one_region_is_given_for_another(prices: Ec2PriceList) -> None:
    instance = prices.instance("eu-west-1", "t3.xlarge")
    assert instance is not None
    assert (instance["vcpu"], instance["usd_hour"]) == (4, None)
    assert prices.offered("eu-west-1", "t3.xlarge") is None
    assert prices.rate("eu-west-1", "nat_gateway") is None
    assert prices.region("eu-west-1") is None


# --- refreshed --------------------------------------------------------------------------------------------------------


def test_a_refreshed_region_has_its_own_prices(store: Store, prices: Ec2PriceList) -> None:
    StoredPriceSheets(store).write(offers("eu-west-1", 0.1824, nat_gateway=0.048))
    instance = prices.instance("eu-west-1", "t3.xlarge")
    assert instance is not None
    assert instance["usd_hour"] == 0.1824
    assert prices.region("eu-west-1") == offers("eu-west-1", 0.1824, nat_gateway=0.048)
    assert prices.rate("eu-west-1", "nat_gateway") == 0.048
    assert prices.rate("eu-west-1", "gp3") is None
    assert prices.offered("eu-west-1", "t3.xlarge") is True
    assert prices.offered("eu-west-1", "m5.large") is False
    elsewhere = prices.instance("eu-west-1", "m5.large")
    assert elsewhere is not None
    assert elsewhere["usd_hour"] is None


def test_a_refreshed_default_region_replaces_the_offline_prices(store: Store, prices: Ec2PriceList) -> None:
    StoredPriceSheets(store).write(offers("us-east-1", 0.17))
    instance = prices.instance("us-east-1", "t3.xlarge")
    assert instance is not None
    assert instance["usd_hour"] == 0.17
    assert prices.offered("us-east-1", "m5.large") is False
    assert prices.rate("us-east-1", "gp3") == 0.08


def test_a_newer_sheet_is_seen_after_a_while(store: Store, prices: Ec2PriceList, seconds: Seconds) -> None:
    sheets = StoredPriceSheets(store)
    sheets.write(offers("eu-west-1", 0.1))
    assert prices.rate("eu-west-1", "gp3") is None
    sheets.write(offers("eu-west-1", 0.1, gp3=0.088))
    seconds.value = 899.0
    assert prices.rate("eu-west-1", "gp3") is None
    seconds.value = 900.0
    assert prices.rate("eu-west-1", "gp3") == 0.088


def test_it_is_known_when_each_region_was_refreshed(store: Store) -> None:
    sheets = StoredPriceSheets(store)
    assert sheets.moments() == {}
    names = [f"region-{number}" for number in range(60)]
    for name in names:
        sheets.write(offers(name, 0.1))
    assert sheets.moments() == {name: offers(name, 0.1).as_of for name in names}


def test_a_sheet_of_every_type_fits_a_record(store: Store) -> None:
    sheet = Ec2PriceList(store).region("us-east-1")
    assert sheet is not None
    assert len(sheet.instances) == 1400
    assert len(pack(sheet).data) < 60_000
    StoredPriceSheets(store).write(sheet)
    assert Ec2PriceList(store).region("us-east-1") == sheet


# --- versions ---------------------------------------------------------------------------------------------------------


def test_versions_of_the_data_file_count_until_the_region_tells_its_own(store: Store) -> None:
    offline = Ec2PriceList(store).versions("eu-west-1")
    assert [version.version for version in offline] == ["1.36", "1.35", "1.34", "1.33", "1.32", "1.31"]
    own = (ClusterVersion("1.40", "2028-01-01", "2029-03-01", "2030-03-01"),)
    sheets = StoredPriceSheets(store)
    sheets.write(offers("eu-west-1"))
    assert Ec2PriceList(store).versions("eu-west-1") == offline
    sheets.write(replace(offers("eu-west-1"), versions=own))
    assert Ec2PriceList(store).versions("eu-west-1") == own
    assert Ec2PriceList(store).versions("us-east-1") == offline


@pytest.mark.parametrize(
    ("day", "support"),
    [
        ("2024-09-25", ""),
        ("2024-09-26", "standard"),
        ("2025-11-25", "standard"),
        ("2025-11-26", "extended"),
        ("2026-11-25", "extended"),
        ("2026-11-26", ""),
    ],
)
def test_a_version_is_supported_from_day_to_day(day: str, support: str) -> None:
    assert ClusterVersion("1.31", "2024-09-26", "2025-11-26", "2026-11-26").support(day) == support


def test_the_catalogue_tells_which_types_have_a_fabric(prices: Ec2PriceList) -> None:
    interfaces = {}
    for name in ("p5.48xlarge", "p4d.24xlarge", "g6.xlarge"):
        instance = prices.instance("us-east-1", name)
        assert instance is not None
        interfaces[name] = instance["fabric_interfaces"]
    assert interfaces == {"p5.48xlarge": 32, "p4d.24xlarge": 4, "g6.xlarge": 0}


# --- the trimming -----------------------------------------------------------------------------------------------------


def test_trimming_tells_doubtful_types() -> None:
    whole = {"name": "a", "vcpu": 2, "memory_mib": 8, "arch": ["i386", "x86_64"], "enis": 60, "ipv4_per_eni": 50}
    whole |= {"us_east_1_zone_ids": ["use1-az1"], "allocatable": {"pods": 737}}
    fast = {**whole, "name": "c", "efa_interfaces": 2}
    network = {"NetworkPerformance": "200 Gigabit", "NetworkCards": [{"BaselineBandwidthInGbps": 200.0}] * 2}
    described = {"c": {"Hypervisor": "nitro", "NetworkInfo": network}}
    document = trimmed([whole, {"name": "b", "od_usd_hour": 3.0}, fast], AS_OF, described)
    assert document["instances"] == [
        ["a", 2, 8, "x86_64", 15, 50, None],
        ["c", 2, 8, "x86_64", 15, 50, None, [], 0, 2, ["nitro", None, None, None, 200000]],
    ]
    assert document["doubtful"] == ["b"]


# --- the vendor -------------------------------------------------------------------------------------------------------


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
