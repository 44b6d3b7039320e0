"""Nodes that have drifted are replaced: empty ones first, and none is made that their pods do not need."""

from __future__ import annotations

from tests.unit.operations.fleet.disruption.conftest import Pods, pod
from tests.unit.operations.fleet.disruption.test_run import LARGE, NOW, drift, idle


def test_drifted_nodes_with_pods_are_replaced(pods: Pods) -> None:
    idle(pods, 1)
    pods.on[next(iter(pods.on))] = [pod("7500m")]
    old = pods.claims()
    drift(pods, old)
    pods.fewest = 10
    pods.run(10)
    assert pods.types() == [LARGE]
    assert pods.claims()[0].id != old[0].id
    assert pods.fewest == 1
    assert not pods.waiting


def test_of_empty_nodes_those_that_have_drifted_go_first(pods: Pods) -> None:
    idle(pods, 4, floor=2, disruption={**NOW, "budgets": [{"nodes": "1"}, {"nodes": "0", "reasons": ["Drifted"]}]})
    pods.on = {name: [] for name in pods.on}
    *_, first, second = sorted(pods.claims(), key=lambda claim: claim.node_name)
    drift(pods, [first, second])
    pods.run(12)
    assert len(pods.claims()) == 2
    assert not {first.id, second.id} & {claim.id for claim in pods.claims()}


def test_an_empty_node_is_kept_for_the_pods_of_one_that_has_drifted(pods: Pods) -> None:
    idle(pods, 2)
    old, new = sorted(pods.claims(), key=lambda claim: claim.node_name)
    pods.on = {str(old.node_name): [pod("7500m")], str(new.node_name): []}
    drift(pods, [old])
    pods.run(8)
    assert [claim.id for claim in pods.claims()] == [new.id], "no third node was made"
    assert "Drifted: 1 nodes go" in pods.record().message
