"""Spot and arm64 come when pool, claim or pods ask; plans and explanations say what asking would save."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.pools.pools import PoolCreate
from stockyard.domain.models.pools.simulations import SimulationRequest
from stockyard.domain.nodes.records import NewClaim
from stockyard.domain.values.requirements import ARCH, CAPACITY_TYPE, INSTANCE_TYPE
from stockyard.operations.fleet.explain import explain_claim, plan_claim
from stockyard.operations.fleet.pools.placements import plan_placements
from stockyard.operations.fleet.pools.plan import plan_pool
from stockyard.operations.fleet.pools.simulations import simulate
from tests.unit.operations.fleet.pools.conftest import Yard
from tests.unit.operations.fleet.pools.test_placements import deployment, plan

SPOT, ARM = {CAPACITY_TYPE: "spot"}, {ARCH: "arm64"}
RESOURCES = {"cpu": "2", "memory": "4Gi"}


@pytest.fixture
def market(yard: Yard) -> Yard:
    """Beside the types of the yard, which tell no architecture: amd64 at 0.05 and as spot at 0.02, arm64 at 0.03 and as
    spot at 0.01."""
    yard.nodes.provider(
        "lab",
        {
            "name": "amd",
            "resources": RESOURCES,
            "properties": {ARCH: "amd64"},
            "usdPerHour": 0.05,
            "spotUsdPerHour": 0.02,
        },
        {"name": "arm", "resources": RESOURCES, "properties": ARM, "usdPerHour": 0.03, "spotUsdPerHour": 0.01},
    )
    return yard


def ways(document: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Type and capacity type of each node, by the app of its pods."""
    return {
        name.partition("/")[2].rpartition("-")[0]: (node["type"], node["capacity_type"])
        for node in document["nodes"]
        for name in node["pods"]
    }


@pytest.mark.parametrize("everywhere", [False, True])
def test_pods_get_what_they_ask_for_and_others_what_nodes_are(market: Yard, everywhere: bool) -> None:
    market.dynamic_pool("burst")
    prefers = [
        {"weight": 1, "preference": {"matchExpressions": [{"key": ARCH, "operator": "In", "values": ["arm64"]}]}}
    ]
    document = plan(
        market,
        deployment("plain", 1, "1500m"),
        deployment("spot", 1, "1500m", nodeSelector=SPOT),
        deployment("arm", 1, "1500m", nodeSelector=ARM),
        deployment("both", 1, "1500m", nodeSelector={**SPOT, **ARM}),
        deployment("named", 1, "1500m", nodeSelector={INSTANCE_TYPE: "lab.arm"}),
        deployment(
            "prefers",
            1,
            "1500m",
            affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": prefers}},
        ),
        everywhere=everywhere,
    )
    assert ways(document) == {
        "plain": ("lab.amd", "on-demand"),
        "spot": ("lab.amd", "spot"),
        "arm": ("lab.arm", "on-demand"),
        "both": ("lab.arm", "spot"),
        "named": ("lab.arm", "on-demand"),
        "prefers": ("lab.arm", "on-demand"),
    }
    assert not document["left_out"]


def test_small_pods_do_not_join_the_nodes_of_those_that_ask(market: Yard) -> None:
    """A node that is made because one pod asks for spot is for pods that ask, though others would have room there."""
    market.dynamic_pool("burst")
    document = plan(market, deployment("asks", 1, "500m", nodeSelector=SPOT), deployment("plain", 1, "500m"))
    assert ways(document) == {"asks": ("lab.amd", "spot"), "plain": ("lab.amd", "on-demand")}


def test_a_pool_that_asks_asks_for_all_its_pods(market: Yard) -> None:
    market.dynamic_pool("any", requirements=[{"key": CAPACITY_TYPE, "operator": "Exists"}])
    assert ways(plan(market, deployment("plain", 1, "1500m"))) == {"plain": ("lab.amd", "spot")}


def test_pods_that_nothing_fits_hear_by_which_label_to_ask(market: Yard) -> None:
    market.nodes.provider("lone", {"name": "arm", "resources": {"cpu": "64", "memory": "64Gi"}, "properties": ARM})
    market.dynamic_pool("lone", provider="lone")
    ((reason,),) = (entry["reasons"] for entry in plan(market, deployment("plain", 1, "32"))["left_out"])
    assert (reason["rule"], f"Others have to be asked for by {ARCH}." in reason["message"]) == ("NoNodeTypes", True)
    second = deployment("arm", 1, "32", nodeSelector=ARM)
    (left_out,) = plan(market, deployment("plain", 1, "32"), second)["left_out"]
    ((rule, subject, message),) = ((r["rule"], r["subject"], r["message"]) for r in left_out["reasons"])
    assert (rule, subject) == ("Requirement", ARCH)
    assert message == f"The nodes that would do are not amd64, and neither pod nor pool asks for others by {ARCH}."


def test_plans_of_pods_say_what_asking_would_save(market: Yard) -> None:
    market.dynamic_pool("burst")
    document = plan(market, deployment("plain", 2, "1500m"))
    text = "Cheaper when asked for: spot from 0.0400, arm64 from 0.0600 USD an hour"
    assert document["opt_in"] == f"{text} (by {CAPACITY_TYPE} and {ARCH})."
    assert document["usd_hour"] == pytest.approx(0.1)
    asking = plan(market, deployment("both", 2, "1500m", nodeSelector={**SPOT, **ARM}))
    assert (asking["opt_in"], plan(market, deployment("none", 0))["opt_in"]) == ("", "")
    market.nodes.provider("cheap", {"name": "any", "resources": RESOURCES, "usdPerHour": 0.001})
    assert plan_placements(market.nodes.services, None, [deployment()])["opt_in"] == ""


def test_claims_and_pools_are_on_demand_and_of_amd64_and_say_what_asking_would_save(market: Yard) -> None:
    services, text = market.nodes.services, "Cheaper when asked for: spot from 0.0200, arm64 from 0.0300 USD an hour"
    verdict = plan_claim(services, NewClaim(cluster_ref=market.cluster.id))["verdict"]
    assert verdict.startswith("lab.amd (on-demand) at 0.05 USD an hour: the cheapest of ")
    assert verdict.endswith(f"{text} (by {CAPACITY_TYPE} and {ARCH}).")
    claim = market.nodes.claim("one", cluster_ref=market.cluster.id)
    market.nodes.schedule()
    explanation = explain_claim(services, claim.name)
    assert explanation["chosen"]["type"] == "lab.amd"
    assert explanation["opt_in"].startswith(text)
    arm = next(each for each in explanation["candidates"] if each["type"] == "lab.arm")
    why_not = f"it is arm64, and nobody asks for that by {ARCH}: without it nodes are amd64"
    assert (arm["rule"], arm["message"]) == ("NotAskedFor", why_not)
    for body in ({"quantity": 2}, {"floor": 2}):
        pool = read(PoolCreate, {"name": "web", **body}).new_pool()
        document = plan_pool(services, market.current(), pool)
        assert [item["name"] for item in document["price"]["items"]] == ["lab.amd (on-demand)"]
        assert text in document["verdict"]
        spot = replace(pool, requirements=({"key": CAPACITY_TYPE, "operator": "In", "values": ["spot"]},))
        document = plan_pool(services, market.current(), spot)
        assert [item["name"] for item in document["price"]["items"]] == ["lab.amd (spot)"]


def test_a_bid_asks_for_spot(market: Yard) -> None:
    claim = market.nodes.claim("one", cluster_ref=market.cluster.id, max_price={"usd_hour": 0.021})
    market.nodes.schedule()
    placement = market.nodes.now(claim).placement
    assert placement is not None
    assert (placement.type, placement.capacity_type) == ("lab.amd", "spot")


def test_a_dynamic_pool_whose_types_all_have_to_be_asked_for_is_for_pods_that_ask(market: Yard) -> None:
    market.nodes.provider("lone", {"name": "arm", "resources": RESOURCES, "properties": ARM})
    pool = read(PoolCreate, {"name": "web", "provider": "lone"}).new_pool()
    document = plan_pool(market.nodes.services, market.current(), pool)
    assert document["verdict"] == f"1 node type is left, for pods that ask for {ARCH}."
    market.dynamic_pool("web", provider="lone")
    market.pool("fixed", provider="lone", quantity=1)
    market.look()
    assert market.condition(market.now("web"))[0] == "True"
    status, reason, message = market.condition(market.now("fixed"))
    assert (status, reason) == ("False", "NoNodeTypes")
    assert f"it is arm64, and nobody asks for that by {ARCH}" in message


@pytest.mark.parametrize(("asks", "usd"), [({}, 0.1), (SPOT, 0.04)])
def test_replays_follow_the_same_defaults(market: Yard, asks: dict[str, str], usd: float) -> None:
    pod = deployment("web", 1, "1500m", nodeSelector=asks)
    trace = {
        "startsAt": "2026-01-05T00:00:00Z",
        "until": "1h",
        "nodeTypes": [{"name": "a", "resources": RESOURCES, "usdPerHour": 0.1, "spotUsdPerHour": 0.04}],
        "events": [{"at": "0s", "arrive": [pod]}],
    }
    outcome = simulate(market.nodes.services, None, SimulationRequest.model_validate(trace))
    assert outcome["usd"] == pytest.approx(usd, rel=0.1)
