"""One broker over clouds: claims without a provider land on the cheapest of EC2 and another one, then on the next, in
one pass; and every verdict that is told is the one of the brute-force oracle."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import boto3
import pytest

from stockyard.domain.node_types import ANY, NodeKind
from stockyard.domain.offers import InstanceOffer, RegionOffers
from stockyard.domain.records import Cluster, NodeClaim, NodeProvider
from stockyard.errors import InsufficientCapacity
from stockyard.operations.explain_claim import explain_claim
from stockyard.operations.node_catalog import load, state
from stockyard.ports import Create, Outcome
from stockyard.ports.nodes import EnvironmentWork, NodeWork
from stockyard.providers.nodes.ec2.provider import Ec2Nodes, Ec2NodesConfig
from stockyard.scheduling.order import fair
from tests.properties import oracle
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

TYPES = {"t3.medium": (2, 4, 0.0416), "m6i.large": (2, 8, 0.096), "m6i.xlarge": (4, 16, 0.192)}
"""Instance type -> cpus, GiB of memory, USD an hour."""
ONE: dict[str, Any] = {"resources": {"cpu": "1"}}
CLUSTER = "clu_01KDVJXQ80000000000000000A"


def _offers(region: str) -> RegionOffers:
    rows = [InstanceOffer(name, cpu, gib * 1024, "x86_64", 3, 10, usd) for name, (cpu, gib, usd) in TYPES.items()]
    return RegionOffers(region, "2026", {row.name: row for row in rows})


class Empty(Ec2Nodes):
    """EC2 that has no machine just now, for clusters with a subnet in one zone."""

    def prepare(self, work: EnvironmentWork) -> Outcome:
        facts = {"subnets": "subnet-1=us-east-1a", "provider_generation": str(work.provider.generation)}
        return Outcome(True, "Nodes stand in one subnet.", facts=facts)

    def launch(self, work: NodeWork) -> Outcome:
        assert work.claim.placement is not None
        name = work.claim.placement.type.removeprefix(f"{work.provider.name}.")
        raise InsufficientCapacity("none is left", code="NoneLeft", refused=[(name, "on-demand", ANY)])


@pytest.fixture
def nodes(world: World) -> Nodes:
    """With a ready cluster in us-east-1 of cloud account 1, and EC2 besides the simulated source."""
    made = Nodes.of(world.registry, world.services, world.clock)
    now = made.services.now()
    settings = {"key_pair": "my-key", "region_name": "us-east-1"}
    cluster = Cluster(CLUSTER, "demo", "d", "k8s", "aws", 1, "demo-1", "ready", settings, now, now)
    made.services.store.commit(Create(cluster))
    config = Ec2NodesConfig("vantage", "1.34", "https://api.example", 60)
    ec2 = Empty(config, boto3.Session, _offers)
    made.services = replace(made.services, sources={**made.services.sources, "ec2": ec2})
    return made


def _aws(nodes: Nodes, *types: dict[str, Any], name: str = "aws", **block: Any) -> NodeProvider:
    usual = {"cloudAccount": 1, "region": "us-east-1", "capacityTypes": ["on-demand"], "instanceTypes": ["*"]}
    return nodes.provider(name, *types, kind="ec2", block={**usual, **block})


def _lab(name: str, usd: float, limit: int | None = None, cpu: int = 2, gib: int = 4) -> dict[str, Any]:
    limited = {} if limit is None else {"maxCapacity": limit}
    return {"name": name, "resources": {"cpu": str(cpu), "memory": f"{gib}Gi"}, "usdPerHour": usd, **limited}


def _claims(nodes: Nodes, *wishes: dict[str, Any]) -> list[NodeClaim]:
    """One claim a wish; the first one is the oldest."""
    made = []
    for number, wish in enumerate(wishes):
        made.append(nodes.claim(f"c{number}", cluster_ref=CLUSTER, **wish))
        nodes.clock.advance(1)
    assert [one.id for one in fair(made)] == [one.id for one in made]
    return made


def _landed(nodes: Nodes, claims: list[NodeClaim]) -> list[str]:
    return [nodes.now(claim).type_ref for claim in claims]


# --- the oracle ------------------------------------------------------------------------------------------------------


def _plain(kind: NodeKind) -> dict[str, Any]:
    """A node type as the oracle reads it."""
    return {
        "name": kind.name,
        "provider": kind.provider,
        "bare": kind.bare,
        "properties": {key: list(values) for key, values in kind.properties.items()},
        "capacity": dict(kind.capacity),
        "allocatable": dict(kind.allocatable),
        "cost": kind.cost,
        "cost_given": kind.cost_given,
        "unit_price": kind.unit_price,
        "offerings": [
            {"capacity_type": one.capacity_type, "zones": list(one.zones), "usd_hour": one.usd_hour}
            for one in kind.offerings
        ],
        "limited": kind.limited,
        "available": kind.available,
    }


def _problem(nodes: Nodes, wishes: list[dict[str, Any]], away: tuple[str, ...] = ()) -> dict[str, Any]:
    """What stands in the table now and these wishes, as plain data. ``away``: providers of another network."""
    catalog = load(nodes.services)
    now = state(nodes.services, catalog, nodes.services.clock.now())
    claims = [
        {
            "requirements": list(wish.get("requirements", ())),
            "resources": {name: int(float(amount) * 1000) for name, amount in wish["resources"].items()},
            "provider": None,
            "allowed": None,
            "out_of_reach": list(away),
        }
        for wish in wishes
    ]
    kinds = [_plain(kind) for kind in catalog.kinds.values()]
    return {"kinds": kinds, "claims": claims, "free": dict(now.free), "refused": [list(one) for one in now.refused]}


def _verdicts_are_the_oracles(nodes: Nodes, claim: NodeClaim, wish: dict[str, Any], away: tuple[str, ...] = ()) -> None:
    """As things stand now: which types fit, in which order, for how much; and of the others that each has a reason."""
    problem = _problem(nodes, [wish], away)
    (one,) = problem["claims"]
    right: dict[str, float | None] = {}
    for (priceless, price), name, *_ in oracle.possible(problem, one, dict(problem["free"])):
        right.setdefault(name, None if priceless else price)
    told = explain_claim(nodes.services, claim.id)["candidates"]
    assert {verdict["type"] for verdict in told} == {kind["name"] for kind in problem["kinds"]}
    assert [(v["type"], v["usd_hour"]) for v in told if v["rule"] is None] == list(right.items())
    assert all(verdict["message"] for verdict in told)


# --- what has to be seen ---------------------------------------------------------------------------------------------


def test_ec2_is_taken_while_it_is_cheapest_and_has_room_and_the_next_in_the_same_pass(nodes: Nodes) -> None:
    aws = _aws(nodes, {"name": "t3.medium", "maxCapacity": 2}, instanceTypes=["t3.*"])
    nodes.provider("lab", _lab("small", 0.05))
    claims = _claims(nodes, *[ONE] * 5)
    assert nodes.schedule() == {"bound": 5, "waiting": 0, "lost": 0, "left": 0}
    assert _landed(nodes, claims) == ["aws.t3.medium"] * 2 + ["lab.small"] * 3
    assert nodes.used(aws, "t3.medium") == 2
    told = explain_claim(nodes.services, claims[4].id)
    found = {one["type"]: (one["usd_hour"], one["rule"], one["message"]) for one in told["candidates"]}
    assert found == {
        "lab.small": (0.05, None, "the cheapest that fits"),
        "aws.t3.medium": (0.0416, "Full", "all its nodes are taken"),
    }
    assert (told["chosen"]["type"], told["chosen"]["usd_hour"]) == ("lab.small", 0.05)
    assert told["considered"] == {"Fits": 1, "Full": 1}
    first = explain_claim(nodes.services, claims[0].id)
    assert (first["chosen"]["type"], first["considered"]) == ("aws.t3.medium", {"Fits": 2})
    _verdicts_are_the_oracles(nodes, claims[4], ONE)


def test_the_simulated_one_is_taken_while_it_is_cheapest_and_then_ec2(nodes: Nodes) -> None:
    _aws(nodes)
    lab = nodes.provider("lab", _lab("small", 0.01, 1))
    claims = _claims(nodes, *[ONE] * 3)
    assert nodes.schedule()["bound"] == 3
    assert _landed(nodes, claims) == ["lab.small", "aws.t3.medium", "aws.t3.medium"]
    assert nodes.used(lab, "small") == 1
    placed = nodes.now(claims[1]).placement
    assert placed is not None
    assert [one["type"] for one in placed.options] == ["aws.t3.medium", "aws.m6i.large", "aws.m6i.xlarge"]
    _verdicts_are_the_oracles(nodes, claims[1], ONE)


def test_what_ec2_refused_is_remembered_and_the_next_is_taken_in_one_pass(nodes: Nodes) -> None:
    """One launch was refused: one look of the scheduler brings that claim and another one to the other provider."""
    _aws(nodes, instanceTypes=["t3.*"])
    nodes.provider("lab", _lab("small", 0.05), block={"launchSeconds": 0, "joinSeconds": 0})
    (first,) = _claims(nodes, ONE)
    assert nodes.schedule()["bound"] == 1
    assert _landed(nodes, [first]) == ["aws.t3.medium"]
    nodes.relay()
    second = nodes.claim("second", cluster_ref=CLUSTER, **ONE)
    assert nodes.schedule() == {"bound": 2, "waiting": 0, "lost": 0, "left": 0}
    assert _landed(nodes, [first, second]) == ["lab.small"] * 2
    told = explain_claim(nodes.services, second.id)
    found = {one["type"]: (one["usd_hour"], one["rule"]) for one in told["candidates"]}
    assert found == {"lab.small": (0.05, None), "aws.t3.medium": (0.0416, "RefusedRecently")}
    assert told["considered"] == {"Fits": 1, "RefusedRecently": 1}
    _verdicts_are_the_oracles(nodes, second, ONE)


def test_ec2_of_another_network_is_not_taken_and_says_why(nodes: Nodes) -> None:
    _aws(nodes, name="west", region="us-west-2")
    nodes.provider("lab", _lab("small", 0.5))
    claims = _claims(nodes, ONE, ONE)
    assert nodes.schedule()["bound"] == 2
    assert _landed(nodes, claims) == ["lab.small"] * 2
    told = explain_claim(nodes.services, claims[0].id)
    assert {one["type"]: one["rule"] for one in told["candidates"]}["west.t3.medium"] == "OutOfReach"
    _verdicts_are_the_oracles(nodes, claims[0], ONE, away=("west",))
    alone = nodes.claim("alone", provider_ref="west", cluster_ref=CLUSTER)
    homeless = nodes.claim("homeless", **ONE)
    nodes.schedule()
    assert nodes.now(alone).reason == "ProviderOutOfReach"
    assert "us-west-2 of cloud account 1" in nodes.now(alone).message
    assert nodes.now(homeless).type_ref == "lab.small"


def test_what_one_network_rules_out_is_not_told_of_a_claim_elsewhere(nodes: Nodes) -> None:
    """Equal wishes of one pass, of clusters in two regions."""
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
    (inside,) = _claims(nodes, ONE)
    outside = nodes.claim("outside", cluster_ref=there.id, **ONE)
    assert nodes.schedule()["bound"] == 2
    considered = [placed.considered for one in (inside, outside) if (placed := nodes.now(one).placement)]
    assert ["OutOfReach" in one for one in considered] == [True, False]


def _in_zone(zone: str) -> dict[str, Any]:
    return {**ONE, "requirements": ({"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]},)}


def test_a_zone_of_another_provider_is_not_looked_for_in_ec2(nodes: Nodes) -> None:
    _aws(nodes)
    nodes.provider("lab", {**_lab("small", 0.5), "zones": ["yard-a"]})
    there, nowhere = _claims(nodes, _in_zone("yard-a"), _in_zone("nowhere"))
    alone = nodes.claim("alone", provider_ref="aws", cluster_ref=CLUSTER, **_in_zone("yard-a"))
    assert nodes.schedule() == {"bound": 1, "waiting": 2, "lost": 0, "left": 0}
    assert nodes.now(there).type_ref == "lab.small"
    told = explain_claim(nodes.services, there.id)
    assert {one["type"]: one["rule"] for one in told["candidates"]}["aws.t3.medium"] == "OutOfReach"
    _verdicts_are_the_oracles(nodes, there, _in_zone("yard-a"), away=("aws",))
    assert nodes.now(nowhere).reason == "NoMatchingNodeType"
    assert nodes.now(alone).reason == "ProviderOutOfReach"
    assert "aws stand in us-east-1; the claim asks for another zone" in nodes.now(alone).message


def test_a_zone_without_a_subnet_of_the_cluster_is_left_to_the_next_provider(nodes: Nodes) -> None:
    """It is known only when the cluster's environment has been made: the first claim goes back to the scheduler."""
    _aws(nodes)
    lab = {**_lab("small", 0.5), "zones": ["us-east-1c"]}
    nodes.provider("lab", lab, block={"launchSeconds": 0, "joinSeconds": 0})
    (first,) = _claims(nodes, _in_zone("us-east-1c"))
    nodes.schedule()
    assert nodes.now(first).type_ref == "aws.t3.medium"
    nodes.relay()
    assert (nodes.now(first).phase, nodes.now(first).type_ref) == ("Pending", "")
    assert nodes.services.scarcity is not None
    assert not nodes.services.scarcity.refused("ec2/us-east-1", nodes.services.clock.now())
    second = nodes.claim("second", cluster_ref=CLUSTER, **_in_zone("us-east-1c"))
    alone = nodes.claim("alone", provider_ref="aws", cluster_ref=CLUSTER, **_in_zone("us-east-1c"))
    nodes.schedule()
    assert _landed(nodes, [first, second]) == ["lab.small"] * 2
    assert "stand in us-east-1a; the claim asks for another zone" in nodes.now(alone).message
    nodes.relay()
    assert nodes.now(first).phase == "Available"


@pytest.mark.parametrize("number", range(12))
def test_every_claim_of_a_pass_lands_where_the_oracle_says(nodes: Nodes, seed: int, number: int) -> None:
    """Two providers of EC2 and two others, prices that collide, limits, refusals, claims that ask for this and that."""
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
    assert nodes.services.scarcity is not None
    for name in TYPES:
        if chance.random() < 0.4:
            way = (name, "on-demand", "*")
            nodes.services.scarcity.remember("ec2/us-east-1", [way], "x", nodes.services.clock.now())
    asked = [
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
    claims = _claims(nodes, *asked)
    expected = [ways[0][0] if ways else "" for ways in oracle.solve(_problem(nodes, asked, ("west",)))]
    nodes.schedule()
    assert _landed(nodes, claims) == expected
    assert len(set(expected)) > 1
    for claim, wish in zip(claims, asked, strict=True):
        _verdicts_are_the_oracles(nodes, claim, wish, ("west",))
