"""Cures of a claim that waits: each that is named gets a machine when it is asked for, and nothing else is named."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.nodes.explanations import ExplanationView
from stockyard.domain.models.nodes.node_claims import NodeClaimCreate
from stockyard.domain.records import NodeClaim
from stockyard.domain.values.requirements import CAPACITY_TYPE
from stockyard.operations.fleet.cures import MOST_CURES, cures_of
from stockyard.operations.fleet.explain import explain_claim, plan_claim
from tests.unit.operations.fleet.pools.conftest import Yard


def waits(yard: Yard, **fields: Any) -> NodeClaim:
    claim = yard.nodes.claim("waits", cluster_ref=yard.cluster.name, **fields)
    yard.nodes.schedule()
    claim = yard.nodes.now(claim)
    assert claim.placement is None
    return claim


CASES: list[tuple[dict[str, Any], list[tuple[str, str]]]] = [
    ({"resources": {"cpu": "16"}}, [("with 8 of cpu", "sim.large")]),
    ({"resources": {"cpu": "16", "memory": "8Gi"}}, [("with 8 of cpu", "sim.large")]),
    ({"resources": {"cpu": "16", "memory": "64Gi"}}, [("with 8 of cpu, 32Gi of memory", "sim.large")]),
    ({"resources": {"cpu": "1", "nvidia.com/gpu": "1"}}, [("with nothing of nvidia.com/gpu", "sim.small")]),
    (
        {"requirements": ({"key": "color", "operator": "In", "values": ["red"]},)},
        [("without color", "sim.small")],
    ),
    (
        {"requirements": ({"key": CAPACITY_TYPE, "operator": "In", "values": ["spot"]},)},
        [(f"without {CAPACITY_TYPE}", "sim.small")],
    ),
]


def test_each_cure_gets_a_machine_when_it_is_asked_for(yard: Yard) -> None:
    for fields, expected in CASES:
        claim = waits(yard, **fields)
        document = cures_of(yard.nodes.services, claim)
        assert [(cure["change"], cure["type"]) for cure in document["cures"]] == expected, fields
        for cure in document["cures"]:
            body = read(NodeClaimCreate, cure["body"])
            plan = plan_claim(yard.nodes.services, body.new_claim())
            assert plan["creates"][-1] == {"kind": "node", "name": cure["type"]}
            assert plan["price"]["hour"] == pytest.approx(cure["usd_hour"])
        yard.nodes.delete(claim)
        yard.nodes.relay()


def test_a_claim_may_be_cured_by_another_provider_or_cluster(yard: Yard) -> None:
    yard.nodes.provider("tiny", {"name": "t", "resources": {"cpu": "1", "memory": "4Gi"}})
    claim = waits(yard, provider_ref="tiny", resources={"cpu": "2"})
    changes = [cure["change"] for cure in cures_of(yard.nodes.services, claim)["cures"]]
    assert changes == ["from any provider", "with 1 of cpu"]
    other = yard.world.create("other")
    claim = yard.nodes.claim("early", cluster_ref=other.name, resources={"cpu": "2"})
    yard.nodes.schedule()
    document = cures_of(yard.nodes.services, yard.nodes.now(claim))
    assert [cure["change"] for cure in document["cures"]] == [f"in cluster {yard.cluster.name}"]
    assert document["passing"] == ["It gets sim.small as soon as its cluster is ready."]


def test_what_passes_by_itself_is_told_with_its_moment(yard: Yard) -> None:
    yard.nodes.provider("few", {"name": "one", "resources": {"cpu": "2", "memory": "4Gi"}, "maxCapacity": 0})
    claim = waits(yard, provider_ref="few")
    document = cures_of(yard.nodes.services, claim)
    assert document["passing"] == ["All nodes of few.one are taken: the next that is given back is one for it."]
    sim = yard.nodes.provider("late", {"name": "one", "resources": {"cpu": "2", "memory": "4Gi"}})
    scarce, now = yard.nodes.services.unavailable_offerings, yard.nodes.services.clock.now()
    assert scarce is not None
    scarce.remember(f"provider/{sim.id}", [("one", "on-demand", "*")], "NoRoom", now)
    claim = yard.nodes.claim("second", cluster_ref=yard.cluster.name, provider_ref="late")
    yard.nodes.schedule()
    (sentence,) = cures_of(yard.nodes.services, yard.nodes.now(claim))["passing"]
    (refused,) = scarce.remembered(f"provider/{sim.id}", now)
    assert sentence == f"late.one was refused a short while ago; it is tried again from {refused.until} on."
    assert (refused.type, refused.capacity_type, refused.zone, refused.reason) == ("one", "on-demand", "*", "NoRoom")


def test_at_most_six_cures_are_named_and_none_for_a_claim_with_a_machine(yard: Yard) -> None:
    keys = [{"key": f"k{n}", "operator": "DoesNotExist"} for n in range(20)]
    claim = waits(yard, provider_ref="sim", resources={"cpu": "16"}, requirements=tuple(keys))
    document = cures_of(yard.nodes.services, claim)
    assert len(document["cures"]) <= MOST_CURES
    assert document["tried"] == 16
    placed = yard.nodes.claim("placed", cluster_ref=yard.cluster.name)
    yard.nodes.schedule()
    assert cures_of(yard.nodes.services, yard.nodes.now(placed)) == {"tried": 0, "cures": [], "passing": []}


def test_the_bound_of_a_claim_is_the_least_that_fits_now(yard: Yard) -> None:
    claim = yard.nodes.claim("one", cluster_ref=yard.cluster.name, resources={"cpu": "2"})
    yard.nodes.schedule()
    explained = explain_claim(yard.nodes.services, claim.id)
    assert (explained["bound"], explained["gap"], explained["cures"]) == (0.1, 0.0, None)
    yard.nodes.provider("cheap", {"name": "c", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.05})
    explained = explain_claim(yard.nodes.services, claim.id, with_cures=True)
    assert (explained["bound"], explained["gap"]) == (0.05, 1.0)
    ExplanationView.model_validate(explained)
    yard.nodes.provider("dark", {"name": "d", "resources": {"cpu": "2", "memory": "4Gi"}})
    explained = explain_claim(yard.nodes.services, claim.id)
    assert (explained["bound"], explained["gap"]) == (None, None), "what costs an unknown price may be the least"
    stuck = waits(yard, resources={"cpu": "64"})
    explained = explain_claim(yard.nodes.services, stuck.id, with_cures=True)
    assert (explained["bound"], explained["gap"]) == (None, None)
    assert [cure["change"] for cure in explained["cures"]["cures"]] == ["with 8 of cpu"]
