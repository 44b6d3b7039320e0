"""The node types of a provider: from the catalogue and the document, by the published formulas."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import boto3
import pytest

from stockyard.adapters.catalog import Ec2PriceList
from stockyard.domain.node_types import NodeKind
from stockyard.domain.offers import InstanceOffer, RegionOffers
from stockyard.domain.requirements import Requirements
from stockyard.providers.nodes.ec2 import catalogue, reserved
from stockyard.providers.nodes.ec2.provider import Ec2Nodes, Ec2NodesConfig
from stockyard.scheduling.index import Index
from stockyard.scheduling.match import State, Wanted, choose

MIB = 2**20 * 1000
LABEL = "karpenter.k8s.aws/instance"


class _Empty:
    """A platform's store without sheets."""

    def get(self, *_: Any) -> None:
        return None


@pytest.fixture(scope="module")
def everything() -> RegionOffers:
    """What the product ships."""
    found = Ec2PriceList(_Empty()).region("us-east-1")  # type: ignore[arg-type]
    assert found is not None
    return found


def named(kinds: Any) -> dict[str, NodeKind]:
    return {kind.bare: kind for kind in kinds}


def source(offers: Any) -> Ec2Nodes:
    return Ec2Nodes(Ec2NodesConfig("vantage", "1.34", "https://api.example.test"), boto3.Session, offers)


def test_a_type_is_what_the_catalogue_says(build: Any) -> None:
    kind = named(catalogue.kinds(build.provider(), build.offers()))["m6i.large"]
    assert (kind.name, kind.provider, kind.usd_hour, kind.available) == ("aws.m6i.large", "aws", 0.096, True)
    assert dict(kind.capacity) == {
        "cpu": 2000,
        "memory": 8192 * MIB,
        "pods": 29000,
        "ephemeral-storage": 50 * 1024 * MIB,
    }
    # 6 % and 1 % of two cores; 7.5 % of the memory, 255 MiB, 11 MiB a pod and 100 MiB
    assert kind.allocatable["cpu"] == 2000 - 70
    assert kind.allocatable["memory"] == (8192 - 615 - 255 - 11 * 29 - 100) * MIB
    assert kind.properties["node.kubernetes.io/instance-type"] == ("m6i.large",)
    assert kind.properties["kubernetes.io/arch"] == ("amd64",)
    assert kind.properties["topology.kubernetes.io/region"] == ("us-east-1",)
    for suffix, value in {"family": "m6i", "category": "m", "generation": "6", "size": "large", "cpu": "2"}.items():
        assert kind.properties[f"{LABEL}-{suffix}"] == (value,)
    assert kind.properties[f"{LABEL}-memory"] == ("8192",)
    (offering,) = kind.offerings
    assert (offering.capacity_type, offering.zones) == ("on-demand", ("*",))


@pytest.mark.parametrize(("cores", "thousandths"), [(1, 60), (2, 70), (4, 80), (8, 90), (16, 110), (192, 550)])
def test_what_is_reserved_of_cores(cores: int, thousandths: int) -> None:
    offer = InstanceOffer("x1.large", cores, 8192, "x86_64", 3, 10)
    assert reserved.overhead(offer)["cpu"] == f"{thousandths}m"


def test_pods_are_bound_by_addresses_and_by_the_kubelet(build: Any) -> None:
    kinds = named(catalogue.kinds(build.provider(), build.offers()))
    assert kinds["t3.medium"].capacity["pods"] == 17_000
    assert kinds["g5.48xlarge"].capacity["pods"] == 110_000
    assert reserved.pods(InstanceOffer("x1.large", 1, 1024, "x86_64", 0, 0)) == 110


def test_gpus_are_extended_resources_and_a_part_of_one_is_none(build: Any) -> None:
    kinds = named(catalogue.kinds(build.provider(), build.offers()))
    whole, part = kinds["g5.48xlarge"], kinds["g6f.large"]
    assert whole.allocatable["nvidia.com/gpu"] == 8000
    assert whole.extended() == {"nvidia.com/gpu"}
    assert whole.properties[f"{LABEL}-gpu-name"] == ("a10g",)
    assert whole.properties[f"{LABEL}-gpu-count"] == ("8",)
    assert part.extended() == frozenset()
    assert part.properties[f"{LABEL}-gpu-name"] == ("l4",)


def test_only_linux_architectures_and_what_the_globs_name(build: Any) -> None:
    assert "mac2.metal" not in named(catalogue.kinds(build.provider(), build.offers()))
    some = named(catalogue.kinds(build.provider(instanceTypes=["m?i.*", "t3.medium"]), build.offers()))
    assert set(some) == {"m6i.large", "t3.medium"}
    assert named(catalogue.kinds(build.provider(instanceTypes=["m6i"]), build.offers())) == {}


def test_spot_has_no_price_and_ranks_last_but_can_be_asked_for(build: Any) -> None:
    provider = build.provider(capacityTypes=["on-demand", "spot"], instanceTypes=["m6i.large", "t3.medium"])
    index = Index.build(catalogue.kinds(provider, build.offers()))
    cheapest = choose(index, Wanted(), State(), candidates=10)
    assert cheapest is not None
    ways = [(one.kind.bare, one.capacity_type) for one in (cheapest, *cheapest.alternatives)]
    assert ways[:2] == [("t3.medium", "on-demand"), ("m6i.large", "on-demand")]
    assert {capacity_type for _, capacity_type in ways[2:]} == {"spot"}
    asked = Requirements.of([{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}])
    chosen = choose(index, Wanted(asked), State())
    assert chosen is not None
    assert (chosen.capacity_type, chosen.usd_hour) == ("spot", None)


def test_an_override_changes_cost_limit_and_properties(build: Any) -> None:
    entry = {
        "name": "m6i.large", "maxCapacity": 3, "cost": 5,
        "properties": {"team": "blue", f"{LABEL}-size": "big", "topology.kubernetes.io/zone": "us-east-1c"},
    }  # fmt: skip
    provider = replace(build.provider(nodeTypes=[entry]), properties={"team": "red", "floor": "1"})
    kinds = named(catalogue.kinds(provider, build.offers()))
    changed, other = kinds["m6i.large"], kinds["t3.medium"]
    assert (changed.cost, changed.cost_given, changed.limited) == (5, True, True)
    assert changed.properties["team"] == ("blue",)
    assert changed.properties[f"{LABEL}-size"] == ("big",)
    assert changed.offerings[0].zones == ("us-east-1c",)
    assert (other.limited, other.properties["team"], other.properties["floor"]) == (False, ("red",), ("1",))


@pytest.mark.parametrize("key", ["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"])
def test_a_providers_zones_are_those_of_its_property(build: Any, key: str) -> None:
    provider = replace(build.provider(), properties={key: "us-east-1a,us-east-1b"})
    for kind in catalogue.kinds(provider, build.offers()):
        assert kind.offerings[0].zones == ("us-east-1a", "us-east-1b")


def test_every_type_that_is_shipped_is_sound_and_made_in_time(build: Any, everything: RegionOffers) -> None:
    provider = build.provider(capacityTypes=["on-demand", "spot"])
    started = time.process_time()
    kinds = catalogue.kinds(provider, everything)
    spent = time.process_time() - started
    linux = [one for one in everything.instances.values() if one.architecture in catalogue.ARCHITECTURES]
    assert len(kinds) == len(linux) > 1300
    assert spent < 1.0
    for kind in kinds:
        assert min(kind.allocatable.values()) > 0, kind.name
        assert kind.properties[f"{LABEL}-category"], kind.name
    assert Index.build(kinds)


def test_node_types_are_kept_until_document_or_catalogue_change(build: Any) -> None:
    sheets = {"us-east-1": build.offers()}
    nodes = source(sheets.get)
    provider = build.provider()
    first = nodes.kinds(provider, None)
    assert nodes.kinds(provider, None) is first
    assert nodes.kinds(replace(provider, version=2), None) is not first
    sheets["us-east-1"] = replace(build.offers(), as_of="2026-02-01")
    assert nodes.kinds(provider, None) is not first
    for number in range(40):
        nodes.kinds(replace(provider, id=f"npr_{number}"), None)
    assert len(nodes._kinds) <= 16


def test_a_region_that_is_not_known_has_no_types_and_a_document_is_inspected(build: Any) -> None:
    nodes = source({"us-east-1": build.offers()}.get)
    unknown = build.provider(region="eu-west-1")
    assert nodes.kinds(unknown, None) == ()
    assert [(one.pointer, one.warning) for one in nodes.inspect(unknown, None)] == [("/spec/region", True)]
    assert nodes.scope(unknown, None) == "ec2/eu-west-1"
    assert nodes.inspect(build.provider(), None) == []
    wrong = build.provider(instanceTypes=["z9.*"], nodeTypes=[{"name": "z9.large"}])
    assert [(one.pointer, one.warning) for one in nodes.inspect(wrong, None)] == [
        ("/spec/instanceTypes", False),
        ("/spec/nodeTypes/0/name", True),
    ]
