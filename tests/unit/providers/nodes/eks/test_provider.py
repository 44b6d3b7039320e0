"""Offers of a provider of node groups, their places, and their claims."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stockyard.domain.nodes.node_types import CAPACITY_BLOCK, ON_DEMAND, SPOT
from stockyard.domain.records import NodeEnvironment
from stockyard.domain.values.requirements import ZONE, Requirement, Requirements

MOMENT = "2026-01-31T12:00:00.000Z"


def types(yard: Any) -> dict[str, Any]:
    return {node_type.bare: node_type for node_type in yard.source.node_types(yard.provider, None)}


def zone(*names: str) -> Requirement:
    return Requirements.of([{"key": ZONE, "operator": "In", "values": list(names)}])[ZONE]


def test_types_have_their_price_and_that_of_a_capacity_block_is_not_known(yard: Any) -> None:
    offered = types(yard)
    assert sorted(offered) == ["m6i.2xlarge", "m6i.32xlarge", "m6i.xlarge", "p5.48xlarge"]
    prices = {offering.capacity_type: offering.usd_hour for offering in offered["p5.48xlarge"].offerings}
    assert prices == {ON_DEMAND: 55.04, CAPACITY_BLOCK: None}
    assert SPOT not in prices
    assert {name: offered[name].usd_hour for name in offered if not offered[name].usd_hour} == {}
    assert offered["p5.48xlarge"].extended() == {"nvidia.com/gpu"}


def test_pods_have_addresses_and_large_machines_take_more_of_them(yard: Any) -> None:
    pods = {name: node_type.capacity["pods"] // 1000 for name, node_type in types(yard).items()}
    assert pods == {"m6i.xlarge": 58, "m6i.2xlarge": 58, "m6i.32xlarge": 250, "p5.48xlarge": 250}


def test_regions_without_data_offer_nothing_and_say_so(yard: Any) -> None:
    elsewhere = replace(yard.provider, spec={"eks": {"cloudAccount": 1, "region": "eu-west-1"}})
    assert yard.source.node_types(elsewhere, None) == ()
    (finding,) = yard.source.inspect(elsewhere, None)
    assert (finding.pointer, finding.warning) == ("/spec/region", True)
    assert "eu-west-1" in finding.detail


def test_only_clusters_on_eks_of_its_account_and_region_are_in_reach(yard: Any) -> None:
    reach = yard.source.out_of_reach
    assert reach(yard.provider, yard.cluster) is None
    assert "the claim names none" in reach(yard.provider, None)
    assert "is none of them" in reach(yard.provider, replace(yard.cluster, driver="ec2"))
    assert "of cloud account 2" in reach(yard.provider, replace(yard.cluster, cloud_account_id=2))
    far = replace(yard.cluster, settings={"region_name": "eu-west-1"})
    assert "are in eu-west-1" in reach(yard.provider, far)


def test_zones_are_those_of_the_clusters_subnets(yard: Any) -> None:
    environment = NodeEnvironment("nev_1", yard.cluster.id, yard.provider.id, "aws", MOMENT, MOMENT)
    assert yard.source.zones(yard.provider, environment) == frozenset()
    assert yard.source.out_of_zone(yard.provider, environment, zone("us-east-1f")) is None
    assert "asks for another zone" in yard.source.out_of_zone(yard.provider, environment, zone("eu-west-1a"))
    outcome = yard.source.prepare(yard.environment_work())
    found_zones = replace(environment, outputs=dict(outcome.facts))
    assert yard.source.zones(yard.provider, found_zones) == frozenset(yard.groups.zones)
    assert yard.source.out_of_zone(yard.provider, found_zones, zone(yard.groups.zones[0])) is None
    assert "us-east-1a, us-east-1b" in yard.source.out_of_zone(yard.provider, found_zones, zone("us-east-1f"))
    changed = replace(yard.provider, generation=2)
    assert yard.source.zones(changed, found_zones) == frozenset()
    assert yard.source.clear(yard.environment_work()).done


def test_refusals_concern_the_provider_alone_and_launches_have_more_time(yard: Any) -> None:
    assert yard.source.scope(yard.provider, None) == f"provider/{yard.provider.id}"
    assert yard.source.limits(yard.provider) == {"launch": 1800, "register": 1800}
    assert yard.source.group(yard.provider, yard.claim("A")) == "workers"


def test_images_are_for_one_architecture_and_zones_have_ids(yard: Any) -> None:
    environment = NodeEnvironment("nev_1", yard.cluster.id, yard.provider.id, "aws", MOMENT, MOMENT)
    assert yard.source.architectures(yard.provider, None) == {"amd64"}
    assert yard.source.zone_ids(yard.provider, environment) == yard.source.zone_ids(yard.provider, None) == {}
    found_environment = replace(environment, outputs=yard.source.prepare(yard.environment_work()).facts)
    ids = yard.source.zone_ids(yard.provider, found_environment)
    assert ids.keys() == yard.source.zones(yard.provider, found_environment)
    assert all(zone_id.startswith("use1-az") for zone_id in ids.values())
    assert yard.source.zone_ids(replace(yard.provider, generation=9), found_environment) == {}
    assert yard.source.needs_images
