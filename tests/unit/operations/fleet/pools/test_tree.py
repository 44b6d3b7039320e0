"""The tree of a cluster shows its pools, their claims and nodes, and the costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from stockyard.domain.models.clusters.views import TreeNode
from stockyard.domain.models.pools.pools import PoolPatch
from stockyard.operations.clusters import tree
from stockyard.operations.clusters.tree import cluster_tree
from stockyard.operations.costs.report import report
from stockyard.operations.fleet.pools import pools
from tests.unit.operations.fleet.pools.conftest import USER, Yard


def drawn(yard: Yard) -> dict[str, Any]:
    document = cluster_tree(yard.nodes.services, yard.current())
    TreeNode.model_validate(document)
    return document


def of_kind(document: dict[str, Any], kind: str) -> Sequence[dict[str, Any]]:
    return [child for child in document["children"] if child["kind"] == kind]


def test_pools_stand_with_claims_nodes_and_prices(yard: Yard) -> None:
    yard.pool(quantity=2)
    large = [{"key": "vcluster.com/node-type", "values": ["sim.large"]}]
    yard.dynamic_pool("spare", floor=1, requirements=large)
    yard.nodes.claim("alone", cluster_ref=yard.cluster.id, resources={"cpu": "900"})
    assert [pool["status"] for pool in of_kind(drawn(yard), "pool")] == ["Preparing", "Preparing"]
    yard.settle()
    document = drawn(yard)
    spare, workers = of_kind(document, "pool")
    assert [(pool["name"], pool["type"], pool["status"], pool["usd_hour"]) for pool in (spare, workers)] == [
        ("spare", "dynamic", "Ready", 0.3),
        ("workers", "static", "Ready", 0.2),
    ]
    assert workers["message"] == "2 of 2 nodes are available."
    (claim,) = of_kind(spare, "node-claim")
    assert (claim["status"], claim["type"], claim["usd_hour"]) == ("Available", "sim.large", 0.3)
    (node,) = claim["children"]
    assert (node["kind"], node["status"], bool(node["name"])) == ("node", "Available", True)
    (alone,) = of_kind(document, "node-claim")
    assert (alone["name"], alone["status"], alone["usd_hour"]) == ("alone", "Pending", None)
    (beside,) = of_kind(document, "billed")
    assert document["usd_hour"] == report(yard.nodes.services, yard.current())["hour"]
    assert document["usd_hour"] == pytest.approx(0.5 + beside["usd_hour"]), "the sum of all nodes and what is beside"


def test_a_cluster_without_nodes_costs_nothing_for_them(yard: Yard) -> None:
    (beside,) = of_kind(drawn(yard), "billed")
    assert (drawn(yard)["usd_hour"], of_kind(drawn(yard), "pool")) == (beside["usd_hour"], [])


def test_of_many_claims_those_are_shown_that_are_not_there_yet(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MOST_CLAIMS", 1)
    yard.pool(quantity=1)
    yard.settle()
    (before,) = yard.claims()
    services, pool = yard.nodes.services, yard.now()
    pools.change_pool(services, yard.current(), pool, pool.version, PoolPatch(quantity=3).apply_to(pool), USER, "r")
    yard.look()
    (workers,) = of_kind(drawn(yard), "pool")
    first, more = workers["children"]
    assert (first["kind"], first["status"], first["name"] != before.name) == ("node-claim", "Pending", True)
    assert (more["kind"], more["name"]) == ("more", "2 more node claims")
