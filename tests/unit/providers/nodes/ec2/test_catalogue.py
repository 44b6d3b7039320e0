"""The node types of a provider: from the catalogue and the document, by the published formulas."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import boto3
import pytest

from stockyard.adapters.catalog import Ec2PriceList
from stockyard.domain.models.nodes.node_claims import NodeClaimCreate
from stockyard.domain.nodes.node_types import NodeType
from stockyard.domain.nodes.offers import (
    Accelerator,
    InstanceOffer,
    InstanceTraits,
    RegionOffers,
    SpotPrice,
    SpotPrices,
)
from stockyard.domain.records import Placement
from stockyard.domain.values.requirements import Requirements
from stockyard.providers.clouds.aws.catalog import reserved
from stockyard.providers.nodes.ec2 import catalogue
from stockyard.providers.nodes.ec2.provider import Ec2Nodes, Ec2NodesConfig
from stockyard.scheduling.index import Index
from stockyard.scheduling.match import Availability, SchedulingRequest, choose

MIB = 2**20 * 1000
LABEL = "karpenter.k8s.aws/instance"


class _Empty:
    """A platform's store without sheets."""

    def get(self, *_: Any) -> None:
        return None


@pytest.fixture(scope="module")
def everything() -> RegionOffers:
    """Price list that the product ships."""
    offers = Ec2PriceList(_Empty()).region("us-east-1")
    assert offers is not None
    return offers


IMAGE = "ami-0123456789abcdef0"


def named(node_types: Any) -> dict[str, NodeType]:
    return {node_type.bare: node_type for node_type in node_types}


def source(offers: Any) -> Ec2Nodes:
    return Ec2Nodes(Ec2NodesConfig("vantage", "https://api.example.test"), boto3.Session, offers)


def test_node_type_has_values_of_catalogue(build: Any) -> None:
    node_type = named(catalogue.node_types(build.provider(), build.offers()))["m6i.large"]
    assert (node_type.name, node_type.provider, node_type.usd_hour, node_type.available) == (
        "aws.m6i.large",
        "aws",
        pytest.approx(0.096 + 0.073 * 50 / 730),
        True,
    )
    assert dict(node_type.capacity) == {
        "cpu": 2000,
        "memory": 8192 * MIB,
        "pods": 29000,
        "ephemeral-storage": 50 * 1024 * MIB,
    }
    # 6 % and 1 % of two cores; 7.5 % of the memory, 255 MiB, 11 MiB a pod and 100 MiB
    assert node_type.allocatable["cpu"] == 2000 - 70
    assert node_type.allocatable["memory"] == (8192 - 615 - 255 - 11 * 29 - 100) * MIB
    assert node_type.properties["node.kubernetes.io/instance-type"] == ("m6i.large",)
    assert node_type.properties["kubernetes.io/arch"] == ("amd64",)
    assert node_type.properties["topology.kubernetes.io/region"] == ("us-east-1",)
    for suffix, value in {"family": "m6i", "category": "m", "generation": "6", "size": "large", "cpu": "2"}.items():
        assert node_type.properties[f"{LABEL}-{suffix}"] == (value,)
    assert node_type.properties[f"{LABEL}-memory"] == ("8192",)
    (offering,) = node_type.offerings
    assert (offering.capacity_type, offering.zones) == ("on-demand", ("*",))


def test_spot_has_the_price_of_its_dearest_zone_and_those_of_all(build: Any) -> None:
    provider = build.provider(capacityTypes=["on-demand", "spot"])
    prices = {"use1-az1": SpotPrice(0.03, 0.02, 0.05), "use1-az2": SpotPrice(0.04, 0.04, 0.04)}
    offers = build.offers()
    priced = catalogue.node_types(provider, offers, SpotPrices(offers.region, "2026", {"m6i.large": prices}))
    (on_demand, spot) = named(priced)["m6i.large"].offerings
    assert (on_demand.usd_hour, dict(on_demand.zone_prices)) == (0.096, {})
    assert (spot.capacity_type, spot.usd_hour, spot.zone_prices) == ("spot", 0.04, prices)
    (_, unknown) = named(catalogue.node_types(provider, offers))["m6i.large"].offerings
    assert (unknown.usd_hour, dict(unknown.zone_prices)) == (None, {})


def test_only_providers_of_spot_ask_for_its_prices(build: Any) -> None:
    regions: list[str] = []

    def spot(region: str) -> SpotPrices:
        regions.append(region)
        return SpotPrices(region, str(len(regions)), {"m6i.large": {"use1-az1": SpotPrice(len(regions), 0.02, 0.05)}})

    config = Ec2NodesConfig("vantage", "https://api.example.test")
    nodes = Ec2Nodes(config, boto3.Session, lambda _: build.offers(), spot)
    nodes.node_types(build.provider(), None)
    assert regions == []
    both = build.provider(capacityTypes=["on-demand", "spot"])
    # A newer sheet has newer prices, also for a provider that has not changed.
    assert [named(nodes.node_types(both, None))["m6i.large"].offerings[1].usd_hour for _ in range(2)] == [1, 2]


def test_pods_with_addresses_of_their_own_are_not_bounded_by_the_kubelet() -> None:
    """EKS's CNI: 15 interfaces of 50 addresses; the memory that is kept for the kubelet grows with the pods."""
    large = InstanceOffer("m6a.48xlarge", 192, 786432, "x86_64", 15, 50)
    most_pods = reserved.pods_with_addresses(large)
    assert (reserved.pods(large), most_pods) == (110, 737)
    assert reserved.capacity(large, most_pods)["pods"] == 737
    assert reserved.overhead(large, most_pods)["memory"] == f"{58983 + 255 + 11 * 737 + 100}Mi"
    assert reserved.pods_with_addresses(InstanceOffer("x1.large", 1, 1024, "x86_64", 0, 0)) == 110


@pytest.mark.parametrize(("cores", "thousandths"), [(1, 60), (2, 70), (4, 80), (8, 90), (16, 110), (192, 550)])
def test_reserved_cpu_by_cores(cores: int, thousandths: int) -> None:
    offer = InstanceOffer("x1.large", cores, 8192, "x86_64", 3, 10)
    assert reserved.overhead(offer)["cpu"] == f"{thousandths}m"


def test_a_kubelet_reserves_what_the_catalogue_subtracts(everything: RegionOffers) -> None:
    """The overhead of each node type is the kubelet's reservation, and the memory that its machine does not see."""
    for offer in everything.instances.values():
        flags = reserved.kubelet_args(offer)
        kube = dict(part.split("=") for part in flags["kube-reserved"].split(","))
        evictions = dict(part.split("<") for part in flags["eviction-hard"].split(","))
        unseen = math.ceil(offer.memory_mib * 0.075)
        free = reserved.DISK_GIB * float(evictions["nodefs.available"].removesuffix("%")) / 100
        overhead = reserved.overhead(offer)
        assert kube["cpu"] == overhead["cpu"]
        assert f"{mib(kube['memory']) + mib(evictions['memory.available']) + unseen}Mi" == overhead["memory"]
        assert f"{int(kube['ephemeral-storage'].removesuffix('Gi')) + free:.0f}Gi" == overhead["ephemeral-storage"]
        assert flags["max-pods"] == str(reserved.capacity(offer)["pods"])
        assert set(evictions) == {"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available"}
        # They are flags that a claim may set too, in its own words.
        assert NodeClaimCreate(cluster="demo", kubelet_args=flags).kubelet_args == flags


def mib(quantity: str) -> int:
    return int(quantity.removesuffix("Mi"))


def test_the_flags_of_a_placement_are_those_of_its_type(build: Any) -> None:
    offers, provider = build.offers(), build.provider()
    ec2 = source(lambda _: offers)
    placement = Placement(provider.id, "aws.m6i.large", "on-demand", ("us-east-1a",), 1.0, "2026-01-01T00:00:00Z")
    assert ec2.kubelet_args(provider, placement) == reserved.kubelet_args(offers.instances["m6i.large"])
    assert ec2.kubelet_args(provider, replace(placement, type="aws.gone.large")) == {}
    assert source(lambda _: None).kubelet_args(provider, placement) == {}


def test_pods_are_limited_by_addresses_and_kubelet(build: Any) -> None:
    node_types = named(catalogue.node_types(build.provider(image=IMAGE), build.offers()))
    assert node_types["t3.medium"].capacity["pods"] == 17_000
    assert node_types["g5.48xlarge"].capacity["pods"] == 110_000
    assert reserved.pods(InstanceOffer("x1.large", 1, 1024, "x86_64", 0, 0)) == 110


def test_types_without_a_driver_in_an_image_of_ours_need_one_of_the_providers(build: Any) -> None:
    neuron = InstanceTraits(accelerator=Accelerator("Inferentia2", "AWS", 1, 2))
    offers = build.offers()
    more = {"inf2.xlarge": InstanceOffer("inf2.xlarge", 4, 16384, "x86_64", 4, 15, 0.7, traits=neuron)}
    offers = replace(offers, instances={**offers.instances, **more})
    without = named(catalogue.node_types(build.provider(), offers))
    everything = named(catalogue.node_types(build.provider(image=IMAGE), offers))
    assert {name for name, node_type in without.items() if node_type.unserved} == {"g6f.large", "inf2.xlarge"}
    assert {name: without[name].disk_gib for name in ("g5.48xlarge", "m6i.large")} == {
        "g5.48xlarge": 100,
        "m6i.large": 50,
    }
    assert everything["g5.48xlarge"].disk_gib == 50, "an image of the provider's own is as large as its owner says"
    assert not any(node_type.unserved for node_type in everything.values())
    assert everything["inf2.xlarge"].extended() == {"aws.amazon.com/neuron", "aws.amazon.com/neuroncore"}
    only = source(lambda _: offers).inspect(build.provider(instanceTypes=["g6f.*", "inf2.*"]), None)
    assert [(finding.pointer, finding.warning) for finding in only] == [("/spec/image", True)]


def test_only_whole_gpus_are_extended_resources(build: Any) -> None:
    node_types = named(catalogue.node_types(build.provider(image=IMAGE), build.offers()))
    whole, part = node_types["g5.48xlarge"], node_types["g6f.large"]
    assert whole.allocatable["nvidia.com/gpu"] == 8000
    assert whole.extended() == {"nvidia.com/gpu"}
    assert whole.properties[f"{LABEL}-gpu-name"] == ("a10g",)
    assert whole.properties[f"{LABEL}-gpu-count"] == ("8",)
    assert part.extended() == frozenset()
    assert part.properties[f"{LABEL}-gpu-name"] == ("l4",)


def test_node_types_are_linux_types_that_match_globs(build: Any) -> None:
    assert "mac2.metal" not in named(catalogue.node_types(build.provider(), build.offers()))
    selected = named(catalogue.node_types(build.provider(instanceTypes=["m?i.*", "t3.medium"]), build.offers()))
    assert set(selected) == {"m6i.large", "t3.medium"}
    assert named(catalogue.node_types(build.provider(instanceTypes=["m6i"]), build.offers())) == {}


def test_spot_offering_without_price_ranks_last_and_can_be_required(build: Any) -> None:
    provider = build.provider(capacityTypes=["on-demand", "spot"], instanceTypes=["m6i.large", "t3.medium"])
    index = Index.build(catalogue.node_types(provider, build.offers()))
    cheapest = choose(index, SchedulingRequest(), Availability(), candidates=10)
    assert cheapest is not None
    ways = [(candidate.node_type.bare, candidate.capacity_type) for candidate in (cheapest, *cheapest.alternatives)]
    assert ways[:2] == [("t3.medium", "on-demand"), ("m6i.large", "on-demand")]
    assert {capacity_type for _, capacity_type in ways[2:]} == {"spot"}
    spot_only = Requirements.of([{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}])
    choice = choose(index, SchedulingRequest(spot_only), Availability())
    assert choice is not None
    assert (choice.capacity_type, choice.usd_hour) == ("spot", None)


def test_override_changes_cost_limit_and_properties(build: Any) -> None:
    entry = {
        "name": "m6i.large", "maxCapacity": 3, "cost": 5,
        "properties": {"team": "blue", f"{LABEL}-size": "big", "topology.kubernetes.io/zone": "us-east-1c"},
    }  # fmt: skip
    provider = replace(build.provider(nodeTypes=[entry]), properties={"team": "red", "floor": "1"})
    node_types = named(catalogue.node_types(provider, build.offers()))
    changed, unchanged = node_types["m6i.large"], node_types["t3.medium"]
    assert (changed.cost, changed.cost_given, changed.limited) == (5, True, True)
    assert changed.properties["team"] == ("blue",)
    assert changed.properties[f"{LABEL}-size"] == ("big",)
    assert changed.offerings[0].zones == ("us-east-1c",)
    assert (unchanged.limited, unchanged.properties["team"], unchanged.properties["floor"]) == (False, ("red",), ("1",))


@pytest.mark.parametrize("key", ["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"])
def test_zones_of_provider_come_from_its_property(build: Any, key: str) -> None:
    provider = replace(build.provider(), properties={key: "us-east-1a,us-east-1b"})
    for node_type in catalogue.node_types(provider, build.offers()):
        assert node_type.offerings[0].zones == ("us-east-1a", "us-east-1b")


def test_shipped_catalogue_is_valid(build: Any, everything: RegionOffers) -> None:
    provider = build.provider(capacityTypes=["on-demand", "spot"], image=IMAGE)
    node_types = catalogue.node_types(provider, everything)
    linux = [offer for offer in everything.instances.values() if offer.architecture in catalogue.ARCHITECTURES]
    assert len(node_types) == len(linux) > 1300
    for node_type in node_types:
        assert min(node_type.allocatable.values()) > 0, node_type.name
        assert node_type.properties[f"{LABEL}-category"], node_type.name
    assert Index.build(node_types)


def test_node_types_are_cached_until_document_or_catalogue_changes(build: Any) -> None:
    sheets = {"us-east-1": build.offers()}
    nodes = source(sheets.get)
    provider = build.provider()
    first = nodes.node_types(provider, None)
    assert nodes.node_types(provider, None) is first
    assert nodes.node_types(replace(provider, version=2), None) is not first
    sheets["us-east-1"] = replace(build.offers(), as_of="2026-02-01")
    assert nodes.node_types(provider, None) is not first
    for number in range(40):
        nodes.node_types(replace(provider, id=f"npr_{number}"), None)
    assert len(nodes._node_types) <= 16


def test_unknown_region_has_no_types_and_inspection_finds_faults(build: Any) -> None:
    nodes = source({"us-east-1": build.offers()}.get)
    unknown = build.provider(region="eu-west-1")
    assert nodes.node_types(unknown, None) == ()
    assert [(finding.pointer, finding.warning) for finding in nodes.inspect(unknown, None)] == [("/spec/region", True)]
    assert nodes.scope(unknown, None) == "ec2/eu-west-1"
    assert nodes.inspect(build.provider(), None) == []
    wrong = build.provider(instanceTypes=["z9.*"], nodeTypes=[{"name": "z9.large"}])
    assert [(finding.pointer, finding.warning) for finding in nodes.inspect(wrong, None)] == [
        ("/spec/instanceTypes", False),
        ("/spec/nodeTypes/0/name", True),
    ]
