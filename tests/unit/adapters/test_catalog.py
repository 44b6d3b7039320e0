"""The catalogue: offline data, refreshed sheets, and the vendor's lists."""

from __future__ import annotations

from dataclasses import replace

import pytest

from local.testing.memory_store import MemoryRegistry
from stockyard.adapters.catalog import Ec2PriceList, StoredPriceSheets, pack
from stockyard.adapters.data.build_catalog import trimmed
from stockyard.domain.nodes.offers import Accelerator, ClusterVersion, Gpus, InstanceOffer, InstanceTraits, RegionOffers
from stockyard.ports import Store

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
