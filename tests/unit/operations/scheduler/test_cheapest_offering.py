"""Claims without a provider are bound to the cheapest offering of EC2 and a second provider, and to the next cheapest
when that one is full. Explanations of placements agree with a brute-force oracle."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import boto3
import pytest

from stockyard.domain.nodes.node_types import ANY, NodeType
from stockyard.domain.nodes.offers import InstanceOffer, RegionOffers
from stockyard.domain.records import Cluster, NodeClaim, NodeProvider
from stockyard.errors import InsufficientCapacity
from stockyard.operations.fleet.explain import explain_claim
from stockyard.operations.node_providers.catalog import availability, load
from stockyard.ports import Create, Outcome
from stockyard.ports.node_work import EnvironmentWork, NodeWork
from stockyard.providers.nodes.ec2.node_class import NodeClass
from stockyard.providers.nodes.ec2.provider import Ec2Nodes, Ec2NodesConfig
from stockyard.scheduling.order import by_priority_and_age
from tests.harness.worlds.ports import with_ports
from tests.properties import oracle
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

TYPES = {"t3.medium": (2, 4, 0.0416), "m6i.large": (2, 8, 0.096), "m6i.xlarge": (4, 16, 0.192)}
"""Instance type -> cpus, GiB of memory, USD an hour."""
ONE_CPU: dict[str, Any] = {"resources": {"cpu": "1"}}
CLUSTER = "clu_01KDVJXQ80000000000000000A"


def _offers(region: str) -> RegionOffers:
    rows = [InstanceOffer(name, cpu, gib * 1024, "x86_64", 3, 10, usd) for name, (cpu, gib, usd) in TYPES.items()]
    return RegionOffers(region, "2026", {row.name: row for row in rows}, {"gp3": 0.0})


class Empty(Ec2Nodes):
    """EC2 without any capacity, for clusters with a subnet in one zone."""

    def prepare(self, work: EnvironmentWork) -> Outcome:
        node_class = NodeClass({"subnet-1": "us-east-1a"}, (), "p", {}, generation=work.provider.generation)
        return Outcome(True, "Nodes stand in one subnet.", facts=node_class.facts())

    def launch(self, work: NodeWork) -> Outcome:
        assert work.claim.placement is not None
        name = work.claim.placement.type.removeprefix(f"{work.provider.name}.")
        raise InsufficientCapacity("none is left", code="NoneLeft", refused=[(name, "on-demand", ANY)])


@pytest.fixture
def nodes(world: World) -> Nodes:
    """A ready cluster in us-east-1 of cloud account 1; node sources are EC2 and the simulated one."""
    nodes = Nodes.of(world.registry, world.services, world.clock)
    now = nodes.services.now()
    settings = {"key_pair": "my-key", "region_name": "us-east-1"}
    cluster = Cluster(CLUSTER, "demo", "d", "k8s", "aws", 1, "demo-1", "ready", settings, now, now)
    nodes.services.store.commit(Create(cluster))
    config = Ec2NodesConfig("vantage", "https://api.example", 60)
    ec2 = Empty(config, boto3.Session, _offers)
    nodes.services = with_ports(nodes.services, node_sources={**nodes.services.node_sources, "ec2": ec2})
    return nodes


def _aws(nodes: Nodes, *types: dict[str, Any], name: str = "aws", **block: Any) -> NodeProvider:
    usual = {"cloudAccount": 1, "region": "us-east-1", "capacityTypes": ["on-demand"], "instanceTypes": ["*"]}
    return nodes.provider(name, *types, kind="ec2", block={**usual, **block})


def _lab(name: str, usd: float, limit: int | None = None, cpu: int = 2, gib: int = 4) -> dict[str, Any]:
    limited = {} if limit is None else {"maxCapacity": limit}
    return {"name": name, "resources": {"cpu": str(cpu), "memory": f"{gib}Gi"}, "usdPerHour": usd, **limited}


def _claims(nodes: Nodes, *requests: dict[str, Any]) -> list[NodeClaim]:
    """Create one claim for each request; the first one is the oldest."""
    claims = []
    for number, request in enumerate(requests):
        claims.append(nodes.claim(f"c{number}", cluster_ref=CLUSTER, **request))
        nodes.clock.advance(1)
    assert [claim.id for claim in by_priority_and_age(claims)] == [claim.id for claim in claims]
    return claims


def _landed(nodes: Nodes, claims: list[NodeClaim]) -> list[str]:
    return [nodes.now(claim).type_ref for claim in claims]


# --- the oracle ------------------------------------------------------------------------------------------------------


def _plain(node_type: NodeType) -> dict[str, Any]:
    """The node type in the form that the oracle reads."""
    return {
        "name": node_type.name,
        "provider": node_type.provider,
        "bare": node_type.bare,
        "properties": {key: list(values) for key, values in node_type.properties.items()},
        "capacity": dict(node_type.capacity),
        "allocatable": dict(node_type.allocatable),
        "cost": node_type.cost,
        "cost_given": node_type.cost_given,
        "unit_price": node_type.unit_price,
        "offerings": [
            {"capacity_type": offering.capacity_type, "zones": list(offering.zones), "usd_hour": offering.usd_hour}
            for offering in node_type.offerings
        ],
        "limited": node_type.limited,
        "available": node_type.available,
        "small": node_type.small,
        "unserved": node_type.unserved,
    }


def _problem(nodes: Nodes, requests: list[dict[str, Any]], away: tuple[str, ...] = ()) -> dict[str, Any]:
    """The records of the table and these requests as plain data. ``away`` names the providers of another network."""
    catalog = load(nodes.services)
    now = availability(nodes.services, catalog, nodes.services.clock.now())
    claims = [
        {
            "requirements": list(request.get("requirements", ())),
            "resources": {name: int(float(amount) * 1000) for name, amount in request["resources"].items()},
            "provider": None,
            "allowed": None,
            "out_of_reach": list(away),
        }
        for request in requests
    ]
    node_types = [_plain(node_type) for node_type in catalog.node_types.values()]
    return {
        "kinds": node_types,
        "claims": claims,
        "free": dict(now.free),
        "refused": [list(offering) for offering in now.refused],
    }


def _verdicts_are_the_oracles(
    nodes: Nodes, claim: NodeClaim, request: dict[str, Any], away: tuple[str, ...] = ()
) -> None:
    """Assert that the explanation has the oracle's types, order and prices, and a reason for each other type."""
    problem = _problem(nodes, [request], away)
    (plain_claim,) = problem["claims"]
    right: dict[str, float | None] = {}
    for (priceless, price), name, *_ in oracle.possible(problem, plain_claim, dict(problem["free"])):
        right.setdefault(name, None if priceless else price)
    candidates = explain_claim(nodes.services, claim.id)["candidates"]
    assert {evaluation["type"] for evaluation in candidates} == {node_type["name"] for node_type in problem["kinds"]}
    assert [(v["type"], v["usd_hour"]) for v in candidates if v["rule"] is None] == list(right.items())
    assert all(evaluation["message"] for evaluation in candidates)


# --- what has to be seen ---------------------------------------------------------------------------------------------


def test_pass_uses_cheaper_ec2_until_full_then_next_provider(nodes: Nodes) -> None:
    aws = _aws(nodes, {"name": "t3.medium", "maxCapacity": 2}, instanceTypes=["t3.*"])
    nodes.provider("lab", _lab("small", 0.05))
    claims = _claims(nodes, *[ONE_CPU] * 5)
    assert nodes.schedule() == {"bound": 5, "waiting": 0, "lost": 0, "left": 0}
    assert _landed(nodes, claims) == ["aws.t3.medium"] * 2 + ["lab.small"] * 3
    assert nodes.used(aws, "t3.medium") == 2
    explanation = explain_claim(nodes.services, claims[4].id)
    verdicts = {
        candidate["type"]: (candidate["usd_hour"], candidate["rule"], candidate["message"])
        for candidate in explanation["candidates"]
    }
    assert verdicts == {
        "lab.small": (0.05, None, "the cheapest that fits"),
        "aws.t3.medium": (0.0416, "Full", "all its nodes are taken"),
    }
    assert (explanation["chosen"]["type"], explanation["chosen"]["usd_hour"]) == ("lab.small", 0.05)
    assert explanation["considered"] == {"Fits": 1, "Full": 1}
    first = explain_claim(nodes.services, claims[0].id)
    assert (first["chosen"]["type"], first["considered"]) == ("aws.t3.medium", {"Fits": 2})
    _verdicts_are_the_oracles(nodes, claims[4], ONE_CPU)


def test_pass_uses_cheaper_simulated_type_until_full_then_ec2(nodes: Nodes) -> None:
    _aws(nodes)
    lab = nodes.provider("lab", _lab("small", 0.01, 1))
    claims = _claims(nodes, *[ONE_CPU] * 3)
    assert nodes.schedule()["bound"] == 3
    assert _landed(nodes, claims) == ["lab.small", "aws.t3.medium", "aws.t3.medium"]
    assert nodes.used(lab, "small") == 1
    placed = nodes.now(claims[1]).placement
    assert placed is not None
    assert [option.type for option in placed.options] == ["aws.t3.medium", "aws.m6i.large", "aws.m6i.xlarge"]
    _verdicts_are_the_oracles(nodes, claims[1], ONE_CPU)


def test_pass_avoids_offering_that_ec2_refused_before(nodes: Nodes) -> None:
    """After one refused launch, one scheduling pass binds that claim and a new one to the other provider."""
    _aws(nodes, instanceTypes=["t3.*"])
    nodes.provider("lab", _lab("small", 0.05), block={"launchSeconds": 0, "joinSeconds": 0})
    (first,) = _claims(nodes, ONE_CPU)
    assert nodes.schedule()["bound"] == 1
    assert _landed(nodes, [first]) == ["aws.t3.medium"]
    nodes.relay()
    second = nodes.claim("second", cluster_ref=CLUSTER, **ONE_CPU)
    assert nodes.schedule() == {"bound": 2, "waiting": 0, "lost": 0, "left": 0}
    assert _landed(nodes, [first, second]) == ["lab.small"] * 2
    explanation = explain_claim(nodes.services, second.id)
    verdicts = {
        candidate["type"]: (candidate["usd_hour"], candidate["rule"]) for candidate in explanation["candidates"]
    }
    assert verdicts == {"lab.small": (0.05, None), "aws.t3.medium": (0.0416, "RefusedRecently")}
    assert explanation["considered"] == {"Fits": 1, "RefusedRecently": 1}
    _verdicts_are_the_oracles(nodes, second, ONE_CPU)


def test_provider_of_other_network_is_out_of_reach(nodes: Nodes) -> None:
    _aws(nodes, name="west", region="us-west-2")
    nodes.provider("lab", _lab("small", 0.5))
    claims = _claims(nodes, ONE_CPU, ONE_CPU)
    assert nodes.schedule()["bound"] == 2
    assert _landed(nodes, claims) == ["lab.small"] * 2
    explanation = explain_claim(nodes.services, claims[0].id)
    assert {candidate["type"]: candidate["rule"] for candidate in explanation["candidates"]}[
        "west.t3.medium"
    ] == "OutOfReach"
    _verdicts_are_the_oracles(nodes, claims[0], ONE_CPU, away=("west",))
    alone = nodes.claim("alone", provider_ref="west", cluster_ref=CLUSTER)
    homeless = nodes.claim("homeless", **ONE_CPU)
    nodes.schedule()
    assert nodes.now(alone).reason == "ProviderOutOfReach"
    assert "us-west-2 of cloud account 1" in nodes.now(alone).message
    assert nodes.now(homeless).type_ref == "lab.small"


def test_claims_of_two_regions_have_own_incompatibilities(nodes: Nodes) -> None:
    """The two claims of the pass are equal, but their clusters are in different regions."""
    _aws(nodes, name="west", region="us-west-2")
    nodes.provider("lab", _lab("small", 0.01))
    here = nodes.services.store.get(Cluster, CLUSTER)
    assert here is not None
    there = replace(
        here,
        id=CLUSTER[:-1] + "B",
        name="west",
        client_id="west-1",
        settings={**here.settings, "region_name": "us-west-2"},
    )
    nodes.services.store.commit(Create(there))
    (inside,) = _claims(nodes, ONE_CPU)
    outside = nodes.claim("outside", cluster_ref=there.id, **ONE_CPU)
    assert nodes.schedule()["bound"] == 2
    considered = [placed.considered for claim in (inside, outside) if (placed := nodes.now(claim).placement)]
    assert ["OutOfReach" in rules for rules in considered] == [True, False]


def _in_zone(zone: str) -> dict[str, Any]:
    return {**ONE_CPU, "requirements": ({"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]},)}


def test_zone_unknown_to_ec2_is_out_of_reach(nodes: Nodes) -> None:
    _aws(nodes)
    nodes.provider("lab", {**_lab("small", 0.5), "zones": ["yard-a"]})
    there, nowhere = _claims(nodes, _in_zone("yard-a"), _in_zone("nowhere"))
    alone = nodes.claim("alone", provider_ref="aws", cluster_ref=CLUSTER, **_in_zone("yard-a"))
    assert nodes.schedule() == {"bound": 1, "waiting": 2, "lost": 0, "left": 0}
    assert nodes.now(there).type_ref == "lab.small"
    explanation = explain_claim(nodes.services, there.id)
    assert {candidate["type"]: candidate["rule"] for candidate in explanation["candidates"]}[
        "aws.t3.medium"
    ] == "OutOfReach"
    _verdicts_are_the_oracles(nodes, there, _in_zone("yard-a"), away=("aws",))
    assert nodes.now(nowhere).reason == "NoMatchingNodeType"
    assert nodes.now(alone).reason == "ProviderOutOfReach"
    assert "aws stand in us-east-1; the claim asks for another zone" in nodes.now(alone).message


def test_zone_without_cluster_subnet_is_left_to_next_provider(nodes: Nodes) -> None:
    """The zones are known once the cluster's environment is set up: the first claim returns to the scheduler."""
    _aws(nodes)
    lab = {**_lab("small", 0.5), "zones": ["us-east-1c"]}
    nodes.provider("lab", lab, block={"launchSeconds": 0, "joinSeconds": 0})
    (first,) = _claims(nodes, _in_zone("us-east-1c"))
    nodes.schedule()
    assert nodes.now(first).type_ref == "aws.t3.medium"
    nodes.relay()
    assert (nodes.now(first).phase, nodes.now(first).type_ref) == ("Pending", "")
    assert nodes.services.unavailable_offerings is not None
    assert not nodes.services.unavailable_offerings.refused("ec2/us-east-1", nodes.services.clock.now())
    second = nodes.claim("second", cluster_ref=CLUSTER, **_in_zone("us-east-1c"))
    alone = nodes.claim("alone", provider_ref="aws", cluster_ref=CLUSTER, **_in_zone("us-east-1c"))
    nodes.schedule()
    assert _landed(nodes, [first, second]) == ["lab.small"] * 2
    assert "stand in us-east-1a; the claim asks for another zone" in nodes.now(alone).message
    nodes.relay()
    assert nodes.now(first).phase == "Available"


@pytest.mark.parametrize("number", range(12))
def test_placements_of_a_pass_agree_with_oracle(nodes: Nodes, seed: int, number: int) -> None:
    """Three EC2 providers and two others, with equal prices, limits, refused offerings and random requests."""
    chance = Random(f"{seed}/{number}")
    limits = [{"name": name, "maxCapacity": chance.randint(0, 3)} for name in TYPES if chance.random() < 0.5]
    _aws(nodes, *limits)
    _aws(nodes, name="other", instanceTypes=["m6i.*"], capacityTypes=["on-demand", "spot"])
    _aws(nodes, name="west", region="us-west-2")
    prices = [usd for *_, usd in TYPES.values()]
    for name in ("lab", "yard"):
        types = [
            _lab(f"t{i}", chance.choice([*prices, 0.05]), chance.choice([None, 1, 2]), chance.choice([2, 4]), 8)
            for i in range(2)
        ]
        nodes.provider(name, *types)
    assert nodes.services.unavailable_offerings is not None
    for name in TYPES:
        if chance.random() < 0.4:
            way = (name, "on-demand", "*")
            nodes.services.unavailable_offerings.remember("ec2/us-east-1", [way], "x", nodes.services.clock.now())
    requests = [
        {
            "resources": {"cpu": chance.choice(["0.5", "1", "3"])},
            "requirements": chance.choice(
                [
                    (),
                    ({"key": "karpenter.k8s.aws/instance-family", "values": ["m6i"]},),
                    ({"key": "no", "values": ["x"]},),
                ]
            ),
        }
        for _ in range(12)
    ]
    claims = _claims(nodes, *requests)
    expected = [ways[0][0] if ways else "" for ways in oracle.solve(_problem(nodes, requests, ("west",)))]
    nodes.schedule()
    assert _landed(nodes, claims) == expected
    assert len(set(expected)) > 1
    for claim, request in zip(claims, requests, strict=True):
        _verdicts_are_the_oracles(nodes, claim, request, ("west",))
