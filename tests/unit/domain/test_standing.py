"""What is known of the zones of a provider's machines, before and after their subnets were found."""

from __future__ import annotations

import pytest

from stockyard.domain.node_records import NodeEnvironment, NodeProvider
from stockyard.domain.requirements import Requirement
from stockyard.domain.standing import out_of_zone, zones_of
from stockyard.providers.nodes.ec2.place import Place

MOMENT = "2026-01-31T12:00:00.000Z"


def provider(kind: str = "ec2", generation: int = 1) -> NodeProvider:
    return NodeProvider("npr_1", "aws", kind, {kind: {"cloudAccount": 1}}, MOMENT, MOMENT, generation=generation)


def environment(**subnets: str) -> NodeEnvironment:
    """As EC2's place tells it."""
    facts = Place(subnets, ("sg-1",), "profile", {"amd64": "ami-1"}).facts()
    return NodeEnvironment("nev_1", "clu_1", "npr_1", "aws", MOMENT, MOMENT, outputs=facts)


THERE = environment(one="us-east-1a", two="us-east-1b", three="us-east-1b")


def test_the_environment_knows_the_zones_until_the_document_changes() -> None:
    assert zones_of(provider(), THERE) == {"us-east-1a", "us-east-1b"}
    assert zones_of(provider(generation=2), THERE) == zones_of(provider(), None) == frozenset()
    assert zones_of(provider(), NodeEnvironment("nev_1", "clu_1", "npr_1", "aws", MOMENT, MOMENT)) == frozenset()


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
def test_a_zone_is_ruled_out_as_soon_as_that_is_certain(
    operator: str, values: list[str], before: bool, after: bool
) -> None:
    asked = Requirement.of(operator, values)
    assert (out_of_zone(provider(), None, asked) == "") is before
    assert (out_of_zone(provider(), THERE, asked) == "") is after
    assert out_of_zone(provider("simulated"), THERE, asked) == ""


def test_the_text_names_the_zones_that_there_are() -> None:
    asked = Requirement.of("In", ["yard-a"])
    assert out_of_zone(provider(), None, None) == out_of_zone(provider(), THERE, None) == ""
    assert "aws stand in us-east-1;" in out_of_zone(provider(), None, asked)
    assert "aws stand in us-east-1a, us-east-1b;" in out_of_zone(provider(), THERE, asked)
