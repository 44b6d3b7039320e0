"""EC2 machines reach clusters of their own account and region; their zones are known once the subnets are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.nodes.records import NodeEnvironment, NodeProvider
from stockyard.domain.records import Cluster
from stockyard.domain.values.requirements import Requirement
from stockyard.providers.nodes.ec2.node_class import NodeClass
from stockyard.providers.nodes.ec2.provider import Ec2Nodes
from stockyard.providers.nodes.ec2.topology import architectures, out_of_reach, out_of_zone, zone_ids, zones_of
from stockyard.providers.nodes.simulated.provider import SimulatedNodes

MOMENT = "2026-01-31T12:00:00.000Z"


def provider(generation: int = 1, **block: Any) -> NodeProvider:
    return NodeProvider(
        "npr_1", "aws", "ec2", {"ec2": {"cloudAccount": 1, **block}}, MOMENT, MOMENT, generation=generation
    )


def environment(**subnets: str) -> NodeEnvironment:
    """The environment that EC2's place produces."""
    facts = NodeClass(subnets, ("sg-1",), "profile", {"amd64": "ami-1"}).facts()
    return NodeEnvironment("nev_1", "clu_1", "npr_1", "aws", MOMENT, MOMENT, outputs=facts)


THERE = environment(one="us-east-1a", two="us-east-1b", three="us-east-1b")


def test_environment_has_zones_until_document_changes() -> None:
    assert zones_of(provider(), THERE) == {"us-east-1a", "us-east-1b"}
    assert zones_of(provider(generation=2), THERE) == zones_of(provider(), None) == frozenset()
    assert zones_of(provider(), NodeEnvironment("nev_1", "clu_1", "npr_1", "aws", MOMENT, MOMENT)) == frozenset()


def test_images_are_known_with_the_environment_of_the_document() -> None:
    assert Ec2Nodes.needs_images
    assert architectures(provider(), THERE) == {"amd64"}
    assert architectures(provider(generation=2), THERE) == architectures(provider(), None) == frozenset()


def test_ids_of_zones_are_those_of_the_environment() -> None:
    outputs = {**THERE.outputs, "zone_ids": "us-east-1a=use1-az6,us-east-1b=use1-az1"}
    there = replace(THERE, outputs=outputs)
    assert zone_ids(provider(), there) == {"us-east-1a": "use1-az6", "us-east-1b": "use1-az1"}
    assert zone_ids(provider(), THERE) == zone_ids(provider(generation=2), there) == zone_ids(provider(), None) == {}


@pytest.mark.parametrize(
    ("operator", "values", "before", "after"),
    [
        ("In", ["us-east-1a"], True, True),
        ("In", ["us-east-1c"], True, False),
        ("In", ["us-east-1c", "us-east-1b"], True, True),
        ("In", ["us-west-2a"], False, False),
        ("In", ["yard-a"], False, False),
        ("NotIn", ["us-east-1a"], True, True),
        ("NotIn", ["us-east-1a", "us-east-1b"], True, False),
        ("Exists", [], True, True),
        ("DoesNotExist", [], False, False),
    ],
)
def test_zone_is_ruled_out_as_soon_as_certain(operator: str, values: list[str], before: bool, after: bool) -> None:
    requirement = Requirement.of(operator, values)
    assert (out_of_zone(provider(), None, requirement) is None) is before
    assert (out_of_zone(provider(), THERE, requirement) is None) is after


def test_refusal_names_available_zones() -> None:
    requirement = Requirement.of("In", ["yard-a"])
    assert "aws stand in us-east-1;" in out_of_zone(provider(), None, requirement)
    assert "aws stand in us-east-1a, us-east-1b;" in out_of_zone(provider(), THERE, requirement)


def cluster(account: int = 1, **settings: Any) -> Cluster:
    return Cluster("clu_1", "c", "", "k8s", "aws", account, "c-1", "ready", settings, MOMENT, MOMENT)


@pytest.mark.parametrize(
    ("block", "home"),
    [
        ({"cloudAccount": 1, "region": "us-east-1"}, cluster()),
        ({"cloudAccount": 1}, cluster(region_name="us-east-1")),
        ({"cloudAccount": 7, "region": "eu-west-1"}, cluster(7, region_name="eu-west-1")),
    ],
)
def test_account_and_region_of_cluster_are_in_reach(block: dict[str, Any], home: Cluster) -> None:
    assert out_of_reach(provider(**block), home) is None


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({"cloudAccount": 2}, "us-east-1 of cloud account 2, the cluster in us-east-1 of cloud account 1"),
        ({"cloudAccount": 1, "region": "eu-west-1"}, "eu-west-1 of cloud account 1, the cluster in us-east-1"),
    ],
)
def test_other_account_or_region_is_out_of_reach(block: dict[str, Any], words: str) -> None:
    assert words in out_of_reach(provider(**block), cluster())


def test_claim_without_cluster_is_out_of_reach() -> None:
    assert "names none" in out_of_reach(provider(), None)


def test_simulated_machines_are_always_in_reach() -> None:
    assert not SimulatedNodes.has_topology
